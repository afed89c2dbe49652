"""A kernel in a process of its own: a crash or a hang there is a finding, not our end.

Parent and child exchange messages over the child's standard input and output. Whatever the kernel
itself prints goes to standard error, which is kept in a file and quoted when the child dies.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from contextlib import suppress
from typing import Any

from ..._base import children, messages
from ..._base.dtypes import AnyArray
from ..._base.errors import ArgumentError
from .batch_norm import case as batch_norm
from .implementation import Observation, load, observe, version
from .problems import Case

_START_SECONDS = 300.0
"""Importing TensorFlow takes 3 to 60 s, depending on the disk."""
_LATE = "no answer in"


class Isolated:
    """A kernel named by IMPL, called in a child process that is started again after each death."""

    def __init__(self, text: str, op: str, seconds: float) -> None:
        self._text, self._op, self._seconds = text, op, seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: Any = None
        self.version = ""

    def __enter__(self) -> Isolated:
        self._start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._stop()

    def observe(self, case: Case, first: AnyArray, second: AnyArray, twice: bool) -> Observation:
        """Call the kernel once, or twice, on one problem."""
        return self._answer((case, first, second, twice))

    def observe_norm(
        self, case: batch_norm.NormCase, arrays: batch_norm.Arrays, twice: bool
    ) -> Observation:
        """Call a batch norm once, or twice."""
        return self._answer((case, arrays, None, twice))

    def _answer(self, message: tuple[Any, ...]) -> Observation:
        if self._process is None:
            self._start()
        answer = self._ask(message, self._seconds)
        if isinstance(answer, Observation):
            return answer
        return Observation(died=str(answer), late=str(answer).startswith(_LATE))

    def _start(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the child)
        self._process = subprocess.Popen(
            children.command(__name__, "serve"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # so that what the kernel has forked can be ended with it
        )
        answer = self._ask((self._text, self._op), _START_SECONDS)
        if isinstance(answer, dict) and "error" in answer:
            self._stop()
            raise ArgumentError(answer["error"])
        if not isinstance(answer, dict):
            raise ArgumentError(f"IMPL: loading {self._text!r} failed: {answer}")
        self.version = str(answer["version"])

    def _ask(self, message: Any, seconds: float) -> Any:
        """Send a message and return the answer, or in words how the child died."""
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        late = threading.Event()

        def give_up() -> None:
            late.set()
            _end(process)

        timer = threading.Timer(seconds, give_up)
        timer.start()
        try:
            messages.write(process.stdin, message)
            return messages.read(process.stdout, Observation)
        except (EOFError, OSError) as error:
            garbled = isinstance(error, messages.Garbled)
            status = _end(process) if garbled else process.wait()
            words = f"process {messages.ending(status)}"
            if garbled:
                words = f"something else than the answer was written to the pipe ({error})"
            elif late.is_set() and status < 0:
                words = f"{_LATE} {seconds:g} s"
            last = self._last_words()
            self._stop()
            return f"{words}: {last}" if last and not late.is_set() else words
        finally:
            timer.cancel()

    def _last_words(self) -> str:
        """Return the last line the child printed that looks like a reason."""
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - 4000))
        lines = self._errors.read().decode(errors="replace").splitlines()
        telling = [line for line in lines if "heck failed" in line or "ssert" in line]
        return telling[-1].partition("] ")[2][:200] or telling[-1][:200] if telling else ""

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):  # a dead child's pipe may still hold bytes of ours
                    stream.close()
        _end(process)
        self._errors.close()


def _end(process: subprocess.Popen[bytes]) -> int:
    """End a child and all it has forked: a forked kernel holds the pipe open, and reading from it would never end."""
    if process.returncode is None and hasattr(
        os, "killpg"
    ):  # not yet waited for: the number is still its own
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    return process.wait()


def serve() -> None:
    """Be the child: load a kernel, then answer calls until the parent closes the pipe."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    calls = sys.stdin.buffer
    warnings.simplefilter("ignore")
    text, op = messages.read(calls)
    me = os.getpid()
    try:
        kernel = load(text, op)
    except Exception as error:
        messages.write(answers, {"error": str(error)})
        return
    messages.write(answers, {"version": version(text)})
    while True:
        try:
            case, first, second, twice = messages.read(calls, Case, batch_norm.NormCase)
        except EOFError:
            return
        if isinstance(case, batch_norm.NormCase):
            seen = batch_norm.observe(kernel, case, first, twice)
        else:
            seen = observe(kernel, case, first, second, twice)
        if os.getpid() != me:
            os._exit(0)  # the kernel has forked and both came back: one answers
        messages.write(answers, seen)
