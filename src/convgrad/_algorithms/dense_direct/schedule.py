"""Dense and grouped convolution and its input gradient: tiles of pixels times panels of the packed filter.

This module holds the schedule: the tile, the blocks the target is cut into, what is staged and where the filter is
packed. The mechanism is in `kernel`, the geometry in `tables`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from ..._codegen import compute, element
from ..._plan import Operand, Plan, Step
from ..._problem import Kind, Problem
from ..._targets import Target
from ..shared.gather import MOST_LISTED, gather, listed_taps
from ..shared.table import Candidate
from ..shared.words import in_order
from .pack import WORDS as PACK_WORDS
from .pack import PackKernel
from .tables import AxisTable, BlockTables, Pitches, Taps
from .words import WORDS, DirectDenseKernel
from .work import work

NAME = "dense_direct"

_ITEMS = 24
"""Items wanted: panels of a block are shared out until there are as many."""
_FEW_ITEMS = 4
_SPLIT_FLOPS = 4_000_000
"""Below, blocks are not made smaller for the sake of more items: their tiles would be less full."""
_SERIAL_FLOPS = 1_000_000
"""Below about 10 us of work, waking another thread costs more than it saves."""
_SHORT = 160
"""Sums of so few products go without totals: first layers, groups of 16 and narrow pointwise layers, at most 3.6 u."""
_STAGED_BYTES = 1 << 20
"""Largest staged block. Above the second cache it still is read in order, tile by tile."""
_MOST_SCRATCH = 8 << 20
"""Bytes of a staged block with all its windows reach, which may be far beyond it; above, the block is cut until it fits
or is one pixel. No layer of a known network is above 2 MB."""
_SHARE = 0.5
"""Part of the second cache for the source of a block."""
_ONE_TAP_SHARE = 0.31
_FEW_TILES = 10
"""Tiles for which a filter may be read in place."""
_DOT_HEIGHTS = {1: 8, 2: 6, 3: 4, 4: 2, 5: 2}
"""Pixels of a tile by channels, where vectors run along the channels summed over; measured."""
_LEAST_TILES = 24
"""Tiles of a block however deep the channels are: each block reads the whole filter."""
_MANY_TILES = 140
"""Tiles of a block while the filter is larger than the source: each panel is then read by few blocks."""


def why_not(problem: Problem, target: Target) -> str | None:
    """Return why this algorithm cannot compute the problem, or None if it can."""
    if problem.kind is Kind.FILTER_GRADIENT:
        return "only forward and input gradient"
    if (taps := listed_taps(problem)) > MOST_LISTED:
        return f"the lists of taps would have {taps} entries"
    return None


def candidates(problem: Problem, target: Target) -> Sequence[Candidate]:
    """Offer every tile that is no wider than the channels are; blocks and split follow from it by a rule."""
    first = DirectSizes(problem, target, None)
    offered = [first]
    if first.is_free:
        fitting = (tile for tile in tiles(target) if tile.vectors * first.lanes <= first.width)
        offered = [DirectSizes(problem, target, tile) for tile in fitting] or offered
    serial = problem.flops < _SERIAL_FLOPS
    return [Candidate(work(NAME, it, serial), it.plan, it.label) for it in offered]


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
        self.number = compute(element(problem.dtype.short)).size
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
        converted = problem.dtype.itemsize != self.number
        self.narrow = self.width if self.width < self.lanes else 0
        self.woven = self._woven()
        if self.woven > 1:
            self.narrow = 0
        self.dot = self.narrow > 0 and self.depth >= self.lanes
        self.groups = problem.groups // self.woven
        self.tile = tile or tiles(target)[-1]
        self.pixels = problem.batch * self.rows.target * self.cols.target
        one = self.pixels == 1 and self.width >= 3 * self.lanes
        self.is_free = not (one or self.dot)
        """Whether the tile is a matter of choice."""
        self.is_odd = self.is_free and self.tile != tiles(target)[0]
        if one:
            self.tile = PixelTile(1, 3)
        self.panel = self.tile.vectors * self.lanes
        if self.dot:
            self.tile = PixelTile(_DOT_HEIGHTS.get(self.width, 1), self.width)
            self.panel = self.width
        self.panels = -(-self.width * self.woven // self.panel)
        # Groups of few channels spend their time on getting from tap to tap; staged, taps lie together. With 16
        # channels that pays for input gradients only (28x28x512 at stride 2: 6.5 -> 5.3 ms; forward 6.3 -> 6.6).
        narrow = self.depth <= self.lanes * (1 if self.forward else 2)
        few = self.woven > 1 or (self.groups > 1 and narrow and self.taps > 1)
        self.staged = self.planes or converted or few
        self.tap_size = self.depth * self.panel
        self.filter_bytes = self.groups * self.panels * self.taps * self.tap_size * self.number
        source = self.rows.source * self.cols.source * self.channels * problem.batch
        self.source_bytes = source * self.number
        self.in_place = (
            self.forward
            and not self.dot
            and self._reads_filter_rarely()
            and not converted
            and self.width >= self.panel
        )

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
        problem, tile = self.problem, self.tile
        height, width, pixels = self.rows.target, self.cols.target, self.pixels
        # Source pixels per target pixel: a window narrower than its stride skips some.
        scale = 1
        for axis, walk in ((problem.rows, self.rows), (problem.cols, self.cols)):
            scale *= min(walk.footprint.step, axis.window)
        pixel_bytes = self.channels * self.number * scale
        share = _ONE_TAP_SHARE if self.taps == 1 else _SHARE
        budget = int(self.target.l2_bytes * share)
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
        if height * width <= wanted:
            return _even(problem.batch, max(1, wanted // (height * width))), height, width
        if width <= 2 * wanted:
            # Blocks of whole periods of the phases have equal structures.
            rows = max(1, wanted // width)
            return 1, min(height, _even(height, rows, len(self.rows.footprint.phases))), width
        return 1, 1, _even(width, wanted, len(self.cols.footprint.phases))

    def panel_range(self, blocks: int) -> int:
        """Return how many panels of a block are one item."""
        panels = self.panels * self.groups
        return panels if blocks >= _ITEMS else max(1, panels * blocks // _ITEMS)

    def packs(self, blocks: int) -> bool:
        """Tell whether each item packs its panels itself, where there are so few blocks that none is packed often."""
        panel_bytes = self.taps * self.tap_size * self.number
        return blocks <= 2 and not self.in_place and panel_bytes <= _STAGED_BYTES

    def _tables(self, block_rows: int, block_cols: int) -> tuple[AxisTable, AxisTable]:
        return (
            AxisTable(self.rows, block_rows, sparse=self.staged),
            AxisTable(self.cols, block_cols),
        )

    def _group_size(self, images: int, rows: AxisTable, cols: AxisTable) -> int:
        """Return the numbers of one group that a block reads."""
        most = max(a.source_count * b.source_count for a in rows.examples for b in cols.examples)
        return images * self.depth * self.woven * most

    def _block_bytes(self, images: int, rows: AxisTable, cols: AxisTable) -> int:
        """Return what a staged block takes, its surroundings included."""
        if not self.staged:
            return 0
        return self.groups * self._group_size(images, rows, cols) * self.number

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

    def plan(self) -> Plan:
        problem, tile = self.problem, self.tile
        images, block_rows, block_cols = self.block()
        rows, cols = self._tables(block_rows, block_cols)
        while self._block_bytes(images, rows, cols) > _MOST_SCRATCH:
            smaller = self._smaller(images, block_rows, block_cols)
            if smaller == (images, block_rows, block_cols):
                break
            images, block_rows, block_cols = smaller
            rows, cols = self._tables(block_rows, block_cols)
        image_blocks = -(-problem.batch // images)
        blocks = image_blocks * len(rows.spans) * len(cols.spans)
        panels = self.panels * self.groups
        panel_range = self.panel_range(blocks)
        panel_ranges = -(-panels // panel_range)
        packs = self.packs(blocks)
        source_pitch, target_pitch = self._pitches()
        variants = [images] + ([problem.batch % images] if problem.batch % images else [])
        depth, filter_row = self.depth, problem.groups * self.width
        tap = depth * filter_row if self.in_place else self.tap_size
        if self.dot:
            tap = depth
        tables = BlockTables(
            rows,
            cols,
            variants,
            tile.height,
            Pitches(None, None, depth * self.woven) if self.staged else source_pitch,
            Pitches(None, None, self.panel) if self.planes else target_pitch,
            Taps(
                tap * problem.cols.window,
                tap,
                problem.cols.window,
                depth,
                self.woven,
                not self.forward,
            ),
        )
        group_size = self._group_size(images, rows, cols)
        panel_at = _line(self.groups * group_size, self.number) if self.staged else 0
        pixels_at = panel_at + (_line(self.taps * self.tap_size, self.number) if packs else 0)
        block_pixels = images * block_rows * block_cols
        scratch = pixels_at + (block_pixels * self.panel if self.planes else 0)
        pack = PackKernel(
            problem.dtype.short,
            tile.vectors,
            transposed=not self.forward,
            whole=self.width >= self.panel,
            woven=self.woven,
            rows=self.dot,
        )
        shape = {
            "depth": self.depth,
            "width": self.width,
            "groups": problem.groups,
            "taps": self.taps,
            "window_cols": problem.cols.window,
            "panels": self.panels,
        }
        line, block_size = 64 // self.number, images * block_rows * block_cols * depth
        words = in_order(
            WORDS,
            **shape,
            source_image=source_pitch.image or 0,
            source_row=source_pitch.row or 0,
            source_col=source_pitch.col,
            source_plane=self.rows.source * self.cols.source if self.planes else 1,
            source_cols=self.cols.source,
            target_image=target_pitch.image or 0,
            target_row=target_pitch.row or 0,
            target_col=target_pitch.col,
            target_plane=self.rows.target * self.cols.target if self.planes else 1,
            target_cols=self.cols.target,
            filter_row=filter_row,
            images=images,
            batch=problem.batch,
            row_blocks=len(rows.spans),
            col_blocks=len(cols.spans),
            row_structures=len(rows.examples),
            col_structures=len(cols.examples),
            panel_range=panel_range,
            panel_ranges=panel_ranges,
            rows_at=tables.rows_at,
            cols_at=tables.cols_at,
            structures_at=tables.structures_at,
            tiles_at=tables.tiles_at,
            block_size=block_size,
            ahead=-(-tile.height * depth // panel_range // line) * line,
            group_size=group_size,
            panel_at=panel_at,
            pixels_at=pixels_at,
        )
        prefetch = (
            self.taps == 1
            and self.groups == 1
            and not self.staged
            and self.rows.footprint.step == self.cols.footprint.step == 1
            and self.source_bytes > 4 * self.target.l2_bytes
        )
        kernel = DirectDenseKernel(
            problem.dtype.short,
            tile.height,
            tile.vectors,
            planes=self.planes,
            staged=self.staged,
            dot=self.dot,
            woven=self.woven,
            in_place=self.in_place,
            pack=pack if packs else None,
            levels=problem.dtype.itemsize == self.number
            and not problem.dtype.is_integer
            and self.taps * self.depth > _SHORT * (self.lanes if self.dot else 1),
            narrow=self.narrow,
            prefetch=prefetch,
        )
        source: Operand = "first" if self.forward else "second"
        filter_: Operand = "second" if self.forward else "first"
        steps = []
        beforehand = not packs and not self.in_place
        if beforehand:
            words_of_pack = in_order(PACK_WORDS, **shape)
            steps.append(
                Step(pack, (filter_, "packed"), words_of_pack, panels * self.taps, grain=4)
            )
        steps.append(
            Step(
                kernel,
                (source, "packed" if beforehand else filter_, "result", "table"),
                words,
                blocks * panel_ranges,
                # What follows what an item works on should be its thread's next one, for the prefetch to help.
                max(1, blocks * panel_ranges // 32) if prefetch else 1,
                scratch * self.number,
                tables.data,
            )
        )
        how = "by each item" if packs else "beforehand"
        story = (
            ("tile", f"{tile.height} pixels x {self.panel} channels"),
            ("block", f"{images} x {block_rows} x {block_cols} pixels, {blocks} of them"),
            ("panels", f"{panels}, {panel_range} at a time"),
            ("the filter is", "read in place" if self.in_place else f"packed {how}"),
            *([("groups in a vector", str(self.woven))] if self.woven > 1 else []),
            ("the source is", "copied block by block" if self.staged else "read in place"),
        )
        return Plan(
            problem,
            NAME,
            tuple(steps),
            packed_bytes=self.filter_bytes if beforehand else 0,
            serial=problem.flops < _SERIAL_FLOPS,
            story=story,
        )

    def _pitches(self) -> tuple[Pitches, Pitches]:
        """Return the strides of the source and of the target as they lie in memory."""
        problem = self.problem
        sizes = (
            (self.rows.source, self.cols.source, self.channels),
            (self.rows.target, self.cols.target, problem.groups * self.width),
        )
        found = []
        for height, width, channels in sizes:
            col = 1 if self.planes else channels
            found.append(Pitches(prod((height, width, channels)), width * col, col))
        return found[0], found[1]


def _even(total: int, most: int, unit: int = 1) -> int:
    """Return the size up to about `most`, a multiple of `unit`, that cuts `total` into equal parts."""
    parts = -(-total // max(1, most))
    size = -(-total // parts)
    return -(-size // unit) * unit


def _line(elements: int, size: int) -> int:
    """Round up to whole cache lines."""
    return -(-elements * size // 64) * 64 // size
