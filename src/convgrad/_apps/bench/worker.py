"""Rooms: processes in which a framework and convgrad take turns, and the pipe to them.

A framework's switches are read once per process and its threads linger, so each family runs in a worker; ours is
called there too, because only times taken in one process, in turns, on the same threads can be compared. The worker
times; the parent only says when. Requests and answers are messages over stdin and stdout:

    ("setup", peers, threads, keep, warm_malloc)  -> ("ok", {version})
    ("prepare", name, contest, expected)          -> ("ok", {error, first_ms, note}) or ("refused", reason)
    ("turns", names, seconds, slow)               -> ("ok", {name: Turn})

The name of a peer is that of its row, ours is `ours_in` a layout. A worker that aborts (TensorFlow does, on some
arguments) or hangs costs one row, not the run: it is started again.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
import time
import warnings
from collections.abc import Sequence
from typing import IO, Any

from ..._base import messages
from ..._bridges.peers import Prepared
from .contests import WRONG, Contest, Expected, operands_of, our_call
from .layers import Layer
from .measure import Turn, slow_ones, take_turns
from .peers import BY_NAME, Peer
from .process import Process, WorkerFailed

OURS = "convgrad"


def ours_in(layout: str) -> str:
    """Return our name as a contestant whose arrays have a layout."""
    return f"{OURS} {layout}"


class Refused(Exception):
    """The peer cannot do this contest, for the reason given."""


class Worker:
    """The parent's end: starts the process when told to or on first use, and again after a crash."""

    def __init__(
        self, peers: Sequence[Peer], threads: int, keep: int, warm_malloc: bool, timeout: float
    ) -> None:
        self.peers = list(peers)
        self.versions: dict[str, str] = {}
        self._settings = (threads, keep, warm_malloc)
        self._timeout = timeout
        self._process: Process | None = None
        self._starting = False

    def ask(self, *request: Any) -> Any:
        """Send a request and return the answer; raise `WorkerFailed` if none comes, `Refused` if it is a refusal."""
        self._launch()
        self._await_start()
        self._send(request)
        kind, value = self._receive()
        if kind == "refused":
            raise Refused(value)
        return value

    def launch(self) -> None:
        """Start the process and wait for nothing: frameworks take seconds to import, and can do so side by side."""
        with contextlib.suppress(WorkerFailed):  # whoever asks is told
            self._launch()

    def await_start(self) -> None:
        """Wait until the process can answer."""
        with contextlib.suppress(Refused, WorkerFailed):  # whoever asks is told
            self._await_start()

    def stop(self) -> None:
        """End the process, which we started, and forget it."""
        process, self._process = self._process, None
        self._starting = False
        if process is not None:
            process.stop()

    def _launch(self) -> None:
        if self._process is not None:
            return
        threads, keep, warm_malloc = self._settings
        self._process = Process(
            f"from {__name__} import main; main()", self.peers[0].environment(threads)
        )
        self._starting = True
        self._send(("setup", [peer.name for peer in self.peers], threads, keep, warm_malloc))

    def _await_start(self) -> None:
        if not self._starting:
            return
        self._starting = False
        kind, value = self._receive()
        if kind == "refused":  # installed, but does not start
            self.stop()
            raise Refused(value)
        self.versions = value

    def _send(self, request: tuple[Any, ...]) -> None:
        assert self._process is not None
        try:
            self._process.send(request)
        except WorkerFailed:
            self.stop()
            raise

    def _receive(self) -> tuple[str, Any]:
        assert self._process is not None
        try:
            answer: tuple[str, Any] = self._process.receive(self._timeout, Turn)
        except WorkerFailed:
            self.stop()
            raise
        return answer


class Remote:
    """A worker as a room: who is in it, prepared for one contest."""

    def __init__(self, name: str, worker: Worker) -> None:
        self.name = name
        self.records: dict[str, dict[str, Any]] = {}
        """What is known about each besides times; `status` says whether it can be timed."""
        self._worker = worker
        self._slow: set[str] = set()

    @property
    def ours(self) -> list[str]:
        return [name for name in self._ready if name not in BY_NAME]

    @property
    def peers(self) -> list[str]:
        return [name for name in self._ready if name in BY_NAME]

    @property
    def _ready(self) -> list[str]:
        return [name for name, record in self.records.items() if record["status"] == "ok"]

    def prepare(self, name: str, contest: Contest, expected: Expected) -> bool:
        """Check somebody's result and say whether it can be timed; the record says why not."""
        try:
            answer = self._worker.ask("prepare", name, contest, expected)
            limit = WRONG[contest.dtype]
            record = {"status": "ok", **answer}
            if not answer["error"] <= limit:  # NaN too
                reason = f"wrong result: error {answer['error']:.1e} of the largest value, limit {limit:g}"
                record.update(status="wrong", reason=reason)
        except (Refused, WorkerFailed) as error:
            status = "refused" if isinstance(error, Refused) else "failed"
            record = {"status": status, "reason": str(error)}
        self.records[name] = record
        return bool(record["status"] == "ok")

    def turns(self, names: Sequence[str], seconds: float) -> dict[str, Turn]:
        try:
            found: dict[str, Turn] = self._worker.ask(
                "turns", list(names), seconds, sorted(self._slow)
            )
        except (Refused, WorkerFailed) as error:
            for name in names:
                self.records[name].update(status="failed", reason=str(error))
            return {}
        self._slow |= slow_ones(found)
        return found


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """The worker's end."""
    prepared: dict[str, Prepared] = {}
    keep = 0
    while True:
        try:
            verb, *arguments = messages.read(requests, Contest, Layer, Expected)
        except EOFError:
            return
        answer: tuple[str, Any]
        try:
            if verb == "setup":
                names, threads, keep, warm_malloc = arguments
                answer = "ok", _setup([BY_NAME[name] for name in names], threads, warm_malloc)
            elif verb == "prepare":
                answer = "ok", _prepare(prepared, *arguments)
            elif verb == "turns":
                names, seconds, slow = arguments
                if not set(names) <= set(prepared):
                    raise Refused("its worker was started again in between")
                calls = {name: prepared[name].call for name in names}
                answer = "ok", take_turns(calls, seconds, keep=keep, slow=slow)
            else:
                raise ValueError(f"no such request: {verb}")
        except Exception as error:
            answer = "refused", _reason(error)
        messages.write(answers, answer)


def _reason(error: Exception) -> str:
    """One line, without TensorFlow's node names."""
    text = re.sub(r"\{\{[^}]*\}\} ?| ?\[Op:\w+\]| name: *$", "", " ".join(str(error).split()))
    return text[:300] if isinstance(error, Refused) else f"{type(error).__name__}: {text[:300]}"


def _setup(peers: list[Peer], threads: int, warm_malloc: bool) -> dict[str, str]:
    warnings.simplefilter("ignore")
    if warm_malloc:
        _keep_big_blocks()
    peers[0].framework.limit_threads(threads)
    import convgrad

    convgrad.set_num_threads(threads)
    return {peer.framework.name: peer.framework.version for peer in peers}


def _keep_big_blocks() -> None:
    """Tell glibc to keep freed blocks of any size: M_MMAP_MAX (-4) = 0, M_TRIM_THRESHOLD (-1) = 2 GiB - 1."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(-4, 0)
        libc.mallopt(-1, 2**31 - 1)


def _prepare(
    prepared: dict[str, Prepared], name: str, contest: Contest, expected: Expected
) -> dict[str, Any]:
    prepared.pop(name, None)
    if name in BY_NAME:
        ready = BY_NAME[name].prepare(contest)
    else:
        call = our_call(contest, operands_of(contest))
        ready = Prepared(call, lambda result: result, f"pool {_pool()[0]}")
    start = time.perf_counter()
    result = ready.call()
    first = time.perf_counter() - start
    error = expected.error(contest, ready.read(result))
    prepared[name] = ready
    return {"first_ms": first * 1e3, "error": error, "note": ready.note}


def _pool() -> tuple[str, str]:
    from ..._runtime import threads

    return threads.story()


def main() -> None:
    """Serve requests; whatever the frameworks print goes to stderr."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _serve(sys.stdin.buffer, answers)
