"""The runtime block: what compiled code must know of this process to run a program by itself.

One block of 64-bit words per process, at one address for its whole life, because every bound program points to it. The
functions of the system are kept here by address, so that compiled code has no symbol to resolve. Python writes the
words; the entry (`entry`) reads them and keeps blocks of memory in the slots.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from typing import Any

SLOTS = 8
MOST_CPUS = 1024
"""Processors an affinity mask names here; a machine with more is left to the system's own placement."""
_MASK_WORDS = MOST_CPUS // 64
MOST_WORKERS = 255

# Word numbers. What callers write is a line pair away from what they only read.
STATE = {
    "CONTROL": 0,  # control block of our own pool, or 0
    "THREADS": 1,  # threads of a call that does not say; 0 as many as OpenMP has
    "CPUS": 2,  # processors this process may keep busy
    "POOL": 3,  # pool of a call that does not say: 0 our own, 1 OpenMP's
    "GOMP": 4,  # address of GOMP_parallel, or 0
    "OMP_MAX": 5,  # address of omp_get_max_threads
    "MALLOC": 6,
    "FREE": 7,
    "MADVISE": 8,  # or 0
    "TAKE": 9,  # ptr take(i64 bytes), 64-byte aligned, instead of the slots; or 0
    "GIVE": 10,  # void give(ptr memory, i64 bytes)
    "GETCPU": 11,  # or 0: workers are not kept off the caller's processor
    "SETAFFINITY": 12,
    "WORKERS": 13,  # of our own pool, with their numbers in TIDS
    "CALLER_CPU": 32,
    "PLACED": 33,  # workers that were placed for it
    "OMP_BUSY": 48,
    "SLOT": 64,
    "ALLOWED": 80,
    "TIDS": 80 + _MASK_WORDS,
}
WORDS = STATE["TIDS"] + MOST_WORKERS + 1

OWN, OPENMP = 0, 1
"""Values of `POOL`."""


def keep_forever(thing: object) -> None:
    if hasattr(ctypes, "pythonapi"):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


class State:
    """A runtime block. The package has one, `STATE_BLOCK`; tests make others with an allocator of their own."""

    def __init__(self) -> None:
        block = (ctypes.c_int64 * (WORDS + 16))()
        # Workers and programs may outlive this module at exit.
        keep_forever(block)
        start = ctypes.addressof(block)
        self.address = start + -start % 128
        self.words = (ctypes.c_int64 * WORDS).from_address(self.address)
        self["CPUS"] = 1
        self["CALLER_CPU"] = -1
        libc = ctypes.CDLL("msvcrt" if sys.platform == "win32" else None)
        self["MALLOC"], self["FREE"] = address_of(libc.malloc), address_of(libc.free)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            self["MADVISE"] = address_of(libc.madvise)

    def __getitem__(self, name: str) -> int:
        return int(self.words[STATE[name]])

    def __setitem__(self, name: str, value: int) -> None:
        self.words[STATE[name]] = value

    def place_workers(self, tids: list[int]) -> None:
        """Tell the entry which threads to keep off the caller's processor.

        After a pause of 0.1 s or more Linux often wakes a worker on the caller's own processor and leaves it there
        for milliseconds while another one is idle: 1.1 of 2 processors were used (2-core VM). Asking costs 20 ns,
        moving the workers 2 us each, and only when the caller has changed places.
        """
        if not sys.platform.startswith("linux"):
            return
        allowed = os.sched_getaffinity(0)
        if max(allowed) >= MOST_CPUS:
            return
        for word in range(_MASK_WORDS):
            bits = sum(1 << cpu % 64 for cpu in allowed if cpu // 64 == word)
            self.words[STATE["ALLOWED"] + word] = bits - (1 << 64) * (bits >> 63)
        for at, tid in enumerate(tids[:MOST_WORKERS]):
            self.words[STATE["TIDS"] + at] = tid
        self["WORKERS"] = min(len(tids), MOST_WORKERS)
        libc = ctypes.CDLL(None)
        try:
            self["SETAFFINITY"] = address_of(libc.sched_setaffinity)
            self["GETCPU"] = address_of(libc.sched_getcpu)
        except AttributeError:  # a libc without them
            self["GETCPU"] = 0

    def forget_threads(self) -> None:
        """Start anew in a forked child: no thread is there, no pool, and nobody is inside one."""
        for name in ("CONTROL", "GOMP", "OMP_BUSY", "WORKERS", "PLACED", "GETCPU"):
            self[name] = 0
        self["CALLER_CPU"] = -1


def address_of(function: Any) -> int:
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found


STATE_BLOCK = State()
