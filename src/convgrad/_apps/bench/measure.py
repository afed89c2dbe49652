"""Timing: contestants that take turns, and what their times say. Knows no convolution.

Whoever is compared shares a process and takes turns call by call: each calls twice and the second call is timed, so
that all find memory, caches and threads as they left them themselves. The order rotates with every sweep. Contestants
that cannot share a process stand in several rooms, which take turns too; compare within a room only.

Noise on a shared machine comes in bursts, which hit neighbours in time alike. Minima and medians are both kept: the
first is what the kernels can do, the second what a caller sees.

Results are dropped call by call inside the clock, as in a training loop; `keep` holds the last few alive instead,
which forces fresh memory. First-touch page faults cost about 2 us each on our machine and can outweigh the kernel, so
they are counted.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

resource: Any = import_module("resource") if find_spec("resource") else None  # not on Windows

GAP = 0.02
"""Seconds between the turns of two rooms: idle threads of the last one spin for a while before they sleep."""

SLOW = 1.0
"""Seconds of a call that need no call before it: whatever that would warm is a small part."""

TOO_SLOW = 4.0
"""A peer this many times slower than the fastest peer after two rounds is not timed further."""

PATIENCE = 6.0
"""A race that has used this many times its seconds ends after `FEWEST` rounds: some take seconds for one call."""

FEWEST = 3
"""Rounds of the slowest race."""


@dataclass
class Turn:
    """The calls of one contestant in one round."""

    times: list[float]
    """Seconds of each timed call."""
    faults: float | None
    """Minor page faults per timed call; None where the system does not count them."""
    cores: float
    """Processor seconds per second: shows whether a thread limit was kept."""


class _Clock:
    """One contestant's calls, and what they took."""

    def __init__(self, call: Callable[[], Any], keep: int) -> None:
        self.times: list[float] = []
        self._call = call
        self._keep = keep
        self._kept: deque[Any] = deque(maxlen=max(keep, 1))
        self._faults: float | None = 0.0
        self._processor = self._wall = 0.0
        for _ in range(keep):
            self._kept.append(call())

    def once(self, warm: bool) -> None:
        """Call, then call and look at the clock."""
        call, kept, clock = self._call, self._kept, time.perf_counter
        keeps = bool(self._keep)
        if warm:
            kept.append(call()) if keeps else call()
        before, processor = _faults(), time.process_time()
        start = clock()
        if keeps:
            kept.append(call())  # frees the oldest
        else:
            call()
        end = clock()
        self._processor += time.process_time() - processor
        self._wall += end - start
        after = _faults()
        if before is None or after is None or self._faults is None:
            self._faults = None
        else:
            self._faults += after - before
        self.times.append(end - start)

    def turn(self) -> Turn:
        faults = None if self._faults is None else self._faults / len(self.times)
        return Turn(self.times, faults, self._processor / self._wall if self._wall else 0.0)


def take_turns(
    calls: Mapping[str, Callable[[], Any]],
    seconds: float,
    *,
    keep: int = 0,
    slow: Collection[str] = (),
) -> dict[str, Turn]:
    """Let all call in turn until each has had about `seconds`, at least once; whoever is `slow` calls once a turn."""
    clocks = {name: _Clock(call, keep) for name, call in calls.items()}
    names = list(clocks)
    end = time.perf_counter() + seconds * len(names)
    sweep = 0
    while not sweep or time.perf_counter() < end:
        for name in _rotated(names, sweep):
            clocks[name].once(name not in slow)
        sweep += 1
    return {name: clock.turn() for name, clock in clocks.items()}


def _faults() -> int | None:
    return None if resource is None else int(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)


class Room(Protocol):
    """A process with contestants that are ready; `turns` lacks those that can no longer be timed."""

    name: str

    @property
    def ours(self) -> Sequence[str]:
        """Who is never left out."""

    @property
    def peers(self) -> Sequence[str]: ...

    def turns(self, names: Sequence[str], seconds: float) -> dict[str, Turn]: ...


@dataclass
class Here:
    """This process as a room: calls of ours."""

    calls: Mapping[str, Callable[[], Any]]
    keep: int = 0
    name: str = ""
    slow: set[str] = field(default_factory=set)

    @property
    def ours(self) -> Sequence[str]:
        return list(self.calls)

    @property
    def peers(self) -> Sequence[str]:
        return ()

    def turns(self, names: Sequence[str], seconds: float) -> dict[str, Turn]:
        calls = {name: self.calls[name] for name in names}
        found = take_turns(calls, seconds, keep=self.keep, slow=self.slow)
        self.slow |= slow_ones(found)
        return found


def slow_ones(turns: Mapping[str, Turn]) -> set[str]:
    """Return who takes so long that calling twice is a waste."""
    return {name for name, turn in turns.items() if min(turn.times) > SLOW}


@dataclass
class Times:
    """Everything measured about one contestant in one room."""

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
    rooms: Sequence[Room], *, rounds: int, seconds: float, gap: float = GAP
) -> dict[tuple[str, str], Times]:
    """Time everybody in turns, `seconds` each in all, spread over `rounds`; by room and name."""
    times: dict[tuple[str, str], Times] = {
        (room.name, name): Times() for room in rooms for name in (*room.ours, *room.peers)
    }
    left_out: set[tuple[str, str]] = set()
    began, limit = time.perf_counter(), PATIENCE * seconds * len(times)
    for number in range(rounds):
        for room in _rotated(rooms, number):
            if gap and len(rooms) > 1:
                time.sleep(gap)
            names = [n for n in (*room.ours, *room.peers) if (room.name, n) not in left_out]
            compared = not room.peers or set(names) & set(room.peers)
            if not names or (number and not compared):
                continue
            found = room.turns(names, seconds / rounds)
            for name in names:
                if name in found:
                    times[room.name, name].turns.append(found[name])
                else:
                    left_out.add((room.name, name))
        if number + 1 >= FEWEST and time.perf_counter() - began > limit:
            break
        if number:
            left_out |= _hopeless(rooms, times)
    return times


def _rotated(items: Sequence[T], by: int) -> Iterator[T]:
    at = by % len(items)
    yield from items[at:]
    yield from items[:at]


def _hopeless(
    rooms: Sequence[Room], times: Mapping[tuple[str, str], Times]
) -> set[tuple[str, str]]:
    peers = [(room.name, name) for room in rooms for name in room.peers]
    best = {key: min(times[key].calls) for key in peers if times[key].calls}
    fastest = min(best.values(), default=0.0)
    return {key for key, time in best.items() if time > TOO_SLOW * fastest}
