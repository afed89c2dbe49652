"""Show that a change leaves plans and kernels as they were: digests of both over a fixed list of problems.

Usage: python tools/ir_diff.py write FILE [--source DIR] [--quick]
       python tools/ir_diff.py compare OLD NEW
       python tools/ir_diff.py against REVISION [--quick]

`write` plans every shape of the list for every operation, dtype, layout and target with every algorithm that takes it,
writes each kernel down, and keeps one digest per plan, step and kernel. `compare` names what differs (status 1).
`against` does both for a revision of this repository and the working tree. `--source` takes the package from another
checkout; the list of shapes is always this tool's own.

What kernels and their identities are called does not count: a class may be renamed and a file moved. All numbers do.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

_Case = tuple[bool, int, tuple[int, int], int, int, int, tuple[int, int], int, int, Any]
"""Depthwise, batch, size, groups, channels of a group in and out, window, stride, dilation, padding."""

_DEPTHWISE = (
    # Layers of MobileNet, EfficientNet, ConvNeXt and RepLKNet, then what takes a path of its own in some kernel.
    (8, (112, 112), 32, 1, (3, 3), 1, 1, "SAME"),
    (8, (112, 112), 96, 1, (3, 3), 2, 1, "SAME"),
    (1, (56, 56), 144, 1, (3, 3), 1, 1, "SAME"),
    (8, (28, 28), 240, 1, (5, 5), 1, 1, "SAME"),
    (8, (14, 14), 512, 1, (3, 3), 1, 1, "SAME"),
    (8, (14, 14), 480, 1, (5, 5), 2, 1, "SAME"),
    (32, (7, 7), 960, 1, (3, 3), 1, 1, "SAME"),
    (2, (14, 14), 384, 1, (7, 7), 1, 1, "SAME"),
    (1, (20, 20), 16, 1, (31, 31), 1, 1, "SAME"),
    (1, (12, 61), 72, 1, (9, 7), 1, 1, "SAME"),
    (1, (30, 121), 33, 1, (7, 7), 3, 1, "SAME"),
    (2, (23, 29), 9, 1, (2, 3), 5, 1, "VALID"),
    (1, (6, 5), 8, 1, (3, 3), 1, 2**30, "SAME"),
    (1, (4, 5), 8, 1, (3, 2), 2, 1, ((9, 4), (3, 20))),
    (1, (33, 33), 16, 1, (3, 3), 1, 12, "SAME"),
    (1, (1, 700), 9, 1, (1, 9), 1, 3, "SAME"),
    (1, (9, 20), 37, 2, (3, 3), 1, 1, "SAME"),
    (2, (9, 9), 1, 40, (3, 3), 1, 1, "SAME"),
    (2, (64, 64), 1, 1, (3, 3), 1, 1, "SAME"),
    (1, (8, 8), 8, 1, (3, 3), 1, 1, "SAME"),
)
_DENSE = (
    # ResNet, MobileNet, ResNeXt, first and last layers, then odd ones.
    (8, (224, 224), 1, 3, 64, (7, 7), 2, 1, "SAME"),
    (8, (56, 56), 1, 64, 64, (3, 3), 1, 1, "SAME"),
    (8, (56, 56), 1, 64, 256, (1, 1), 1, 1, "SAME"),
    (1, (28, 28), 1, 256, 128, (1, 1), 1, 1, "SAME"),
    (8, (28, 28), 1, 128, 128, (3, 3), 2, 1, "SAME"),
    (8, (14, 14), 1, 256, 256, (3, 3), 1, 1, "SAME"),
    (8, (14, 14), 1, 96, 576, (1, 1), 1, 1, "SAME"),
    (1, (7, 7), 1, 512, 512, (3, 3), 1, 1, "SAME"),
    (32, (7, 7), 1, 160, 960, (1, 1), 1, 1, "SAME"),
    (8, (28, 28), 32, 8, 8, (3, 3), 1, 1, "SAME"),
    (8, (14, 14), 32, 16, 16, (3, 3), 2, 1, "SAME"),
    (1, (9, 9), 32, 4, 4, (3, 3), 1, 1, "SAME"),
    (5, (1, 1), 1, 300, 101, (1, 1), 1, 1, "VALID"),
    (1, (1, 1), 1, 512, 10, (1, 1), 1, 1, "VALID"),
    (2, (15, 14), 1, 64, 1, (3, 3), 1, 1, "SAME"),
    (2, (28, 28), 1, 1, 33, (5, 5), 1, 1, "SAME"),
    (2, (5, 7), 1, 40, 3, (3, 3), 1, 1, "SAME"),
    (1, (17, 19), 1, 32, 33, (3, 3), 1, 6, "SAME"),
    (2, (17, 19), 1, 20, 16, (3, 2), 3, 2, "SAME"),
    (1, (4, 5), 1, 20, 17, (3, 2), 2, 1, ((9, 4), (3, 20))),
    (2, (8, 9), 3, 5, 33, (3, 2), 1, 1, "SAME"),
    (1, (1, 3000), 1, 8, 17, (1, 7), 1, 1, "SAME"),
    (1, (3, 3), 1, 2050, 9, (3, 3), 1, 1, "SAME"),
    (1, (8, 8), 1, 8, 8, (3, 3), 1, 1, "SAME"),
    (1, (1, 1), 1, 1, 1, (1, 1), 1, 1, "VALID"),
)


def cases(quick: bool) -> list[_Case]:
    """Return the fixed list; every fourth entry of it if `quick`."""
    depthwise = [(True, n, hw, c, 1, m, *rest) for n, hw, c, m, *rest in _DEPTHWISE]
    found: list[Any] = depthwise + [(False, *row) for row in _DENSE]
    return found[::4] if quick else found


def digests(quick: bool) -> dict[str, str]:
    """Return one digest per plan, step and kernel of the package that is on the path, by a readable name."""
    from convgrad import _kernels
    from convgrad._engine import planner

    found: dict[str, str] = {}
    kernels: dict[Any, str] = {}
    for name, problem, target in _problems(quick):
        found[f"{name} | chosen"] = planner.choose(problem, target).algorithm
        for algorithm in _kernels.ALGORITHMS:
            try:
                plan = planner.choose_named(problem, target, algorithm)
            except ValueError as error:  # the reason for a refusal may be reworded
                found[f"{name} | {algorithm}"] = "refused" if "does not take" in str(error) else "?"
                continue
            found[f"{name} | {algorithm}"] = _digest(
                plan.partial_bytes, plan.packed_bytes, plan.serial, len(plan.steps)
            )
            for number, step in enumerate(plan.steps):
                key = (step.kernel, target)
                if key not in kernels:
                    source = _kernels.emit(step.kernel, target)
                    text = source.ir.replace(source.symbol, "kernel")
                    kernels[key] = _digest(text, source.scratch_bytes)
                at = f"{name} | {algorithm} {number}"
                found[f"{at} kernel"] = kernels[key]
                found[f"{at} identity"] = _digest(_values(step.kernel))
                found[f"{at} words"] = _digest(step.operands, step.words)
                found[f"{at} table"] = _digest(step.table)
                found[f"{at} launch"] = _digest(step.items, step.grain, step.scratch_bytes)
    return found


def _problems(quick: bool) -> Iterator[tuple[str, Any, Any]]:
    from convgrad._base import dtypes
    from convgrad._compiler import targets as _targets
    from convgrad._problem import convolution
    from convgrad._problem.arguments import FRIENDLY, settings

    targets = [_targets.find(name) for name in ("avx2", "avx512", "sse2", "neon")]
    targets = targets[:2] if quick else targets
    for depthwise, batch, size, groups, cin, cout, window, stride, dilation, padding in cases(
        quick
    ):
        calls = [call for call in convolution.OPS if call.depthwise is depthwise]
        filter_shape = (*window, groups, cout) if depthwise else (*window, cin, groups * cout)
        for layout in ("NHWC", "NCHW"):
            how = settings("ir_diff", FRIENDLY, stride, padding, layout, dilation)
            inner = (*size, groups * cin) if layout == "NHWC" else (groups * cin, *size)
            for dtype in dtypes.DTYPES:
                shapes = ((batch, *inner), filter_shape)
                output = convolution.build(calls[0], how, dtype, *shapes, None).output_shape
                for call, grad in zip(calls, (None, output, output), strict=True):
                    if dtype.is_integer and (depthwise or call is calls[2]):
                        continue
                    problem = convolution.build(call, how, dtype, *shapes, grad)
                    text = f"{call.function} {batch}x{size[0]}x{size[1]} g{groups} {cin}->{cout} "
                    text += f"k{window[0]}x{window[1]} s{stride} d{dilation} {padding} {layout} {dtype.name}"
                    for target in targets:
                        yield f"{text} {target.name}", problem, target


def _values(identity: Any) -> Any:
    """Return an identity's numbers and words by field, without the names of classes.

    A field that came later and is at its default is left out, as in the names of kernels (`kernel.identity_fields`).
    """
    if is_dataclass(identity):
        told = [
            each
            for each in fields(identity)
            if "later" not in each.metadata or getattr(identity, each.name) != each.default
        ]
        return tuple((each.name, _values(getattr(identity, each.name))) for each in told)
    return tuple(map(_values, identity)) if isinstance(identity, tuple) else identity


def _digest(*values: Any) -> str:
    return hashlib.blake2b(repr(values).encode(), digest_size=8).hexdigest()


def compare(old: dict[str, str], new: dict[str, str]) -> int:
    """Print what differs, most telling first, and return how many entries do."""
    wrong = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    kinds = Counter(key.rpartition(" | ")[2] for key in wrong)
    for kind, count in kinds.most_common():
        print(f"{count:6} {kind}")
    for key in wrong[:40]:
        print(f"  {key}: {old.get(key, 'absent')} -> {new.get(key, 'absent')}")
    if len(wrong) > 40:
        print(f"  ... and {len(wrong) - 40} more")
    print(f"{len(old)} entries before, {len(new)} now, {len(wrong)} differ")
    return len(wrong)


def against(revision: str, quick: bool) -> int:
    """Compare the working tree with a revision, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder, "tree")
        subprocess.run(
            ["git", "-C", ROOT, "worktree", "add", "-q", "--detach", there, revision], check=True
        )
        try:
            files = []
            for name, source in (("old", there / "src"), ("new", ROOT / "src")):
                files.append(Path(folder, name))
                command = [sys.executable, __file__, "write", files[-1], "--source", source]
                subprocess.run(command + ["--quick"] * quick, check=True)
            return compare(*(json.loads(file.read_text()) for file in files))
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", there], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    write = verbs.add_parser("write", help="write the digests of one tree")
    write.add_argument("file", type=Path)
    write.add_argument(
        "--source", type=Path, default=ROOT / "src", help="the folder that holds the package"
    )
    both = verbs.add_parser("compare", help="name what differs between two files")
    both.add_argument("old", type=Path)
    both.add_argument("new", type=Path)
    since = verbs.add_parser("against", help="compare the working tree with a revision")
    since.add_argument("revision")
    for verb in (write, since):
        verb.add_argument(
            "--quick", action="store_true", help="a fourth of the shapes, two targets"
        )
    asked = parser.parse_args()
    if asked.verb == "compare":
        return int(compare(*(json.loads(f.read_text()) for f in (asked.old, asked.new))) > 0)
    if asked.verb == "against":
        return int(against(asked.revision, asked.quick) > 0)
    sys.path.insert(0, str(asked.source.resolve()))
    found = digests(asked.quick)
    asked.file.write_text(json.dumps(found, indent=0))
    print(f"{len(found)} entries in {asked.file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
