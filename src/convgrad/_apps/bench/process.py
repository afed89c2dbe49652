"""A child of a benchmark and the pipes to it: start, ask, wait with a limit, say how it ended.

What is sent and answered are messages (`_base/messages.py`); what it means is for the two ends to agree on.
"""

from __future__ import annotations

import contextlib
import os
import select as readiness
import subprocess
import tempfile
from collections.abc import Mapping
from typing import IO, Any, NoReturn

from ..._base import children, messages

PATIENCE = 2.0
"""Seconds for a child that has closed its pipes to end, so that its status can be told."""


class WorkerFailed(Exception):
    """The process died or did not answer in time."""


class Process:
    """The parent's end of a child that runs a program of ours."""

    def __init__(self, program: str, variables: Mapping[str, str]) -> None:
        # Frameworks print what they like; nobody reads it but for the last line of a child that died.
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        self._process = subprocess.Popen(
            children.python_command(program),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, **variables},
        )

    def send(self, request: Any) -> None:
        """Send a request; `WorkerFailed` if nobody is there to take it."""
        assert self._process.stdin is not None
        try:
            messages.write(self._process.stdin, request)
        except (BrokenPipeError, ValueError):
            self._fail()

    def receive(self, timeout: float, *records: type) -> Any:
        """Return the next answer; `records` are the classes that may occur in it. A silent child is ended."""
        assert self._process.stdout is not None
        try:
            # Answers are short and written at once, so the first byte is as good as all of them.
            if (
                os.name == "posix"
                and not readiness.select([self._process.stdout], [], [], timeout)[0]
            ):
                self.stop()
                raise WorkerFailed(f"no answer within {timeout:g} s")
            return messages.read(self._process.stdout, *records)
        except (EOFError, ValueError):
            self._fail()

    def stop(self, patience: float = 0.0) -> None:
        """End the process, which we started; one that is ending by itself is given some seconds."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            self._process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _fail(self) -> NoReturn:
        said = self._last_words()
        self.stop(PATIENCE)
        how = messages.ending(self._process.returncode)
        raise WorkerFailed(f"process {how}: {said}" if said else f"process {how}") from None

    def _last_words(self) -> str:
        if self._log.closed:
            return ""
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else ""
