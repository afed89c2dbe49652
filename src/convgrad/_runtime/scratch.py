"""Workspace for kernels: one block per calling thread, kept from call to call.

The calling thread's block holds the parts of all threads of a call, so growing it concerns nobody
else and needs no lock. A block above `KEPT` bytes lives for one call only. Kernels never put arrays
on the stack: the stack of a thread that somebody else started may be small.
"""

from __future__ import annotations

import threading

import numpy as np

from convgrad._errors import AllocationError

from .pointers import data_pointer

ALIGNMENT = 64
KEPT = 64 << 20
"""Bytes a thread may keep; a guess, above the largest workspace of any plan so far."""
_STEP = 64 << 10


class Workspace:
    """Aligned memory that lives as long as this object does."""

    __slots__ = ("address", "capacity", "memory")

    def __init__(self, capacity: int) -> None:
        try:
            self.memory = np.empty(capacity + ALIGNMENT, np.uint8)
        except (MemoryError, ValueError):
            raise AllocationError(f"no memory for a workspace of {capacity:,} bytes") from None
        start = data_pointer(self.memory)
        self.address = start + -start % ALIGNMENT
        self.capacity = capacity


class _Kept(threading.local):
    workspace: Workspace | None = None


_kept = _Kept()


def workspace(nbytes: int) -> Workspace:
    """Return a workspace of at least `nbytes` bytes for the calling thread.

    Hold on to it until the kernel is done: the thread's next request may replace it.
    """
    found = _kept.workspace
    if found is not None and nbytes <= found.capacity:
        return found
    if nbytes > KEPT:
        return Workspace(nbytes)
    _kept.workspace = None  # the old block goes first
    _kept.workspace = found = Workspace(-(-nbytes // _STEP) * _STEP)
    return found


def release() -> None:
    """Free the calling thread's workspace."""
    _kept.workspace = None
