"""The sizes of a problem of `dense_direct`: tile, panels, blocks, and what is copied or packed."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from ..._compiler.codegen import arithmetic, element
from ..._compiler.targets import Target
from ..._problem.convolution import Kind, Problem
from ..._problem.sums.gather import gather_contract
from ..shared.gather import Footprint, Gather, Tap, gather
from .axis import AxisTable

_ITEMS = 24
"""Items wanted: panels of a block are shared out until there are as many."""
_LARGE_FLOPS = 100_000_000
_LARGE_ITEMS = 64
_LARGE_COPIED_ITEMS = 32
"""Items wanted of large problems, for 16 threads to have equal shares; fewer where each item copies its block again."""
_FEW_ITEMS = 4
_SPLIT_FLOPS = 4_000_000
"""Below, blocks are not made smaller for the sake of more items: their tiles would be less full."""
_SERIAL_FLOPS = 1_000_000
"""Below about 10 us of work, waking another thread costs more than it saves."""
_STAGED_BYTES = 1 << 20
"""Largest staged block. Above the second cache it still is read in order, tile by tile."""
_MOST_SCRATCH = 8 << 20
"""Bytes of a staged block with all its windows reach, which may be far beyond it; above, the block is cut until it fits
or is one pixel. No layer of a known network is above 2 MB."""
_USUAL_CACHE = 512 << 10
"""A larger second cache must not make blocks so large that scratch memory grows or that threads wait for each other.
Such a block is the one of this cache, ..."""
_LARGE_BLOCK = 7 << 18
"""... that is, one of more bytes than this, which with its results would be above 2 MB, ..."""
_THREADS = 16
_GOOD_SPEEDUP = 12
"""... or one that leaves a large problem less than this speed-up on so many threads."""
_SHARE = 0.5
"""Part of the second cache for the source of a block."""
_ONE_TAP_SHARE = 0.31
_FEW_TILES = 10
"""Tiles for which a filter may be read in place."""
_DOT_HEIGHTS = {1: 8, 2: 6, 3: 4, 4: 3, 6: 2, 8: 1}
"""Pixels of a tile by channels, where vectors run along the channels summed over; measured."""
_LEAST_TILES = 24
"""Tiles of a block however deep the channels are: each block reads the whole filter."""
_MANY_TILES = 140
"""Tiles of a block while the filter is larger than the source: each panel is then read by few blocks."""
_MOST_JOINED = 1 << 16
"""Pixels of NCHW images whose rows are joined: the table lists blocks along each axis, and would list all of these."""
_ONE_PIXEL = Footprint(((Tap(0, 0),),), step=1, overhang=0, ragged=0)
"""Windows that read the pixel they stand on."""


@dataclass(frozen=True)
class PixelTile:
    """What a kernel holds in registers: pixels times vectors of channels."""

    height: int
    vectors: int


def tiles(target: Target) -> tuple[PixelTile, ...]:
    """Return the tiles of a target, best first: sums, a row of the filter and one pixel fit the registers.

    With 4 x 3 they fill all 16, LLVM keeps one of the sums in memory, and a product takes twice as long.
    """
    if target.vector_registers >= 32:
        return PixelTile(8, 3), PixelTile(8, 2), PixelTile(8, 1)
    return PixelTile(6, 2), PixelTile(3, 3), PixelTile(8, 1)


class DirectSizes:
    """The sizes of a problem in tiles, panels and blocks; `tile` is asked for, some problems decide themselves."""

    def __init__(self, problem: Problem, target: Target, tile: PixelTile | None) -> None:
        self.problem, self.target = problem, target
        self.forward = problem.kind is Kind.FORWARD
        self.number = arithmetic(element(problem.dtype.short)).size
        self.lanes = target.lanes(self.number)
        self.depth, self.width = problem.group_in, problem.group_out
        if not self.forward:
            self.depth, self.width = self.width, self.depth
        self.rows, self.cols = (
            gather(problem.rows, problem.kind),
            gather(problem.cols, problem.kind),
        )
        self.taps = problem.rows.window * problem.cols.window
        self.channels = problem.groups * self.depth
        self.planes = problem.data_format == "NCHW"
        self.batch = problem.batch
        self.flat = False
        """Whether all pixels of all images are one row, of which each is computed from the one in its place."""
        self._join_pixels()
        converted = problem.dtype.itemsize != self.number
        self.narrow = self.width if self.width < self.lanes else 0
        self.woven = self._woven()
        if self.woven > 1:
            self.narrow = 0
        self.contract = gather_contract(problem)
        self.dot = self.contract.chains > 1
        self.groups = problem.groups // self.woven
        self.tile = tile or tiles(target)[-1]
        self.pixels = self.batch * self.rows.target * self.cols.target
        one = self.pixels == 1 and self.width >= 3 * self.lanes and not self.dot
        self.is_free = not (one or self.dot)
        """Whether the tile is a matter of choice."""
        self.is_odd = self.is_free and self.tile != tiles(target)[0]
        if one:
            self.tile = PixelTile(1, 3)
        self.panel = self.tile.vectors * self.lanes
        if self.dot:
            parts = self.contract.chains // self.lanes
            self.tile = PixelTile(_DOT_HEIGHTS.get(self.width * parts, 1), self.width)
            self.panel = self.width
        self.panels = -(-self.width * self.woven // self.panel)
        # Groups of few channels spend their time on getting from tap to tap; staged, taps lie together. With 16
        # channels that pays for input gradients only (28x28x512 at stride 2: 6.5 -> 5.3 ms; forward 6.3 -> 6.6).
        narrow = self.depth <= self.lanes * (1 if self.forward else 2)
        few = self.woven > 1 or (self.groups > 1 and narrow and self.taps > 1)
        self.tap_size = self.depth * self.panel
        self.filter_bytes = self.groups * self.panels * self.taps * self.tap_size * self.number
        self.source_pixels = self.rows.source * self.cols.source
        """Of an image."""
        source = self.source_pixels * self.channels * self.batch
        self.source_bytes = source * self.number
        self.turned = (
            self.planes
            and problem.groups == 1
            and self.depth >= self.lanes
            and self.taps * self.depth * self.width > source
        )
        """Whether a launch of its own writes the planes of the source pixel by pixel: where the filter is the larger
        one, there are few blocks, and each of their many items would do that again."""
        self.staged = (self.planes or converted or few) and not self.turned
        self.in_place = (
            self.forward
            and not self.dot
            and self._reads_filter_rarely()
            and not converted
            and self.width >= self.panel
        )
        self.serial = problem.flops < _SERIAL_FLOPS

    def _join_pixels(self) -> None:
        """Where windows are one pixel, forget rows, and images too if their pixels follow each other."""
        axes = (self.rows, self.cols)
        if any(axis.footprint != _ONE_PIXEL or axis.source != axis.target for axis in axes):
            return
        pixels = self.rows.target * self.cols.target
        if self.planes and pixels > _MOST_JOINED:
            return
        if not self.planes:
            pixels, self.batch, self.flat = pixels * self.batch, 1, True
        self.rows, self.cols = Gather(_ONE_PIXEL, 1, 1), Gather(_ONE_PIXEL, pixels, pixels)

    def _woven(self) -> int:
        """Return how many groups share a vector: where they are narrow and fill it exactly."""
        groups, width = self.problem.groups, self.width
        if groups == 1 or width >= self.lanes or self.lanes % width:
            return 1
        woven = self.lanes // width
        return woven if groups % woven == 0 else 1

    def _reads_filter_rarely(self) -> bool:
        """Tell whether packing the filter costs more than it saves.

        One tile reads every line once. A few read them from the second cache, if the lines of a panel, a row of the
        filter apart, do not all fall into the same few sets of its 8 ways.
        """
        problem = self.problem
        tiles = -(-self.pixels // self.tile.height)
        pitch = problem.groups * self.width * self.number // 64
        sets = self.target.l2_bytes // (64 * 8)
        room = 8 * sets // gcd(max(1, pitch), sets)
        lines = self.depth * self.taps * (-(-self.panel * self.number // 64))
        return tiles <= 1 or (tiles <= _FEW_TILES and lines <= room // 2)

    @property
    def label(self) -> str:
        return f"{self.tile.height} x {self.panel}"

    def block(self) -> tuple[int, int, int]:
        """Return images, rows and columns of a block."""
        found = self._block(self.target.l2_bytes)
        if self.target.l2_bytes <= _USUAL_CACHE:
            return found
        usual = self._block(_USUAL_CACHE)
        if self._reached_bytes(*found) > _LARGE_BLOCK:
            return usual
        if self.problem.flops > _LARGE_FLOPS:
            speedup = self._speedup(*found)
            if speedup < _GOOD_SPEEDUP and self._speedup(*usual) > speedup:
                return usual
        return found

    def _speedup(self, images: int, rows: int, cols: int) -> float:
        """Return by how much many threads are quicker than one at best, with blocks of a size."""
        blocks = -(-self.batch // images) * -(-self.rows.target // rows)
        blocks *= -(-self.cols.target // cols)
        items = blocks * -(-self.panels * self.groups // self.panel_range(blocks))
        return items / -(-items // _THREADS)

    def _reached_bytes(self, images: int, rows: int, cols: int) -> int:
        """Return what a staged block and its surroundings take, at most; 0 for one that is read in place."""
        if not self.staged:
            return 0
        size = images * self.channels * self.number
        for axis, count in ((self.rows, rows), (self.cols, cols)):
            shape = axis.footprint
            steps = (-(-count // len(shape.phases)) - 1) * shape.step
            size *= min(axis.source, steps + shape.highest - shape.lowest + 1)
        return size

    def _block(self, cache_bytes: int) -> tuple[int, int, int]:
        """Return the same for a second cache of some size."""
        problem, tile = self.problem, self.tile
        height, width, pixels = self.rows.target, self.cols.target, self.pixels
        # Source pixels per target pixel: a window narrower than its stride skips some.
        scale = 1
        for axis, walk in ((problem.rows, self.rows), (problem.cols, self.cols)):
            scale *= min(walk.footprint.step, axis.window)
        pixel_bytes = self.channels * self.number * scale
        share = _ONE_TAP_SHARE if self.taps == 1 else _SHARE
        budget = int(cache_bytes * share)
        least = 1 if self.staged else _LEAST_TILES
        wanted = max(least * tile.height, budget // pixel_bytes)
        if self.filter_bytes > self.source_bytes:
            wanted = max(wanted, _MANY_TILES * tile.height)
        if self.staged:
            wanted = max(1, min(wanted, _STAGED_BYTES // pixel_bytes))
        if self.planes:
            wanted = min(wanted, _STAGED_BYTES // (4 * self.panel * self.number))
        panels = self.panels * self.groups
        if -(-pixels // wanted) * panels < _FEW_ITEMS and self.problem.flops > _SPLIT_FLOPS:
            wanted = max(tile.height, -(-pixels * panels // _FEW_ITEMS))
        if self.flat:
            return 1, 1, _even(pixels, wanted, tile.height if wanted >= tile.height else 1)
        if height * width <= wanted:
            return _even(self.batch, max(1, wanted // (height * width))), height, width
        if width <= 2 * wanted and height > 1:
            # Blocks of whole periods of the phases have equal structures.
            rows = max(1, wanted // width)
            return 1, min(height, _even(height, rows, len(self.rows.footprint.phases))), width
        return 1, 1, _even(width, wanted, len(self.cols.footprint.phases))

    def panel_range(self, blocks: int) -> int:
        """Return how many panels of a block are one item."""
        panels, wanted = self.panels * self.groups, _ITEMS
        if self.problem.flops > _LARGE_FLOPS:
            wanted = _LARGE_COPIED_ITEMS if self.staged else _LARGE_ITEMS
        return panels if blocks >= wanted else max(1, panels * blocks // wanted)

    def packs(self, blocks: int) -> bool:
        """Tell whether each item packs its panels itself, where there are so few blocks that none is packed often."""
        panel_bytes = self.taps * self.tap_size * self.number
        return blocks <= 2 and not self.in_place and panel_bytes <= _STAGED_BYTES

    def cut(self) -> tuple[int, AxisTable, AxisTable]:
        """Return the images of a block and both axes cut into blocks, so small that one fits the workspace."""
        images, rows, cols = self.block()
        tables = self._tables(rows, cols)
        while self._block_bytes(images, *tables) > _MOST_SCRATCH:
            smaller = self._smaller(images, rows, cols)
            if smaller == (images, rows, cols):
                break
            images, rows, cols = smaller
            tables = self._tables(rows, cols)
        return images, *tables

    def _tables(self, block_rows: int, block_cols: int) -> tuple[AxisTable, AxisTable]:
        return (
            AxisTable(self.rows, block_rows, sparse=self.staged),
            AxisTable(self.cols, block_cols),
        )

    def group_size(self, images: int, rows: AxisTable, cols: AxisTable) -> int:
        """Return the numbers of one group that a block reads."""
        most = max(a.source_count * b.source_count for a in rows.examples for b in cols.examples)
        return images * self.depth * self.woven * most

    def _block_bytes(self, images: int, rows: AxisTable, cols: AxisTable) -> int:
        """Return what a staged block takes, its surroundings included."""
        if not self.staged:
            return 0
        return self.groups * self.group_size(images, rows, cols) * self.number

    def _smaller(self, images: int, rows: int, cols: int) -> tuple[int, int, int]:
        """Return about half a block: fewer images, then fewer rows, then fewer columns, in whole periods of phases."""
        if images > 1:
            return -(-images // 2), rows, cols
        if rows > 1:
            period = len(self.rows.footprint.phases)
            half = -(-rows // 2 // period) * period
            return 1, half if half < rows else 1, cols
        period = len(self.cols.footprint.phases)
        half = -(-cols // 2 // period) * period
        return 1, 1, half if half < cols else cols


def _even(total: int, most: int, unit: int = 1) -> int:
    """Return the size up to about `most`, a multiple of `unit`, that cuts `total` into equal parts."""
    parts = -(-total // max(1, most))
    size = -(-total // parts)
    return -(-size // unit) * unit
