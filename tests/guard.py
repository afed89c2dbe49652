"""Arrays whose neighbours do not exist: one byte too far is a crash, not a wrong number.

The array starts or ends exactly at a page that may not be touched.
"""

from __future__ import annotations

import ctypes
import math
import mmap
from typing import Any, Literal

import numpy as np

PAGE = mmap.PAGESIZE

_c = ctypes.CDLL(None, use_errno=True)
_c.mmap.restype = ctypes.c_void_p
_c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
_c.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def guarded(values: Any, at: Literal["start", "end"]) -> np.ndarray[Any, Any]:
    """Return a copy of an array with forbidden pages before and behind its pages.

    The memory is not given back; tests need little of it.
    """
    source = np.ascontiguousarray(values)
    room = max(1, math.ceil(source.nbytes / PAGE)) * PAGE
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    base = _c.mmap(None, room + 2 * PAGE, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    assert base not in (None, ctypes.c_void_p(-1).value)
    for page in (base, base + PAGE + room):
        assert _c.mprotect(page, PAGE, 0) == 0
    start = base + PAGE if at == "start" else base + PAGE + room - source.nbytes
    memory = (ctypes.c_char * source.nbytes).from_address(start)
    result = np.frombuffer(memory, dtype=source.dtype).reshape(source.shape)
    result[...] = source
    return result


class Room:
    """Guarded memory used again and again, for callers that place millions of arrays one after the other."""

    def __init__(self) -> None:
        self._memory = guarded(np.empty(1 << 16, np.uint8), "end")

    def put(self, values: Any, at: Literal["start", "end"]) -> np.ndarray[Any, Any]:
        """Return a copy of an array in the room; the one before is gone. Its size is whole pages."""
        source = np.ascontiguousarray(values)
        if self._memory.size < source.nbytes:
            pages = math.ceil(2 * source.nbytes / PAGE)
            self._memory = guarded(np.empty(pages * PAGE, np.uint8), "end")
        start = 0 if at == "start" else self._memory.size - source.nbytes
        memory = self._memory[start : start + source.nbytes]
        result = memory.view(source.dtype).reshape(source.shape)
        result[...] = source
        return result
