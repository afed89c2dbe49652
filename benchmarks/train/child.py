"""The child's end: one model in one configuration, trained when told to. `main` is run in a process of its own.

    ("start", trainer, job)            -> ("ok", Started)
    ("turn", steps)                    -> ("ok", TurnTaken)
    ("layers", trainer, job, repeats)  -> ("ok", rows)

A request that raises is answered with ("refused", reason).
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, cast

from convgrad._base import messages

from .job import Job, Trained, Trainer

resource: Any = import_module("resource") if find_spec("resource") else None  # not on Windows

WARM_UP = 2
"""Steps before the first turn: kernels are compiled in the first, memory has found its places after the second."""


@dataclass(frozen=True)
class Started:
    """What is known about a model before its first turn."""

    parameters: int
    note: str
    losses: list[float]
    """Of the steps of the warm-up; the first ones of all configurations should agree."""
    seconds: float
    """From the request to the end of the warm-up."""
    peak_bytes: int | None


@dataclass(frozen=True)
class TurnTaken:
    """The timed steps of one turn."""

    steps: list[list[float]]
    """Milliseconds of `job.Parts` or `job.Whole`, for each step."""
    faults: float | None
    """Minor page faults per step; None where the system does not count them."""
    peak_bytes: int | None
    """Of the process, since it began."""
    others: float | None
    """Share of the machine's processors that other programs used meanwhile; None where the system does not say.

    OpenMP's threads wait for each other in loops, so a second busy program can make steps ten times as long.
    """


def start(trainer: Trainer, job: Job) -> tuple[Trained, Started]:
    """Prepare a model and warm it up."""
    began = time.perf_counter()
    trained = trainer.prepare(job)
    losses = []
    for _ in range(WARM_UP):
        trained.step()
        losses.append(trained.loss())
    seconds = time.perf_counter() - began
    return trained, Started(trained.parameters, trained.note, losses, seconds, _peak())


def turn(trained: Trained, steps: int) -> TurnTaken:
    """Take one step that only wakes threads and fills caches, then some whose parts are timed."""
    trained.step()
    before, busy, own, began = _faults(), _busy_seconds(), time.process_time(), time.perf_counter()
    taken = [trained.step() for _ in range(steps)]
    wall, own = time.perf_counter() - began, time.process_time() - own
    faults = None if before is None else ((_faults() or 0) - before) / steps
    others = None
    if busy is not None:
        spent = (_busy_seconds() or 0.0) - busy - own
        others = min(max(spent / (wall * (os.cpu_count() or 1)), 0.0), 1.0)
    return TurnTaken([[part * 1e3 for part in parts] for parts in taken], faults, _peak(), others)


def _busy_seconds() -> float | None:
    """Return the seconds all processors together have worked for anybody, since the machine was started."""
    try:
        with Path("/proc/stat").open(encoding="ascii") as file:
            words = file.readline().split()
    except OSError:
        return None
    # user nice system idle iowait irq softirq steal; what a hypervisor gave to others counts as work of others
    ticks = [int(word) for word in words[1:9]]
    return float(sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def _faults() -> int | None:
    return None if resource is None else int(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)


def _peak() -> int | None:
    if resource is None:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    trained: Trained | None = None
    while True:
        try:
            verb, *arguments = messages.read(requests, Job)
        except EOFError:
            return
        answer: tuple[str, Any]
        try:
            if verb == "start":
                name, job = arguments
                trained, started = start(cast(Trainer, import_module(name)), job)
                answer = "ok", started
            elif verb == "turn":
                assert trained is not None, "a turn before the start"
                answer = "ok", turn(trained, *arguments)
            elif verb == "layers":
                name, job, repeats = arguments
                rows = cast(Trainer, import_module(name)).layers(job, repeats)
                answer = "ok", [dict(row) for row in rows]
            else:
                raise ValueError(f"no such request: {verb}")
        except Exception as error:
            said = " ".join(str(error).split())[:300]
            answer = "refused", f"{type(error).__name__}: {said}"
        messages.write(answers, answer)


def main() -> None:
    """Serve requests; whatever the framework prints goes to stderr."""
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _serve(sys.stdin.buffer, answers)
