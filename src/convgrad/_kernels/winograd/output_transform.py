"""The last part of an item of `winograd`: y = A^T M A, into the result, and what to do where it is not finite.

The transforms add numbers before they multiply, so values near the largest float can overflow on the way to a result
that is finite, and an infinity meets another one of the same tile as NaN. Whatever goes wrong on the way shows in the
result as an infinity or a NaN: M is a sum of products, and nothing turns an infinity back into a number. So all
numbers of a panel are tested together (one fma each: 0 * y is not 0), and if any fails, those that are not finite are
computed again as the plain sum in float64. It is slow and rare, and gives exactly what the plain sum gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._compiler.codegen import F32, F64, Bool, Int, KernelBuilder, Pointer, Variable, Vector
from ..shared.stage import transposed_copy
from ..shared.winograd_scheme import Scheme, both_ways
from ..shared.winograd_tiles import TileRow
from .frame import Frame
from .phases import Turned


@dataclass(frozen=True)
class Panel:
    """Some channels of the result of some tiles."""

    begin: Int
    """First tile."""
    end: Int
    group: Int
    first: Int
    """First channel, in its group."""


class OutputTransform:
    """Writes M to the result."""

    def __init__(
        self,
        k: KernelBuilder,
        frame: Frame,
        scheme: Scheme,
        nchw: bool,
        vectors: int,
        most_tiles: int,
    ) -> None:
        self.k = k
        self.frame = frame
        self.word = frame.word
        self.scheme = scheme
        self.nchw = nchw
        self.vectors = vectors
        self.lanes = k.lanes(F32)
        self.width = vectors * self.lanes
        self.product_pitch = most_tiles * self.width + 16
        """Elements of one frequency of M, with a line to keep frequencies out of each other's sets."""
        self.products = k.scratch(F32, scheme.frequencies * self.product_pitch)
        """M[frequency][tile][channel of the panel]."""
        self.line = most_tiles * scheme.outputs * self.width
        staged = nchw and not frame.dilated
        self.pixels = k.scratch(F32, scheme.outputs * self.line if staged else self.width)
        """NCHW: a panel's results as [row][column][channel]; else where pixels outside the image are written."""
        self.phases = Turned(k, frame, scheme, self.width) if nchw and frame.dilated else None

    def fetch(self, panel: Panel) -> None:
        """Fetch the lines of a panel's results, NHWC: its products take too few cycles to wait for them afterwards."""
        k, walk = self.k, self.frame.tiles
        with (
            walk.tile_rows(panel.begin, panel.end) as tiles,
            k.loop(0, tiles.count, nonempty=True) as index,
        ):
            col = walk.left(tiles.col + index)
            for line in self._places(self._target(panel), tiles.image, walk.top(tiles.row), col):
                for place in line:
                    place.prefetch(write=True)

    def _target(self, panel: Panel) -> Pointer:
        word = self.word
        return self.frame.target.offset(
            (panel.group * word["columns"] + panel.first) * word["target_channel"]
        )

    def _bias(self, panel: Panel) -> Pointer | None:
        """Return where the bias of a panel's channels starts, if there is one."""
        bias = self.frame.bias
        return bias.offset(panel.group * self.word["columns"] + panel.first) if bias else None

    def write(self, panel: Panel) -> None:
        """Transform a panel's products and store its results."""
        k, size, target = self.k, self.scheme.outputs, self._target(panel)
        bias = self._bias(panel)
        checks = [k.variable(k.zeros(F32, self.lanes)) for _ in range(self.vectors)]
        walk = self.frame.tiles
        with walk.tile_rows(panel.begin, panel.end, checks) as tiles:
            with k.loop(0, tiles.count, carry=checks, nonempty=True) as index:
                tile = tiles.first + index
                if self.phases:
                    places = self.phases.places(tiles, index, self.pixels)
                elif self.nchw:
                    line = self.pixels.offset(tile * (size * self.width))
                    places = [
                        [line.offset(a * self.line + b * self.width) for b in range(size)]
                        for a in range(size)
                    ]
                else:
                    col = walk.left(tiles.col + index)
                    places = self._places(target, tiles.image, walk.top(tiles.row), col)
                self._tile(self.products.offset(tile * self.width), places, checks, bias)
            if self.phases:
                self.phases.write(target, tiles)
        if self.nchw and not self.phases:
            with self.frame.tiles.tile_rows(panel.begin, panel.end) as tiles:
                self._turn(target, tiles)
        total = checks[0].value
        for check in checks[1:]:
            total = total + check.value
        with k.when(~self._is_finite(total.sum())):
            self._repair(panel, target)

    def _places(self, target: Pointer, image: Int, row: Int, col: Int) -> list[list[Pointer]]:
        """Return where the pixels of a tile go; those behind the image go to scratch."""
        k, word, walk, size = self.k, self.word, self.frame.tiles, self.scheme.outputs
        corner = walk.address(target, "target", image, row, col)
        spare = self.pixels.as_element(self.frame.storage)
        places = []
        for a in range(size):
            start = corner.offset(word["target_row"] * walk.down * a)
            there = row + walk.down * a < word["target_rows"]
            places.append(
                [
                    k.select(
                        there & (col + walk.right * b < word["target_cols"]),
                        start.offset(word["target_col"] * walk.right * b),
                        spare,
                    )
                    if a or b
                    else start
                    for b in range(size)
                ]
            )
        return places

    def _tile(
        self,
        products: Pointer,
        places: list[list[Pointer]],
        checks: list[Variable[Vector]],
        bias: Pointer | None,
    ) -> None:
        k, lanes, points = self.k, self.lanes, self.scheme.points
        nothing = k.zeros(F32, lanes)
        for v, check in enumerate(checks):
            grid = [
                [
                    products.offset((i * points + j) * self.product_pitch + v * lanes)
                    .load(lanes, aligned=True)
                    .cast("fpext", F64)
                    for j in range(points)
                ]
                for i in range(points)
            ]
            # In float64, rounded once: M is larger than y, and its partial sums would cost 0.2 of 2.5 units of error.
            results = both_ways(k, self.scheme.output_matrix, grid)
            added = bias.offset(v * lanes).load(lanes) if bias else None
            for row, line in zip(results, places, strict=True):
                for exact, place in zip(row, line, strict=True):
                    value = exact.cast("fptrunc", F32)
                    # The bias stays out of the check: what it makes infinite is not to be computed again.
                    place.offset(v * lanes).store(value + added if added else value)
                    check.value = k.fma(value, nothing, check.value)

    # NCHW

    def _turn(self, target: Pointer, tiles: TileRow) -> None:
        """Copy a row of tiles from pixels to planes."""
        k, word, size = self.k, self.word, self.scheme.outputs
        col = tiles.col * size
        width = k.min(tiles.count * size, word["target_cols"] - col)
        row = tiles.row * size
        with k.loop(row, k.min(row + size, word["target_rows"]), nonempty=True) as line:
            source = self.pixels.offset(
                (line - row) * self.line + tiles.first * (size * self.width)
            )
            place = self.frame.tiles.address(target, "target", tiles.image, line, col)
            plane = word["target_channel"]
            transposed_copy(k, source, place, width, self.width, self.width, plane)

    # Where it is not finite

    def _is_finite(self, value: Vector) -> Bool:
        difference = (value - value).compare("oeq", "", 0.0)
        return Bool(self.k.emitter, difference.text)

    def _repair(self, panel: Panel, target: Pointer) -> None:
        """Compute every number of the panel again that is not finite."""
        k, word, size, walk = self.k, self.word, self.scheme.outputs, self.frame.tiles
        with (
            walk.tile_rows(panel.begin, panel.end) as tiles,
            k.loop(0, tiles.count * (size * size)) as cell,
        ):
            inner = cell % (size * size)
            row = walk.top(tiles.row) + inner // size * walk.down
            col = walk.left(tiles.col + cell // (size * size)) + inner % size * walk.right
            there = (row < word["target_rows"]) & (col < word["target_cols"])
            with k.loop(0, k.select(there, k.i64(self.width), k.i64(0))) as channel:
                self._repair_one(panel, target, (tiles.image, row, col), channel)

    def _repair_one(
        self, panel: Panel, target: Pointer, pixel: tuple[Int, Int, Int], channel: Int
    ) -> None:
        k, word = self.k, self.word
        place = self.frame.tiles.address(target, "target", *pixel)
        place = place.offset(channel * word["target_channel"])
        with k.when(~self._is_finite(place.load())):
            total = self._plain_sum(panel, *pixel, panel.first + channel)
            bias = self._bias(panel)
            if bias:
                total = total + bias.offset(channel).load().cast("fpext", F64)
            place.store(total.cast("fptrunc", F32))

    def _plain_sum(self, panel: Panel, image: Int, row: Int, col: Int, channel: Int) -> Vector:
        k, word, walk = self.k, self.word, self.frame.tiles
        total: Variable[Any] = k.variable(k.zeros(F64, 1))
        source = self.frame.source.offset(panel.group * word["sums"] * word["source_channel"])
        weights = self.frame.filter.offset(
            word["filter_start"]
            + panel.group * word["filter_group"]
            + channel * word["filter_column"]
        )
        with k.loop(0, 9, carry=[total], nonempty=True) as tap:
            h = row + tap // 3 * walk.down - word["before_rows"]
            w = col + tap % 3 * walk.right - word["before_cols"]
            there = h.inside(word["source_rows"]) & w.inside(word["source_cols"])
            pixel = self.frame.tiles.address(source, "source", image, h, w)
            plane = weights.offset(tap * word["filter_tap"])
            # A loop that does not run where the pixel does not exist, or for a sum that stays NaN whatever follows.
            lost = Bool(k.emitter, total.value.compare("uno", "", 0.0).text)
            count = k.select(there & ~lost, word["sums"], k.i64(0))
            with k.loop(0, count, carry=[total]) as c:
                x = pixel.offset(c * word["source_channel"]).load().cast("fpext", F64)
                f = plane.offset(c * word["filter_sum"]).load().cast("fpext", F64)
                total.value = k.fma(x, f, total.value)
        result: Vector = total.value
        return result
