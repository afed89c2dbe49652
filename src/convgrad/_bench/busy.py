"""A core kept busy by somebody else: how much slower do we and the peers get?

Every case is raced twice, on a quiet machine and beside a process that spins on one of the cores, pinned there. With
that core shared by two, a library that splits its work evenly waits for the slow half; the figure to compare is the
median, because a scheduler hides the neighbour from single calls.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .._text import aligned
from .cases import Case, expect, operands_of, our_call
from .machine import describe
from .measure import race
from .peers import Peer
from .problems import Problem
from .report import geometric_mean, ms
from .runner import Ours, Progress, Settings, workers_of
from .worker import Remote

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
        [sys.executable, "-c", _SPIN, str(core), str(_LONGEST)], stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.1)
        yield
    finally:
        process.kill()
        process.communicate()


def run(
    problems: Sequence[Problem],
    peers: Sequence[Peer],
    settings: Settings,
    progress: Progress = lambda done, text: None,
) -> dict[str, Any]:
    """Race every case on a quiet and on a busy machine."""
    if not hasattr(os, "sched_setaffinity"):
        raise ValueError("busy needs a system that can pin a process to a core")
    peers = [peer for peer in peers if peer.is_installed]
    workers = workers_of(peers, settings)
    rows: list[dict[str, Any]] = []
    try:
        for problem in problems:
            for op in settings.ops:
                case = Case(problem, op, settings.dtype, settings.layout)
                progress(1, f"{problem.name} {op}")
                rows.append(
                    _measure(case, [Remote(p, workers[p.process]) for p in peers], settings)
                )
        versions = {k: v for worker in workers.values() for k, v in worker.versions.items()}
    finally:
        for worker in workers.values():
            worker.stop()
    return {"rows": rows, "machine": describe(versions, settings.threads)}


def _measure(case: Case, remotes: list[Remote], settings: Settings) -> dict[str, Any]:
    ours = Ours(our_call(case, operands_of(case)))
    expected = expect(case)
    ready = [remote for remote in remotes if remote.prepare(case, expected)]
    rounds, seconds = settings.rounds, settings.seconds
    quiet = race(ours, ready, rounds=rounds, seconds=seconds)
    with spinning():
        busy = race(ours, ready, rounds=rounds, seconds=seconds)
    medians = {
        name: {
            "quiet_ms": quiet[name].summary()["median_ms"],
            "busy_ms": busy[name].summary()["median_ms"],
        }
        for name in quiet
        if quiet[name].calls and busy[name].calls
    }
    return {"problem": case.problem.name, "op": case.op, "medians": medians}


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
