"""A core kept busy by somebody else: how much slower do we and the peers get?

Every contest is held twice, on a quiet machine and beside a process that spins on one of the cores, pinned there. With
that core shared by two, a library that splits its work evenly waits for the slow half; the figure to compare is the
median, because a scheduler hides the neighbour from single calls.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..._base import children
from ..._base.text import aligned
from .contests import Contest, expect, operands_of, our_call
from .layers import Layer
from .machine import describe
from .measure import Here, Room, race
from .peers import Peer
from .report import geometric_mean, ms
from .runner import Progress, RunSettings, prepared, workers_of
from .worker import OURS, Worker, ours_in

_SPIN = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
print("spinning", flush=True)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    for _ in range(100000):
        pass
"""
_LONGEST = 600.0
"""Seconds until the spinning process ends by itself, should we be killed."""


@contextmanager
def spinning() -> Iterator[None]:
    """Keep the last of our cores busy."""
    core = max(os.sched_getaffinity(0))
    process = subprocess.Popen(
        children.python_command(_SPIN, str(core), str(_LONGEST)), stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.1)
        yield
    finally:
        process.kill()
        process.communicate()


def measure_all(
    layers: Sequence[Layer],
    peers: Sequence[Peer],
    settings: RunSettings,
    progress: Progress = lambda done, text: None,
) -> dict[str, Any]:
    """Race every contest on a quiet and on a busy machine."""
    if not hasattr(os, "sched_setaffinity"):
        raise ValueError("busy needs a system that can pin a process to a core")
    peers = [peer for peer in peers if peer.is_installed]
    workers = workers_of(peers, settings)
    rows: list[dict[str, Any]] = []
    try:
        for layer in layers:
            for op in settings.ops:
                contest = Contest(layer, op, settings.dtype, settings.layout)
                progress(1, f"{layer.name} {op}")
                rows.append(_measure(contest, peers, workers, settings))
        versions = {k: v for worker in workers.values() for k, v in worker.versions.items()}
    finally:
        for worker in workers.values():
            worker.stop()
    return {"rows": rows, "machine": describe(versions, settings.threads)}


def _measure(
    contest: Contest, peers: Sequence[Peer], workers: dict[str, Worker], settings: RunSettings
) -> dict[str, Any]:
    call = our_call(contest, operands_of(contest))
    call()  # compiles
    found = prepared(contest, [contest.layout], expect(contest), peers, workers)
    rooms: list[Room] = [room for room in found if room.ours and room.peers]
    rooms = rooms or [Here({ours_in(contest.layout): call})]
    rounds, seconds = settings.rounds, settings.seconds
    quiet = race(rooms, rounds=rounds, seconds=seconds)
    with spinning():
        busy = race(rooms, rounds=rounds, seconds=seconds)
    medians: dict[str, dict[str, float]] = {}
    for (room, name), times in quiet.items():
        beside = busy.get((room, name))
        if times.calls and beside is not None and beside.calls:
            ours = name == ours_in(contest.layout)
            # Ours stands once, as it is in the first room.
            medians.setdefault(
                OURS if ours else name,
                {
                    "quiet_ms": times.summary()["median_ms"],
                    "busy_ms": beside.summary()["median_ms"],
                },
            )
    return {"problem": contest.layer.name, "op": contest.op, "medians": medians}


def render(results: dict[str, Any]) -> str:
    """Return the table as text."""
    rows = results["rows"]
    names = list(dict.fromkeys(name for row in rows for name in row["medians"]))
    header = ["problem", "op"]
    for name in names:
        header += [name, "busy", "slowdown"]
    lines = [header]
    slowdowns: dict[str, list[float]] = {name: [] for name in names}
    for row in rows:
        line = [row["problem"], row["op"]]
        for name in names:
            found = row["medians"].get(name)
            if found is None:
                line += ["-", "-", "-"]
                continue
            slowdowns[name].append(found["busy_ms"] / found["quiet_ms"])
            line += [ms(found["quiet_ms"]), ms(found["busy_ms"]), f"{slowdowns[name][-1]:.2f}"]
        lines.append(line)
    means = ["geometric mean", ""]
    for name in names:
        means += ["", "", f"{geometric_mean(slowdowns[name]):.2f}"]
    text = (
        "Median milliseconds of a call, alone and beside a process that spins on one of the cores."
    )
    return f"{aligned([*lines, means], left=(0, 1))}\n\n{text}"
