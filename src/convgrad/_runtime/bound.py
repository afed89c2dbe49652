"""A program bound to kernels of this process: one block of 64-bit words that the entry runs.

The layout is what bridges rely on (docs/house/runtime.md): `PROGRAM` words of header, then for each launch
`LAUNCH` words, the numbers of its places and its words, then all tables, each on a cache line. A block is never written
to after it was made, so any number of threads may run it at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._base.errors import AllocationError, InternalError
from .pointers import data_pointer
from .program import MOST_ARGUMENTS, Program
from .state import STATE_BLOCK, State

MAGIC = 0x33_4D_52_47_4F_52_50_43
"""`CPROGRM3` in memory."""

PROGRAM = ("MAGIC", "STATE", "LAUNCHES", "PARTIAL", "PACKED", "THREADS", "BYTES", "PLACES")
"""The header: address of the runtime block; number of launches; bytes of partial sums and packed operand;
threads there is work for, 1 if the program is to run on the calling one; bytes of the whole block; how many addresses
it runs on."""
LAUNCH = ("KERNEL", "ITEMS", "GRAIN", "SCRATCH", "PLACES", "WORDS", "NEXT", "LEAST")
"""Address of the kernel; items and how many are claimed at a time; bytes of one thread's workspace; number of places
and of words, which follow in this order; words from this launch to the next; how few items are claimed at a time where
there are more threads than claims."""

_LINE = 64
_MOST_THREADS = 256
_MOST_BYTES = 1 << 54
"""Of any memory a program asks for: as often as there are threads, it still fits a word."""


class Bound:
    """A program and where it lies; valid as long as this object lives."""

    __slots__ = ("_kept", "_scratch", "_shared", "address", "chunks", "memory", "places", "serial")

    def __init__(
        self,
        program: Program,
        kernels: Sequence[tuple[int, int]],
        kept: object = None,
        state: State = STATE_BLOCK,
    ) -> None:
        """Bind to `kernels`, pairs of an address and the kernel's own scratch bytes; `kept` keeps them loaded."""
        self._kept = kept, state
        chunks = [-(-each.items // each.fewest) for each in program.launches]
        self.chunks = 1 if program.serial else min(max(chunks, default=1), _MOST_THREADS)
        """Threads there is work for."""
        self.serial = self.chunks <= 1
        self.places = len(program.places)
        """Addresses it runs on."""
        self._shared = program.partial_bytes + program.packed_bytes
        self._scratch = 0
        body: list[int] = []
        tables: list[tuple[int, bytes]] = []
        """Where in the body a table's address belongs, and the table."""
        longest = 0
        for launch in program.launches:
            address, own_scratch = kernels[launch.kernel]
            scratch = launch.scratch_bytes + own_scratch
            constants = [0] * bool(launch.table) + list(launch.words)
            count = len(launch.places) + len(constants)
            _check(scratch, program.partial_bytes, program.packed_bytes)
            longest = max(longest, count)
            self._scratch = max(self._scratch, scratch)
            body += [address, launch.items, launch.grain, scratch]
            body += [len(launch.places), len(constants), len(LAUNCH) + count, launch.fewest]
            body += launch.places
            if launch.table:
                tables.append((len(PROGRAM) + len(body), launch.table))
            body += constants
        if longest > MOST_ARGUMENTS:
            raise InternalError(f"a kernel has {longest} words, more than {MOST_ARGUMENTS}")
        size = 8 * (len(PROGRAM) + len(body))
        places = []
        for _, table in tables:
            size = -(-size // _LINE) * _LINE
            places.append(size)
            size += len(table)
        try:
            memory = np.zeros(size + _LINE, np.uint8)
        except (MemoryError, ValueError):
            raise AllocationError(f"no memory for a program of {size:,} bytes") from None
        start = data_pointer(memory)
        shift = -start % _LINE
        self.memory, self.address = memory, start + shift
        header = (
            *(MAGIC, state.address, len(program.launches), program.partial_bytes),
            *(program.packed_bytes, max(1, self.chunks), size, self.places),
        )
        words = memory[shift : shift + 8 * (len(PROGRAM) + len(body))].view(np.int64)
        words[:] = (*header, *body)
        for (at, table), place in zip(tables, places, strict=True):
            words[at] = self.address + place
            memory[shift + place : shift + place + len(table)] = np.frombuffer(table, np.uint8)
        memory.flags.writeable = False

    @property
    def nbytes(self) -> int:
        return int(self.memory.nbytes)

    def workspace(self, threads: int) -> int:
        """Return the bytes a call on some threads asks for beside its result."""
        return self._shared + self._scratch * max(1, min(threads, self.chunks))


def _check(*sizes: int) -> None:
    largest = max(sizes)
    if largest >= _MOST_BYTES:
        raise AllocationError(f"no memory for a workspace of {largest:,} bytes")
