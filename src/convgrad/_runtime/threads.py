"""The threads a kernel's items are shared by.

Workers are daemon threads of Python that sit in compiled code (see `parfor`) without holding the
interpreter lock. They are started by the first call that can use them and kept; a call says how
many of them it wants. They only ever help: a call is complete and correct with none of them.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import operator
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import SupportsIndex

from convgrad import _config
from convgrad._errors import ArgumentError, ArgumentTypeError, CompileError, shown

from . import parfor, parking
from .cpus import available_cpus
from .interpreter import IN_MAIN_INTERPRETER

Loader = Callable[[parfor.ParforSource], Mapping[str, int]]
"""Compiles the loop and returns the addresses of its symbols; the code must never be unloaded."""

MAX_THREADS = _config.MAX_THREADS

# Microseconds a worker looks for the next job before it sleeps. An empty job takes 0.5 us longer
# than alone if the worker is awake and 10 to 25 us longer if it has to be woken (2-core x86-64 VM).
# The limits are guesses: above the gap between two calls from Python, below a time slice.
SHORT_SPIN = 20
LONG_SPIN = 50

_loader: Loader | None = None
_code: Mapping[str, int] | None = None
"""Kept for forked children, in which the compiler may be locked for ever."""
_pool: Pool | None = None
_starting = threading.Lock()
_closed = False
_uncompiled = False
"""The loop could not be compiled; asked again after `set_num_threads`."""
_default: int | None = None


def set_num_threads(n: SupportsIndex) -> None:
    """Set how many threads a call may use, the calling one included, for the whole process."""
    global _uncompiled
    _config.set_default("num_threads", _checked("set_num_threads", n))
    _uncompiled = False
    if _pool is not None:
        _pool.refused = False


def get_num_threads() -> int:
    """Return how many threads a call from here may use.

    Unless set, that is the number of processors this process may keep busy.
    """
    chosen = _config.get("num_threads")
    if chosen is not None:
        return int(chosen)
    return _default or _find_default()


def threads(n: SupportsIndex) -> _config.Scope:
    """Set how many threads calls inside the ``with`` block may use; other contexts do not see."""
    return _config.scope(num_threads=_checked("threads", n))


def set_loader(loader: Loader) -> None:
    """Say how the loop is compiled. Until then, every call runs on its own thread."""
    global _loader
    _loader = loader


def pool_for(count: int) -> Pool | None:
    """Return the pool with `count` threads if they can be had, or None to run without."""
    pool = _pool
    if pool is None:
        pool = _start_pool()
        if pool is None:
            return None
    if pool.workers < count - 1 and not pool.refused:
        pool.grow(count - 1)
    return pool


class Pool:
    """A control block, the compiled loop, and the workers in it."""

    def __init__(self, addresses: Mapping[str, int], way: parking.Parking) -> None:
        block = (ctypes.c_int64 * (parking.CONTROL_WORDS + 16))()
        # Workers may outlive this module at exit, and those of a forked-off parent this object.
        _keep_forever(block)
        start = ctypes.addressof(block)
        self.control = start + -start % 128
        self.words = (ctypes.c_int64 * parking.CONTROL_WORDS).from_address(self.control)
        self.run = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(addresses[parfor.RUN])
        self.workers = 0
        self.refused = False
        """No more workers could be started; asked again after `set_num_threads`."""
        self._enter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(addresses[parfor.WORKER])
        self._stop = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(addresses[parfor.STOP])
        self._members: list[threading.Thread] = []
        self._caller_cpu = -1
        self._placed = 0
        self._allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
        self._growing = threading.Lock()
        parking.fill(self.words, way)
        self.cpus = available_cpus()
        pauses_per_us = _pause_speed(addresses[parfor.PAUSE])
        self.words[parking.CONTROL["SHORT_SPIN"]] = int(SHORT_SPIN * pauses_per_us)
        self.words[parking.CONTROL["LONG_SPIN"]] = int(LONG_SPIN * pauses_per_us)

    def grow(self, workers: int) -> None:
        """Start workers until there are as many as asked, or the system refuses."""
        if not self._growing.acquire(blocking=False):
            return  # somebody else is at it; do not wait
        try:
            while self.workers < workers:
                number = self.workers + 1
                member = threading.Thread(
                    target=self._enter, args=(self.control,), name=f"convgrad-{number}", daemon=True
                )
                member.start()
                self._members.append(member)
                self.workers = number
        except RuntimeError:  # "can't start new thread", or the interpreter is on its way out
            self.refused = True
        finally:
            self._growing.release()

    def make_room(self) -> None:
        """Keep the workers off the processor the calling thread is on.

        After a pause of 0.1 s or more Linux often wakes a worker on the caller's own processor and leaves it there
        for milliseconds while another one is idle: 1.1 of 2 processors were used (2-core VM). Asking costs 0.3 us,
        moving the workers 2 us each, and only when the caller has changed places.
        """
        if _getcpu is None:
            return
        cpu = _getcpu()
        if cpu == self._caller_cpu and self.workers == self._placed:
            return
        self._caller_cpu, self._placed = cpu, self.workers
        others = self._allowed - {cpu}
        if not others:
            return
        for member in self._members:
            # A worker that has just been started may have no number yet; the next call places it.
            if member.native_id is not None:
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(member.native_id, others)

    def stop(self, timeout: float) -> None:
        """Tell the workers to leave, and wait for them, but not long."""
        self._stop(self.control)
        deadline = time.monotonic() + timeout
        for member in self._members:
            member.join(max(0.0, deadline - time.monotonic()))


def _find_getcpu() -> Callable[[], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        return ctypes.CDLL(None).sched_getcpu
    except (OSError, AttributeError):
        return None


_getcpu = _find_getcpu()


def _checked(function: str, n: SupportsIndex) -> int:
    if isinstance(n, bool):
        raise ArgumentTypeError(f"{function}: `n` must be an integer, got {shown(n)}.")
    try:
        count = int.__index__(operator.index(n))  # exactly an int
    except TypeError:
        raise ArgumentTypeError(f"{function}: `n` must be an integer, got {shown(n)}.") from None
    if not 1 <= count <= MAX_THREADS:
        raise ArgumentError(f"{function}: `n` must be from 1 to {MAX_THREADS}, got {shown(count)}.")
    return count


def _find_default() -> int:
    global _default
    _default = min(available_cpus(), MAX_THREADS)
    return _default


def _start_pool() -> Pool | None:
    global _pool, _code, _uncompiled
    if _closed or _uncompiled or _loader is None or not IN_MAIN_INTERPRETER:
        return None
    if not _starting.acquire(blocking=False):
        return None
    try:
        if _pool is None:
            way = parking.choose()
            if _code is None:
                _code = _loader(parfor.source(platform.machine(), way))
            _pool = Pool(_code, way)
        return _pool
    except CompileError:
        # The kernel is there and the loop is not: executable memory ran out or is refused from now on.
        _uncompiled = True
        return None
    finally:
        _starting.release()


def _pause_speed(address: int) -> float:
    """Return pauses per microsecond: from 20 to 400, depending on the processor's generation."""
    pause = ctypes.CFUNCTYPE(None, ctypes.c_int64)(address)
    count, best = 500, float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        pause(count)
        best = min(best, time.perf_counter() - begin)
    return count / (best * 1e6)


def _keep_forever(thing: object) -> None:
    if hasattr(ctypes, "pythonapi"):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _close() -> None:
    """Empty the pool before the interpreter, and with it the compiled code, goes away."""
    global _closed, _pool
    _closed = True
    pool, _pool = _pool, None
    if pool is not None:
        pool.stop(timeout=0.5)


def _forget() -> None:
    """Start anew in a forked child: threads do not survive a fork, and locks may stay held."""
    global _pool, _default, _starting, _uncompiled
    _pool = None
    _uncompiled = False
    _default = None
    _starting = threading.Lock()


atexit.register(_close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
