"""The innermost part of `dense_direct`: one tile of pixels times one panel of channels."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._codegen import Int, Pointer, Variable, Vector
from .frame import Block, Frame
from .tables import ENTRY

RUN = 48
"""Most products added up in registers before they go to the totals.

A plain sum of n products errs by about 0.29 sqrt(n) u: 7 u for the 576 of a 3x3 window on 64 channels. In runs of 48 it
is 2.4 u and 3 to 4% slower than without; of 64 2.6 u and 2.5%.
"""
_ENOUGH = 32
"""Products after which runs of several taps go to the totals."""
_UNROLL = 4
_AHEAD = 32
"""Rows of a filter in place that are asked for ahead."""


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
        block: Block,
        source: Pointer,
        target: Pointer,
        filter_: Pointer,
        turn: Int,
    ) -> None:
        """Compute all tiles of a block for one panel, the item's `turn`th; `target` is where its first pixel goes."""
        with self.k.loop(0, block.count) as number:
            tile = block.tiles.offset(number * (4 + 2 * self.kernel.height))
            ahead = None
            if self.kernel.prefetch:
                place = (turn * block.count + number) * self.word["ahead"]
                ahead = source.offset(self.word["block_size"] + place)
            self._tile(tile, source, target, filter_, ahead)

    def _tile(
        self,
        tile: Pointer,
        source: Pointer,
        target: Pointer,
        filter_: Pointer,
        ahead: Pointer | None,
    ) -> None:
        k, kernel, height = self.k, self.kernel, self.kernel.height
        first_row, last_row, first_col, last_col = (tile.offset(i).load_int() for i in range(4))
        pixels = [source.offset(tile.offset(4 + i).load_int()) for i in range(height)]
        zero = k.zeros(self.number, self.lanes)
        acc = [k.variable(zero) for _ in range(height * kernel.vectors)]
        done = k.variable(k.i64(0))
        carry: list[Variable[Any]] = [*acc, done] if kernel.levels else [*acc]
        totals = [self.frame.totals.offset(i * self.lanes) for i in range(len(acc))]
        if kernel.levels:
            for total in totals:
                total.store(zero, aligned=True)
        with k.loop(first_row, last_row, carry=carry) as row:
            down = self.frame.table.offset(row * ENTRY)
            down_filter, down_source = down.load_int(), down.offset(1).load_int()
            with k.loop(first_col, last_col, carry=carry) as col:
                right = self.frame.table.offset(col * ENTRY)
                weights = filter_.offset(down_filter + right.load_int())
                moved = down_source + right.offset(1).load_int()
                length = right.offset(2).load_int()
                entry = _Entry(pixels, moved, weights, ahead)
                if kernel.levels:
                    self._runs(acc, done, totals, entry, length)
                else:
                    self._run(acc, entry, k.i64(0), length)
        if kernel.levels:
            for sum_, total in zip(acc, totals, strict=True):
                sum_.value = sum_.value + total.load(self.lanes, aligned=True)
        for i in range(height):
            there = target.offset(tile.offset(4 + height + i).load_int())
            sums = acc[i * kernel.vectors : (i + 1) * kernel.vectors]
            self._store(there, [each.value for each in sums])

    def _runs(
        self,
        acc: list[Variable[Vector]],
        done: Variable[Int],
        totals: list[Pointer],
        entry: _Entry,
        length: Int,
    ) -> None:
        """Add the products of an entry in runs, and what has run long enough to the totals."""
        k = self.k
        run = RUN * self.lanes if self.kernel.dot else RUN
        enough = _ENOUGH * self.lanes if self.kernel.dot else _ENOUGH
        carry: list[Variable[Any]] = [*acc, done]
        with k.loop(0, length, run, carry=carry, nonempty=True) as start:
            stop = k.min(start + run, length)
            self._run(acc, entry, start, stop)
            done.value = done.value + stop - start
            with k.when(done.value >= enough):
                done.value = k.i64(0)
                for sum_, total in zip(acc, totals, strict=True):
                    before = total.load(self.lanes, aligned=True)
                    total.store(before + sum_.value, aligned=True)
                    sum_.value = k.zeros(self.number, self.lanes)

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
        k, lanes = self.k, self.lanes
        pitch = self.frame.depth * self.word["taps"]
        rows = [entry.weights.offset(pitch * n) for n in range(self.kernel.vectors)]
        whole = stop - (stop - start) % lanes

        def add(depth: Int, count: Int | None) -> None:
            mask = None if count is None else k.first_lanes(lanes, count)
            filters = [row.offset(depth).load(lanes, mask=mask) for row in rows]
            for i, pixel in enumerate(entry.pixels):
                values = pixel.offset(entry.moved + depth).load(lanes, mask=mask)
                for n, filter_ in enumerate(filters):
                    place = acc[i * len(filters) + n]
                    place.value = k.fma(values, filter_, place.value)

        with k.loop(start, whole, lanes, carry=acc) as depth:
            add(depth, None)
        with k.when(whole < stop):
            add(whole, stop - whole)

    def _store(self, there: Pointer, sums: list[Vector]) -> None:
        kernel = self.kernel
        if kernel.dot:
            for n, value in enumerate(sums):
                there.offset(n).store(value.sum())
            return
        if kernel.woven > 1:
            # One group's channels after the other's.
            width = self.lanes // kernel.woven
            order = [lane % width * kernel.woven + lane // width for lane in range(self.lanes)]
            there.store(self.k.shuffle(sums[0], None, order))
            return
        for v, value in enumerate(sums):
            if not kernel.narrow or kernel.planes:
                there.offset(v * self.lanes).store(value)
                continue
            # Pieces of 4, 2 and 1 lanes: masked stores are slow, and a branch per lane in the 16-bit types.
            start = 0
            for piece in (4, 2, 1):
                while kernel.narrow - start >= piece:
                    there.offset(start).store(value.part(start, piece))
                    start += piece
