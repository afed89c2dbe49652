"""Statistics of what a block of rows of an image computes: the block is a share of the result's pixels.

The kernel makes it where it takes statistics, and walks through a block in runs of whole rows. All channels of a chunk
are at work at once, so what belongs to a run, which every tile uses, lies apart from what belongs to the share.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ..._compiler.codegen import F64, Bool, Int, IntLike, KernelBuilder, Pointer
from ..shared.statistics import ROWS, RUN_NUMBERS, ChannelStatistics, Counted

_PIXELS = 192
"""Of a run, if no row has more: so many that what ends it is lost among their products."""


class Range(NamedTuple):
    """The rows or columns of a tile that are to be counted."""

    first: IntLike
    behind: IntLike
    """The one behind the last."""


class RowStatistics:
    """The statistics of one chunk of channels in one block of rows."""

    def __init__(
        self, k: KernelBuilder, rows: Pointer, workspace: Pointer, chunk: Int, lanes: int
    ) -> None:
        """`rows` are all shares' statistics, `chunk` is how many channels there may be."""
        self._k, self._rows, self._lanes = k, rows, lanes
        totals = workspace.offset(chunk * RUN_NUMBERS).as_element(F64)
        self.sums = ChannelStatistics(k, workspace, totals, lanes)

    @contextmanager
    def runs(
        self, start: Int, stop: Int, height: int, cols: Int, width: Int
    ) -> Iterator[tuple[Int, Int]]:
        """Go through rows in runs of whole tiles; gives the first row and the one behind the last of each."""
        k = self._k
        with k.loop(0, width, self._lanes, nonempty=True) as channel:
            self.sums.clear(channel)
        size = k.max(_PIXELS // height // cols, 1) * height
        with k.loop(0, (stop - start + (size - 1)) // size) as number:
            begin = start + number * size
            end = k.min(begin + size, stop)
            yield begin, end
            parts = self.sums.parts((begin - start) * cols, (end - begin) * cols)
            with k.loop(0, width, self._lanes, nonempty=True) as channel:
                self.sums.end_run(channel, parts)

    def counted(
        self, tile: tuple[Int, Int], sizes: tuple[int, int], rows: Range, cols: Range, fresh: Bool
    ) -> Counted:
        """Tell which pixels of a tile count; tile: its first row and column, whose sizes are known."""
        axes = list(zip(tile, sizes, (rows, cols), strict=True))

        def pixels() -> list[Bool]:
            down, along = (
                [(start + i >= span.first) & (start + i < span.behind) for i in range(size)]
                for start, size, span in axes
            )
            return [row & col for row in down for col in along]

        ends = [(start >= span.first) & (start + size <= span.behind) for start, size, span in axes]
        return Counted(fresh, ends[0] & ends[1], pixels)

    def write(self, share: Int, place: Int, channel: Int, channels: Int, count: Int) -> None:
        """Write a vector of channels of a share: those at `place` of the chunk, at `channel` of so many."""
        row = self._rows.offset(share * channels * ROWS + channel)
        self.sums.write(place, row, channels, count)
