"""A process that tries trials: one line of JSON in, one line out. It may crash; its parent takes note."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import IO, Any

from . import ROOT

SILENCE = 180.0
"""Seconds without an answer after which a worker hangs: compiling the slowest trial takes 5 on a busy machine."""


class Worker:
    """A process seen from its owner."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.sent: Any = None
        """What it is working on."""
        self.since = 0.0
        self.tried = 0

    def send(self, job: dict[str, Any]) -> None:
        """Start the next job; the process too, if there is none."""
        if self._process is None:
            self._process, self.tried = self._start(), 0
        self.sent, self.since = job, time.monotonic()
        self.tried += 1
        try:
            self._pipe("stdin").write(json.dumps(job).encode() + b"\n")
            self._pipe("stdin").flush()
        except BrokenPipeError:
            pass  # it died between two jobs; the answer will say so

    def fileno(self) -> int:
        return self._pipe("stdout").fileno()

    def answer(self) -> dict[str, Any]:
        """Return the answer that is there, or what the end of the process says."""
        line = self._pipe("stdout").readline()
        self.sent = None
        if line.endswith(b"\n"):
            answer: dict[str, Any] = json.loads(line)
            return answer
        assert self._process is not None
        status = self._process.wait()
        self._process = None
        told = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return {"failure": f"crash: exit status {status}: {' / '.join(told[:3])[:300]}"}

    def hangs(self, silence: float = SILENCE) -> bool:
        return self.sent is not None and time.monotonic() - self.since > silence

    def stop(self) -> None:
        """End the process, whatever it does."""
        self.sent = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process = None

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "OPENBLAS_NUM_THREADS": "1",  # the oracle's; two workers share the machine
            "PYTHONFAULTHANDLER": "1",
            "PYTHONUNBUFFERED": "1",
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        environment.setdefault("CONVGRAD_CACHE_DIR", str(ROOT / "build" / "campaign" / "cache"))
        environment.setdefault("CONVGRAD_CACHE_BYTES", "2G")
        with self._log.open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "tools.campaign.worker"],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                # Ctrl-C is for the owner alone: a worker finishes what it has begun.
                start_new_session=True,
            )

    def _pipe(self, name: str) -> IO[bytes]:
        pipe: IO[bytes] | None = getattr(self._process, name, None)
        assert pipe is not None, "a job must have been sent first"
        return pipe


def try_job(job: dict[str, Any]) -> dict[str, Any]:
    """Try the trial that a job names, by number or in full."""
    from . import draw
    from .checks import Wrong, attempt
    from .trial import Trial

    answer: dict[str, Any] = {"failure": ""}
    try:
        trial = (
            Trial.from_json(job["trial"])
            if "trial" in job
            else draw.trial(job["seed"], job["index"], job["peers"])
        )
        answer |= {"trial": trial.to_json(), "problem": trial.problem}
        outcome = attempt(trial)
    except Wrong as wrong:
        return {**answer, "failure": f"wrong: {wrong}"}
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        return {**answer, "failure": f"error: {type(error).__name__}: {error} ({place})"[:500]}
    return {**answer, **outcome.__dict__}


def main() -> None:
    """Answer jobs until there are no more."""
    # Whatever a library prints goes to the log; the answers keep the pipe for themselves.
    pipe = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    warnings.filterwarnings("error", message="convgrad")
    for line in sys.stdin.buffer:
        pipe.write(json.dumps(try_job(json.loads(line))).encode() + b"\n")


if __name__ == "__main__":
    main()
