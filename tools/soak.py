"""Soak: mixed calls from several threads for a long time; nothing may grow, nothing may change.

Usage: python tools/soak.py [--minutes 60] [--threads 4] [--seed 0] [--json FILE]

Every thread draws calls: new shapes all the time and old ones again, all operations, dtypes and layouts, other numbers
of threads, Winograd on and off, explanations, refused calls, results kept and dropped, a kernel cache that is emptied,
children that are forked. A problem computed again must give the same bits as the first time; some results are compared
with the oracle. Every ten seconds memory, mappings, file descriptors and threads are read; after a warm-up of a tenth
of the time they must stay below a bound. Exit status 1 says that something grew, changed or failed.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]

MEGABYTE = 1 << 20
PERIOD = 10.0
WARM = 0.1
"""The share of the time after which everything that is kept has been filled once."""
REMEMBERED = 3000
"""Problems whose bits are remembered; the oldest make room, so that this program does not grow either."""
MAXIMUM_KEPT = 64 * MEGABYTE
"""Bytes of results the threads hold on to, all together."""


@dataclass(frozen=True)
class Reading:
    """What the process holds at some moment."""

    seconds: float
    rss: int
    fds: int
    threads: int
    maps: int
    cache: int
    """Entries on disk."""
    calls: int


@dataclass(frozen=True)
class Bounds:
    """How much more than after the warm-up is allowed, at any later reading.

    Memory: what the package keeps by design fills up as new problems come (docs/soak.md says what), and the allocator
    adds its own slack. The rest has no reason to grow at all but for what is in flight when it is read.
    """

    rss: int = 256 * MEGABYTE
    fds: int = 8
    threads: int = 1
    """NumPy's OpenBLAS stops its thread before a fork and starts it at the next product."""
    maps: int = 2500
    """Executable pages of kernels lie side by side and are one mapping, until some in between are given back."""
    slope: int = 64 * MEGABYTE
    """Of memory per hour, when what is bounded has been filled; asked of runs of half an hour and more."""


def verdict(readings: Sequence[Reading], bounds: Bounds, failures: Sequence[str]) -> list[str]:
    """Return what is wrong, in words; nothing wrong is an empty list."""
    wrong = list(failures)
    if len(readings) < 3:
        return [*wrong, f"only {len(readings)} readings: too short to say anything"]
    start = after_warm_up(readings)
    for name in ("rss", "fds", "threads", "maps"):
        allowed = getattr(readings[start], name) + getattr(bounds, name)
        highest = max(getattr(each, name) for each in readings[start:])
        if highest > allowed:
            base = getattr(readings[start], name)
            wrong.append(
                f"{name} grew from {base:,} after the warm-up to {highest:,}; allowed: {allowed:,}"
            )
    if readings[-1].seconds >= 1800 and slope(readings) > bounds.slope:
        wrong.append(f"memory still grows by {slope(readings) / MEGABYTE:.0f} MB per hour")
    return wrong


def after_warm_up(readings: Sequence[Reading]) -> int:
    """Return the number of the first reading after the warm-up."""
    whole = readings[-1].seconds
    return next(n for n, each in enumerate(readings) if each.seconds >= WARM * whole)


def slope(readings: Sequence[Reading]) -> float:
    """Return the bytes per hour by which the highest memory of the last quarter exceeds that of the second.

    The highest, because what is remembered starts over when it is full: a line through such teeth has any slope.
    """
    whole = readings[-1].seconds

    def highest(begin: float, end: float) -> int:
        return max(each.rss for each in readings if begin * whole <= each.seconds <= end * whole)

    return (highest(0.75, 1) - highest(0.25, 0.5)) / (whole / 2 / 3600)


def read(begin: float, calls: int) -> Reading:
    """Read what this process holds."""
    from convgrad._jit import cache

    status = Path("/proc/self/status").read_text(encoding="ascii")
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    maps = Path("/proc/self/maps").read_bytes().count(b"\n")
    return Reading(
        time.monotonic() - begin,
        int(fields["VmRSS"].split()[0]) * 1024,
        sum(1 for _ in Path("/proc/self/fd").iterdir()),
        int(fields["Threads"]),
        maps,
        cache.usage()[0],
        calls,
    )


class Soak:
    """What the threads share."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.bits: dict[Any, bytes] = {}
        self.forking = threading.Lock()
        self.over = threading.Event()

    def note(self, what: str) -> None:
        self.counts[what] += 1

    def work(self, number: int, until: float) -> None:
        """Draw and do until the time is over, or somebody has failed too often."""
        rng = np.random.default_rng((self.seed, number))
        known: list[tuple[Any, str, int, str]] = []
        kept: list[Any] = []
        while time.monotonic() < until and not self.over.is_set():
            try:
                self.step(rng, known, kept)
            except Exception:
                self.fail(traceback.format_exc(limit=6))

    def fail(self, text: str) -> None:
        self.failures.append(text)
        if len(self.failures) >= 20:
            self.over.set()

    def step(self, rng: np.random.Generator, known: list[Any], kept: list[Any]) -> None:
        import convgrad
        from convgrad import _jit

        dice = rng.random()
        if dice < 0.02:
            convgrad.set_num_threads(int(rng.integers(1, 5)))
            self.note("set_num_threads")
        elif dice < 0.04:
            self.refused(rng)
        elif dice < 0.05:
            self.explain(rng)
        elif dice < 0.052:
            _jit.clear()
            self.note("cache cleared")
        elif dice < 0.054:
            self.fork(rng, known)
        elif dice < 0.06:
            kept.clear()
        else:
            self.call(rng, known, kept)

    def call(self, rng: np.random.Generator, known: list[Any], kept: list[Any]) -> None:
        """Compute a problem, half the time one that was computed before."""
        import convgrad
        from cases import KINDS

        if known and rng.random() < 0.6:
            problem = known[int(rng.integers(len(known)))]
            self.note("calls again")
        else:
            case = draw(rng)
            kind = KINDS[int(rng.integers(2 if case.dtype == "int32" else 3))]
            problem = (
                case,
                kind,
                int(rng.integers(1 << 30)),
                str(rng.choice(["off", "auto", "auto", "fast"])),
            )
            if len(known) < REMEMBERED // 4:
                known.append(problem)
            else:
                known[int(rng.integers(len(known)))] = problem
            self.note("calls new")
        case, kind, seed, winograd = problem
        self.note(f"dtype {case.dtype}")
        data = numbers(case, seed)
        with convgrad.options(winograd=winograd):
            if rng.random() < 0.2:
                with convgrad.threads(int(rng.integers(1, 5))):
                    result = run_through(case, kind, data, rng)
            else:
                result = run_through(case, kind, data, rng)
        self.compare(problem, result)
        if rng.random() < 0.03 and winograd != "fast":
            self.check(case, kind, data, result)
        if rng.random() < 0.2:
            kept.append(result)
            while sum(each.nbytes for each in kept) > MAXIMUM_KEPT // 8:
                kept.pop(int(rng.integers(len(kept))))

    def compare(self, problem: Any, result: Any) -> None:
        """Say so if a problem gives other bits than the first time."""
        digest = hashlib.blake2b(
            np.ascontiguousarray(result).view(np.uint8), digest_size=16
        ).digest()
        before = self.bits.get(problem)
        if before is None:
            while len(self.bits) >= REMEMBERED:
                self.bits.pop(next(iter(self.bits)), None)
            self.bits[problem] = digest
        elif before != digest:
            self.fail(f"the bits changed: {problem}")
        else:
            self.note("bits compared")

    def check(self, case: Any, kind: str, data: Any, result: Any) -> None:
        from tolerance import assert_close

        if case.dtype == "int32" or case.products > 4_000_000:
            return  # the oracle would need more memory than all the rest
        assert_close(case, kind, data, result)
        self.note("oracle compared")

    def refused(self, rng: np.random.Generator) -> None:
        """Make a mistake; the answer must be our error."""
        import convgrad

        x, f = np.ones((1, 4, 4, 2), np.float32), np.ones((3, 3, 2, 2), np.float32)
        mistakes: list[Any] = [
            lambda: convgrad.conv2d(x, f, 0, "SAME"),
            lambda: convgrad.conv2d(x, f[0], 1, "SAME"),
            lambda: convgrad.conv2d(x, f, 1, "SOME"),
            lambda: convgrad.conv2d(x, f.astype(np.float64), 1, "SAME"),
            lambda: convgrad.conv2d_backprop_input(
                (1, 4, int(rng.integers(5, 9**9)), 2), f, x, 1, "SAME"
            ),
            lambda: convgrad.depthwise_conv2d_backprop_filter(x, (3, 3, -1, 1), x, 1, "SAME"),
            lambda: convgrad.set_num_threads(0),
        ]
        try:
            mistakes[int(rng.integers(len(mistakes)))]()
        except (ValueError, TypeError):
            self.note("refused")
        else:
            self.fail("a mistake was not refused")

    def explain(self, rng: np.random.Generator) -> None:
        import convgrad

        side = int(rng.integers(3, 200))
        str(convgrad.explain("conv2d", (1, side, side, 8), (3, 3, 8, 8), 1, "SAME"))
        self.note("explained")

    def fork(self, rng: np.random.Generator, known: list[Any]) -> None:
        """Compute something old in a forked child, which must get the same bits."""
        if not known or not hasattr(os, "fork"):
            return
        case, kind, seed, winograd = problem = known[int(rng.integers(len(known)))]
        expected = self.bits.get(problem)
        with self.forking:
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    status = _in_child(case, kind, seed, winograd, expected)
                finally:
                    os._exit(status)
        deadline = time.monotonic() + 120
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            if time.monotonic() > deadline:
                os.kill(child, 9)
                os.waitpid(child, 0)
                self.fail(f"a forked child hung on {problem}")
                return
            time.sleep(0.01)
        if status:
            self.fail(f"a forked child ended with status {status} on {problem}")
        self.note("forked")


def _in_child(case: Any, kind: str, seed: int, winograd: str, expected: bytes | None) -> int:
    import convgrad
    from cases import run

    with convgrad.options(winograd=winograd):
        result = run(case, kind, numbers(case, seed))
    digest = hashlib.blake2b(np.ascontiguousarray(result).view(np.uint8), digest_size=16).digest()
    return 0 if expected in (None, digest) else 2


def draw(rng: np.random.Generator) -> Any:
    """Draw a geometry: mostly small, now and then one whose result comes from the pool of blocks."""
    from cases import random_case
    from kernels import drawn

    while True:
        depthwise = bool(rng.integers(2))
        fixed = drawn(rng, depthwise, 64 if rng.random() < 0.05 else 20)
        case = random_case(rng, **fixed)
        elements = prod(case.input_shape) + prod(case.output_shape) + prod(case.filter_shape)
        if case.products <= 60_000_000 and elements <= 1_500_000:
            return case


def numbers(case: Any, seed: int) -> Any:
    from cases import normal, whole_numbers

    rng = np.random.default_rng(seed)
    return whole_numbers(case, rng) if case.dtype == "int32" else normal(case, rng)


def run_through(case: Any, kind: str, data: Any, rng: np.random.Generator) -> Any:
    from cases import DOORS, run

    return run(case, kind, data, str(rng.choice(DOORS)))


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--minutes", type=float, default=60.0)
    arguments.add_argument("--threads", type=int, default=4, help="Python threads that call")
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--json", type=Path, help="write all readings there")
    chosen = arguments.parse_args()
    if not Path("/proc/self/maps").exists():
        arguments.error("the readings come from /proc, which this system has not")
    with tempfile.TemporaryDirectory() as folder:
        # A cache of its own: it is emptied now and then.
        os.environ["CONVGRAD_CACHE_DIR"] = folder
        readings, soak = run(chosen.minutes * 60, chosen.threads, chosen.seed)
    bounds = Bounds()
    wrong = verdict(readings, bounds, soak.failures)
    print(summary(readings, soak.counts))
    for reason in wrong:
        print(f"FAILED: {reason}")
    print("verdict: " + ("failed" if wrong else "ok"))
    if chosen.json:
        found = {
            "readings": [asdict(each) for each in readings],
            "counts": soak.counts,
            "wrong": wrong,
        }
        chosen.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 1 if wrong else 0


def run(seconds: float, threads: int, seed: int) -> tuple[list[Reading], Soak]:
    """Run the threads and read every ten seconds, or more often in a short run."""
    import convgrad

    convgrad.set_num_threads(4)
    large = np.ones((4, 64, 64, 32), np.float32)
    convgrad.conv2d(large, np.ones((3, 3, 32, 32), np.float32), 1, "SAME")  # starts the workers
    soak, begin = Soak(seed), time.monotonic()
    members = [
        threading.Thread(target=soak.work, args=(number, begin + seconds), name=f"soak-{number}")
        for number in range(threads)
    ]
    for member in members:
        member.start()
    readings = []
    period = min(PERIOD, seconds / 20)
    while any(member.is_alive() for member in members):
        members[0].join(period)
        time.sleep(0 if members[0].is_alive() else 0.05)
        if readings and time.monotonic() - begin - readings[-1].seconds < period * 0.9:
            continue
        if time.monotonic() - begin > seconds:
            continue  # threads that have ended would show as fewer
        gc.collect()
        calls = soak.counts["calls new"] + soak.counts["calls again"]
        readings.append(read(begin, calls))
        print(line(readings[-1], len(soak.failures)), flush=True)
    return readings, soak


def line(reading: Reading, failures: int) -> str:
    return (
        f"{reading.seconds:7.0f} s  {reading.calls:9,} calls  {reading.rss / MEGABYTE:7.1f} MB  {reading.fds:3d} fds  "
        f"{reading.threads:3d} threads  {reading.maps:5d} maps  {reading.cache:6d} cached  {failures} failures"
    )


def summary(readings: Sequence[Reading], counts: Counter[str]) -> str:
    """Return the table at the end."""
    if len(readings) < 3:
        return "no readings"
    whole = readings[-1].seconds
    marks = {
        "start": 0,
        "10%": after_warm_up(readings),
        "50%": next(n for n, each in enumerate(readings) if each.seconds >= 0.5 * whole),
        "end": -1,
    }
    lines = ["", "| | " + " | ".join(marks) + " | highest |", "|---|" + "---|" * (len(marks) + 1)]
    for name, unit, scale in (
        ("rss", "MB", MEGABYTE),
        ("fds", "", 1),
        ("threads", "", 1),
        ("maps", "", 1),
        ("cache", "entries", 1),
    ):
        values = [getattr(readings[n], name) / scale for n in marks.values()]
        values.append(max(getattr(each, name) / scale for each in readings))
        lines.append(f"| {name} {unit} | " + " | ".join(f"{value:,.0f}" for value in values) + " |")
    lines += [
        "",
        f"memory, highest of the last quarter against the second: {slope(readings) / MEGABYTE:+.1f} MB per hour",
    ]
    lines.append(", ".join(f"{name}: {number:,}" for name, number in sorted(counts.items())))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
