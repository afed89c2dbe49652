"""Tiles of the source as vectors of channels, transformed: V = B^T x B.

NHWC is read where it lies: a pixel outside the image is read from a line of zeros, chosen by address, so nothing is
multiplied that is not there. NCHW is turned into pixels by blocks of a vector squared, row of tiles by row of tiles.
Its tails go number by number: a number costs a cycle here and ``columns / 4`` cycles in the products.
"""

from __future__ import annotations

from ..._compiler.codegen import F32, Int, IntLike, KernelBuilder, Pointer
from ..shared.stage import transposed_copy
from ..shared.winograd_scheme import Scheme, both_ways
from ..shared.winograd_tiles import TileRow
from .frame import Frame
from .phases import Staged


class Input:
    """Writes the first part of an item."""

    def __init__(
        self, k: KernelBuilder, frame: Frame, scheme: Scheme, nchw: bool, run: int
    ) -> None:
        self.k = k
        self.frame = frame
        self.word = frame.word
        self.scheme = scheme
        self.nchw = nchw
        self.run = run
        self.lanes = k.lanes(F32)
        self.zeros = frame.scratch("zeros_at", frame.storage)
        self.phases = Staged(k, frame, scheme, self.zeros) if nchw and frame.dilated else None
        self.stage = frame.scratch("stage_at")
        """NCHW: the source rows of a row of tiles as [row][column][channel], `row_pitch` elements a pixel."""

    def clear(self) -> None:
        """Write the line of zeros; once per call."""
        k, zero = self.k, self.k.zeros(F32, self.lanes)
        line = self.zeros.as_element(F32)
        with k.loop(0, self.word["row_pitch"], self.lanes, nonempty=True) as c:
            line.offset(c).store(zero)

    @property
    def group_pitch(self) -> Int:
        """Elements from one group of V to the next."""
        return self.word["input_pitch"] * self.scheme.frequencies

    def transform(
        self,
        begin: Int,
        end: Int,
        group: Int,
        place: Pointer,
        groups: Int | None = None,
        shift: IntLike = 0,
    ) -> None:
        """Fill V[frequency][run][tile][k of the run] for the tiles from `begin` to below `end`.

        `groups` of them go side by side, pixel by pixel: their channels are neighbours in NHWC, and a stride of a whole
        pixel between lines of one group leaves them a few sets of the first cache. The first tile is number `shift` of
        its block.
        """
        k, word = self.k, self.word
        channels = group * word["sums"] * word["source_channel"]
        source = self.frame.source.offset(channels)
        with self.frame.tiles.tile_rows(begin, end) as tiles:
            top = self.frame.tiles.top(tiles.row) - word["before_rows"]
            left = tiles.col * self.scheme.outputs - word["before_cols"]
            if self.phases:
                self.phases.fill(source, tiles)
            elif self.nchw:
                self._stage(source, tiles, top, left)
            with k.loop(0, tiles.count, nonempty=True) as index:
                if self.phases:
                    pixels = self.phases.pixels(tiles, index)
                elif self.nchw:
                    pixels = self._staged(tiles, index)
                elif self.frame.dilated:
                    at = self.frame.tiles.left(tiles.col + index) - word["before_cols"]
                    corner, size = (tiles.image, top, at), self.scheme.points
                    pixels = self.frame.tiles.patch(source, "source", corner, size, self.zeros)
                else:
                    at = left + index * self.scheme.outputs
                    corner, size = (tiles.image, top, at), self.scheme.points
                    pixels = self.frame.tiles.patch(source, "source", corner, size, self.zeros)
                tile = tiles.first + index + shift
                if groups is None:
                    self._tile(pixels, tile, place)
                else:
                    with k.loop(0, groups, nonempty=True) as g:
                        own = [[pixel.offset(g * word["sums"]) for pixel in row] for row in pixels]
                        self._tile(own, tile, place.offset(g * self.group_pitch))

    def _tile(self, pixels: list[list[Pointer]], tile: Int, place: Pointer) -> None:
        k, word, lanes = self.k, self.word, self.lanes
        last, size = word["runs"] - 1, word["block_tiles"] * self.run
        # Rubbish there would be multiplied by zeros. As NaN it would not be seen in the results, for those that are not
        # finite are computed again, but all of them would be.
        with k.when(word["sums"].differs(word["sums_padded"])):
            tail = place.offset(last * size + (tile + 1) * word["last_pitch"] - lanes)
            with k.loop(0, self.scheme.frequencies) as f:
                tail.offset(f * word["input_pitch"]).store(k.zeros(F32, lanes))
        with k.loop(0, word["sums"], lanes, nonempty=True) as c:
            # The last vector ends with the last channel; the last run, at least a vector long, holds all of it.
            at = k.min(c, word["sums"] - lanes)
            run = k.min(at // self.run, last)
            pitch = k.select(run.equals(last), word["last_pitch"], k.i64(self.run))
            grid = [[pixel.offset(at).load(lanes) for pixel in row] for row in pixels]
            to = place.offset(run * size + tile * pitch + (at - run * self.run))
            for line in both_ways(k, self.scheme.input_matrix, grid):
                for value in line:
                    to.store(value)
                    to = to.offset(word["input_pitch"])

    # NCHW

    def _staged(self, tiles: TileRow, index: Int) -> list[list[Pointer]]:
        pitch, width = self.word["row_pitch"], self._width(tiles)
        points, first = range(self.scheme.points), index * self.scheme.outputs
        rows = [self.stage.offset((width * i + first) * pitch) for i in points]
        return [[row.offset(pitch * j) for j in points] for row in rows]

    def _width(self, tiles: TileRow) -> Int:
        return tiles.count * self.scheme.outputs + 2

    def _stage(self, source: Pointer, tiles: TileRow, top: Int, left: Int) -> None:
        """Copy the source rows of a row of tiles as pixels, zeros outside the image."""
        k, word = self.k, self.word
        width, pitch = self._width(tiles), word["row_pitch"]
        begin, end = k.max(left, 0), k.min(left + width, word["source_cols"])
        with k.loop(0, self.scheme.points, nonempty=True) as i:
            line = self.stage.offset(i * width * pitch)
            row = top + i
            there = row.inside(word["source_rows"])
            # Of a row outside the image, and of one wholly beside it, nothing is copied.
            start = k.select(there & (begin < end), begin, left)
            stop = k.select(there & (begin < end), end, left)
            self._clear(line, k.i64(0), start - left)
            self._clear(line, stop - left, width)
            pixel = self.frame.tiles.address(source, "source", tiles.image, row, start)
            line = line.offset((start - left) * pitch)
            plane = word["source_channel"]
            transposed_copy(k, pixel, line, word["sums"], stop - start, plane, pitch)

    def _clear(self, line: Pointer, begin: Int, end: Int) -> None:
        k, pitch, zero = self.k, self.word["row_pitch"], self.k.zeros(F32, self.lanes)
        with k.loop(begin * pitch, end * pitch, self.lanes) as at:
            line.offset(at).store(zero)
