"""The times that prices are fitted to: the cases of the benchmark lists, their candidates, and how they are timed.

`fit.py` is the tool; this is the part of it that looks at the clock.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from convgrad import threads  # noqa: E402
from convgrad._apps.bench.layers import LAYOUTS, OPS, parse  # noqa: E402
from convgrad._apps.bench.machine import describe  # noqa: E402
from convgrad._apps.bench.tables import find_layers  # noqa: E402
from convgrad._base import dtypes  # noqa: E402
from convgrad._compiler import costs, jit  # noqa: E402
from convgrad._compiler.targets import Target, find  # noqa: E402
from convgrad._engine import planner, prepare  # noqa: E402
from convgrad._kernels import ALGORITHMS, reference  # noqa: E402
from convgrad._kernels.plan import Plan  # noqa: E402
from convgrad._kernels.shared.table import Candidate  # noqa: E402
from convgrad._problem import arguments, convolution  # noqa: E402
from convgrad._problem.convolution import Problem  # noqa: E402
from convgrad._runtime.run import run  # noqa: E402

Run = Callable[[int, int, int], None]

FOLDER = Path(costs.__file__).parent
COLUMNS = ("problem", "op", "layout", "dtype", "algorithm", "candidate", "one", "two")
"""What a row of measurements says; the last two are microseconds on one and two threads, the least that were seen."""
HOPELESS = 3.0
"""Times slower than the best in the first calls: not timed further."""
DOUBTFUL = 10.0
"""Times slower than the best by the prices as they stand: not timed at all."""
SMALL = """4x4x32k3o32b1 8x8x8k3o8b1 8x8x16k3o16b1 7x7x32k1o32b1 6x6x64k3o64b1 10x10x32k3o32b2 3x3x16k3o16b1
    1x1x64k1o64b1 12x12x48k3o24b1 4x4x128k3o128b1 8x8x8k3b1 4x4x32k3b1 7x7x64k3b1 16x16x16k5b1 6x5x40k3s2b1 12x12x8k7b1
    9x9x4k3b1 20x20x3k3b2 8x8x256k3b1 5x5x1024k3b1 4x4x8k3m4b1"""
"""Smaller than any layer of the lists, so that prices hold for them too."""


@dataclass(frozen=True)
class Case:
    """One operation on one problem of the lists."""

    text: str
    op: str
    layout: str
    dtype: str

    @property
    def problem(self) -> Problem:
        return _built(self)


@cache
def _built(case: Case) -> Problem:
    layer = parse(case.text)
    calls = [call for call in convolution.OPS if call.depthwise is not layer.is_dense]
    how = arguments.settings(
        "fit", arguments.FRIENDLY, layer.stride, layer.padding, case.layout, layer.dilation
    )
    number = OPS.index(case.op)
    dtype = next(row for row in dtypes.DTYPES if row.name == case.dtype)
    grad = layer.output_shape(case.layout) if number else None
    shapes = (layer.input_shape(case.layout), layer.filter_shape)
    return convolution.build(calls[number], how, dtype, *shapes, grad)


def cases(quick: bool, only: str = "") -> Iterator[Case]:
    """Return what is measured: small problems and the whole lists in float32, the quick ones in two more dtypes."""
    small = [parse(text) for text in SMALL.split()]
    wanted = [("float32", small[:: 4 if quick else 1] + find_layers("all", quick=quick))]
    if not quick:
        wanted += [(dtype, find_layers("all", quick=True)) for dtype in ("float64", "half")]
    for dtype, problems in wanted:
        for problem in problems:
            if only in problem.name:
                for layout in LAYOUTS:
                    yield from (Case(problem.text, op, layout, dtype) for op in OPS)


def offered(case: Case, target: Target) -> list[tuple[str, Candidate]]:
    """Return the candidates for a case that are worth timing, whatever the switches say."""
    found = [
        (rank, name, candidate)
        for name in ALGORITHMS
        for rank, candidate in planner.candidates(case.problem, target, name)
    ]
    least = DOUBTFUL * min(rank for rank, *_ in found)
    return [
        (name, candidate)
        for rank, name, candidate in found
        if rank <= least or (name == reference.NAME and case.problem.flops < 1e6)
    ]


def measure(row: str, quick: bool, only: str, seconds: float, warm: bool) -> None:
    """Time all candidates and append what was found, problem by problem."""
    target = jit.host_target()
    if target.name != row:
        raise SystemExit(f"this machine is of the row {target.name}, not {row}")
    file = FOLDER / f"{row}.csv"
    _begin(file, target)
    done = {tuple(r[name] for name in COLUMNS[:6]) for r in rows(file)[1]}
    todo = [case for case in cases(quick, only) if _picked(case, target) not in done]
    began = time.monotonic()
    for number, case in enumerate(todo):
        contestants = [
            (name, each.label, _runnable(each.plan(), target))
            for name, each in offered(case, target)
        ]
        if not warm:
            times = _race(case, [each for _, _, each in contestants], seconds)
            with file.open("a", newline="") as out:
                for (name, label, _), (one, two) in zip(contestants, times, strict=True):
                    fixed = (case.text, case.op, case.layout, case.dtype, name, label)
                    csv.writer(out, lineterminator="\n").writerow(
                        (*fixed, f"{one:.4g}", f"{two:.4g}" if two else "")
                    )
        if number % 20 == 0 or number + 1 == len(todo):
            spent = time.monotonic() - began
            print(f"{number + 1}/{len(todo)} {spent:.0f} s {case}", flush=True)


def _runnable(plan: Plan, target: Target) -> Run:
    """Return what runs a plan on three addresses."""
    if not plan.steps:
        execute = prepare.without_kernels(plan.problem)
        assert callable(execute)
        return execute
    return partial(run, prepare.bind(plan, target))


def _picked(case: Case, target: Target) -> tuple[str, ...]:
    """Return what a case's measurements should say something about: what is chosen for it."""
    name, candidate = planner.best(case.problem, target, "auto")
    return (case.text, case.op, case.layout, case.dtype, name, candidate.label)


def _begin(file: Path, target: Target) -> None:
    if not file.exists():
        cpu = describe({}, 2)
        caches = f"{target.l1_bytes} {target.l2_bytes} {target.l3_bytes}"
        about = "; ".join(f"{key} {cpu[key]}" for key in ("cpu", "cores", "system") if key in cpu)
        lines = [f"# caches: {caches}", f"# machine: {about}", ",".join(COLUMNS)]
        file.write_text("\n".join(lines) + "\n")


@lru_cache(maxsize=1)
def _operands(text: str, layout: str, dtype: str) -> dict[str, Any]:
    """Return the three arrays; numbers repeat, because drawing millions takes longer than the kernels."""
    layer = parse(text)
    numpy_dtype = next(row.numpy for row in dtypes.DTYPES if row.name == dtype)
    some = np.random.default_rng(0).standard_normal(4099).astype(numpy_dtype)
    shapes = {
        "x": layer.input_shape(layout), "f": layer.filter_shape, "g": layer.output_shape(layout),
    }  # fmt: skip
    return {name: np.resize(some, prod(shape)).reshape(shape) for name, shape in shapes.items()}


def _race(case: Case, runs: list[Run], seconds: float) -> list[tuple[float, float]]:
    """Return the least microseconds of each on one and on two threads; 0 for two where it is hopeless."""
    arrays = _operands(case.text, case.layout, case.dtype)
    names = {"fwd": "xf", "dx": "fg", "dw": "xg"}[case.op]
    first, second = (arrays[name].ctypes.data for name in names)
    filled = np.empty(case.problem.result_shape, case.problem.dtype.numpy)
    result = filled.ctypes.data
    found: list[list[float]] = [[], []]
    racing = list(range(len(runs)))
    for count in (1, 2):
        best = [float("inf")] * len(runs)
        with threads(count):
            for each in racing if count == 2 else [*racing, *racing]:
                best[each] = min(best[each], _timed(runs[each], first, second, result, 0.0))
            if count == 1:
                limit = HOPELESS * min(best)
                racing = [each for each in racing if best[each] <= limit]
            slow = min(best) > seconds / 2
            for _ in range(2 if slow else 3):
                for each in racing:
                    time_ = _timed(runs[each], first, second, result, seconds / 3)
                    best[each] = min(best[each], time_)
                racing = [*racing[1:], *racing[:1]]
        found[count - 1] = [1e6 * each if each < float("inf") else 0.0 for each in best]
    return list(zip(*found, strict=True))


def _timed(call: Run, first: int, second: int, result: int, least: float) -> float:
    """Return the least seconds of a call, of one or of as many as fit."""
    clock, best, spent = time.perf_counter, float("inf"), 0.0
    while True:
        start = clock()
        call(first, second, result)
        took = clock() - start
        best, spent = min(best, took), spent + took
        if spent >= least:
            return best


def rows(file: Path) -> tuple[Target | None, list[dict[str, str]]]:
    """Return the target that was measured, and the measurements."""
    if not file.exists():
        return None, []
    lines = file.read_text().splitlines()
    caches = next(line for line in lines if line.startswith("# caches:")).split(":")[1].split()
    target = find(file.stem).with_caches(*map(int, caches))
    return target, list(csv.DictReader(line for line in lines if not line.startswith("#")))
