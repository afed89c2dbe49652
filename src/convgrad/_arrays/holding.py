"""Holding an operand still while kernels read it, without the interpreter lock and without bounds checks.

Another thread may do to an array what it likes during a call. Numbers that change give other numbers. What must not
happen is that the memory goes away or was never there:

- `ndarray.resize(refcheck=False)` moves the memory. NumPy refuses that while somebody holds a weak reference to the
  array; so we hold one to the array that owns the memory.
- Assigning `shape`, `strides` or `dtype` leaves the memory of its owner alone, so the owner's bytes are what is
  compared with the plan, last of all. An array that borrows memory is looked at through a view of our own.
- A mapped file that was cut behind its mapping kills the process when it is read (SIGBUS); its size is asked first.

Beyond help are an array that lies about its memory (`as_strided`, `__array_interface__`), memory replaced by
`ndarray.__setstate__` or `ctypes.resize`, and a file that is cut during the call. See SECURITY.md.
"""

from __future__ import annotations

import mmap
from typing import Any
from weakref import ref

import numpy as np

from .._base import dtypes
from .._base.dtypes import AnyArray, DType
from .._base.errors import ArgumentError, DTypeError
from .._runtime.pointers import data_pointer

Pin = object
"""Keep it until the memory is no longer read."""

C_ALIGNED = 0x101
"""NumPy's flags of an array that is C-contiguous and aligned."""


def lend(function: str, array: AnyArray, row: DType, nbytes: int) -> tuple[int, object]:
    """Return the address of an array's numbers, of a copy where kernels cannot read it, and what keeps them there."""
    held: Pin
    if array.base is None:  # it owns its memory, or is private to us: 0.2 us
        held = ref(array)
    else:
        array = array[...]  # a view of our own on borrowed memory
        held = pin(function, array)
    ready = contiguous(array, row)
    if ready.nbytes != nbytes:
        raise ArgumentError(
            f"{function}: an array changed its size during the call, from {nbytes} to {ready.nbytes} bytes."
        )
    return data_pointer(ready), (held, ready)


def contiguous(array: AnyArray, row: DType) -> AnyArray:
    """Return the array itself if it is C-contiguous, aligned and in native byte order, else a copy that is."""
    if array.dtype is row.numpy and array.flags.num & C_ALIGNED == C_ALIGNED:
        return array
    if dtypes.find(array.dtype) is not row:  # it had that dtype when it was checked
        raise DTypeError(f"an array became {array.dtype} while a call was using it as {row.name}.")
    result: AnyArray = np.require(array, dtype=row.numpy, requirements=("C", "A"))
    return result


def pin(function: str, array: AnyArray) -> Pin:
    """Keep the memory behind an array where it is for as long as the answer lives; refuse a mapping that was cut."""
    owner: AnyArray = array
    base: Any = array.base
    offset = 0
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap):
            offset = base.offset
        owner, base = base, base.base
    if isinstance(base, memoryview):  # how `numpy.frombuffer` holds what it was given
        base = base.obj
    if isinstance(base, mmap.mmap):
        _check_mapping(function, base, offset)
    return ref(owner)


def _check_mapping(function: str, mapping: mmap.mmap, offset: int) -> None:
    # Mappings start on a boundary below the offset NumPy was asked for, and do not tell where.
    start: Any = offset - offset % mmap.ALLOCATIONGRANULARITY
    try:
        found, wanted = mapping.size(), start + len(mapping)
    except (OSError, ValueError):  # nothing to ask: no file behind it
        return
    if found < wanted:
        raise ArgumentError(
            f"{function}: an array is a memory-mapped file that was truncated: "
            f"{wanted} bytes are mapped and {found} are left."
        )
