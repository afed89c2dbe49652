"""What kernels have cost this process: how many were compiled or found, and how long that took.

Counted here and nowhere else, so that a run of tests or of a program can say what share of its time LLVM has. A process
that is told a file (`CONVGRAD_KERNEL_LOG`) adds one line to it when it ends.
"""

from __future__ import annotations

import atexit
import json
import operator
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from typing import Any

from convgrad._base import config


@dataclass(frozen=True)
class Counts:
    """Totals of a process since it began; of a forked child, since the fork."""

    compiled: int = 0
    """Kernels, and other functions, that LLVM made."""
    from_disk: int = 0
    """Kernels found by their key: not even their text was written."""
    from_text: int = 0
    """Kernels found by their text: it was written, but not compiled."""
    writing_s: float = 0.0
    """Seconds in which texts were written."""
    llvm_s: float = 0.0
    """Seconds inside LLVM: reading, checking and compiling texts."""
    importing_s: float = 0.0
    """Seconds in which llvmlite was imported."""
    loading_s: float = 0.0
    """Seconds in which code was put into executable memory."""

    def __add__(self, other: Counts) -> Counts:
        return self._with(other, operator.add)

    def __sub__(self, other: Counts) -> Counts:
        return self._with(other, operator.sub)

    def _with(self, other: Counts, combine: Callable[[Any, Any], Any]) -> Counts:
        pairs = (
            (each.name, getattr(self, each.name), getattr(other, each.name))
            for each in fields(self)
        )
        return Counts(**{name: combine(mine, theirs) for name, mine, theirs in pairs})


_totals: dict[str, float] = {}
_lock = threading.RLock()  # reentrant: a signal handler may load a kernel too
_logged = False


def add(name: str, amount: float = 1) -> None:
    """Add to one of the fields of `Counts`."""
    global _logged
    with _lock:
        _totals[name] = _totals.get(name, 0) + amount
        if not _logged:
            _logged = True
            atexit.register(_log)


@contextmanager
def timed(name: str) -> Iterator[None]:
    """Add the seconds that the block takes, also if it fails."""
    start = time.perf_counter()
    try:
        yield
    finally:
        add(name, time.perf_counter() - start)


def current() -> Counts:
    """Return the totals so far."""
    with _lock:
        return Counts(**_totals)  # type: ignore[arg-type]  # whole numbers are added to the ints


def after_fork_in_child() -> None:
    """Begin anew: what the parent did is in its own line, and another thread of it may have held the lock."""
    global _lock
    _lock = threading.RLock()
    _totals.clear()


def _log() -> None:
    """Add this process's line to the file that the switch names; a file that cannot be written has none."""
    with suppress(Exception):  # nobody is left to hear of it
        file = config.get("kernel_log")
        if file:
            line = {
                "process": os.getpid(),
                "program": sys.argv[0],
                "cpu_s": time.process_time(),
                **asdict(current()),
            }
            how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0)
            descriptor = os.open(file, how, 0o666)
            try:
                os.write(descriptor, f"{json.dumps(line)}\n".encode())  # in one piece
            finally:
                os.close(descriptor)
