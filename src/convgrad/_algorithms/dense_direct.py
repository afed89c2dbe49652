"""Dense and grouped convolution and its input gradient: tiles of pixels times panels of the packed filter.

This module holds the schedule: the tile, the blocks the target is cut into, what is staged and where the filter is
packed. The mechanism is in `dense_direct_kernel`, the geometry in `dense_direct_tables`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from .._codegen import compute, element
from .._plan import Operand, Plan, Step
from .._problem import Kind, Problem
from .._targets import Target
from .dense_direct_kernel import RUN, SHORT, DirectDenseKernel
from .dense_direct_tables import AxisTable, BlockTables, Pitches
from .dense_pack import PackKernel
from .gather import Footprint, Gather, Tap, gather

NAME = "dense_direct"

_ITEMS = 24
"""Items wanted: panels of a block are shared out until there are as many."""
_FEW_ITEMS = 8
_SERIAL_FLOPS = 1_000_000
"""Below about 10 us of work, waking another thread costs more than it saves."""
_STAGED_BYTES = 1 << 20
"""Largest staged block. Above the second cache it still is read in order, tile by tile."""
_FUSED_CHANNELS = 8
"""Up to as many channels, the columns of a window are one run of neighbours: one tap of kw * C channels."""
_MANY_TILES = 140
"""Tiles of a block while the filter is larger than the source: each panel is then read by few blocks."""


def why_not(problem: Problem, target: Target) -> str | None:
    """Return why this algorithm cannot compute the problem, or None if it can."""
    if problem.kind is Kind.FILTER_GRADIENT:
        return "only forward and input gradient"
    return None


def plan(problem: Problem, target: Target) -> Plan:
    """Choose the tile, the blocks and the split of the work."""
    return _Schedule(problem, target).plan()


@dataclass(frozen=True)
class Tile:
    """What a kernel holds in registers: pixels times vectors of channels."""

    height: int
    vectors: int


def tiles(target: Target) -> tuple[Tile, ...]:
    """Return the tiles of a target, best first: sums, a row of the filter and one pixel fit the registers."""
    if target.vector_registers >= 32:
        return Tile(8, 3), Tile(8, 2), Tile(8, 1)
    return Tile(6, 2), Tile(4, 3), Tile(8, 1)


def choose_tile(width: int, lanes: int, target: Target) -> Tile:
    """Return the tile that computes the fewest channels in vain; a panel is no wider than the channels are."""
    fitting = [tile for tile in tiles(target) if tile.vectors * lanes <= width]
    # One vector a panel reads nine numbers for eight products.
    cost = {1: 1.12, 2: 1.0, 3: 1.01}
    return min(
        fitting or [tiles(target)[-1]],
        key=lambda tile: -(-width // (tile.vectors * lanes)) * tile.vectors * cost[tile.vectors],
    )


class _Schedule:
    """The sizes of a problem in tiles, panels and blocks."""

    def __init__(self, problem: Problem, target: Target) -> None:
        self.problem, self.target = problem, target
        self.forward = problem.kind is Kind.FORWARD
        self.number = compute(element(problem.dtype.short)).size
        self.lanes = target.lanes(self.number)
        self.depth, self.width = problem.group_in, problem.group_out
        if not self.forward:
            self.depth, self.width = self.width, self.depth
        self.merged = self._merged()
        self.groups = problem.groups // self.merged
        self.rows, self.cols = (
            gather(problem.rows, problem.kind),
            gather(problem.cols, problem.kind),
        )
        self.taps = problem.rows.window * problem.cols.window
        self.tap_depth = self.depth
        self.channels = problem.groups * self.depth
        self.fused = self._is_fused()
        self.before = self.borders = 0
        if self.fused:
            cols = problem.cols
            self.before, self.borders = cols.before, cols.window - 1
            step = Footprint(((Tap(0, 0),),), cols.stride, 0, 0)
            self.cols = Gather(step, (cols.out - 1) * cols.stride + 1, cols.out)
            self.taps, self.tap_depth = problem.rows.window, self.depth * cols.window
        whole = self.width * self.merged
        self.tile = choose_tile(whole, self.lanes, target)
        self.panel = self.tile.vectors * self.lanes
        self.panels = -(-whole // self.panel)
        self.narrow = whole if whole < self.lanes else 0
        self.planes = problem.data_format == "NCHW"
        self.staged = self.fused or self.planes or problem.dtype.itemsize != self.number
        self.tap_size = self.tap_depth * self.merged * self.panel
        self.filter_bytes = self.groups * self.panels * self.taps * self.tap_size * self.number
        source = self.rows.source * self.cols.source * self.channels * problem.batch
        self.source_bytes = source * self.number

    def _merged(self) -> int:
        """Return how many groups to merge so that their channels fill a vector."""
        groups = self.problem.groups
        return next(
            (m for m in range(1, groups + 1) if groups % m == 0 and m * self.width >= self.lanes),
            groups,
        )

    def _is_fused(self) -> bool:
        cols = self.problem.cols
        few = self.channels <= _FUSED_CHANNELS and self.problem.groups == 1
        return self.forward and few and cols.dilation == 1 and cols.window > 1

    def _block(self) -> tuple[int, int, int]:
        """Return images, rows and columns of a block."""
        problem, tile = self.problem, self.tile
        height, width = self.rows.target, self.cols.target
        pixels = problem.batch * height * width
        scale = self.rows.footprint.step * self.cols.footprint.step
        pixel_bytes = self.channels * self.number * scale
        budget = self.target.l2_bytes * 5 // 16 if self.taps == 1 else self.target.l2_bytes // 4
        wanted = max(tile.height, budget // pixel_bytes)
        if self.filter_bytes > self.source_bytes:
            wanted = max(wanted, _MANY_TILES * tile.height)
        if self.staged:
            wanted = max(1, min(wanted, _STAGED_BYTES // pixel_bytes))
        if self.planes:
            wanted = min(wanted, _STAGED_BYTES // (4 * self.panel * self.number))
        panels = self.panels * self.groups
        if -(-pixels // wanted) * panels < _FEW_ITEMS and self.problem.flops > _SERIAL_FLOPS:
            wanted = max(tile.height, -(-pixels * panels // _FEW_ITEMS))
        if height * width <= wanted:
            return _even(problem.batch, max(1, wanted // (height * width))), height, width
        if width <= 2 * wanted:
            # Blocks of whole periods of the phases have equal structures.
            rows = max(1, wanted // width)
            return 1, min(height, _even(height, rows, len(self.rows.footprint.phases))), width
        return 1, 1, _even(width, wanted, len(self.cols.footprint.phases))

    def plan(self) -> Plan:
        problem, tile = self.problem, self.tile
        images, block_rows, block_cols = self._block()
        rows, cols = AxisTable(self.rows, block_rows), AxisTable(self.cols, block_cols)
        image_blocks = -(-problem.batch // images)
        blocks = image_blocks * len(rows.spans) * len(cols.spans)
        panels = self.panels * self.groups
        panel_range = panels if blocks >= _ITEMS else max(1, panels * blocks // _ITEMS)
        panel_ranges = -(-panels // panel_range)
        packs = blocks <= 2
        source_pitch, target_pitch = self._pitches()
        variants = [images] + ([problem.batch % images] if problem.batch % images else [])
        tap_row = self.tap_size if self.fused else self.tap_size * problem.cols.window
        tables = BlockTables(
            rows,
            cols,
            variants,
            tile.height,
            Pitches(None, None, self.channels) if self.staged else source_pitch,
            Pitches(None, None, self.panel) if self.planes else target_pitch,
            (tap_row, 0 if self.fused else self.tap_size),
            self.borders,
        )
        staged_pixels = images * max(
            a.source_count * (b.source_count + self.borders)
            for a in rows.examples
            for b in cols.examples
        )
        staged = staged_pixels * self.channels if self.staged else 0
        panel_at = _line(staged, self.number)
        pixels_at = panel_at + (_line(self.taps * self.tap_size, self.number) if packs else 0)
        block_pixels = images * block_rows * block_cols
        scratch = pixels_at + (block_pixels * self.panel if self.planes else 0)
        pack = PackKernel(
            problem.dtype.short, not self.forward, self.merged == 1 and self.width >= self.panel
        )
        shape = (self.tap_depth, self.width, self.groups, self.merged, self.taps, self.panels, self.panel)  # fmt: skip
        source_plane = self.rows.source * self.cols.source
        if self.fused:
            source_plane = self.rows.source * problem.cols.size
        depth = self.tap_depth * self.merged
        run = -(-depth // -(-depth // RUN) // 4) * 4
        words = (
            *shape,
            *(problem.cols.size if self.fused else self.cols.source,),
            *(source_pitch.image or 0, source_pitch.row or 0, source_pitch.col),
            *(target_pitch.image or 0, target_pitch.row or 0, target_pitch.col),
            *(images, problem.batch, len(rows.spans), len(cols.spans)),
            *(len(rows.examples), len(cols.examples), panel_range, panel_ranges),
            *(self.before, self.borders, self.channels),
            *(self.rows.target * self.cols.target, source_plane),
            *(tables.rows_at, tables.cols_at, tables.structures_at, tables.tiles_at),
            *(run, -(-depth // run)),
            *(panel_at, pixels_at),
        )
        kernel = DirectDenseKernel(
            problem.dtype.short,
            tile.height,
            tile.vectors,
            planes=self.planes,
            staged=self.staged,
            pack=pack if packs else None,
            levels=problem.dtype.itemsize == self.number
            and not problem.dtype.is_integer
            and self.taps * self.tap_depth > SHORT,
            narrow=self.narrow,
            prefetch=False,
        )
        source: Operand = "first" if self.forward else "second"
        filter_: Operand = "second" if self.forward else "first"
        steps = []
        if not packs:
            steps.append(Step(pack, (filter_, "packed"), shape, panels * self.taps, grain=4))
        steps.append(
            Step(
                kernel,
                (source, filter_ if packs else "packed", "result", "table"),
                words,
                blocks * panel_ranges,
                1,
                scratch * self.number,
                tables.data,
            )
        )
        story = (
            ("tile", f"{tile.height} pixels x {self.panel} channels"),
            ("block", f"{images} x {block_rows} x {block_cols} pixels, {blocks} of them"),
            ("panels", f"{panels}, {panel_range} at a time"),
            ("the filter is packed", "by each item" if packs else "beforehand"),
            ("the source is", "copied block by block" if self.staged else "read in place"),
            *([("groups merged", str(self.merged))] if self.merged > 1 else []),
        )
        return Plan(
            problem,
            NAME,
            tuple(steps),
            packed_bytes=0 if packs else self.filter_bytes,
            serial=problem.flops < _SERIAL_FLOPS,
            story=story,
        )

    def _pitches(self) -> tuple[Pitches, Pitches]:
        """Return the strides of the source and of the target as they lie in memory."""
        problem = self.problem
        source_cols = problem.cols.size if self.fused else self.cols.source
        sizes = (
            (self.rows.source, source_cols, self.channels),
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
