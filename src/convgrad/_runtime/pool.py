"""Our own threads for a program's items.

Workers are daemon threads of Python that sit in compiled code (see `parfor`) without holding the interpreter lock. They
are started by the first call that can use them and kept; a call says how many of them it wants. They only ever help: a
call is complete and correct with none of them.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time

from . import code, parking
from .cpus import available_cpus
from .interpreter import IN_MAIN_INTERPRETER
from .state import STATE_BLOCK, keep_forever

# Microseconds a worker looks for the next job before it sleeps. An empty job takes 0.5 us longer
# than alone if the worker is awake and 10 to 25 us longer if it has to be woken (2-core x86-64 VM).
# The limits are guesses: above the gap between two calls from Python, below a time slice.
SHORT_SPIN = 20
LONG_SPIN = 50

_pool: Pool | None = None
_starting = threading.Lock()
_closed = False


class Pool:
    """A control block and the workers that look at it."""

    def __init__(self, loop: code.Code) -> None:
        block = (ctypes.c_int64 * (parking.CONTROL_WORDS + 16))()
        # Workers may outlive this module at exit, and those of a forked-off parent this object.
        keep_forever(block)
        start = ctypes.addressof(block)
        self.control = start + -start % 128
        self.words = (ctypes.c_int64 * parking.CONTROL_WORDS).from_address(self.control)
        self.workers = 0
        self.refused = False
        """No more workers could be started; asked again after `set_num_threads`."""
        self._loop = loop
        self._members: list[threading.Thread] = []
        self._growing = threading.Lock()
        parking.fill(self.words, loop.parking)
        pauses_per_us = _pause_speed(loop)
        self.words[parking.CONTROL["SHORT_SPIN"]] = int(SHORT_SPIN * pauses_per_us)
        self.words[parking.CONTROL["LONG_SPIN"]] = int(LONG_SPIN * pauses_per_us)
        STATE_BLOCK["CPUS"] = available_cpus()

    def grow(self, workers: int) -> None:
        """Start workers until there are as many as asked, or the system refuses."""
        if not self._growing.acquire(blocking=False):
            return  # somebody else is at it; do not wait
        try:
            while self.workers < workers:
                number = self.workers + 1
                member = threading.Thread(
                    target=self._loop.worker,
                    args=(self.control,),
                    name=f"convgrad-{number}",
                    daemon=True,
                )
                member.start()
                self._members.append(member)
                self.workers = number
        except RuntimeError:  # "can't start new thread", or the interpreter is on its way out
            self.refused = True
        finally:
            try:
                STATE_BLOCK.place_workers([each.native_id or 0 for each in self._members])
            finally:
                self._growing.release()

    def stop(self, timeout: float) -> None:
        """Tell the workers to leave, and wait for them, but not long."""
        self._loop.stop(self.control)
        deadline = time.monotonic() + timeout
        for member in self._members:
            member.join(max(0.0, deadline - time.monotonic()))


def ensure(threads: int) -> Pool | None:
    """Return the pool, with workers for `threads` threads if the system starts them; None to run without."""
    pool = _pool
    if pool is None:
        pool = _start()
        if pool is None:
            return None
    if pool.workers < threads - 1 and not pool.refused:
        pool.grow(threads - 1)
    return pool


def ask_again() -> None:
    """Try to start workers again although the system has refused some."""
    if _pool is not None:
        _pool.refused = False


def _start() -> Pool | None:
    global _pool
    loop = code.current()
    if _closed or loop is None or not IN_MAIN_INTERPRETER:
        return None
    if not _starting.acquire(blocking=False):
        return None
    try:
        if _pool is None:
            made = Pool(loop)
            STATE_BLOCK["CONTROL"] = (
                made.control
            )  # first: an interrupt in between costs a pool nobody has
            _pool = made
        return _pool
    finally:
        _starting.release()


def _pause_speed(loop: code.Code) -> float:
    """Return pauses per microsecond: from 20 to 400, depending on the processor's generation."""
    count, best = 500, float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        loop.pause(count)
        best = min(best, time.perf_counter() - begin)
    return count / (best * 1e6)


def close() -> None:
    """Empty the pool before the interpreter, and with it the compiled code, goes away."""
    global _closed, _pool
    _closed = True
    pool, _pool = _pool, None
    STATE_BLOCK["CONTROL"] = 0
    if pool is not None:
        pool.stop(timeout=0.5)


def after_fork_in_child() -> None:
    """Start anew: threads do not survive a fork, and locks may stay held."""
    global _pool, _starting
    _pool = None
    _starting = threading.Lock()
    code.after_fork_in_child()
    STATE_BLOCK.forget_threads()


atexit.register(close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork_in_child)
