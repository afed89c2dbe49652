"""Runs, each in a process of its own: a page that takes an hour can be cancelled, one that takes all memory dies alone.

A process stays when its run has ended, since it has the numbers; the oldest ones are ended as new ones come.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from ..._base import children, messages
from ..._base.errors import ArgumentError

MOST_RUNNING = 4
MOST_KEPT = 3
"""Ended runs whose numbers can be asked for."""
MOST_KNOWN = 64
"""Runs whose state can."""
MOST_POINTS = 5000
"""Of a curve, as it is told; a longer one is thinned."""
_ANSWER_SECONDS = 60.0
_LONGEST = 10.0 * 365 * 86400
"""Seconds of a run; what goes far beyond is more than clocks can count."""
_PATIENCE = 2.0
"""Seconds between asking a process to end and ending it."""


class Gone(Exception):
    """There is no such run, or its numbers are no longer there."""


class TooMany(Exception):
    """As many runs as there may be are under way."""


@dataclass(frozen=True)
class Limits:
    """What one run may take."""

    seconds: float = 600.0
    memory: int = 4 << 30


class _Process:
    """A child, started ahead of its run: importing takes longer than most pages."""

    def __init__(self) -> None:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the child)
        try:
            self.child = subprocess.Popen(
                children.command("convgrad._apps.studio.child", "main"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.errors,
                start_new_session=True,  # Ctrl-C in the terminal is for the server
            )
        except OSError:
            self.errors.close()
            raise
        self._writing = threading.Lock()

    def write(self, message: Any) -> None:
        assert self.child.stdin is not None
        with self._writing:
            messages.write(self.child.stdin, message)

    def read(self) -> Any:
        assert self.child.stdout is not None
        return messages.read(self.child.stdout)

    def end(self, patience: float = 0.0) -> None:
        """End it: ask first, if there is time to wait."""
        if patience and self.child.poll() is None:
            self.child.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.child.wait(patience)
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()

    def close(self) -> None:
        for stream in (self.child.stdin, self.child.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self.errors.close()

    def last_words(self) -> str:
        """Return the last line it printed."""
        self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(0, self.errors.tell() - 4000))
        lines = self.errors.read().decode(errors="replace").split("\n")
        found = [line.strip() for line in lines if line.strip()]
        return found[-1][:200] if found else ""


@dataclass
class Run:
    """One run, as it is known here."""

    id: str
    process: _Process
    limits: Limits
    state: str = "running"
    version: int = 1
    facts: dict[str, Any] = field(default_factory=dict)
    curves: dict[str, list[Any]] = field(default_factory=dict)
    problem: str | None = None
    changed: threading.Condition = field(default_factory=threading.Condition)
    answers: dict[int, Any] = field(default_factory=dict)
    """By the numbers of questions somebody waits for; None until it comes."""
    alive: bool = True
    numbers: Any = field(default_factory=itertools.count)

    def start(self, order: dict[str, Any]) -> None:
        self.facts = {
            "step": 0,
            "steps": order["steps"],
            "block": None,
            "done": 0,
            "total": 0,
            "ms": {},
            "results": {},
        }
        seconds = min(self.limits.seconds, _LONGEST)
        self._timer = threading.Timer(seconds, self._late)
        self._timer.daemon = True
        self._timer.start()
        threading.Thread(target=self._follow, args=(order,), daemon=True).start()

    def _follow(self, order: dict[str, Any]) -> None:
        """Hear what the child says until it ends."""
        try:
            self.process.write(order)
            while True:
                self._heard(self.process.read())
        except (EOFError, OSError, ValueError) as error:
            if isinstance(error, messages.Garbled):
                self.process.end()
            status = self.process.child.wait()
            self._end("failed", _ending(status, self.process.last_words()))
        finally:
            with self.changed:
                self.alive = False
                self.changed.notify_all()
            self._timer.cancel()
            self.process.end()
            self.process.close()

    def _heard(self, message: dict[str, Any]) -> None:
        kind = message.pop("kind")
        if kind == "end":
            self._end(message["state"], message["problem"])
            return
        with self.changed:
            if kind == "answer":
                if (
                    message["number"] in self.answers
                ):  # else it comes too late, and nobody would take it
                    self.answers[message["number"]] = message["answer"]
            else:
                for id, values in message.pop("curves", {}).items():
                    self.curves.setdefault(id, []).extend(values)
                self.facts.update(message)
                self.version += 1
            self.changed.notify_all()

    def _end(self, state: str, problem: str | None) -> None:
        with self.changed:
            if self.state == "running":
                self.state, self.problem = state, problem
                self.version += 1
                self._timer.cancel()
            self.changed.notify_all()

    def _late(self) -> None:
        self._end("failed", f"it took longer than {self.limits.seconds:g} s and was ended")
        self.process.end(_PATIENCE)

    def cancel(self) -> None:
        """End the run; one that has ended keeps its results."""
        with self.changed:
            running = self.state == "running"
        if running:
            self._end("cancelled", None)
            self.process.end(_PATIENCE)

    def status(self, since: int, seconds: float) -> dict[str, Any]:
        """Return what is known, as soon as it is newer than `since`, the run has ended, or the seconds are over."""
        until = time.monotonic() + seconds
        with self.changed:
            while self.version <= since and self.state == "running":
                left = until - time.monotonic()
                if left <= 0:
                    break
                self.changed.wait(left)
            return {
                "state": self.state,
                "version": self.version,
                **self.facts,
                "curves": {id: _thinned(values) for id, values in self.curves.items()},
                "problem": self.problem,
            }

    def ask(self, **question: Any) -> Any:
        """Ask the child about its numbers."""
        number = next(self.numbers)
        gone = Gone(f"the numbers of run {self.id} are no longer there: run it again")
        if not self.alive:
            raise gone
        with self.changed:
            self.answers[number] = None
        try:
            self.process.write({**question, "number": number})
            answer = self._answer(number)
        except (OSError, ValueError):
            raise gone from None
        finally:
            with self.changed:
                del self.answers[number]
        if answer is None:
            raise gone
        if "error" in answer:
            raise ArgumentError(answer["error"])
        return answer

    def _answer(self, number: int) -> Any:
        """Wait for an answer; None if it does not come."""
        until = time.monotonic() + _ANSWER_SECONDS
        with self.changed:
            while self.answers[number] is None:
                left = until - time.monotonic()
                if not self.alive or left <= 0:
                    return None
                self.changed.wait(left)
            return self.answers[number]


def _ending(status: int, last: str) -> str:
    if status >= 0:
        words = f"the run's process ended early (status {status})"
    else:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = "unknown"
        words = f"the run's process died (signal {-status}, {name})"
    return f"{words}: {last}" if last else words


def _thinned(values: list[Any]) -> list[Any]:
    """Return a curve of few points, the last one among them."""
    stride = -(-len(values) // MOST_POINTS)
    return list(values) if stride <= 1 else [*values[:-1:stride], values[-1]]


class Runs:
    """All runs of a server."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._runs: dict[str, Run] = {}
        self._spare: _Process | None = None
        self._lock = threading.Lock()
        self._count = itertools.count(1)
        self._closed = False

    def warm(self) -> None:
        """Have a process ready for the next run."""
        with self._lock:
            if self._spare is None and not self._closed:
                with suppress(OSError):  # the next run will try again, and say why not
                    self._spare = _Process()

    def start(self, page: str, steps: int, until: str | None) -> str:
        """Begin a run of a page, given as JSON text, and return its id."""
        with self._lock:
            running = [run for run in self._runs.values() if run.state == "running"]
            if len(running) >= MOST_RUNNING:
                raise TooMany(f"{len(running)} runs are under way: cancel one of them")
            self._tidy()
            process, self._spare = self._spare, None
            if process is not None and process.child.poll() is not None:
                process.close()
                process = None
            run = Run(f"r{next(self._count)}", process or _Process(), self.limits)
            self._runs[run.id] = run
        run.start({"page": page, "steps": steps, "until": until, "memory": self.limits.memory})
        threading.Thread(target=self.warm, daemon=True).start()
        return run.id

    def _tidy(self) -> None:
        """End the processes of old runs, and forget older ones."""
        ended = [run for run in self._runs.values() if run.state != "running"]
        for run in [run for run in ended if run.alive][: -MOST_KEPT or None]:
            run.process.end()
        for run in ended[: max(0, len(self._runs) - MOST_KNOWN)]:
            del self._runs[run.id]

    def find(self, id: str) -> Run:
        """Return a run by its id."""
        run = self._runs.get(id)
        if run is None:
            raise Gone(f"there is no run {id!r}")
        return run

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._closed = True
            for run in self._runs.values():
                run._end("cancelled", None)
                run.process.end()
            if self._spare is not None:
                self._spare.end()
                self._spare.close()
