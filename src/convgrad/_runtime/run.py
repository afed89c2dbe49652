"""Running a bound program on addresses: one foreign call, without the interpreter lock.

The path of a call is counted in tenths of microseconds. A ctypes argument costs 0.1 us, so a call passes one: a block
of words.
"""

from __future__ import annotations

from .._base.errors import AllocationError, InternalError
from . import code, entry, threads
from .bound import Bound
from .results import trim


def run(program: Bound, *addresses: int) -> None:
    """Run a program on its places: as many addresses as it has, in their order.

    All of them must be what the program was planned for: only their number is checked here.
    """
    if len(addresses) != program.places:
        raise InternalError(
            f"a program of {program.places} places was given {len(addresses)}; please report this"
        )
    count, pool = (1, 0) if program.serial else threads.ready(program.chunks)
    words = code.pack_call[len(addresses)](program.address, count, pool, *addresses)
    status = code.entry_call()(words)
    if status:
        try_again(program, words, status)


def try_again(program: Bound, words: bytes, status: int) -> None:
    """Repeat a call that ran out of memory, after giving idle memory back; raise if it fails again."""
    if status == entry.NO_MEMORY:
        trim()
        status = code.entry_call()(words)
    if status == entry.NO_MEMORY:
        needed = program.workspace(threads.get_num_threads())
        raise AllocationError(f"no memory for a workspace of {needed:,} bytes")
    if status:
        raise InternalError(f"the entry refused a program with status {status}; please report this")
