"""Large blocks of memory, on huge pages, that are used again.

The first touch of a page costs more than most kernels: a 12.8 MB result took 0.4 ms into memory
used before, 1.5 ms into fresh huge pages and 6.2 ms into fresh 4 KB pages (2-core x86-64 VM). So a
block outlives its array. A `Lease` is what the array holds as its base; when the last view dies,
the lease dies, and the block is idle until somebody takes it or newer idle blocks push it over the
bound.

There is no lock. A lease can die inside a garbage collection, a signal handler or a `fork` at any
point of any thread, also inside these functions; every change of state is therefore one `deque` or
`dict` call, which CPython makes atomic. Two threads at once can only make the bound inexact for a
moment. A forked child holds a copy-on-write copy of every block, so its list of idle ones is as
true as its parent's.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import mmap
from collections import deque
from dataclasses import dataclass
from typing import Any, cast

HUGE_PAGE = 2 << 20

CAN_MAP = hasattr(mmap, "MAP_PRIVATE") and hasattr(mmap, "MAP_ANONYMOUS")
"""Private memory is a must: `mmap.mmap(-1, n)` is shared with children and never on huge pages."""


class HugeBlock:
    """Private anonymous memory that starts on a huge-page boundary."""

    __slots__ = ("address", "age", "capacity", "memory")

    def __init__(self, capacity: int) -> None:
        # One page more than asked, to have a boundary in it. The slack is never touched: it costs
        # addresses, not memory.
        size = capacity + HUGE_PAGE
        self.memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        offset = -start % HUGE_PAGE
        self.address = start + offset
        self.capacity = capacity
        self.age = 0
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with contextlib.suppress(OSError):  # a kernel without huge pages
                self.memory.madvise(mmap.MADV_HUGEPAGE, offset, capacity)


@dataclass(frozen=True)
class PoolStats:
    """What a pool holds at the moment."""

    idle_blocks: int
    idle_bytes: int
    lent_blocks: int
    """Blocks inside arrays that are alive."""
    lent_bytes: int


def capacity_for(nbytes: int) -> int:
    """Return the size class of a request: steps of 2 MB, above 32 MB of 1/16 to 1/8 of the size."""
    step = max(HUGE_PAGE, 1 << max(0, nbytes.bit_length() - 4))
    return -(-nbytes // step) * step


class BlockPool:
    """Blocks lent to arrays and idle blocks, the latter up to a bound."""

    def __init__(self) -> None:
        self._idle: dict[int, deque[HugeBlock]] = {}
        self._lent: dict[int, int] = {}
        self._lease_types: dict[int, Any] = {}
        self._clock = itertools.count()
        self.bound = 0
        """Most bytes kept idle."""

    def lend(self, nbytes: int) -> Any:
        """Return an object with the buffer interface over at least `nbytes` bytes.

        Raises OSError, ValueError or OverflowError where the system has no such memory.
        """
        capacity = capacity_for(nbytes)
        block = self._take_idle(capacity) or HugeBlock(capacity)
        lease = self._lease_type(block.capacity).from_address(block.address)
        lease.block = block
        self._lent[block.address] = block.capacity
        return lease

    def stats(self) -> PoolStats:
        idle = self._snapshot()
        lent = list(self._lent.values())
        return PoolStats(len(idle), sum(b.capacity for b in idle), len(lent), sum(lent))

    def trim(self, keep: int = 0) -> int:
        """Unmap idle blocks, oldest first, until `keep` bytes are left; return the bytes freed."""
        freed = 0
        idle = self._snapshot()
        excess = sum(block.capacity for block in idle) - keep
        if excess <= 0:
            return 0
        for block in sorted(idle, key=lambda block: block.age):
            if freed >= excess:
                break
            # Somebody may have taken it since the snapshot; `remove` finds it or raises.
            with contextlib.suppress(ValueError, KeyError):
                self._idle[block.capacity].remove(block)
                freed += block.capacity
        return freed

    def _take_idle(self, capacity: int) -> HugeBlock | None:
        # A block up to a quarter too large is taken before the system is asked for a new one.
        limit = capacity + capacity // 4
        while capacity <= limit:
            try:
                return self._idle[capacity].pop()
            except (KeyError, IndexError):
                capacity = capacity_for(capacity + 1)
        return None

    def _give_back(self, block: HugeBlock) -> None:
        self._lent.pop(block.address, None)
        if block.capacity > self.bound:
            return
        block.age = next(self._clock)
        self._idle.setdefault(block.capacity, deque()).append(block)
        if (
            sum([capacity * len(stack) for capacity, stack in list(self._idle.items())])
            > self.bound
        ):
            self.trim(self.bound)

    def _snapshot(self) -> list[HugeBlock]:
        # `list` of a dict view or of a deque copies without running Python code in between.
        return [block for stack in list(self._idle.values()) for block in list(stack)]

    def _lease_type(self, capacity: int) -> Any:
        found = self._lease_types.get(capacity)
        if found is None:
            give_back = self._give_back

            def __del__(lease: Any) -> None:
                give_back(lease.block)

            base = cast(type, ctypes.c_char * capacity)
            found = type("Lease", (base,), {"__del__": __del__, "__module__": __name__})
            self._lease_types[capacity] = found
        return found
