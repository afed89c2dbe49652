"""Depthwise convolution and its gradients of any geometry, on rows copied into a small zero-padded ring.

This module holds the schedule: the tile, the chunk of channels, the blocks of columns and the split of the work. The
mechanism is in `kernel`. The copy costs what large windows and aliasing pitches repay: in the ring,
neighbouring columns of a chunk lie side by side whatever the image looks like. The rule was fitted on Zen 3 (2 cores,
AVX2, 32 KB of L1), in bytes and registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..._compiler.codegen import arithmetic, element
from ..._compiler.targets import Target
from ..._problem.convolution import Kind, Problem
from ..._problem.geometry import Axis
from ..._problem.sums.gather import gather_contract
from ..._problem.sums.pixels import PixelContract, along_rows, is_flat, one_row, pixel_contract
from ..plan import Operand, Plan, Step
from ..shared import reduce, units
from ..shared.gather import MOST_LISTED, listed_taps
from ..shared.register_levels import levels_of
from ..shared.table import Candidate
from ..shared.words import in_order
from .columns import Columns, columns
from .rows import overrun
from .words import RING_WORDS, WORDS, PackedKernel, entry_words
from .work import work

NAME = "depthwise_packed"

_LINE = 64
_LARGEST_SCRATCH = 8 << 20
"""Bytes per thread above which the copy is absurd: windows that span millions of columns."""
_WANTED_SCRATCH = 1 << 20
_SERIAL_FLOPS = 400_000
"""Below about 10 us of work, waking another thread costs more than it saves."""
_SHARES = 16
"""Shares of the work, chunks of channels included: enough for 8 threads to finish together."""
_LARGE_IMAGE = 1 << 20
"""Bytes of one image and its result above which prefetch gains (56x96 7x7 12%); at 7x1024 it costs 20%."""
_SMALL_PLANE = 512
"""Pixels up to which a NCHW plane of 32 channels stays near while it is transposed."""
_BLOCK_ROWS = 256
"""Rows of a block, at most: more would only need more scratch."""
_MOST_UNROLLED = 10
"""Outputs of a channel that an input gradient unrolls: the text grows with them, and compiling takes 0.2 s for 32."""


def why_not(problem: Problem, target: Target) -> str | None:
    """Return why this algorithm cannot compute the problem, or None if it can."""
    if problem.group_in != 1:
        return "only depthwise problems"
    if problem.dtype.is_integer:
        return "no integers"
    if problem.kind is Kind.INPUT_GRADIENT and problem.groups == 1 and problem.group_out > 1:
        return "the contract adds the outputs of one group as a dense problem does"
    if problem.kind is Kind.FILTER_GRADIENT and along_rows(problem):
        return "the contract adds its pixels along rows"
    # Where `dense_direct` refuses it too, slow compiling is better than the reference.
    unrolled = problem.group_out if problem.kind is Kind.INPUT_GRADIENT else 0
    if unrolled > _MOST_UNROLLED and listed_taps(problem) <= MOST_LISTED:
        return f"{unrolled} outputs of a channel are not unrolled"
    if (least := _least_bank(problem, target)) > _LARGEST_SCRATCH:  # before its taps are looked at
        return f"the taps of a window need {least >> 20} MB of scratch per thread"
    scratch = _schedule(problem, target).scratch_bytes
    if scratch > _LARGEST_SCRATCH:
        return f"the rows of a window need {scratch >> 20} MB of scratch per thread"
    return None


def _least_bank(problem: Problem, target: Target) -> int:
    """Return the bytes of a filter for one vector of channels, which no schedule can do without."""
    number = arithmetic(element(problem.dtype.short)).size
    planes = problem.group_out if problem.kind is Kind.INPUT_GRADIENT else 1
    return target.lanes(number) * number * problem.rows.window * problem.cols.window * planes


def candidates(problem: Problem, target: Target) -> Sequence[Candidate]:
    """Offer the tile, the chunk of channels and the split of the work that a rule chooses."""
    it = _schedule(problem, target)
    to_filter = problem.kind is Kind.FILTER_GRADIENT
    items = (it.slices(problem) if to_filter else it.units(problem.batch)) * it.chunks
    done = work(NAME, problem, target, it, items, problem.flops < _SERIAL_FLOPS)
    return (Candidate(done, lambda: _plan(problem, it)),)


def _plan(problem: Problem, it: PackedSizes) -> Plan:
    to_filter = problem.kind is Kind.FILTER_GRADIENT
    rows, cols = _axes(problem)
    tiles = it.fixed_tiles(to_filter)
    kernel = PackedKernel(
        kind=problem.kind,
        dtype=problem.dtype.short,
        data_format=problem.data_format,
        columns=it.columns,
        multiplier=problem.group_out,
        tile=it.tile,
        vectors=it.vectors,
        small=it.channels < it.lanes,
        strided=problem.kind is Kind.INPUT_GRADIENT and rows.stride > 1,
        prefetch=it.streams(problem.dtype.itemsize),
        tiles=tiles,
        image=it.source_cols if tiles else 0,
        bias=problem.adds_bias or it.sums_pixels,
        levels=it.levels,
    )
    count = it.units(problem.batch)
    to_input = problem.kind is Kind.INPUT_GRADIENT
    slots_at, bank_at, sums_at, ring_at, plane_at = it.places
    words = in_order(
        WORDS,
        source_rows=it.source_rows,
        source_cols=it.source_cols,
        target_rows=it.target_rows,
        target_cols=it.target_cols,
        channels=it.channels,
        chunks=it.chunks,
        row_block=it.row_block,
        row_blocks=it.row_blocks,
        units=count,
        col_block=it.col_block,
        col_blocks=it.col_blocks,
        col_parts=it.col_parts,
        window_rows=rows.window,
        row_scale=1 if to_input else rows.stride,
        row_step=-rows.dilation if to_input else rows.dilation,
        row_start=rows.before if to_input else -rows.before,
        row_stride=rows.stride if to_input else 1,
        row_spacing=gather_contract(problem).row_spacing,
        ring_rows=it.ring_rows,
        ring_pitch=it.ring_pitch,
        plane_pitch=it.plane_pitch,
        slots_at=slots_at,
        bank_at=bank_at,
        sums_at=sums_at,
        ring_at=ring_at,
        plane_at=plane_at,
    )
    story = (
        ("tile", f"{it.tile} columns x {it.lanes} channels"),
        ("tiles per row", "fixed" if tiles else "looped"),
        ("channels per chunk", str(it.chunk)),
        ("columns per block", str(min(it.col_block * it.columns.spread, it.target_cols))),
        ("rows per block", str(it.row_block)),
        ("ring", f"{it.ring_rows} rows, {it.ring_rows * it.ring_pitch * it.number} bytes"),
    )
    serial = problem.flops < _SERIAL_FLOPS
    if not to_filter:
        operands: tuple[Operand, ...] = ("first", "second", "result")
        if to_input:
            operands = ("second", "first", "result")
        if problem.bias:
            operands = (*operands, "bias")
        step = Step(kernel, operands, words, count * it.chunks, 1, it.scratch_bytes)
        return Plan(problem, NAME, (step,), serial=serial, story=story)
    assert it.contract is not None
    words += in_order(
        (*RING_WORDS, *units.WORDS),
        slot_mask=it.slots - 1,
        **units.words(it.contract, it.slice_units(problem)),
    )
    operands = ("first", "second", "partial")
    slices, dtype = it.slices(problem), problem.dtype.short
    step = Step(kernel, operands, words, slices * it.chunks, 1, it.scratch_bytes)
    elements = rows.window * cols.window * it.channels
    pitch = elements + (it.channels if it.sums_pixels else 0)
    ends = [reduce.tree_step(dtype, elements, slices, pitch=pitch)]
    if it.sums_pixels:
        ends.append(
            reduce.tree_step(dtype, it.channels, slices, pitch=pitch, start=elements, to="bias")
        )
    return Plan(
        problem,
        NAME,
        (step, *ends),
        partial_bytes=slices * pitch * it.number,
        serial=serial,
        story=(*story, ("slices", str(slices))),
    )


def _axes(problem: Problem) -> tuple[Axis, Axis]:
    """Return rows and columns; a filter gradient sees an image whose pixels have a window each as one row."""
    if problem.kind is Kind.FILTER_GRADIENT and is_flat(problem):
        return one_row(problem)
    return problem.rows, problem.cols


@dataclass(frozen=True)
class PackedSizes:
    """All sizes of one plan."""

    columns: Columns
    source_rows: int
    source_cols: int
    target_rows: int
    target_cols: int
    channels: int
    taps: int
    window_rows: int
    row_scale: int
    """Source rows from one target row to the next, at most."""
    ring_rows: int
    planes: int
    repeat: int
    by_channel: bool
    to_filter: bool
    lanes: int
    number: int
    """Bytes of the compute type."""
    tile: int
    vectors: int
    col_block: int
    """In q, as `groups`."""
    row_block: int
    sums_pixels: bool = False
    """Whether out_backprop is added up besides: the gradient of a bias."""
    levels: int = 0
    """Levels above the chains of a sum."""
    col_parts: int = 1
    """Parts of the blocks of columns that are units of their own."""
    contract: PixelContract | None = None
    """Of a filter gradient."""
    tree_levels: int = 0
    """Of the tree of units, in a slice."""

    @property
    def groups(self) -> int:
        return -(-self.target_cols // self.columns.spread)

    @property
    def chunk(self) -> int:
        return self.vectors * self.lanes

    @property
    def chunks(self) -> int:
        return -(-self.channels // self.chunk)

    @property
    def col_blocks(self) -> int:
        return -(-self.groups // self.col_block)

    @property
    def row_blocks(self) -> int:
        return -(-self.target_rows // self.row_block)

    def units(self, batch: int) -> int:
        """Return into how many pieces the pixels of a chunk of channels are cut."""
        if self.contract is not None:
            return self.contract.units
        return batch * self.row_blocks * self.col_parts

    def slice_units(self, problem: Problem) -> int:
        """Return how many units of a filter gradient an item adds up."""
        return units.slice_size(problem, self.units(problem.batch), self.chunks, self.number)

    def slices(self, problem: Problem) -> int:
        """Return how many items of a filter gradient share the units of a chunk."""
        return -(-self.units(problem.batch) // self.slice_units(problem))

    @property
    def slots(self) -> int:
        """Source rows of which it is written where in the ring they lie."""
        if self.to_filter:
            return 1 << (self.ring_rows - 1).bit_length()
        return min(self.source_rows, self.row_block * self.row_scale + self.ring_rows)

    @property
    def ring_cols(self) -> int:
        """Columns of a packed row: those of a block's windows."""
        groups = self.groups
        if self.col_blocks > 1:
            # The last block's tile is moved left, to where its phases end together.
            groups = min(groups, max(self.col_block, self.tile + 1))
        span = self.columns.highest - self.columns.lowest
        return (groups - 1) * self.columns.step + span + 1

    @property
    def plane_pitch(self) -> int:
        size = self.ring_cols * self.chunk
        size += overrun(self.lanes, self.chunk, self.repeat, self.by_channel)
        line = _LINE // self.number
        return -(-size // line) * line

    @property
    def ring_pitch(self) -> int:
        return self.plane_pitch * self.planes

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of the list, the slots, the bank, the filter gradient's sums, the ring and the plane."""
        bank = self.chunk * (self.taps + self.sums_pixels) * self.planes * self.number
        plane = 0
        if self.by_channel:
            pixels = self.row_block * self.target_cols
            if self.contract is not None:
                pixels = self.contract.run.cols
            plane = (pixels + self.lanes) * self.chunk * self.number
        ring = self.ring_rows * self.ring_pitch * self.number
        entries = 8 * entry_words(self.levels) * self.window_rows * self.planes
        sums = bank * (1 + self.tree_levels) if self.to_filter else 0
        sizes = (entries, 8 * self.slots, bank, sums, ring, plane)
        return tuple(-(-size // _LINE) * _LINE for size in sizes)

    @property
    def places(self) -> tuple[int, ...]:
        """Where all but the first of them start."""
        return tuple(sum(self.sizes[:i]) for i in range(1, 6))

    @property
    def scratch_bytes(self) -> int:
        return sum(self.sizes)

    def streams(self, itemsize: int) -> bool:
        """Tell whether rows come from far away, a whole vector of channels at a time."""
        pixels = self.source_rows * self.source_cols + self.target_rows * self.target_cols
        whole = self.planes == self.repeat == 1 and not self.by_channel
        return whole and pixels * self.channels * itemsize > _LARGE_IMAGE

    def fixed_tiles(self, exact: bool) -> tuple[tuple[int, int], ...]:
        """Return all tiles of a row if there are at most two, so that columns outside the image cost nothing."""
        tile, groups = self.tile, self.groups
        shape = self.columns
        if groups > 2 * tile or self.col_blocks > 1 or shape.spread > 1 or not shape.phases:
            return ()
        if shape.phases[0].count > 8:
            return ()
        if groups <= tile:
            return ((0, groups),)
        return ((0, tile), (tile, groups - tile) if exact else (groups - tile, tile))


def _schedule(problem: Problem, target: Target) -> PackedSizes:
    number = arithmetic(element(problem.dtype.short)).size
    lanes = target.lanes(number)
    rows, cols = _axes(problem)
    shape = columns(cols, problem.kind)
    to_input = problem.kind is Kind.INPUT_GRADIENT
    to_filter = problem.kind is Kind.FILTER_GRADIENT
    span = (rows.window - 1) * rows.dilation
    if to_input:
        source, over, channels = (rows.out, cols.out), (rows.size, cols.size), problem.in_c
        span //= rows.stride
    else:
        source, over, channels = (rows.size, cols.size), (rows.out, cols.out), problem.out_c
    by_channel = problem.data_format == "NCHW"
    groups = -(-over[1] // shape.spread)
    contract = pixel_contract(problem) if to_filter else None
    # A row is gone through run by run.
    tile = _tile(max(1, (contract.run.cols if contract else over[1]) // shape.spread))
    repeat = 1 if to_input else problem.group_out
    vectors = 8 if max(rows.window, cols.window) < 7 else 4
    if shape.step > 2:
        vectors = (
            16  # few windows meet in a column, so that long runs of channels matter more than L1
        )
    if by_channel:
        vectors = 4 if over[0] * over[1] <= _SMALL_PLANE else 2
    vectors = max(1, min(vectors * target.lanes(4) // lanes, -(-channels // lanes)))
    if 1 < repeat <= vectors:
        vectors -= vectors % repeat  # so that a load of the input feeds whole vectors
    schedule = PackedSizes(
        columns=shape,
        source_rows=source[0],
        source_cols=source[1],
        target_rows=over[0],
        target_cols=over[1],
        channels=channels,
        taps=rows.window * cols.window,
        window_rows=rows.window,
        row_scale=1 if to_input else rows.stride,
        ring_rows=min(span + 1, source[0]),
        planes=problem.group_out if to_input else 1,
        repeat=repeat,
        by_channel=by_channel,
        to_filter=to_filter,
        lanes=lanes,
        number=number,
        tile=tile,
        vectors=vectors,
        col_block=groups,
        row_block=contract.unit.rows if contract else over[0],
        contract=contract,
        sums_pixels=to_filter and problem.bias == "output" and problem.data_format == "NHWC",
        levels=0 if to_filter else levels_of(gather_contract(problem)),
    )
    if contract:
        return _for_filter(schedule, contract, problem, target)
    return _within(_near(schedule, target), problem.batch)


def _for_filter(
    schedule: PackedSizes, contract: PixelContract, problem: Problem, target: Target
) -> PackedSizes:
    """Shrink a filter gradient's chunk until its ring stays in L2 and scratch is small.

    The ring holds whole rows, so that units below each other need few new rows, or those under a run if rows are too
    long: a row of outputs packs all rows of its window then.
    """
    while True:
        schedule = replace(schedule, tree_levels=units.levels(schedule.slice_units(problem)))
        ring = schedule.ring_rows * schedule.ring_pitch * schedule.number
        if ring <= target.l2_bytes // 2 and schedule.scratch_bytes <= _WANTED_SCRATCH:
            return schedule
        if schedule.vectors > 1:
            schedule = replace(schedule, vectors=schedule.vectors // 2)
        elif schedule.col_block > contract.run.cols:
            schedule = replace(schedule, col_block=contract.run.cols)
        else:
            return schedule


def _near(schedule: PackedSizes, target: Target) -> PackedSizes:
    """Shrink the block of columns until the rows one target row needs stay in L1 beside what else passes through.

    The chunk is left alone unless they would not even stay in L2: short runs of channels cost more than they save
    (28x256 dilated by 2, 4 vectors instead of 8: 1.6 instead of 1.0 ms forward, one thread).
    """

    def live(schedule: PackedSizes) -> int:
        rows = min(schedule.window_rows, schedule.ring_rows)
        return rows * schedule.ring_pitch * schedule.number

    while live(schedule) > target.l1_bytes * 3 // 4:
        tiles = -(-schedule.col_block // schedule.tile)
        if tiles <= (2 if schedule.columns.step == 1 else 1):
            break
        schedule = replace(schedule, col_block=-(-tiles // 2) * schedule.tile)
    while live(schedule) > target.l2_bytes // 4 and schedule.vectors > 2:
        schedule = replace(schedule, vectors=schedule.vectors // 2)
    return schedule


def _within(schedule: PackedSizes, batch: int) -> PackedSizes:
    """Shrink blocks until threads have enough to share and scratch is small."""
    images = batch * schedule.chunks
    wanted = -(-_SHARES // images)
    wanted = max(range(wanted, 2 * wanted), key=lambda parts: reduce.balance(parts * images))
    # Rows that blocks share are copied twice, which large windows do not notice.
    shared = min(2 * schedule.ring_rows, 128 * schedule.ring_rows // schedule.taps)
    rows = max(8, shared, -(-schedule.target_rows // wanted))
    rows = min(rows, max(_BLOCK_ROWS, 8 * schedule.ring_rows), schedule.target_rows)
    schedule = replace(schedule, row_block=rows)
    while schedule.scratch_bytes > _WANTED_SCRATCH:
        sizes = schedule.sizes
        if sizes[5] > _WANTED_SCRATCH // 4 and schedule.row_block > 1:
            schedule = replace(schedule, row_block=schedule.row_block // 2)
        elif schedule.vectors > 1:
            schedule = replace(schedule, vectors=schedule.vectors // 2)
        elif schedule.col_block > 2 * schedule.tile:
            schedule = replace(schedule, col_block=2 * schedule.tile)
        elif schedule.row_block > 1 and schedule.by_channel:
            schedule = replace(schedule, row_block=schedule.row_block // 2)
        else:
            break
    if not schedule.by_channel:
        # Images of few rows are shared by columns; a NCHW result is transposed in whole rows.
        units = batch * -(-schedule.target_rows // schedule.row_block)
        wanted = -(-_SHARES // (units * schedule.chunks))
        schedule = replace(schedule, col_parts=min(wanted, schedule.col_blocks))
    return schedule


def _tile(groups: int) -> int:
    """Return the columns of a tile: little waste at the end of a row, and enough sums to hide the latency of fma."""
    if groups <= 8:
        return groups
    return min(range(4, 9), key=lambda width: (_waste(groups, width), -width))


def _waste(groups: int, width: int) -> float:
    """Rate a width: columns computed over columns wanted, with a small toll on narrow tiles."""
    return -(-groups // width) * width / groups + (0.06 if width < 7 else 0.0)
