"""How the work of every benchmark row would divide on more threads than this machine has.

Usage: python tools/threads.py [dense|depthwise|all] [--quick] [--filter REGEX] [--threads 8,16,64] [--repeat 3]
       [--all] [--json FILE] [LAYER ...]

For every problem, layout and operation the plan that a call would take is run on one thread, piece by piece as threads
claim it (`grain` items at a time), and each piece is timed by the processor's time of this thread: the least of some
runs. Then threads are simulated: a free thread takes the next piece, and a launch begins when the one before has
ended, packing and merging included. That gives the best possible speed-up; waking threads and sharing memory cost
nothing here.

Listed are problems above 100 MFlop whose best possible speed-up on 16 threads is below 12, and what limits them.
"""

from __future__ import annotations

import argparse
import ctypes
import heapq
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))
sys.path.insert(0, str(ROOT / "tools"))

from fit_times import Case  # noqa: E402

from convgrad import _kernels  # noqa: E402
from convgrad._apps.bench.layers import LAYOUTS, OPS, Layer, parse  # noqa: E402
from convgrad._apps.bench.tables import find_layers  # noqa: E402
from convgrad._base.text import aligned  # noqa: E402
from convgrad._compiler import jit  # noqa: E402
from convgrad._compiler.targets import Target  # noqa: E402
from convgrad._engine import planner, prepare  # noqa: E402
from convgrad._kernels.plan import Plan  # noqa: E402
from convgrad._runtime.parfor import MAX_CHUNKS  # noqa: E402
from convgrad._runtime.program import MEMORY, Launch  # noqa: E402

LARGE = 100e6
"""Flops from which a problem should keep many threads busy."""
AT, LEAST = 16, 12.0
"""Threads, and the speed-up they should reach."""

STANDS_OUT, AGAIN = 1.1, 6
"""Pieces above so many medians of their launch are timed again so often."""

_CALL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


@dataclass(frozen=True)
class Piece:
    """What one launch looks like to threads."""

    kernel: str
    items: int
    grain: int
    seconds: list[float]
    """Of every piece that threads claim, in order."""


@dataclass(frozen=True)
class Share:
    """A plan on some threads."""

    threads: int
    speedup: float
    largest: float
    """The part of the longest launch that its busiest thread does; 1 / threads would be even."""
    limits: str
    """The launch that wastes most, in words."""


@dataclass(frozen=True)
class Row:
    """One operation on one problem."""

    problem: str
    op: str
    layout: str
    algorithm: str
    mflop: float
    milliseconds: float
    """On one thread."""
    items: list[int]
    """Of each launch."""
    pieces: list[int]
    partial_bytes: int
    packed_bytes: int
    scratch_bytes: int
    """Of one thread."""
    shares: list[Share]

    def at(self, threads: int) -> Share | None:
        return next((share for share in self.shares if share.threads == threads), None)


def finish(times: Sequence[float], threads: int) -> list[float]:
    """Return when each thread is done if a free thread takes the next piece.

    >>> finish([4, 1, 1, 1, 1], 2)
    [4.0, 4.0]
    >>> finish([1, 1, 1], 2)
    [1.0, 2.0]
    """
    free = [0.0] * min(threads, max(len(times), 1))
    for each in times:
        heapq.heapreplace(free, free[0] + each)
    return sorted(map(float, free))


def simulated(pieces: Sequence[Piece], threads: int, serial: bool = False) -> Share:
    """Return what some threads could make of a plan's launches, one after the other."""
    whole = sum(sum(piece.seconds) for piece in pieces)
    if serial:
        return Share(threads, 1.0, 1.0, "too little work to share")
    ends = [finish(piece.seconds, threads)[-1] for piece in pieces]
    longest = max(range(len(pieces)), key=lambda at: sum(pieces[at].seconds))
    waste = [end - sum(p.seconds) / threads for end, p in zip(ends, pieces, strict=True)]
    worst = max(range(len(pieces)), key=lambda at: waste[at])
    found = pieces[worst]
    words = f"{found.kernel}: {len(found.seconds)} pieces of {found.grain} items"
    words += f", {100 * sum(found.seconds) / whole:.0f}% of the time" if len(pieces) > 1 else ""
    return Share(threads, whole / sum(ends), ends[longest] / sum(pieces[longest].seconds), words)


def claimed(launch: Launch, threads: int) -> list[tuple[int, int]]:
    """Return the pieces of a launch as the parallel loop hands them out: first item and end.

    >>> claimed(Launch(0, (), (), 5, 2, 0), 16)
    [(0, 2), (2, 4), (4, 5)]
    """
    grain = max(launch.claim(threads), -(-launch.items // MAX_CHUNKS))
    return [(at, min(at + grain, launch.items)) for at in range(0, launch.items, grain)]


def timed(plan: Plan, target: Target, repeat: int, counts: Sequence[int]) -> list[list[Piece]]:
    """Run a plan's kernels piece by piece on this thread, in the pieces that some threads would claim.

    Returns the least time of each piece, for every number of threads.
    """
    made = prepare.numbered(plan)
    kernels = [
        jit.load(identity, lambda identity=identity: _kernels.emit(identity, target), target)
        for identity in prepare.identities(plan)
    ]
    memory = _memory(plan)
    names = {**dict(enumerate(made.places)), **{number: name for name, number in MEMORY.items()}}
    launches = []
    for launch in made.launches:
        kernel = kernels[launch.kernel]
        table = _block(len(launch.table))
        table[: len(launch.table)] = np.frombuffer(launch.table, np.uint8)
        scratch = _block(launch.scratch_bytes + kernel.scratch_bytes)
        words = [memory[names[place]].ctypes.data for place in launch.places]
        words += [table.ctypes.data] * bool(launch.table) + list(launch.words)
        arguments = (ctypes.c_int64 * len(words))(*words)
        launches.append((launch, kernel, arguments, scratch, table))
    best: dict[tuple[int, int], list[float]] = {}
    found = []
    for count in counts:
        pieces = []
        for at, (launch, kernel, arguments, scratch, _) in enumerate(launches):
            grain = launch.claim(count)
            if (at, grain) not in best:
                call = _timing(kernel.address, ctypes.addressof(arguments), scratch.ctypes.data)
                best[at, grain] = _least(call, claimed(launch, count), repeat)
            name = type(plan.steps[at].kernel).__name__
            pieces.append(Piece(name, launch.items, grain, best[at, grain]))
        found.append(pieces)
    return found


def _timing(address: int, arguments: int, scratch: int) -> Callable[[int, int], float]:
    """Return what runs some items and says how long that took."""
    # What this thread computed, so that other programs that take its core do not count.
    call, clock = _CALL(address), time.thread_time

    def timed(begin: int, end: int) -> float:
        start = clock()
        call(arguments, begin, end, scratch)
        return clock() - start

    return timed


def _least(
    call: Callable[[int, int], float], pieces: Sequence[tuple[int, int]], repeat: int
) -> list[float]:
    """Time pieces in order some times; what still stands out is timed again, behind its neighbour as before.

    Other programs only ever slow a piece down, and one slow piece would count for a whole launch.
    """
    times = [
        min(many) for many in zip(*([call(*p) for p in pieces] for _ in range(repeat)), strict=True)
    ]
    for _ in range(AGAIN):
        limit = STANDS_OUT * median(times)
        slow = [at for at, time in enumerate(times) if time > limit]
        for at in slow:
            call(*pieces[at - 1])
            times[at] = min(times[at], call(*pieces[at]))
    return times


def _memory(plan: Plan) -> dict[str, Any]:
    """Return blocks for operands, result, partial sums and packed operands, all zeros."""
    problem = plan.problem
    size = problem.dtype.numpy.itemsize
    most = max(
        int(np.prod(shape)) * size
        for shape in (problem.input_shape, problem.filter_shape, problem.output_shape)
    )
    sizes = {"first": most, "second": most, "result": most}
    sizes |= {"partial": plan.partial_bytes, "packed": plan.packed_bytes}
    return {name: _block(nbytes) for name, nbytes in sizes.items()}


def _block(nbytes: int) -> Any:
    """Return zeros that begin on a cache line; written once, so that no page is new to the kernels."""
    memory = np.empty(nbytes + 128, np.uint8)
    memory[...] = 0
    shift = -memory.ctypes.data % 64
    return memory[shift : shift + nbytes + 64]


def row(case: Case, counts: Sequence[int], repeat: int) -> Row:
    """Plan, time and simulate one case."""
    target = jit.host_target()
    plan = planner.choose(case.problem, target)
    found = timed(plan, target, repeat, counts)
    pieces = found[0]
    shares = [
        simulated(each, count, plan.serial)
        for each, count in zip(found, counts, strict=True)
        if pieces
    ]
    return Row(
        case.text,
        case.op,
        case.layout,
        plan.algorithm,
        case.problem.flops / 1e6,
        sum(sum(piece.seconds) for piece in pieces) * 1e3,
        [step.items for step in plan.steps],
        [len(piece.seconds) for piece in pieces],
        plan.partial_bytes,
        plan.packed_bytes,
        max((step.scratch_bytes for step in plan.steps), default=0),
        shares,
    )


def behind(rows: Iterable[Row]) -> list[Row]:
    """Return the large problems that cannot keep `AT` threads busy, the worst first."""
    found = []
    for each in rows:
        share = each.at(AT)
        if share is not None and each.mflop * 1e6 > LARGE and share.speedup < LEAST:
            found.append((share.speedup, each))
    return [each for _, each in sorted(found, key=lambda pair: pair[0])]


def table(rows: Sequence[Row], counts: Sequence[int]) -> str:
    """One line per case."""
    header = ["problem", "op", "layout", "algorithm", "MFlop", "ms", "pieces"]
    header += [f"x{count}" for count in counts] + [f"share {count}" for count in counts]
    lines = [[*header, "partial KB", "packed KB", "scratch KB"]]
    for each in rows:
        pieces = "+".join(map(str, each.pieces))
        named = [each.problem, each.op, each.layout, each.algorithm, f"{each.mflop:.0f}"]
        speeds = [f"{share.speedup:.1f}" for share in each.shares]
        largest = [f"{100 * share.largest:.1f}%" for share in each.shares]
        sizes = (each.partial_bytes, each.packed_bytes, each.scratch_bytes)
        memory = [f"{size / 1024:.0f}" for size in sizes]
        lines.append([*named, f"{each.milliseconds:.3f}", pieces, *speeds, *largest, *memory])
    return aligned(lines, left=(0, 1, 2, 3))


def summary(rows: Sequence[Row], counts: Sequence[int]) -> str:
    """Geometric means of the speed-up of large problems by algorithm and operation, and who is behind."""
    large = [each for each in rows if each.mflop * 1e6 > LARGE and each.shares]
    groups = dict.fromkeys((each.algorithm, each.op) for each in large)
    header = ["above 100 MFlop", "op", "rows", *(f"x{count}" for count in counts)]
    lines = [[*header, f"lowest x{counts[0]}", "most partial KB", "most packed KB"]]
    for algorithm, op in groups:
        mine = [each for each in large if (each.algorithm, each.op) == (algorithm, op)]
        means = [_mean([each.shares[at].speedup for each in mine]) for at in range(len(counts))]
        lowest = min(each.shares[0].speedup for each in mine)
        most = (max(e.partial_bytes for e in mine), max(e.packed_bytes for e in mine))
        figures = [f"{mean:.1f}" for mean in means] + [f"{lowest:.1f}"]
        lines.append([algorithm, op, str(len(mine)), *figures, *(f"{m / 1024:.0f}" for m in most)])
    parts = [aligned(lines, left=(0, 1))]
    if AT in counts:
        found = behind(rows)
        parts.append(f"{len(found)} of {len(large)} above 100 MFlop are below {LEAST:g} on {AT}:")
        listed = [
            [f"{s.speedup:.1f}", e.algorithm, e.problem, e.op, e.layout, f"{e.mflop:.0f}", s.limits]
            for e in found
            if (s := e.at(AT)) is not None
        ]
        titles = [f"x{AT}", "algorithm", "problem", "op", "layout", "MFlop", "limited by"]
        parts.append(aligned([titles, *listed], left=(1, 2, 3, 4, 6)) if listed else "none")
    return "\n\n".join(parts)


def _mean(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values))


def _layers(asked: argparse.Namespace) -> list[Layer]:
    found = [parse(text) for text in asked.layer if text[:1].isdigit()]
    suites = [text for text in asked.layer if not text[:1].isdigit()] or ["all"] * (not found)
    for suite in suites:
        if suite not in ("dense", "depthwise", "all"):
            raise SystemExit(
                f"tools/threads.py: no list {suite!r}: dense, depthwise, all or layers"
            )
        found += find_layers(suite, quick=asked.quick, pattern=asked.filter)
    return found


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("layer", nargs="*", help="dense, depthwise, all, or layers like 8x56x56x64k1o256")
    add("--quick", action="store_true", help="ten layers of a list instead of all")
    add("--filter", default="", metavar="REGEX", help="only layers whose name matches")
    add("--threads", default="8,16,64", help="numbers of threads; default %(default)s")
    add("--repeat", type=int, default=3, help="runs of which the least counts; default %(default)s")
    add("--all", action="store_true", help="print every row, not only the summary")
    add("--json", type=Path, metavar="FILE", help="write every row there")
    asked = parser.parse_args(words)
    if not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", asked.threads):
        parser.error(f"--threads takes numbers like 8,16,64, got {asked.threads!r}")
    counts = [int(word) for word in asked.threads.split(",")]
    cases = [
        Case(layer.text, op, layout, "float32")
        for layer in _layers(asked)
        for layout in LAYOUTS
        for op in OPS
    ]
    rows = []
    began = last = time.monotonic()
    for number, case in enumerate(cases):
        rows.append(row(case, counts, asked.repeat))
        if time.monotonic() - last > 20:
            last = time.monotonic()
            print(f"{number + 1} of {len(cases)}, {last - began:.0f} s", file=sys.stderr)
    if asked.all:
        print(table(rows, counts), end="\n\n")
    print(summary(rows, counts))
    if asked.json:
        text = ",\n".join(json.dumps(asdict(each)) for each in rows)
        asked.json.write_text(f"[\n{text}\n]\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
