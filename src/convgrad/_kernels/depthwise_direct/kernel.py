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
        store acc

    item (filter gradient) = (slice of the units, chunk of channels)
      for unit:  for run:  bank[vector][tap][lane] = 0
          for row of the run, tile, vector: y = tile of out_backprop in registers
            for source row, column: x = load;  bank[tap] += x * y[column]
          total += bank
        total joins its neighbours in the tree of units
      sums of the slice -> partial[slice][tap][channel]

Units, runs and the tree are those of `_problem.sums.pixels`: a run is one chain of products for each tap, in the order
of its pixels. A tile goes on with the sums where the one before left them, in registers or in L1. Tiles of several rows
have runs of one row, so that each of their rows has a chain of its own; all runs of these rows wait in banks of their
own until they are added to the units in order. Where every row is one run, the tile at its left border
starts from zero, and the tile at its right border adds the sums to the unit.

Channels are covered by whole vectors; the last one is moved back to end at the last channel, and what it shares with
its neighbour is computed twice, with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..._compiler.codegen import (
    Bool,
    Element,
    Int,
    IntLike,
    KernelBuilder,
    Pointer,
    Vector,
    arithmetic,
    element,
    symbol,
)
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..._problem.convolution import Kind
from ..shared import units
from ..shared.words import arguments
from .tile import Strip, TilePosition, TileWriter
from .words import WORDS, DirectKernel


def emit(kernel: DirectKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    return _Writer(kernel, target).write()


@dataclass(frozen=True)
class _Slice:
    """An item of a filter gradient: units, and a chunk of channels."""

    number: Int
    begin: Int
    end: Int
    first: Int
    width: Int
    size: Int
    """Sums of one level, in elements."""


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
        words = (*WORDS, *units.WORDS) if self.to_filter else WORDS
        self.word = arguments(k, 4 if adds_bias else 3, words)
        bias = k.arg_pointer(3, self.storage) if adds_bias else None
        self.bank = k.scratch(self.number, 0)
        """Weights, or the sums of the runs of a filter gradient, as [run][vector][tap][lane]."""
        self.zero = k.zeros(self.number, self.lanes)
        self.tiles = TileWriter(k, kernel, self.word, self.bank, bias)
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
                self._slice(rest, first, width)
            else:
                self._pack_weights(first, width)
                blocks = self.word["row_blocks"]
                self._rows(rest // blocks, rest % blocks, first, width)
        return k.finish()

    # The filter gradient's frame

    def _slice(self, number: Int, first: Int, width: Int) -> None:
        """Add up the units of one slice, and leave the sums in its row of partial sums."""
        k, size = self.k, self.word["slice_units"]
        item = _Slice(
            number,
            begin=number * size,
            end=k.min((number + 1) * size, self.word["units"]),
            first=first,
            width=width,
            size=width * self.tiles.bank_rows,
        )
        with k.loop(0, self._banks * self.bank_pitch + item.size, self.lanes) as i:
            self.bank.offset(i).store(self.zero, aligned=True)
        if self.tile.rows > 1:
            self._tall_strips(item)
            return
        with k.loop(item.begin, item.end, nonempty=True) as unit:
            self._unit(unit, item)
            self._end_unit(unit, item)

    @property
    def bank_pitch(self) -> Int:
        """Elements from the sums of one run to the next, of the last run to the total, and between levels above."""
        return self.word["chunk"] * self.tiles.bank_rows

    @property
    def _banks(self) -> Int:
        """Runs that have sums of their own at the same time: the total lies behind them, and levels of the tree."""
        parts = self.word["run_parts"] * self.tile.rows
        return parts if self.tile.rows > 1 else self.k.i64(1)

    def _unit(self, unit: Int, item: _Slice) -> None:
        """Add up one unit, run by run."""
        k, ends = self.k, (self.word["groups_h"], self.word["groups_w"])
        with units.runs(k, self.word, ends, unit) as (images, rows, cols):
            with k.loop(*images, nonempty=True) as n, k.loop(*rows, nonempty=True) as q:
                strip = self._strip(n, q, item.first, item.width, self._run_banks)
                self._columns(strip, *cols)
            if not self.kernel.row_runs:
                units.add_run(k, self.bank, self._totals, item.size, self.zero)

    @property
    def _run_banks(self) -> tuple[Pointer, ...]:
        """Where the sums of a run are, and, if its last tile is to add them, those of the unit."""
        return (self.bank, self._totals) if self.kernel.row_runs else (self.bank,)

    def _tall_strips(self, item: _Slice) -> None:
        """Add up the units of a slice in tiles of several rows, whose parts are runs; a tile may lie in two units."""
        k, word, tall = self.k, self.word, self.tile.rows
        blocks, parts, rows = word["unit_blocks"], word["run_parts"], word["groups_h"]

        def row_of(unit: Int) -> Int:
            """Return how many rows of all images lie before a unit."""
            return unit // blocks * rows + unit % blocks * word["unit_rows"]

        unit = k.variable(item.begin)
        with k.loop(row_of(item.begin), row_of(item.end), tall, carry=[unit], nonempty=True) as at:
            image, row = at // rows, at % rows
            with k.loop(0, parts, nonempty=True) as part:
                begin = part * word["run_cols"]
                places = [(part + parts * i) * self.bank_pitch for i in range(tall)]
                banks = tuple(self.bank.offset(place) for place in places)
                strip = self._strip(image, row, item.first, item.width, banks)
                self._columns(strip, begin, k.min(begin + word["run_cols"], word["groups_w"]))
            with k.loop(0, tall, carry=[unit], nonempty=True) as i:
                with k.loop(0, parts, nonempty=True) as part:
                    bank = self.bank.offset((part + parts * i) * self.bank_pitch)
                    units.add_run(k, bank, self._totals, item.size, self.zero)
                below = row + (i + 1)
                ends = (below % word["unit_rows"]).equals(0) | below.equals(rows)
                with k.when(ends):
                    self._end_unit(unit.value, item)
                    unit.value = unit.value + 1

    @property
    def _totals(self) -> Pointer:
        return self.bank.offset(self._banks * self.bank_pitch)

    def _end_unit(self, unit: Int, item: _Slice) -> None:
        """Add the sums of a unit to the tree; the last one of a slice ends it."""
        k, rows = self.k, self.tiles.bank_rows

        def leave(finished: Callable[[Int], Vector]) -> None:
            partial = k.arg_pointer(2, self.number)
            partial = partial.offset(item.number * (self.channels * rows) + item.first)
            with k.loop(0, item.width, self.lanes, nonempty=True) as c:
                place = self.tiles.clamped(c, item.first)
                with k.loop(0, rows, nonempty=True) as tap:
                    value = finished(c * rows + tap * self.lanes)
                    partial.offset(self.channels * tap + place).store(value)

        last = (unit + 1).equals(item.end)
        pitch, number = self.bank_pitch, unit - item.begin
        units.end_unit(k, number, last, self._totals, pitch, item.size, self.zero, leave)

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

    def _strip(
        self,
        image: Int,
        q: Int,
        first: Int,
        width: Int,
        banks: tuple[Pointer, ...] = (),
    ) -> Strip:
        """Return what tiles of the rows from q on are given."""
        source = self.source.offset(image * (self.word["source_rows"] * self.source_pitch) + first)
        target = self.target.offset(image * (self.word["target_rows"] * self.target_pitch) + first)
        source_row = q * self.kernel.rows.step
        return Strip(
            q=q,
            source_row=source_row,
            source=source.offset(source_row * self.source_pitch),
            target=target.offset(q * (len(self.kernel.rows.phases)) * self.target_pitch),
            first=first,
            width=width,
            inside=self._row_guards(source_row),
            banks=banks,
        )

    def _rows(self, image: Int, block: Int, first: Int, width: Int) -> None:
        k, groups = self.k, self.word["groups_h"]
        start = block * self.word["row_block"]
        stop = k.min(start + self.word["row_block"], groups)
        with k.loop(start, stop, self.tile.rows) as row:
            # The last tile is moved up; rows computed twice get the same bits.
            q = k.min(row, groups - self.tile.rows)
            self._columns(self._strip(image, q, first, width))

    def _row_guards(self, source_row: Int) -> dict[int, Bool]:
        """Return, for every source row of the window that may lie outside, whether it lies inside."""
        rows, size = self.kernel.rows, self.tile.rows
        return {
            offset: (source_row + offset).inside(self.word["source_rows"])
            for offset in self.tiles.reads(rows, size, TilePosition(False, False, size))
            if offset < 0 or rows.past_end(offset, size - 1)
        }

    def _columns(self, strip: Strip, begin: IntLike = 0, end: Int | None = None) -> None:
        """Cover columns: a tile at the left border, tiles inside, a tile at the right border.

        A filter gradient goes through some of the columns only where a row has several runs.
        """
        k, cols, size = self.k, self.kernel.cols, self.tile.cols
        groups = self.word["groups_w"]
        if self.kernel.single:
            self.tiles.write(strip, k.i64(0), TilePosition(True, True, size))
            return
        if end is not None:
            self._piece(strip, k.i64(begin), end)
            return
        inner: IntLike = 0
        if cols.before:
            self.tiles.write(strip, k.i64(0), TilePosition(True, False, size))
            inner = size
        stop = groups - size if cols.after else groups
        last = groups - (cols.after + size)
        with k.loop(inner, stop, size) as q:
            self.tiles.write(strip, k.min(q, last), TilePosition(False, False, size))
        if cols.after:
            self.tiles.write(strip, groups - size, TilePosition(False, True, size))

    def _piece(self, strip: Strip, begin: Int, end: Int) -> None:
        """Cover columns of a filter gradient, each once: where tiles do not fit, columns are taken one by one."""
        k, cols, size = self.k, self.kernel.cols, self.tile.cols
        groups, pieces = self.word["groups_w"], self.kernel.pieces
        at_start = begin.equals(0) if pieces else Bool.constant(k.emitter, True)
        at_end = end.equals(groups) if pieces else Bool.constant(k.emitter, True)
        if cols.before:
            with k.when(at_start):
                self.tiles.write(strip, k.i64(0), TilePosition(True, False, size))
            begin = k.select(at_start, k.i64(size), begin)
        stop = k.select(at_end, end - size, end) if cols.after else end
        whole = stop - (stop - begin) % size
        with k.loop(begin, whole, size) as q:
            self.tiles.write(strip, q, TilePosition(False, False, size))
        if size > 1:
            with k.loop(whole, stop) as q:
                self.tiles.write(strip, q, TilePosition(False, False, 1))
        if cols.after:
            with k.when(at_end):
                self.tiles.write(strip, groups - size, TilePosition(False, True, size))
