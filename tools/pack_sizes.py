"""Compare tables with code: bytes of both for networks on every CPU row, and the problems with most table per code.

Usage: python tools/pack_sizes.py [--rows ROW ...] [--batches N ...] [--layouts NHWC NCHW] [--worst N]
                                  [--layers TEXT ...] [NETWORK ...]

A line is one training step: what all its convolutions load, each kernel and each table once. Code is machine code and
its constants, without the rest of an object file. Behind the lines stand the single problems whose tables are largest
beside their own kernels. `--layers` looks at these layers instead of networks, as `convgrad bench` writes them. The
status is 1 if a line has more table than code. Without names, all networks are looked at: some minutes.
"""

from __future__ import annotations

import argparse
import struct
import sys
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from convgrad import _kernels  # noqa: E402
from convgrad._apps.bench.layers import DTYPES, LAYOUTS, OPS, Layer, parse  # noqa: E402
from convgrad._apps.bench.networks import NETWORKS, training_step  # noqa: E402
from convgrad._base.text import aligned  # noqa: E402
from convgrad._compiler import targets  # noqa: E402
from convgrad._compiler.jit import llvm  # noqa: E402
from convgrad._compiler.targets import Target  # noqa: E402
from convgrad._engine import planner  # noqa: E402
from convgrad._kernels.plan import Plan  # noqa: E402
from convgrad._problem import arguments as _arguments  # noqa: E402
from convgrad._problem import convolution  # noqa: E402
from convgrad._problem.convolution import Problem  # noqa: E402

COLUMNS = ("network", "row", "layout", "batch", "problems", "kernels", "code", "tables", "share")
ROWS = tuple(target.name for target in targets.TARGETS)

_ALLOCATED, _PROGBITS = 2, 1


def code_bytes(code: bytes) -> int:
    """Return the bytes of an ELF object that are loaded: machine code and constants, but nothing for unwinding."""
    (table,) = struct.unpack_from("<Q", code, 40)
    count, names = struct.unpack_from("<HH", code, 60)
    headers = [struct.unpack_from("<IIQQQQ", code, table + 64 * i) for i in range(count)]
    total = 0
    for name, kind, flags, _, _, size in headers:
        start = headers[names][4] + name
        unwinding = code[start:].startswith(b".eh_frame\0")
        if kind == _PROGBITS and flags & _ALLOCATED and not unwinding:
            total += size
    return total


def problem_of(layer: Layer, op: str, layout: str, dtype: str = "float32") -> Problem:
    """Return the problem of one operation of a layer."""
    calls = [call for call in convolution.OPS if call.depthwise is not layer.is_dense]
    how = _arguments.settings(
        "sizes", _arguments.FRIENDLY, layer.stride, layer.padding, layout, layer.dilation
    )
    number = OPS.index(op)
    grad = layer.output_shape(layout) if number else None
    shapes = layer.input_shape(layout), layer.filter_shape
    return convolution.build(calls[number], how, DTYPES[dtype], *shapes, grad)


@dataclass(frozen=True)
class Found:
    """A plan and what it was asked for."""

    name: str
    plan: Plan


class Sizes:
    """Sizes of plans for one row; what was compiled once is remembered."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._code: dict[Hashable, int] = {}

    def find(self, wanted: Iterable[tuple[Layer, str]], layout: str) -> Iterator[Found]:
        """Plan the distinct problems among operations of layers."""
        for layer, op in dict.fromkeys(wanted):
            problem = problem_of(layer, op, layout)
            yield Found(f"{layer.text} {op}", planner.choose(problem, self.target))

    def kernel(self, kernel: Hashable) -> int:
        if kernel not in self._code:
            source = _kernels.emit(kernel, self.target)
            self._code[kernel] = code_bytes(llvm.compile_object(source.ir, self.target))
        return self._code[kernel]

    def code(self, plans: Iterable[Plan]) -> int:
        """Return the code of some plans, each kernel counted once."""
        return sum(self.kernel(kernel) for kernel in kernels(plans))


def kernels(plans: Iterable[Plan]) -> set[Hashable]:
    return {step.kernel for plan in plans for step in plan.steps}


def tables(plans: Iterable[Plan]) -> int:
    """Return the bytes of the tables of some plans, each table counted once."""
    return sum(map(len, {step.table for plan in plans for step in plan.steps}))


def _line(
    name: str, sizes: Sizes, layout: str, batch: int | str, found: Sequence[Found]
) -> list[str]:
    plans = [each.plan for each in found]
    code, table = sizes.code(plans), tables(plans)
    numbers = [f"{n:,}" for n in (len(plans), len(kernels(plans)), code, table)]
    return [name, sizes.target.name, layout, str(batch), *numbers, f"{table / max(1, code):.2f}"]


def worst(sizes: Sizes, layout: str, found: Iterable[Found]) -> list[tuple[float, list[str]]]:
    """Return the problems with their tables as a share of their code, and a line of words for each."""
    lines = []
    for each in found:
        table = tables([each.plan])
        if table:
            code = sizes.code([each.plan])
            words = [each.name, sizes.target.name, layout, each.plan.algorithm]
            share = table / code
            lines.append((share, [*words, f"{code:,}", f"{table:,}", f"{share:.2f}"]))
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=", ".join(NETWORKS))
    parser.add_argument("--rows", nargs="+", default=ROWS, choices=ROWS, metavar="ROW")
    parser.add_argument("--batches", nargs="+", type=int, default=(1, 8), metavar="N")
    parser.add_argument("--layouts", nargs="+", default=LAYOUTS, choices=LAYOUTS, metavar="LAYOUT")
    parser.add_argument("--worst", type=int, default=10, metavar="N", help="problems to list")
    parser.add_argument("--layers", nargs="+", type=parse, default=(), metavar="TEXT")
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.networks if name not in NETWORKS]
    if unknown:
        parser.error(f"NETWORK must be one of {', '.join(NETWORKS)}, got {', '.join(unknown)}")
    lines: list[list[str]] = []
    single: dict[str, tuple[float, list[str]]] = {}
    for row in asked.rows:
        sizes = Sizes(targets.find(row))
        for layout in asked.layouts:
            for name, batch, wanted in _asked(asked):
                found = [*sizes.find(wanted, layout)]
                lines.append(_line(name, sizes, layout, batch, found))
                for share, words in worst(sizes, layout, found):
                    single[" ".join(words)] = share, words
    print(aligned([list(COLUMNS), *lines]))
    ranked = sorted(single.values(), key=lambda each: each[0], reverse=True)
    if asked.worst and ranked:
        more = sum(share > 1 for share, _ in ranked)
        print(f"\nOf {len(ranked)} problems with tables, {more} have more table than code.")
        head = ["problem", "row", "layout", "algorithm", "code", "tables", "share"]
        print(aligned([head, *(words for _, words in ranked[: asked.worst])]))
    return int(any(float(line[-1]) > 1 for line in lines))


def _asked(asked: argparse.Namespace) -> Iterator[tuple[str, int | str, list[tuple[Layer, str]]]]:
    if asked.layers:
        yield "layers", "-", [(layer, op) for layer in asked.layers for op in OPS]
        return
    for name in asked.networks or NETWORKS:
        for batch in asked.batches:
            yield name, batch, [*training_step(name, batch)]


if __name__ == "__main__":
    sys.exit(main())
