"""What the process holds, read now and then, and what is said about it at the end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from convgrad._compiler.jit import cache

MEGABYTE = 1 << 20
WARM = 0.1
"""The share of the time after which everything that is kept has been filled once."""


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
    adds its own slack. The rest has no reason to grow, apart from what is in flight when it is read.
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
