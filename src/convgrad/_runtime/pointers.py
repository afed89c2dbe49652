"""Addresses of arrays, and the block of 64-bit words a kernel reads its arguments from.

A kernel's words travel as one immutable ``bytes`` object: ctypes passes its payload as it is,
nothing is shared between calls, and a signal handler or a finalizer that calls us again cannot
overwrite it. The geometry of a problem never changes, so its words are packed once and joined to
the pointers of each call: 0.10 us for 3 + 16 words, where a ctypes array of all of them takes 1.7
us and `pack_into` a kept buffer 0.5 us (2-core x86-64 VM, Python 3.11). Kernels must not write to
their words.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import sysconfig
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

AnyArray = np.ndarray[Any, np.dtype[Any]]

_DATA_OFFSET = object.__basicsize__
"""Where an ndarray holds its data pointer: the first field after the object header."""


@lru_cache(maxsize=64)
def _packer(count: int) -> Callable[..., bytes]:
    return struct.Struct(f"={count}q").pack


def pack_words(*words: int) -> bytes:
    """Return the 64-bit words as a block; blocks join with ``+``."""
    return _packer(len(words))(*words)


def _documented_pointer(array: AnyArray) -> int:
    """Return the address of the first element by NumPy's documented way, 1.4 us."""
    return int(array.ctypes.data)


_BASE = 4096
_memory = ctypes.cast(_BASE, ctypes.POINTER(ctypes.c_size_t))
"""All memory as 64-bit words from an address that is not 0, which ctypes would refuse."""


def _direct_pointer(
    array: AnyArray,
    # Bound here because four global lookups cost a third of the call.
    memory: Any = _memory,
    offset: int = _DATA_OFFSET - _BASE,
    word: int = ctypes.sizeof(ctypes.c_size_t),
    ndarray: type = np.ndarray,
) -> int:
    """Return the address of the first element from the object itself, 0.1 us.

    A subclass may be anything, so it goes the documented way.
    """
    if type(array) is ndarray:
        found: int = memory[(id(array) + offset) // word]
        return found
    return _documented_pointer(array)


def _direct_pointer_works() -> bool:
    """Ask whether `_direct_pointer` agrees with NumPy on arrays that share no address."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    owner = np.arange(24, dtype=np.float64).reshape(2, 3, 4)
    samples: list[AnyArray] = [
        owner,
        owner[1:, ::-1, 1:],
        owner.T,
        np.empty(0, np.uint8),
        np.array(5, np.int32),
        np.frombuffer(bytes(64), np.float32, offset=4),
    ]
    return all(_direct_pointer(sample) == _documented_pointer(sample) for sample in samples)


data_pointer = _direct_pointer if _direct_pointer_works() else _documented_pointer
"""The address of an array's first element."""
