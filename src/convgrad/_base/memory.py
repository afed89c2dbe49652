"""The C library's memory, kept instead of given back after every step of training.

An array of more than 128 KB to 32 MB is a mapping of its own for glibc, which goes back to the system when the array
is freed; its pages are then cleared and mapped again one by one in the next step. A fresh page costs more than the
arithmetic on it: two settings alone make a training step of PyTorch itself 1.1 to 1.6 times as fast. With them, freed
memory stays with the process for its next use, so a process keeps its peak.

Threads other than the first have heaps of their own, of 64 MB each: what is larger is mapped, whatever the limits say.
JAX computes in such a thread, in one block for all that a program keeps meanwhile, 335 MB for MobileNetV2 with 8 images
of 160x160: 82,000 page faults a step, which were 230 of 480 ms of processor time. So all threads share the first one's.
"""

from __future__ import annotations

import ctypes
import platform
from dataclasses import dataclass
from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Numbers of the settings in glibc's `mallopt`."""
_KEEP = 1 << 30
"""Smaller blocks are taken from the heap, and the heap is not cut below."""
_DEFAULT = 128 << 10
_NEVER = 0x7FFFFFFF

_tuned = False


@dataclass(frozen=True)
class MemorySetting:
    """What was set, or why nothing was; `undo` takes it back."""

    applied: bool
    reason: str

    def __str__(self) -> str:
        return self.reason

    def undo(self) -> None:
        """Let the C library give memory back again, and give back what is free.

        glibc's own adjustment of these limits, which ended when they were set, does not come back, and threads that
        were started meanwhile go on sharing a heap.
        """
        global _tuned
        library = _glibc()
        if self.applied and library is not None:
            library.mallopt(_MMAP_THRESHOLD, _DEFAULT)
            library.mallopt(_TRIM_THRESHOLD, _DEFAULT)
            library.mallopt(_ARENA_MAX, 0)
            library.malloc_trim(0)
            _tuned = False


def tune_memory() -> MemorySetting:
    """Keep freed memory for the next step instead of giving it back to the system; for the whole process.

    >>> from convgrad._base.memory import tune_memory
    >>> setting = tune_memory()
    >>> setting.undo()
    """
    global _tuned
    library = _glibc()
    if library is None:
        return MemorySetting(False, f"left alone: {_other_library()} has no such settings")
    wanted = ((_MMAP_THRESHOLD, _KEEP), (_TRIM_THRESHOLD, _NEVER), (_ARENA_MAX, 1))
    if not all(library.mallopt(name, value) for name, value in wanted):
        return MemorySetting(False, "left alone: the C library refused (mallopt returned 0)")
    _tuned = True
    return MemorySetting(True, "freed memory is kept for the next step; the process keeps its peak")


def is_tuned() -> bool:
    """Tell whether `tune_memory` is in force."""
    return _tuned


def _glibc() -> Any:
    """Return glibc, or None in a process with another C library, or with an allocator put in its place."""
    try:
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018  # raises where this is not glibc
        library.mallopt.argtypes = [ctypes.c_int, ctypes.c_int]
    except (OSError, AttributeError, TypeError):
        return None
    return library


def _other_library() -> str:
    return f"the C library of {platform.system() or 'this system'}"
