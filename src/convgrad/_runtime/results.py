"""The array a result is written to: uninitialised, C-contiguous, on a cache-line boundary.

NumPy aligns to 16 bytes; kernels store whole cache lines. Results from `POOLED` bytes up come from
a pool of huge-page blocks (see `blocks`), smaller ones from NumPy's allocator with up to 63 bytes
skipped.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from convgrad._base import config
from convgrad._base.errors import AllocationError

from . import code
from .blocks import CAN_MAP, BlockPool, PoolStats
from .interpreter import IN_MAIN_INTERPRETER
from .pointers import data_pointer

AnyArray = np.ndarray[Any, np.dtype[Any]]

ALIGNMENT = 64
POOLED = 1 << 20
"""Fewer bytes are left to malloc, which keeps and reuses blocks of that size itself."""

_pool = BlockPool()
_wrap: Callable[..., AnyArray] = np.ndarray
"""``(shape, dtype, buffer, offset)``: half the time of slicing, viewing and reshaping."""


def new_result(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    # Bound here, as in `pointers`: this path is about 1 us long and every lookup shows.
    empty: Callable[[int, np.dtype[Any]], AnyArray] = np.empty,
    byte: np.dtype[Any] = np.dtype(np.uint8),  # noqa: B008  # it never changes
) -> AnyArray:
    """Return an uninitialised array whose first element is 64-byte aligned."""
    nbytes = math.prod(shape) * dtype.itemsize
    try:
        if nbytes >= POOLED:
            lease = _leased(nbytes)
            if lease is not None:
                return _wrap(shape, dtype, lease)
        memory = empty(nbytes + ALIGNMENT, byte)
        return _wrap(shape, dtype, memory, ALIGNMENT - data_pointer(memory) % ALIGNMENT)
    except MemoryError:
        raise AllocationError(
            f"no memory for a result of {nbytes:,} bytes (shape {shape}, {dtype})"
        ) from None


def pool_stats() -> PoolStats:
    """Say how many blocks and bytes are idle and how many are inside live results."""
    return _pool.stats()


def trim() -> int:
    """Give all idle blocks back to the system, those of programs too, and return the bytes of the former."""
    code.release()
    return _pool.trim()


def _leased(nbytes: int) -> Any:
    """Return a block of the pool, or None where there is no pool; raise where there is no memory."""
    if nbytes > sys.maxsize - ALIGNMENT:
        raise MemoryError
    bound = config.get("pool_bytes")
    if bound == 0 or not CAN_MAP or not IN_MAIN_INTERPRETER:
        return None
    _pool.bound = bound
    lease = _lend(nbytes)
    if lease is None:
        # The memory may have been there, only idle in other sizes.
        trim()
        lease = _lend(nbytes)
    if lease is None:
        raise MemoryError
    return lease


def _lend(nbytes: int) -> Any:
    try:
        return _pool.lend(nbytes)
    except (OSError, OverflowError, ValueError):
        return None
