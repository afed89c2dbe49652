"""Running a bound program on addresses: one foreign call, without the interpreter lock.

The path of a call is counted in tenths of microseconds. A ctypes argument costs 0.1 us, so a call passes one: a block
of words.
"""

from __future__ import annotations

from .._errors import AllocationError, InternalError
from . import code, entry, threads
from .bound import Bound


def run(program: Bound, first: int, second: int, result: int) -> None:
    """Fill the memory at `result` from that at `first` and `second`.

    All three must be what the program was planned for: nothing is checked here.
    """
    count, pool = (1, 0) if program.serial else threads.ready()
    status = code.entry_call()(code.pack_call(program.address, first, second, result, count, pool))
    if status:
        refuse(status)


def refuse(status: int) -> None:
    """Raise what a status other than 0 means."""
    if status == entry.NO_MEMORY:
        raise AllocationError("no memory for a workspace")
    raise InternalError(f"the entry refused a program with status {status}; please report this")
