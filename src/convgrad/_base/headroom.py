"""Asking for memory before code is run that ends the process where it gets none.

LLVM and the C++ library abort. NumPy's loops over strided arrays (2.4.6) raise the error of a missing buffer without
holding the interpreter lock, and crash: a limit of 5.5 MB on a small input gradient was enough.
"""

from __future__ import annotations

import mmap

from .errors import AllocationError

FOR_LOOPS = 1 << 20
"""Bytes for the buffers of NumPy's loops: 64 KB for each operand, and malloc may ask for more."""


def ask(nbytes: int, purpose: str) -> None:
    """Raise AllocationError where a limit on memory (`ulimit -v`) leaves fewer bytes of address space; 5 us.

    >>> ask(1000, "to go on")
    >>> ask(2**62, "to go on")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    convgrad._base.errors.AllocationError: no memory to go on: fewer than 4,611,... bytes of address space are left
    """
    try:
        mmap.mmap(-1, nbytes).close()
    except (OSError, ValueError, OverflowError, MemoryError):
        raise AllocationError(
            f"no memory {purpose}: fewer than {nbytes:,} bytes of address space are left"
        ) from None
