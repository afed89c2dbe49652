"""The kernel of `depthwise_direct`: register tiles over channels-last images, straight from and to the caller's memory.

One tile is R groups of rows x T groups of columns x `vectors` vectors of channels. Every source row of its window is
read once. Rows that can fall outside the image are guarded by one branch each; columns never are: tiles at the left
and right border have bodies of their own in which the taps outside the image do not exist. So the code depends on the
windows (`Footprint`) and the tile, while batch, rows, columns and channels are run-time words.

::

    item (forward, input gradient) = (image, block of rows, chunk of channels)
      weights of the chunk -> scratch[vector][tap][lane]
      for q in rows step R:  for tile of columns:  for vector of channels:
        for source row r of the window (guarded):  for source column j:  x = load
          acc[row, column] += x * w[tap]          for every (row, column, tap) that reads (r, j)
        store acc  [and add it to the block's statistics]

    item (filter gradient) = (share of the units, chunk of channels); unit = (image, block of rows)
      sums[vector][tap][lane] = 0;  for unit:  acc[vector][tap][lane] = 0
        for q, tile, vector: y = tile of out_backprop in registers
          for source row, column: x = load;  acc[tap] += x * y[row, column]
        sums += acc
      sums -> partial[share][tap][channel]

Filter gradients are summed in levels, so that no chain of additions is long: the products of a tile, the tiles of a
unit (a few hundred pixels), and the units in a wider type (`partial_type`). The first level costs nothing: it starts
with a product instead of loading a sum, and the sum comes in by an addition from memory.

Channels are covered by whole vectors; the last one is moved back to end at the last channel, and what it shares with
its neighbour is computed twice, with the same bits.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from ..._compiler.codegen import (
    F64,
    Bool,
    Element,
    Int,
    IntLike,
    KernelBuilder,
    arithmetic,
    element,
    symbol,
)
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..._problem.convolution import Kind
from ..shared.reduce import partial_type
from ..shared.words import arguments
from .statistics import Range, RowStatistics
from .tile import Strip, TilePosition, TileWriter
from .words import WORDS, DirectKernel


def emit(kernel: DirectKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    return _Writer(kernel, target).write()


class _Writer:
    """Writes one kernel; methods go from the outermost loop inwards, to the tile."""

    def __init__(self, kernel: DirectKernel, target: Target) -> None:
        self.kernel = kernel
        self.tile = tile = kernel.tile
        size = f"{tile.rows}x{tile.cols}x{tile.vectors}"
        title = symbol(f"depthwise_direct_{kernel.kind.short}", kernel.dtype, size, target, kernel)
        self.k = k = KernelBuilder(title, target)
        self.storage: Element = element(kernel.dtype)
        self.number: Element = arithmetic(self.storage)
        self.lanes = k.lanes(self.number)
        self.to_filter = kernel.kind is Kind.FILTER_GRADIENT
        self.taps = kernel.window[0] * kernel.window[1]
        # The second pointer is the filter or, for the filter gradient, out_backprop, which stands at the target.
        self.source = k.arg_pointer(0, self.storage)
        self.filter = k.arg_pointer(1, self.storage)
        self.target = k.arg_pointer(1 if self.to_filter else 2, self.storage)
        adds_bias = kernel.bias and not self.to_filter
        self.word = arguments(k, 4 if adds_bias or kernel.statistics else 3, WORDS)
        bias = k.arg_pointer(3, self.storage) if adds_bias else None
        self.bank = k.scratch(self.number, 0)
        """Weights, or the running sums of the filter gradient, as [vector][tap][lane]."""
        self.statistics = None
        if kernel.statistics:
            chunk, rows = self.word["chunk"], k.arg_pointer(3, F64)
            behind = self.bank.offset(chunk * self.taps)
            self.statistics = RowStatistics(k, rows, behind, chunk, self.lanes)
        self.tiles = TileWriter(k, kernel, self.word, self.bank, bias, self.statistics)
        self.channels = self.tiles.channels
        self.source_pitch, self.target_pitch = self.tiles.source_pitch, self.tiles.target_pitch

    def write(self) -> KernelSource:
        k = self.k
        with k.loop(k.begin, k.end) as item:
            chunk = item % self.word["chunks"]
            rest = item // self.word["chunks"]
            first = chunk * self.word["chunk"]
            # The chunk's channels, rounded up to whole vectors.
            left = (self.channels + (self.lanes - 1)) // self.lanes * self.lanes - first
            width = k.min(left, self.word["chunk"])
            if self.to_filter:
                self._share(rest, first, width)
            else:
                self._pack_weights(first, width)
                blocks = self.word["row_blocks"]
                self._rows(rest // blocks, rest % blocks, first, width)
                if self.statistics:
                    self._write_statistics(self.statistics, rest, first, width)
        return k.finish()

    # The filter gradient's frame
    def _share(self, share: Int, first: Int, width: Int) -> None:
        """Add up the units of one share, block by block, and leave the sums in its row of partial sums."""
        k, units, shares = self.k, self.word["units"], self.word["shares"]
        rows = self.tiles.bank_rows
        size = width * rows
        wide = element(partial_type(self.kernel.dtype))
        sums = self.bank.offset(self.word["chunk"] * rows).as_element(wide)
        zero = k.zeros(self.number, self.lanes)
        with k.loop(0, size, self.lanes, nonempty=True) as i:
            sums.offset(i).store(k.zeros(wide, self.lanes))
        begin, end = share * units // shares, (share + 1) * units // shares
        with k.loop(begin, end, nonempty=True) as unit:
            with k.loop(0, size, self.lanes, nonempty=True) as i:
                self.bank.offset(i).store(zero, aligned=True)
            blocks = self.word["row_blocks"]
            self._rows(unit // blocks, unit % blocks, first, width)
            with k.loop(0, size, self.lanes, nonempty=True) as i:
                block = self.bank.offset(i).load(self.lanes, aligned=True)
                if wide is not self.number:
                    block = block.cast("fpext", wide)
                sums.offset(i).store(sums.offset(i).load(self.lanes) + block)
        partial = k.arg_pointer(2, wide).offset(share * (self.channels * rows) + first)
        with k.loop(0, width, self.lanes, nonempty=True) as c:
            place = self.tiles.clamped(c, first)
            for tap in range(rows):
                value = sums.offset(c * rows + tap * self.lanes).load(self.lanes)
                partial.offset(self.channels * tap + place).store(value)

    # Forward and input gradient

    def _pack_weights(self, first: Int, width: Int) -> None:
        k = self.k
        with k.loop(0, width, self.tiles.reach, nonempty=True) as c:
            place = self.tiles.clamped(c, first) + first
            for z in range(self.tiles.reach // self.lanes):
                for tap in range(self.taps):
                    value = self.tiles.load(self.filter.offset(self.channels * tap + place), z)
                    there = self.bank.offset(c * self.taps + (z * self.taps + tap) * self.lanes)
                    there.store(value, aligned=True)

    def _rows(self, image: Int, block: Int, first: Int, width: Int) -> None:
        k, groups = self.k, self.word["groups_h"]
        source = self.source.offset(image * (self.word["source_rows"] * self.source_pitch) + first)
        target = self.target.offset(image * (self.word["target_rows"] * self.target_pitch) + first)
        start = block * self.word["row_block"]
        stop = k.min(start + self.word["row_block"], groups)
        with (
            self._runs(start, stop, width) as (begin, end),
            k.loop(begin, end, self.tile.rows) as row,
        ):
            # The last tile is moved up; rows computed twice get the same bits. The filter gradient must not
            # count twice: its plan has whole tiles only.
            q = row if self.to_filter else k.min(row, groups - self.tile.rows)
            source_row = q * self.kernel.rows.step
            strip = Strip(
                q=q,
                source_row=source_row,
                source=source.offset(source_row * self.source_pitch),
                target=target.offset(q * (len(self.kernel.rows.phases)) * self.target_pitch),
                first=first,
                width=width,
                inside=self._row_guards(source_row),
                rows=Range(row, end),
                fresh=row.equals(begin) if self.statistics else Bool.constant(k.emitter, False),
            )
            self._columns(strip)

    def _runs(self, start: Int, stop: Int, width: Int) -> AbstractContextManager[tuple[Int, Int]]:
        """Go through rows: in runs where statistics are taken, else all at once."""
        if self.statistics is None:
            return nullcontext((start, stop))
        cols = self.word["target_cols"]
        return self.statistics.runs(start, stop, self.tile.rows, cols, width)

    def _write_statistics(
        self, statistics: RowStatistics, unit: Int, first: Int, width: Int
    ) -> None:
        k, block = self.k, self.word["row_block"]
        start = unit % self.word["row_blocks"] * block
        rows = k.min(start + block, self.word["groups_h"]) - start
        count = rows * self.word["target_cols"]
        with k.loop(0, width, self.lanes, nonempty=True) as c:
            place = self.tiles.clamped(c, first) + first
            statistics.write(unit, c, place, self.channels, count)

    def _row_guards(self, source_row: Int) -> dict[int, Bool]:
        """Return, for every source row of the window that may lie outside, whether it lies inside."""
        rows, size = self.kernel.rows, self.tile.rows
        return {
            offset: (source_row + offset).inside(self.word["source_rows"])
            for offset in self.tiles.reads(rows, size, TilePosition(False, False, size))
            if offset < 0 or rows.past_end(offset, size - 1)
        }

    def _columns(self, strip: Strip) -> None:
        """Cover the columns: a tile at the left border, tiles inside, a tile at the right border."""
        k, cols, size = self.k, self.kernel.cols, self.tile.cols
        groups = self.word["groups_w"]
        if self.kernel.single:
            self.tiles.write(strip, k.i64(0), TilePosition(True, True, size), Range(0, size))
            return
        inner: IntLike = 0
        if cols.before:
            self.tiles.write(strip, k.i64(0), TilePosition(True, False, size), Range(0, size))
            inner = size
        stop = groups - size if cols.after else groups
        inside = TilePosition(False, False, size)
        if self.to_filter:
            whole = stop - (stop - inner) % size
            with k.loop(inner, whole, size) as q:
                self.tiles.write(strip, q, inside, Range(q, stop))
            if size > 1:
                with k.loop(whole, stop) as q:
                    self.tiles.write(strip, q, TilePosition(False, False, 1), Range(q, stop))
        else:
            last = groups - (cols.after + size)
            with k.loop(inner, stop, size) as q:
                self.tiles.write(strip, k.min(q, last), inside, Range(q, stop))
        if cols.after:
            rest = Range(k.max(stop, inner) if self.statistics else 0, groups)
            self.tiles.write(strip, groups - size, TilePosition(False, True, size), rest)
