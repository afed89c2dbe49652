"""The innermost part of `dense_direct`: one tile of pixels times one panel of channels."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from ..._compiler.codegen import Int, Pointer, Variable, Vector
from ..shared.edges import load_first
from ..shared.levels import Levels
from .dots import store_dots
from .frame import Frame, TargetBlock
from .tables import COL_ENTRY, ROW_ENTRY
from .walk import ListedTile, flat_tiles, listed_tiles

_UNROLL = 4
_AHEAD = 32
"""Rows of a filter in place that are asked for ahead."""


_LONG = 64
"""Products of a sum for which a tile asks for the lines it will write: fewer are done before they come."""


class _Entry(NamedTuple):
    """Taps that lie together: where a tile's pixels are, how far from there they read, and the first weights."""

    pixels: list[Pointer]
    moved: Int
    weights: Pointer
    ahead: Pointer | None
    """What to ask for meanwhile."""


class PanelTiles:
    """Writes tiles; methods go from the outside in."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.k, self.kernel, self.word = frame.k, frame.kernel, frame.word
        self.number, self.lanes = frame.number, frame.lanes

    def write(
        self,
        block: TargetBlock,
        source: Pointer,
        target: Pointer,
        filter_: Pointer,
        turn: Int,
        bias: Pointer | None,
    ) -> None:
        """Compute all tiles of a block for one panel, the item's `turn`th; `target` is where its first pixel goes."""
        frame, height = self.frame, self.kernel.height
        if not self.kernel.flat:
            with listed_tiles(frame, block, source, target) as listed:
                self._ask_for(listed.targets)
                sums_of_taps = self._sum_of_taps(listed, filter_)
                self._store(listed.targets, sums_of_taps, bias)
            return
        with flat_tiles(frame, block, source, target) as tile:
            ahead = None
            if self.kernel.prefetch:
                count = (block.target_cols + (height - 1)) // height
                place = (turn * count + tile.number) * self.word["ahead"]
                ahead = source.offset(self.word["block_size"] + place)
            self._ask_for(tile.targets)
            sums = frame.sums()
            entry = _Entry(tile.pixels, self.k.i64(0), filter_, ahead)
            with self._blocks(sums) as number:
                sums.begin(number)
                self._add(sums, entry, number, frame.depth)
            finished = sums.finish()
            self._store(tile.targets, finished, bias)

    def _ask_for(self, targets: list[Pointer]) -> None:
        """Ask for the lines a tile will write, if it takes long enough for them to arrive meanwhile."""
        if self.kernel.planes:
            return
        with self.k.when(self.frame.depth * self.word["taps"] >= _LONG):
            for there in targets:
                there.prefetch(write=True)

    def _sum_of_taps(self, tile: ListedTile, filter_: Pointer) -> list[Vector]:
        k, table = self.k, self.frame.table
        sums = self.frame.sums()
        with (
            self._blocks(sums) as block,
            k.loop(*tile.rows, ROW_ENTRY, carry=sums.carry) as row,
        ):
            down = table.offset(row)
            row_run = block * self.word["block_runs"] + down.offset(2).load_int()
            row_weights = filter_.offset(down.load_int())
            row_moved = down.offset(1).load_int() * tile.row_pitch
            with k.loop(*tile.cols, COL_ENTRY, carry=sums.carry) as col:
                right = table.offset(col)
                weights = row_weights.offset(right.load_int())
                moved = row_moved + right.offset(1).load_int()
                entry = _Entry(tile.pixels, moved, weights, None)
                sums.begin(row_run + right.offset(3).load_int())
                self._add(sums, entry, block, right.offset(2).load_int())
        return sums.finish()

    def _add(self, sums: Levels, entry: _Entry, block: Int, length: Int) -> None:
        """Add the products of an entry that belong to a block of channels."""
        k = self.k
        if not self.kernel.blocked:
            self._run(sums.now, entry, k.i64(0), length)
            return
        start = block * self.word["contract_block"]
        stop = k.min(start + self.word["contract_block"], length)
        self._run(sums.now, entry, start, stop)

    def _blocks(self, sums: Levels) -> AbstractContextManager[Int]:
        """Go through the contract's blocks of channels."""
        if not self.kernel.blocked:
            return nullcontext(self.k.i64(0))
        return self.k.loop(0, self.word["contract_blocks"], carry=sums.carry, nonempty=True)

    def _run(self, acc: list[Variable[Vector]], entry: _Entry, start: Int, stop: Int) -> None:
        """Add the products from `start` to `stop` of an entry."""
        k = self.k
        if self.kernel.dot:
            self._dots(acc, entry, start, stop)
            return
        pitch = self.word["filter_row"] if self.kernel.in_place else k.i64(self.frame.panel)
        whole = start + ((stop - start) & -_UNROLL)
        for first, last, step in ((start, whole, _UNROLL), (whole, stop, 1)):
            with k.loop(first, last, step, carry=acc) as depth:
                row = entry.weights.offset(depth * pitch)
                at = entry.moved + depth * self.kernel.woven
                if entry.ahead is not None and step > 1:
                    line = depth * (64 // step // self.number.size)
                    entry.ahead.offset(line).prefetch(locality=2)
                for u in range(step):
                    if self.kernel.in_place:
                        row.offset(pitch * (_AHEAD + u)).prefetch()
                    here = [
                        pixel.offset(at).offset(u * self.kernel.woven) for pixel in entry.pixels
                    ]
                    self._step(acc, here, row.offset(pitch * u))

    def _step(self, acc: list[Variable[Vector]], pixels: list[Pointer], weights: Pointer) -> None:
        """Multiply one number of each pixel with a row of the panel."""
        k, vectors = self.k, self.kernel.vectors
        row = [weights.offset(v * self.lanes).load(self.lanes) for v in range(vectors)]
        for i, pixel in enumerate(pixels):
            value = self._broadcast(pixel)
            for v in range(vectors):
                place = acc[i * vectors + v]
                place.value = k.fma(value, row[v], place.value)

    def _broadcast(self, pixel: Pointer) -> Vector:
        """Read one number, or one of each woven group, into all lanes."""
        woven = self.kernel.woven
        if woven == 1:
            return pixel.broadcast(self.lanes)
        return self.k.shuffle(pixel.load(woven), None, [lane % woven for lane in range(self.lanes)])

    def _dots(self, acc: list[Variable[Vector]], entry: _Entry, start: Int, stop: Int) -> None:
        """Multiply vectors of each pixel with vectors of each channel's own row of the filter."""
        k, lanes, parts, chains = self.k, self.lanes, self.frame.parts, self.kernel.dot
        pitch = self.frame.depth * self.word["taps"]
        rows = [entry.weights.offset(pitch * n) for n in range(self.kernel.vectors)]
        whole = stop - (stop - start) % chains

        def add(depth: Int, count: Int | None) -> None:
            for part in range(parts):
                mask = None
                if count is not None:
                    mask = k.first_lanes(lanes, k.max(count - part * lanes, 0))
                at = depth + part * lanes
                filters = [row.offset(at).load(lanes, mask=mask) for row in rows]
                for i, pixel in enumerate(entry.pixels):
                    values = pixel.offset(entry.moved + at).load(lanes, mask=mask)
                    for n, filter_ in enumerate(filters):
                        place = acc[(i * len(filters) + n) * parts + part]
                        place.value = k.fma(values, filter_, place.value)

        with k.loop(start, whole, chains, carry=acc) as depth:
            add(depth, None)
        with k.when(whole < stop):
            add(whole, stop - whole)

    def _store(self, targets: list[Pointer], sums: list[Vector], bias: Pointer | None) -> None:
        if self.kernel.dot:
            store_dots(self.frame, targets, sums, bias)
            return
        added, vectors = self._last(bias), self.kernel.vectors
        for i, there in enumerate(targets):
            self._store_pixel(there, sums[i * vectors : (i + 1) * vectors], added)

    def _last(self, bias: Pointer | None) -> list[Vector]:
        """Return what is added to finished sums: a panel's bias, or +0. A sum that is zero may be -0, a result not."""
        kernel = self.kernel
        zero = self.k.zeros(self.number, self.lanes)
        if not bias:
            return [zero] * kernel.vectors
        if kernel.narrow:
            found = [load_first(self.k, bias, kernel.narrow, self.lanes)]
        else:
            found = [bias.offset(v * self.lanes).load(self.lanes) for v in range(kernel.vectors)]
        return [each + zero for each in found]

    def _store_pixel(self, there: Pointer, sums: list[Vector], added: list[Vector]) -> None:
        kernel = self.kernel
        for v, value in enumerate(sums):
            if kernel.woven > 1:
                # One group's channels after the other's.
                width = self.lanes // kernel.woven
                order = [lane % width * kernel.woven + lane // width for lane in range(self.lanes)]
                value = self.k.shuffle(value, None, order)
            value = value + added[v]
            if not kernel.narrow or kernel.planes:
                there.offset(v * self.lanes).store(value)
                continue
            # Pieces of 4, 2 and 1 lanes: masked stores are slow, and a branch per lane in the 16-bit types.
            start = 0
            for piece in (4, 2, 1):
                while kernel.narrow - start >= piece:
                    there.offset(start).store(value.part(start, piece))
                    start += piece
