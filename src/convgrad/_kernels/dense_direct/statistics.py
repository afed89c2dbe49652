"""Statistics of what a panel's tiles compute in a block: the block is a share of the result's pixels.

The frame makes it where a kernel takes statistics. `walk` cuts a block's tiles into runs and says which pixels of each
are to be counted, `tile` adds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..._compiler.codegen import F32, F64, I64, Bool, Int, KernelBuilder, Pointer, Variable, Vector
from ..shared.statistics import ROWS, RUN_NUMBERS, TOTAL_NUMBERS, ChannelStatistics, Counted

_TILES = 128
"""Of a run: so many that what ends it, some 100 instructions, is lost among their products. Most blocks are one run."""


class PanelStatistics:
    """The statistics of one panel in one block."""

    def __init__(
        self, k: KernelBuilder, rows: Pointer, height: int, vectors: int, lanes: int
    ) -> None:
        """`rows` are all shares' statistics."""
        self._k, self._rows, self._height, self._lanes = k, rows, height, lanes
        panel = vectors * lanes
        self._channels = range(0, panel, lanes)
        runs, totals = k.scratch(F32, RUN_NUMBERS * panel), k.scratch(F64, TOTAL_NUMBERS * panel)
        self._sums = ChannelStatistics(k, runs, totals, lanes)
        self._count = k.scratch(I64, 1)
        """Pixels that were counted."""

    @contextmanager
    def share(self, number: Int, channel: Int, channels: Int) -> Iterator[None]:
        """Take statistics of what is computed inside: of the panel that begins at a channel, of so many in all."""
        self._count.store_int(0)
        for place in self._channels:
            self._sums.clear(place)
        yield
        row = self._rows.offset(number * channels * ROWS + channel)
        count = self._count.load_int()
        for place in self._channels:
            self._sums.write(place, row.offset(place), channels, count)

    @contextmanager
    def runs(self, count: Int, carry: Iterable[Variable[Any]]) -> Iterator[tuple[Int, Int]]:
        """Go through so many pixels in runs; gives the first one and the one behind the last of each."""
        k, size = self._k, _TILES * self._height
        with k.loop(0, count, size, carry=carry, nonempty=True) as begin:
            end = k.min(begin + size, count)
            yield begin, end
            before, more = self._count.load_int(), end - begin
            parts = self._sums.parts(before, more)
            for place in self._channels:
                self._sums.end_run(place, parts)
            self._count.store_int(before + more)

    def counted(self, start: Int, first: Int, begin: Int, count: Int) -> Counted:
        """Tell which pixels of a tile count, where those before `first` have had their turn and `count` exist.

        The tile's pixels are those from `start` on, its run began at `begin`.
        """

        def pixels() -> list[Bool]:
            return [(start + i >= first) & (start + i < count) for i in range(self._height)]

        return Counted(first.equals(begin), first + self._height <= count, pixels)

    def add(self, sums: Sequence[Vector], counted: Counted) -> None:
        """Add a tile: vectors of the panel, pixel after pixel."""
        vectors = len(self._channels)
        self._sums.add(
            [(place, sums[v::vectors]) for v, place in enumerate(self._channels)], counted
        )
