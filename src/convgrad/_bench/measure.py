"""Timing: contestants that take turns, and what their times say. Knows no convolution.

Noise on a shared machine comes in bursts, so contestants alternate in short turns and the order rotates every round:
a burst then hits everybody. The minimum is the comparison, the median tells how far to trust it.

Results are dropped call by call inside the clock, as in a training loop; `keep` holds the last few alive instead,
which forces fresh memory. First-touch page faults cost about 2 us each on our machine and can outweigh the kernel, so
every turn counts them.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

resource: Any = import_module("resource") if find_spec("resource") else None  # not on Windows

GAP = 0.02
"""Seconds between two turns: idle worker threads of the previous contestant spin for a while before they sleep."""

TOO_SLOW = 4.0
"""A peer this many times slower than the fastest peer after two rounds is not timed further."""

PATIENCE = 6.0
"""A contestant that has used this many times its `seconds` gets no further round: some take seconds for one call."""


@dataclass
class Turn:
    """One uninterrupted run of calls."""

    times: list[float]
    """Seconds of each call."""
    faults: float | None
    """Minor page faults per call; None where the system does not count them."""
    cores: float
    """Processor seconds per second: shows whether a thread limit was kept."""


def run_turn(call: Callable[[], Any], seconds: float, *, keep: int = 0, warm: bool = True) -> Turn:
    """Call for `seconds`, at least three times unless one call takes longer than all of it."""
    kept: deque[Any] = deque(maxlen=max(keep, 1))
    if warm:
        call()
    for _ in range(keep):
        kept.append(call())
    times: list[float] = []
    clock = time.perf_counter
    faults, cpu, began = _faults(), time.process_time(), clock()
    while True:
        start = clock()
        if keep:
            kept.append(call())  # frees the oldest
        else:
            call()
        end = clock()
        times.append(end - start)
        spent = end - began
        if spent >= seconds and (len(times) >= 3 or spent >= 4 * seconds):
            break
    wall, cpu, after = clock() - began, time.process_time() - cpu, _faults()
    per_call = None if after is None or faults is None else (after - faults) / len(times)
    return Turn(times, per_call, cpu / wall if wall else 0.0)


def _faults() -> int | None:
    return None if resource is None else int(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)


class Contestant(Protocol):
    """Whoever can be timed; `turn` returns None once it can no longer be."""

    name: str

    def turn(self, seconds: float) -> Turn | None: ...


@dataclass
class Times:
    """Everything measured about one contestant in one contest."""

    turns: list[Turn] = field(default_factory=list)

    @property
    def calls(self) -> list[float]:
        return [seconds for turn in self.turns for seconds in turn.times]

    def summary(self) -> dict[str, Any]:
        """Milliseconds and counts, ready for JSON."""
        calls = self.calls
        if not calls:
            return {}
        faults = [turn.faults for turn in self.turns if turn.faults is not None]
        return {
            "min_ms": min(calls) * 1e3,
            "median_ms": statistics.median(calls) * 1e3,
            "calls": len(calls),
            "rounds_min_ms": [min(turn.times) * 1e3 for turn in self.turns],
            "rounds_median_ms": [statistics.median(turn.times) * 1e3 for turn in self.turns],
            "faults": min(faults) if faults else None,
            "cores": statistics.median(turn.cores for turn in self.turns),
        }


def race(
    ours: Contestant, peers: Sequence[Contestant], *, rounds: int, seconds: float, gap: float = GAP
) -> dict[str, Times]:
    """Time everybody in turns: `seconds` each in all, spread over `rounds`."""
    times = {each.name: Times() for each in (ours, *peers)}
    running = [ours, *peers]
    for number in range(rounds):
        for each in list(_rotated(running, number)):
            if gap:
                time.sleep(gap)
            turn = each.turn(seconds / rounds)
            if turn is not None:
                times[each.name].turns.append(turn)
            else:
                running.remove(each)
        running = [each for each in running if sum(times[each.name].calls) < PATIENCE * seconds]
        if number >= 1:
            worth = _worth_timing([each for each in running if each is not ours], times)
            running = [each for each in running if each is ours or each in worth]
        if not running:
            break
    return times


def _rotated(items: list[Contestant], by: int) -> Iterator[Contestant]:
    at = by % len(items)
    yield from items[at:]
    yield from items[:at]


def _worth_timing(running: list[Contestant], times: dict[str, Times]) -> list[Contestant]:
    best = {each.name: min(times[each.name].calls) for each in running}
    fastest = min(best.values(), default=0.0)
    return [each for each in running if best[each.name] <= TOO_SLOW * fastest]
