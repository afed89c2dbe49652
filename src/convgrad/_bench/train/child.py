"""The child's end: one model in one configuration, trained when told to. ``python -m convgrad._bench.train.child``.

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
from typing import IO, Any, cast

from ... import _messages
from .job import Job, Parts, Trained, Trainer

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
    """Milliseconds of `job.Parts`, for each step."""
    faults: float | None
    """Minor page faults per step; None where the system does not count them."""
    peak_bytes: int | None
    """Of the process, since it began."""


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
    before = _faults()
    taken: list[Parts] = [trained.step() for _ in range(steps)]
    after = _faults()
    faults = None if before is None or after is None else (after - before) / steps
    return TurnTaken([[part * 1e3 for part in parts] for parts in taken], faults, _peak())


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
            verb, *arguments = _messages.read(requests, Job)
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
        _messages.write(answers, answer)


def main() -> None:
    """Serve requests; whatever the framework prints goes to stderr."""
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
