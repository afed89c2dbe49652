"""Measure errors in units of rounding: ours beside PyTorch, TensorFlow and JAX, on the same data in the same run.

Usage: python tools/accuracy.py [--peers torch,tensorflow,jax] [--only TEXT] [--json FILE] [--write docs/accuracy.md]

Each framework runs in a process of its own (`accuracy_peers.py`), draws the same operands from the same seed and leaves
its results in a folder; this process computes the exact ones and compares. A unit u is 2^-24 for float32, 2^-53 for
float64, 2^-11 for half and 2^-8 for bfloat16: half the distance from 1 to the next number.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import select
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from accuracy_problems import DTYPES, HARD, KINDS, SPECIALS, TABLES, Measurement, operands

import convgrad
from convgrad._apps.cli import info
from convgrad._base import dtypes
from convgrad._bridges.peers import FRAMEWORKS
from convgrad._compiler import jit
from convgrad._engine import planner
from convgrad._problem import convolution, oracle
from convgrad._problem.arguments import FRIENDLY, settings

HERE = Path(__file__).resolve().parent
PEERS = {name: FRAMEWORKS[name].title for name in ("torch", "tensorflow", "jax")}
OURS = {"auto": "convgrad", "off": "convgrad, Winograd off", "fast": "convgrad, Winograd fast"}
WORDS = {"forward": "forward", "input": "input gradient", "filter": "filter gradient"}
BEGIN, END = "<!-- begin measured -->", "<!-- end measured -->"
LIMIT = 240.0
"""Seconds a framework may take for one problem, its first call and compilation included."""

Outcome = dict[str, Any]
"""`frobenius` and `worst` in u, `right` as 0 or 1, or `refused` with a word."""


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=_Plain)
    arguments.add_argument("--peers", help="frameworks, or none; all that are installed by default")
    arguments.add_argument("--only", default="", help="problems whose description has this text")
    arguments.add_argument("--json", type=Path, help="write all figures there")
    arguments.add_argument("--write", type=Path, help="replace the measured part of this page")
    chosen = arguments.parse_args()
    if chosen.peers is None:
        peers = [name for name in PEERS if FRAMEWORKS[name].is_installed]
    else:
        peers = [name for name in chosen.peers.split(",") if name and name != "none"]
    unknown = set(peers) - set(PEERS)
    if unknown:
        arguments.error(f"no such peer: {', '.join(sorted(unknown))}; there is {', '.join(PEERS)}")
    problems = [each for each in (*TABLES, *HARD, *SPECIALS) if chosen.only in str(each)]
    found = measure(problems, peers)
    text = report(problems, found, peers)
    if chosen.json:
        rows = [{**asdict(p), "who": who, **outcome} for (p, who), outcome in sorted_by_row(found)]
        chosen.json.write_text(json.dumps({"versions": versions(peers), "rows": rows}, indent=1))
    if chosen.write:
        replace_measured(chosen.write, text)
    print(text)
    return 0


class _Plain(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of the description."""


def measure(problems: Sequence[Measurement], peers: Sequence[str]) -> dict[Any, Outcome]:
    """Return what everybody's error is, by (problem, who)."""
    found: dict[Any, Outcome] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for peer in peers:
            run_peer(peer, problems, folder)
        for number, problem in enumerate(problems):
            begin = time.monotonic()
            x, f, g = operands(problem)
            first, second = {"forward": (x, f), "input": (f, g), "filter": (x, g)}[problem.kind]
            truth = _Truth(problem, first, second)
            for mode, who in OURS.items():
                if mode == "auto" or problem.may_be_winograd:
                    with convgrad.options(winograd=mode):
                        result, algorithm = ours(problem, first, second)
                    found[problem, who] = {**truth.outcome(result), "algorithm": algorithm}
            for peer in peers:
                found[problem, PEERS[peer]] = peer_outcome(truth, folder, peer, number)
            _say(f"{number + 1}/{len(problems)} {problem} {time.monotonic() - begin:.1f} s")
    return found


def ours(problem: Measurement, first: Any, second: Any) -> tuple[Any, str]:
    """Return our result and the algorithm that computed it."""
    name = problem.function
    how = (problem.stride, "SAME", problem.layout)
    sizes = problem.input_shape if problem.kind == "input" else problem.filter_shape
    before = {"forward": (first, second), "input": (sizes, first, second)}.get(
        problem.kind, (first, sizes, second)
    )
    told = planner.choose(described(problem), jit.host_target()).algorithm
    return getattr(convgrad, name)(*before, *how), told


class _Truth:
    """The exact result of a problem, and the size of what was added up in it."""

    def __init__(self, problem: Measurement, first: Any, second: Any) -> None:
        self.problem = problem
        self.unit = DTYPES[problem.dtype].unit
        wide = np.longdouble if problem.dtype == "float64" else np.float64
        with np.errstate(invalid="ignore", over="ignore"):
            self.exact = oracle.compute(described(problem), first.astype(wide), second.astype(wide))
            sizes = (np.abs(each.astype(np.float64)) for each in (first, second))
            self.sizes = None if problem.special else ours(problem, *sizes)[0]

    def outcome(self, result: Any) -> Outcome:
        """Return the error of a result, or whether it is right where nothing may be lost."""
        if self.problem.special:
            return {"right": int(self._is_right(result))}
        got = result.astype(self.exact.dtype)
        right = np.array_equal(got, _rounded(self.exact, self.problem.dtype).astype(got.dtype))
        error = np.abs(got - self.exact)
        scale = float(np.sqrt((self.exact**2).sum()))
        frobenius = float(np.sqrt((error**2).sum())) / scale / self.unit
        worst = float((error / np.maximum(self.sizes, np.finfo(np.float64).tiny)).max()) / self.unit
        return {"frobenius": frobenius, "worst": worst, "right": int(right)}

    def _is_right(self, result: Any) -> bool:
        got = result.astype(np.float64)
        expected = _rounded(self.exact, self.problem.dtype).astype(np.float64)
        if not np.isfinite(expected).all():  # where, not how the others were rounded
            got, expected = (np.where(np.isfinite(each), 0, each) for each in (got, expected))
        return bool(np.array_equal(got, expected, equal_nan=True))


def _rounded(exact: Any, dtype: str) -> Any:
    if dtype == "float64":
        return exact.astype(np.float64)
    return dtypes.round_once(exact.astype(np.float64), DTYPES[dtype])


def described(problem: Measurement) -> Any:
    """Return the package's own description, which the oracle wants."""
    calls = {call.function: call for call in convolution.OPS}
    row = DTYPES[problem.dtype]
    how = settings("accuracy", FRIENDLY, problem.stride, "SAME", problem.layout, 1)
    grad = None if problem.kind == "forward" else problem.output_shape
    call = calls[problem.function]
    return convolution.build(call, how, row, problem.input_shape, problem.filter_shape, grad)


def run_peer(peer: str, problems: Sequence[Measurement], folder: Path) -> None:
    """Run one framework on all problems; it is started again after a crash or when it takes too long."""
    left = list(enumerate(problems))
    while left:
        command = [sys.executable, str(HERE / "accuracy_peers.py"), peer, str(folder)]
        environment = {**os.environ, **FRAMEWORKS[peer].variables}
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(json.dumps([(n, asdict(p)) for n, p in left]).encode())
        child.stdin.close()
        while left:
            ready, _, _ = select.select([child.stdout], [], [], LIMIT)
            line = child.stdout.readline() if ready else b""
            number = left.pop(0)[0]
            if not line:
                word = "aborts" if ready else f"over {LIMIT:.0f} s"
                (folder / f"{peer}.{number}.txt").write_text(word)
                break
            _say(f"{peer} {len(problems) - len(left)}/{len(problems)} {problems[number]}")
        child.kill()
        child.wait()


def peer_outcome(truth: _Truth, folder: Path, peer: str, number: int) -> Outcome:
    saved = folder / f"{peer}.{number}.npy"
    if saved.exists():
        with np.errstate(invalid="ignore"):
            return truth.outcome(np.load(saved))
    reason = folder / f"{peer}.{number}.txt"
    return {"refused": reason.read_text() if reason.exists() else "not run"}


def versions(peers: Iterable[str]) -> dict[str, str]:
    found = {
        "convgrad": convgrad.__version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
    }
    return found | {PEERS[name]: FRAMEWORKS[name].version for name in peers}


def sorted_by_row(found: dict[Any, Outcome]) -> list[Any]:
    return sorted(found.items(), key=lambda item: (str(item[0][0]), item[0][1]))


def report(problems: Sequence[Measurement], found: dict[Any, Outcome], peers: Sequence[str]) -> str:
    """Return all tables as Markdown."""
    names = [PEERS[peer] for peer in peers]
    told = ", ".join(f"{name} {version}" for name, version in versions(peers).items())
    parts = [f"Measured with {told}, on {info.cpu_name()}, row {jit.host_target().name}."]
    ordinary = [p for p in problems if p.data == "normal" and p in TABLES]
    for dtype in ("float32", "half", "bfloat16", "float64"):
        for family in ("dense", "depthwise"):
            rows = [p for p in ordinary if p.dtype == dtype and p.family == family]
            if rows:
                parts.append(
                    f"### {family}, {dtype}\n\n" + table(rows, found, ["convgrad", *names])
                )
    plain = [p for p in problems if not p.special and p.may_be_winograd]
    if plain:
        parts.append("### Winograd\n\n" + table(plain, found, [*OURS.values()], data=True))
    hard = [p for p in problems if p in HARD]
    for title, words in (
        ("Long sums", ("ones", "uniform", "normal")),
        ("Ill-conditioned data", ("heavy", "cancel")),
    ):
        rows = [p for p in hard if p.data in words]
        if rows:
            parts.append(f"### {title}\n\n" + table(rows, found, ["convgrad", *names], data=True))
    specials = [p for p in problems if p.special]
    if specials:
        parts.append(
            "### Subnormals, infinities, NaN\n\n" + counts(specials, found, ["convgrad", *names])
        )
    return "\n\n".join(parts) + "\n"


def table(
    rows: Sequence[Measurement],
    found: dict[Any, Outcome],
    columns: Sequence[str],
    data: bool = False,
) -> str:
    """Return a table of errors: Frobenius, worst."""
    told = ["family", "dtype", "data"] if data else []
    heads = [*told, "problem", "operation", *columns]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for problem in rows:
        cells = [cell(found.get((problem, column))) for column in columns]
        words = [problem.family, problem.dtype, problem.data] if data else []
        lines.append(
            "| " + " | ".join([*words, problem.shape_text, WORDS[problem.kind], *cells]) + " |"
        )
    return "\n".join(lines)


def cell(outcome: Outcome | None) -> str:
    if outcome is None:
        return "-"
    if "refused" in outcome:
        return str(outcome["refused"])
    if outcome["frobenius"] == 0 == outcome["worst"]:
        return "exact"
    return f"{figure(outcome['frobenius'])}, {figure(outcome['worst'])}"


def figure(value: float) -> str:
    """Spell an error with two or three digits."""
    if not np.isfinite(value):
        return "inf" if value > 0 else "NaN"
    return f"{value:.2g}" if value < 1 else f"{value:.3g}" if value < 1000 else f"{value:.1e}"


def counts(rows: Sequence[Measurement], found: dict[Any, Outcome], columns: Sequence[str]) -> str:
    """Return how many of the operations give the right bits, by kind of data and dtype."""
    groups: dict[tuple[str, str], list[Measurement]] = defaultdict(list)
    for problem in rows:
        groups[problem.data, problem.dtype].append(problem)
    heads = ["data", "dtype", *columns]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for (data, dtype), members in groups.items():
        cells = []
        for column in columns:
            outcomes = [found[problem, column] for problem in members]
            ran = [outcome["right"] for outcome in outcomes if "right" in outcome]
            cells.append(f"{sum(ran)} of {len(ran)}" if ran else "refused")
        lines.append("| " + " | ".join([data, dtype, *cells]) + " |")
    return "\n".join(lines)


def replace_measured(page: Path, text: str) -> None:
    """Put the tables between the two marks of a page."""
    old = page.read_text(encoding="utf-8")
    before, mark, rest = old.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise SystemExit(f"{page} has no {BEGIN} and {END}")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}", encoding="utf-8")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    assert set(WORDS) == set(KINDS)
    sys.exit(main())
