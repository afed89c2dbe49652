"""Dense and grouped convolution of NCHW and its input gradient, without a transposition: pixels lie in the lanes.

This module holds the schedule: the tile, the blocks the target is cut into and who computes which channels. The
mechanism is in `kernel`, the geometry in `lattice`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..._compiler.codegen import arithmetic, element
from ..._compiler.targets import Target
from ..._problem.convolution import Kind, Problem
from ..._problem.sums.gather import gather_contract
from ..plan import Operand, Plan, Step
from ..shared.gather import MOST_LISTED, listed_taps
from ..shared.levels import in_blocks
from ..shared.table import Candidate
from ..shared.words import FARTHEST, in_order, narrow
from .lattice import displacements, is_flat, lattices, runs_of_taps, tap_list
from .pack import WORDS as PACK_WORDS
from .pack import PlanesPackKernel
from .tables import NumberLists, products
from .words import WORDS, PlanesKernel
from .work import work

NAME = "dense_planes"

Source = Literal["rows", "places", "tiled"]
"""How vectors run: along staged rows, on from one staged row to the next; or, where each pixel reads just one, through
a copy in the order of the tiles."""

_SERIAL_FLOPS = 1_000_000
"""Below about 10 us of work, waking another thread costs more than it saves."""
_ITEMS = ((100_000_000, 36), (20_000_000, 16), (4_000_000, 8), (0, 1))
"""Items wanted from so many operations on: 36 keep 16 threads busy, also if a few less are made."""
_LEAST_TILES = 2
"""Tiles of a block that is cut for the sake of more items: each block reads the whole filter."""
_LEAST_CHANNELS = 60
"""Channels of an item that shares its block with others, about: each stages it anew."""
_SHARE = 0.4
"""Part of the second cache for the staged source of a block."""
_CHUNK_SHARE = 0.25
"""Part of the second cache for the panels that tiles go through one after the other."""
_MOST_SCRATCH = 2 << 20
"""Bytes of a block, at most: windows with far holes reach far beyond it. Four times the second cache would be slow."""
_MOST_PHASES = 64
"""Phases of the target, at most: each has a list of taps."""
_FEW_CHANNELS = 16
"""Below, the displacement of each product is listed."""
_MOST_PRODUCTS = 4096
"""Products that may be listed: 4 bytes each."""
_WORTH_ASKING = 64
"""Products of a sum from which on lines of the result are asked for ahead."""


def why_not(problem: Problem, target: Target) -> str | None:
    """Return why this algorithm cannot compute the problem, or None if it can."""
    if problem.kind is Kind.FILTER_GRADIENT:
        return "only forward and input gradient"
    if problem.data_format != "NCHW":
        return "only NCHW"
    if problem.depthwise or (problem.groups > 1 and problem.group_in == 1):
        return "only groups of several channels"
    if (taps := listed_taps(problem)) > MOST_LISTED:
        return f"the lists of taps would have {taps} entries"
    if (taps := problem.rows.window * problem.cols.window) > _MOST_PRODUCTS:
        return f"the list of taps would have {taps} entries"
    rows, cols = lattices(problem)
    if (phases := rows.target_phases * cols.target_phases) > _MOST_PHASES:
        return f"the target has {phases} phases"
    if max(*rows.source_phases, *cols.source_phases) > FARTHEST:
        return f"the table holds distances up to {FARTHEST}"
    smallest = PlanesSizes(problem, target, "places").smallest
    if smallest > _MOST_SCRATCH:
        return f"one row of a block would take {smallest} bytes"
    return None


def candidates(problem: Problem, target: Target) -> Sequence[Candidate]:
    """Offer tiles along the rows of the target, and tiles that run on from row to row."""
    serial = problem.flops < _SERIAL_FLOPS
    offered = [PlanesSizes(problem, target, source) for source in _sources(problem, target)]
    return [Candidate(work(NAME, it, serial), it.plan, it.label) for it in offered]


def _sources(problem: Problem, target: Target) -> list[Source]:
    """Return what tiles may read."""
    usual = PlanesSizes(problem, target, "places")
    if not usual.may_be_direct:
        return ["places"]
    if not is_flat(problem):
        return ["rows", "places"]
    return ["tiled"]


def heights(width: int, target: Target) -> tuple[int, int, int, int]:
    """Return channels and number of the usual panels, and of the last ones: the fewest channels computed in vain.

    >>> from convgrad._compiler.targets import find
    >>> heights(32, find("avx2")), heights(64, find("avx2")), heights(3, find("avx2"))
    ((6, 4, 4, 2), (6, 10, 4, 1), (3, 1, 0, 0))
    """
    high, low = (8, 4) if target.vector_registers >= 32 else (6, 4)
    if width <= high:
        return width, 1, 0, 0
    ways = [(-(-max(0, width - low * lows) // high), lows) for lows in range(3)]
    usual, lows = min(ways, key=lambda way: (way[0] * high + way[1] * low, way[1]))
    if usual == 0:
        return low, lows, 0, 0
    return high, usual, low if lows else 0, lows


def tile_vectors(height: int, target: Target) -> int:
    """Return the vectors of a tile: sums, vectors of pixels and a weight fit the registers."""
    if target.vector_registers >= 32:
        return {1: 8, 2: 8, 3: 6, 4: 4, 5: 4}.get(height, 3)
    return {1: 8, 2: 4, 3: 3}.get(height, 2)


class PlanesSizes:
    """The sizes of a problem in tiles, panels and blocks."""

    def __init__(self, problem: Problem, target: Target, source: Source) -> None:
        self.contract = gather_contract(problem)
        self.problem, self.target, self.source = problem, target, source
        self.direct = source != "places"
        self.forward = problem.kind is Kind.FORWARD
        self.number = arithmetic(element(problem.dtype.short)).size
        self.lanes = target.lanes(self.number)
        self.depth, self.width = problem.group_in, problem.group_out
        if not self.forward:
            self.depth, self.width = self.width, self.depth
        self.rows, self.cols = lattices(problem)
        self.taps = problem.rows.window * problem.cols.window
        self.high, self.highs, self.low, self.lows = heights(self.width, target)
        self.vectors = tile_vectors(self.high, target)
        self.panels = self.highs + self.lows
        self.computed = self.high * self.highs + self.low * self.lows
        """Channels of one group, those computed twice included."""
        self.group_size = self.computed * self.taps * self.depth
        self.phases = self.rows.target_phases * self.cols.target_phases
        self.source_phases = len(self.rows.source_phases) * len(self.cols.source_phases)
        self.cell = self.depth * self.source_phases * self.number
        """Bytes staged per place."""
        self.padded = self.rows.padded or self.cols.padded

    @property
    def label(self) -> str:
        return self.source

    @property
    def may_be_direct(self) -> bool:
        return self.phases == 1 and self.cols.places >= self.lanes

    @property
    def smallest(self) -> int:
        """Bytes of the smallest block."""
        cols = min(self.cols.places, self.vectors * self.lanes)
        return self._scratch(1, cols)

    def _staged(self, rows: int, cols: int) -> tuple[int, int, int]:
        """Return rows and columns of a staged phase, and the pitch of staged channels."""
        down, along = rows + self.rows.halo, cols + self.cols.halo
        line = 64 // self.number
        lines = -(-self.source_phases * down * along // line)
        # Channels a multiple of 256 bytes apart fall into few sets of the first cache.
        return down, along, (lines + (lines % 4 == 0)) * line

    def _scratch(self, rows: int, cols: int) -> int:
        """Return the bytes a block takes."""
        _, along, plane = self._staged(rows, cols)
        pixels = 0 if self.direct else self.high * self.phases * (rows * along + self.lanes)
        return ((self.depth + 1) * plane + pixels) * self.number

    def block(self) -> tuple[int, int]:
        """Return rows and columns of a block, in places."""
        budget = min(int(self.target.l2_bytes * _SHARE), _MOST_SCRATCH)
        down, along = self.rows.places, self.cols.places
        line = self.cell * (along + self.cols.halo)
        rows = min(down, budget // line - self.rows.halo)
        tile = self.vectors * self.lanes
        if rows < 1 and line * (1 + self.rows.halo) <= 2 * budget:
            rows = 1
        if rows >= 1:
            cols = along
        else:
            rows, most = 1, budget // (self.cell * (1 + self.rows.halo)) - self.cols.halo
            cols = min(along, max(tile, most // tile * tile))
        wanted = next(items for flops, items in _ITEMS if self.problem.flops >= flops)
        while self._blocks(rows, cols) < wanted:
            half_rows, half_cols = -(-rows // 2), -(-cols // 2 // tile) * tile
            if rows > 1 and half_rows * cols >= _LEAST_TILES * tile:
                rows = half_rows
            elif half_cols < cols and half_cols * rows >= _LEAST_TILES * tile:
                cols = half_cols
            else:
                break
        while self._scratch(rows, cols) > _MOST_SCRATCH and (rows > 1 or cols > tile):
            if rows > 1:
                rows = -(-rows // 2)
            else:
                cols = -(-cols // 2 // tile) * tile
        rows = -(-down // -(-down // rows))
        if cols < along:
            cols = -(-along // -(-along // cols) // tile) * tile
        return rows, cols

    def _blocks(self, rows: int, cols: int) -> int:
        down, along = -(-self.rows.places // rows), -(-self.cols.places // cols)
        return self.problem.batch * self.problem.groups * down * along

    def items(self) -> tuple[int, int, int]:
        """Return blocks, panels of an item and items of a block."""
        blocks = self._blocks(*self.block())
        wanted = next(items for flops, items in _ITEMS if self.problem.flops >= flops)
        least = -(-_LEAST_CHANNELS // self.high)
        ranges = max(1, min(-(-wanted // blocks), self.panels // least))
        size = -(-self.panels // ranges)
        return blocks, size, -(-self.panels // size)

    def block_vectors(self, rows: int, cols: int) -> int:
        """Return the vectors of a block."""
        if self.direct:
            return rows * -(-cols // self.lanes)
        return -(-((rows - 1) * (cols + self.cols.halo) + cols) // self.lanes)

    @property
    def is_listed(self) -> bool:
        return (
            not is_flat(self.problem)
            and self.depth < _FEW_CHANNELS
            and not self.contract.levels
            and self.taps * self.depth <= _MOST_PRODUCTS
        )

    @property
    def is_guarded(self) -> bool:
        """Whether packing leaves flags."""
        return self.padded and not self.problem.dtype.is_integer

    @property
    def chunk(self) -> int:
        """Panels that stay in the second cache."""
        panel_bytes = self.high * self.depth * self.taps * self.number
        return max(1, int(self.target.l2_bytes * _CHUNK_SHARE) // panel_bytes)

    @property
    def segment(self) -> int:
        """The contract's blocks of a segment; all of them if a tile goes through its channels at once."""
        line = 64 // self.number
        lines = -(-self.vectors * self.lanes // line)
        if self.source == "rows":
            lines += 1
            lines *= sum(len(self.rows.taps(phase)) for phase in range(self.rows.target_phases))
            lines *= len(self.cols.source_phases)
        # Channels of which a tile's pixels take half the first cache.
        most, blocks = max(16, self.target.l1_bytes // 2 // (64 * lines)), self.contract.blocks
        if not self.direct or not self.contract.levels or self.depth <= 1.25 * most:
            return blocks
        return -(-blocks // -(-blocks // max(1, most // self.contract.block)))

    def plan(self) -> Plan:
        problem = self.problem
        rows, cols = self.block()
        blocks, panel_range, panel_ranges = self.items()
        taps, firsts = tap_list(self.rows, self.cols, problem.cols.window)
        shape = {
            "depth": self.depth,
            "width": self.width,
            "groups": problem.groups,
            "taps": self.taps,
            "panels": self.panels,
            "high_panels": self.highs,
            "group_size": self.group_size,
            "flags_at": problem.groups * self.group_size,
        }
        pack = PlanesPackKernel(
            problem.dtype.short, self.high, self.low, not self.forward, self.is_guarded
        )
        words, table, scratch = self._words(shape, firsts)
        source: Operand = "first" if self.forward else "second"
        filter_: Operand = "second" if self.forward else "first"
        beside: tuple[Operand, ...] = ("bias",) if problem.adds_bias else ()
        steps = (
            Step(
                pack,
                (filter_, "packed", "table"),
                in_order(PACK_WORDS, **shape),
                problem.groups * self.panels,
                table=narrow(taps),
            ),
            Step(
                self._kernel(firsts),
                (source, "packed", "result", *beside, "table"),
                words,
                blocks * panel_ranges,
                scratch_bytes=scratch * self.number,
                table=table,
            ),
        )
        flags = problem.groups * self.panels if self.is_guarded else 0
        lows = f" and {self.lows} of {self.low}" if self.lows else ""
        story = (
            ("tile", f"{self.high} channels x {self.vectors * self.lanes} pixels"),
            ("block", f"{rows} x {cols} pixels, {blocks} of them"),
            ("panels", f"{self.highs} of {self.high}{lows}, {panel_range} at a time"),
            ("vectors run", "along rows" if self.direct else "on from row to row"),
        )
        return Plan(
            problem,
            NAME,
            steps,
            packed_bytes=(problem.groups * self.group_size + flags) * self.number,
            serial=problem.flops < _SERIAL_FLOPS,
            story=story,
        )

    def _kernel(self, firsts: Sequence[int]) -> PlanesKernel:
        dtype = self.problem.dtype
        step, phases = self.cols.step, self.cols.target_phases
        return PlanesKernel(
            dtype.short,
            self.high,
            self.low,
            self.vectors,
            tiled=self.source == "tiled",
            direct=self.direct,
            padded=self.padded,
            listed=self.is_listed,
            segmented=self.segment < self.contract.blocks,
            levels=self.contract.levels,
            blocked=in_blocks(self.contract, self.taps),
            step=step if step in (1, 2, 4) and step <= self.lanes else 0,
            woven=phases if phases in (1, 2) else 0,
            prefetch=self.direct and self.taps * self.depth >= _WORTH_ASKING,
            bias=self.problem.adds_bias,
        )

    def _words(
        self, shape: dict[str, int], firsts: Sequence[int]
    ) -> tuple[tuple[int, ...], bytes, int]:
        """Return the words of the kernel, its table, and the numbers of its workspace."""
        rows, cols = self.block()
        _, panel_range, panel_ranges = self.items()
        down, along, plane = self._staged(rows, cols)
        row_blocks, col_blocks = -(-self.rows.places // rows), -(-self.cols.places // cols)
        lists = NumberLists()
        if self.source == "tiled":
            plane = self.vectors * self.lanes
        moves = displacements(self.rows, self.cols, down, along)
        line = 64 // self.number
        valid_at = self.depth * plane + line
        if self.source == "tiled":
            tiles = -(-self.block_vectors(rows, cols) // self.vectors)
            valid_at = tiles * (self.depth + 1) * plane
        pixels_at = valid_at + (plane + line if self.is_guarded else 0)
        pixels = 0 if self.direct else -(-rows * along // self.lanes) * self.lanes
        contract = self.contract
        tap_runs = runs_of_taps(self.rows, self.cols, contract.row_runs, contract.taps)
        words = in_order(
            WORDS,
            **shape,
            source_plane=self.rows.gather.source * self.cols.gather.source,
            source_rows=self.rows.gather.source,
            source_cols=self.cols.gather.source,
            target_plane=self.rows.gather.target * self.cols.gather.target,
            target_rows=self.rows.gather.target,
            target_cols=self.cols.gather.target,
            rows_step=self.rows.step,
            cols_step=self.cols.step,
            rows_lowest=self.rows.lowest,
            cols_lowest=self.cols.lowest,
            rows_phases=len(self.rows.source_phases),
            cols_phases=len(self.cols.source_phases),
            places_down=self.rows.places,
            places_along=self.cols.places,
            block_rows=rows,
            block_cols=cols,
            row_blocks=row_blocks,
            col_blocks=col_blocks,
            panel_range=panel_range,
            panel_ranges=panel_ranges,
            segment=self.segment,
            segments=-(-contract.blocks // self.segment),
            chunk=self.chunk,
            staged_rows=down,
            staged_cols=along,
            staged_plane=plane,
            valid_at=valid_at,
            pixels_at=pixels_at,
            rows_at=lists.add(self.rows.source_phases),
            cols_at=lists.add(self.cols.source_phases),
            taps_at=lists.add(moves),
            products_at=lists.add(products(moves, self.depth, plane)) if self.is_listed else 0,
            phases_at=lists.add(firsts),
            contract_block=contract.block,
            contract_blocks=contract.blocks,
            block_runs=contract.block_runs,
            runs_at=lists.add(tap_runs),
            phases_down=self.rows.target_phases,
            phases_along=self.cols.target_phases,
        )
        numbers = self.high * self.phases * pixels
        if self.segment < contract.blocks:
            # Totals of a chunk, and grand ones: its panels have `high` channels at most.
            numbers = 2 * self.chunk * self.high * self.vectors * self.lanes
            numbers += line
        return words, lists.data, pixels_at + numbers
