"""From a trial that fails to the smallest one found that still does, as a file that the tests replay."""

from __future__ import annotations

import hashlib
import json
import select
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from convgrad._apps.check.shrink import descend, smaller_cases

from . import ROOT
from .trial import Trial
from .worker import Worker

REGRESSIONS = ROOT / "tests" / "regressions"


def signature(trial: Trial, failure: str) -> str:
    """Name what failed, so that a hundred failures of one cause are shrunk a few times only."""
    return " ".join([trial.op, trial.case.dtype, failure.split(":")[0], *failure.split()[1:3]])


def shrink(trial: Trial, failure: str, worker: Worker, seconds: float = 60.0) -> tuple[Trial, str]:
    """Try smaller trials while they fail in the same way: wrong, error, crash or hang."""
    manner, until = failure.split(":")[0], time.monotonic() + seconds

    def again(smaller: Trial) -> str | None:
        found = fails(smaller, worker)
        return found if found.split(":")[0] == manner else None

    return descend(trial, failure, _smaller, again, lambda: time.monotonic() <= until)


def fails(trial: Trial, worker: Worker, silence: float = 30.0) -> str:
    """Return why a trial fails in a process of its own, or nothing."""
    worker.send({"trial": trial.to_json()})
    ready, _, _ = select.select([worker], [], [], silence)
    if not ready:
        worker.stop()
        return f"hang: no answer in {silence:.0f} s"
    return str(worker.answer()["failure"])


def _smaller(trial: Trial) -> Iterator[Trial]:
    """Yield trials that are simpler in one way, the boldest first."""
    if len(trial.threads) > 1:
        yield replace(trial, threads=(1,), paired=False)
        for other in trial.threads[1:]:
            if len(trial.threads) > 2:
                yield replace(trial, threads=(trial.threads[0], other), paired=False)
    elif trial.threads != (1,):
        yield replace(trial, threads=(1,))
    if trial.peer:
        yield replace(trial, peer="")
    if trial.named:
        yield replace(trial, named=())
        if len(trial.named) > 1:
            yield from (replace(trial, named=(name,)) for name in trial.named)
    for plain in ({"layouts": ("C", "C")}, {"door": "friendly"}, {"winograd": "auto"}):
        changed = replace(trial, **plain)
        if changed != trial:
            yield changed
    for case in smaller_cases(trial.case):
        same = case.dtype == trial.case.dtype  # the data are made for it
        if same and case.legal and 0 not in (*case.output_shape, *case.input_shape):
            yield replace(trial, case=case)
    if trial.data == "special":
        yield replace(trial, data="whole")
    if trial.data == "normal":
        yield replace(trial, data="whole")


def save(trial: Trial, failure: str, seed: int, index: int, folder: Path = REGRESSIONS) -> Path:
    """Write a regression case; the test of that folder replays it from now on."""
    folder.mkdir(parents=True, exist_ok=True)
    name = hashlib.blake2b(repr(trial).encode(), digest_size=4).hexdigest()
    path = folder / f"{trial.op}-{trial.case.dtype}-{name}.json"
    row = {"failure": failure, "seed": seed, "index": index, "trial": trial.to_json()}
    path.write_text(json.dumps(row, indent=1) + "\n", encoding="utf-8")
    return path


def read(path: Path) -> Trial:
    """Return the trial of a regression case."""
    return Trial.from_json(json.loads(path.read_text(encoding="utf-8"))["trial"])
