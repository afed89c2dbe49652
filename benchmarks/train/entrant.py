"""The parent's end: the process of one configuration, and what is known about it so far."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from convgrad._apps.bench.process import Process, WorkerFailed

from .child import Started, TurnTaken
from .configurations import Place
from .frameworks import Training
from .job import Job

PROGRAM = "from convgrad._apps.bench import clone; clone.load_module('train.child').main()"
"""What its process runs."""


class Entrant:
    """A configuration with a process of its own, kept alive between its turns."""

    def __init__(self, place: Place, training: Training, job: Job, timeout: float) -> None:
        self.row: dict[str, Any] = {
            "model": job.model,
            "label": place.label,
            "configuration": asdict(place.configuration),
            "status": "ok",
            "reason": "",
            "turns": [],
        }
        """What the report is made from."""
        self._training = training
        self._configuration = place.configuration
        self._job = job
        self._timeout = timeout
        self._process: Process | None = None

    @property
    def is_ready(self) -> bool:
        return self._process is not None

    @property
    def peak_bytes(self) -> int:
        return self.row.get("peak_bytes") or 0

    def start(self) -> None:
        """Start the process and wait until its model is warm; the row says why if that fails."""
        self._begin()
        started = self._ask("start", self._training.trainer, self._job)
        if started is not None:
            self.row.update(asdict(started))

    def turn(self, number: int, steps: int) -> None:
        """Take a turn; a process that cannot takes no further one."""
        taken = self._ask("turn", steps)
        if taken is not None:
            kept = {"steps": taken.steps, "faults": taken.faults, "others": taken.others}
            self.row["turns"].append({"round": number, **kept})
            self.row["peak_bytes"] = taken.peak_bytes

    def layers(self, repeats: int) -> list[dict[str, Any]]:
        """Time the convolutions of the model one by one, in a process that does nothing else."""
        self._begin()
        return self._ask("layers", self._training.trainer, self._job, repeats) or []

    def leave_out(self, reason: str) -> None:
        """Give up on this one, for a reason people can read."""
        self.row.update(status="failed", reason=reason)
        self.stop()

    def stop(self) -> None:
        """End the process, which we started."""
        process, self._process = self._process, None
        if process is not None:
            process.stop()

    def _begin(self) -> None:
        variables = self._training.environment(self._configuration, self._job.threads)
        self._process = Process(PROGRAM, variables)

    def _ask(self, *request: Any) -> Any:
        assert self._process is not None
        try:
            self._process.send(request)
            kind, value = self._process.receive(self._timeout, Started, TurnTaken)
        except WorkerFailed as error:
            self.leave_out(str(error))
            return None
        if kind == "refused":
            self.leave_out(value)
            return None
        return value
