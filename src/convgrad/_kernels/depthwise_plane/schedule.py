"""Depthwise convolution and its gradients on channels-first images: vectors along the width, one plane at a time.

This module holds the schedule: which problems the kernel takes, its tile, and how large the blocks of rows are that
stand padded in the first cache. The mechanism is in `kernel`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._compiler.codegen import arithmetic, element
from ..._compiler.targets import Target
from ..._problem.convolution import Kind, Problem
from ..._problem.sums.gather import gather_contract
from ..._problem.sums.pixels import PixelBox, along_rows, band_along_rows, pixel_contract
from ..plan import Operand, Plan, Step
from ..shared import reduce
from ..shared.gather import Gather, Tap, gather
from ..shared.register_levels import levels_of
from ..shared.table import Candidate
from ..shared.words import in_order
from .filter_gradient import MEND_LEVELS
from .words import FEW_TAPS, WORDS, PlaneKernel, Windows
from .work import work

NAME = "depthwise_plane"

_LARGEST_TAPS = 1 << 14
"""Taps of a window: they are listed to plan it, and their weights stand in the workspace."""
_LARGEST_STRIDE = 4
"""Columns that a window moves by: as many sub-rows or phases are written out."""
_UNROLLED = 128
"""Taps of a filter gradient whose rows are added up together."""
_WEIGHTS = 32 << 10
"""Bytes of weights that an item brings together, if that leaves a channel."""
_SUMS = 10
"""Sums of a filter gradient in registers."""
_ITEMS = 32
"""Items wanted: chunks of channels shrink until there are as many."""
_CHUNK = 8
"""Channels of an item: they share the lines of the filter, and clearing the workspace."""
_SHARES = 16
"""Chunks of channels of a filter gradient, if there are as many channels."""
_SERIAL_FLOPS = 400_000
"""Below about 10 us of work, waking another thread costs more than it saves."""


def why_not(problem: Problem, target: Target) -> str | None:
    """Return why this algorithm cannot compute the problem, or None if it can."""
    if problem.data_format != "NCHW" and (problem.in_c, problem.out_c) != (1, 1):
        return "only NCHW, or one channel"  # of which both layouts are the same
    if problem.kind is Kind.FILTER_GRADIENT and not along_rows(problem):
        return "the contract adds its pixels in one chain, not along rows"
    return refusal(problem, target)


def candidates(problem: Problem, target: Target) -> Sequence[Candidate]:
    """Offer the tile, the blocks of rows and the split of the work that a rule chooses."""
    return offered(problem, target, NAME)


def refusal(problem: Problem, target: Target, period: int = 0) -> str | None:
    """Return what stands against planes of this problem, whatever their layout."""
    if problem.group_in != 1:
        return "only depthwise problems"
    if problem.dtype.is_integer:
        return "no integers"
    if problem.kind is Kind.INPUT_GRADIENT and problem.groups == 1 and problem.group_out > 1:
        return "the outputs of one channel are added as those of a dense problem"
    if problem.rows.window * problem.cols.window > _LARGEST_TAPS:
        return f"windows of more than {_LARGEST_TAPS} taps"
    if problem.cols.stride > _LARGEST_STRIDE:
        return f"column strides above {_LARGEST_STRIDE}"
    if problem.kind is Kind.INPUT_GRADIENT and problem.rows.stride > 4:
        return "input gradients of row strides above 4 have too many phases for one tile"
    shape = PlaneShape(problem, target, period)
    alone = problem.kind is Kind.FILTER_GRADIENT  # nobody else adds along rows
    if not alone and shape.block_bytes(shape.height) > target.l2_bytes // 2:
        return "the rows under one tile do not fit the second cache"
    return None


def offered(problem: Problem, target: Target, name: str, period: int = 0) -> Sequence[Candidate]:
    """Offer planes of NCHW, or of flat rows in which `period` channels alternate."""
    shape = PlaneShape(problem, target, period)
    split = PlaneSplit(shape)
    done = work(name, shape, split, problem.flops < _SERIAL_FLOPS)
    return (Candidate(done, lambda: _plan(shape, split, name)),)


class PlaneSplit:
    """How the work is cut: blocks of rows, chunks of channels, and the shares of a filter gradient."""

    def __init__(self, shape: PlaneShape) -> None:
        problem, rows = shape.problem, shape.rows
        to_filter = problem.kind is Kind.FILTER_GRADIENT
        self.planes = planes = 1 if shape.period else problem.in_c
        row_blocks = shape.row_blocks()
        weights = shape.taps * shape.multiplier * shape.number
        chunk, shares = max(1, min(_CHUNK, planes, _WEIGHTS // weights)), 1
        if to_filter:
            sizes = range(max(1, min(_CHUNK, planes // _SHARES)), 0, -1)
            chunk = max(sizes, key=lambda size: reduce.balance(-(-planes // size)))
        else:
            while chunk > 1 and problem.batch * row_blocks * -(-planes // chunk) < _ITEMS:
                chunk //= 2
            while problem.batch * row_blocks * -(-planes // chunk) < _ITEMS and rows.groups // (
                row_blocks + 1
            ) >= max(8, shape.height):
                row_blocks += 1
        self.row_blocks, self.chunk, self.shares, self.slice_units = row_blocks, chunk, shares, 0
        self.chunks = -(-planes // chunk)
        self.units = problem.batch * row_blocks
        self.images = min(problem.batch, max(1, self.units * self.chunks // (2 * _ITEMS)))
        unit = shape.unit
        if unit:
            self.units = pixel_contract(problem).units
            self.slice_units = _slice_units(problem, self.units, self.chunks, shape.number)
            self.shares = shares = -(-self.units // self.slice_units)
            self.images = unit.images
        self.image_parts = -(-problem.batch // self.images)
        self.items = (shares if to_filter else self.image_parts * row_blocks) * self.chunks
        count = unit.rows if unit else -(-rows.groups // row_blocks)
        self.grad_rows = -(-count // shape.height) * shape.height if to_filter else 0
        self.block_rows = shape.block_rows(max(count, self.grad_rows))


def _plan(shape: PlaneShape, split: PlaneSplit, name: str) -> Plan:
    problem, period = shape.problem, shape.period
    rows, cols = shape.rows, shape.cols
    to_filter = problem.kind is Kind.FILTER_GRADIENT
    row_blocks, chunk, shares = split.row_blocks, split.chunk, split.shares
    direct = shape.direct
    # What only one way to read rows looks at is left out of the other's identity.
    short_source = shape.source_cols // cols.footprint.step < shape.lanes
    if direct:
        short_source = shape.short_target
    kernel = PlaneKernel(
        problem.kind,
        problem.dtype.short,
        shape.row_windows,
        shape.col_windows,
        (problem.rows.window, problem.cols.window),
        height=shape.height,
        vectors=1 if direct else shape.vectors,
        tap_cols=1 if direct else shape.tap_cols,
        pitch=0 if direct else shape.pitch,
        grad_pitch=shape.grad_pitch if to_filter and not direct else 0,
        source_width=shape.source_cols if short_source else 0,
        target_width=shape.target_cols if shape.short_target else 0,
        direct=direct,
        single=rows.source if row_blocks == 1 and rows.groups == shape.height else 0,
        slack=shape.slack if direct else (0, 0),
        reserve=shape.reserve if direct and not to_filter else 0,
        tail=(shape.groups_w - 1) % shape.wide + 1
        if direct and to_filter and not shape.short_target
        else 0,
        ahead=direct and to_filter and shape.groups_w > shape.wide,
        turns=shape.turns,
        cycle=shape.turns * shape.lanes if shape.unit and not period else shape.cycle,
        ragged=(rows.footprint.ragged != 0, cols.footprint.ragged != 0),
        several=shape.multiplier != 1,
        period=period,
        repeat=shape.repeat,
        spread=shape.spread,
        whole=shares == 1,
        alternate=direct and shape.alternate,
        bias=problem.adds_bias,
        levels=0 if to_filter else levels_of(gather_contract(problem)),
    )
    count = shape.unit.rows if shape.unit else -(-rows.groups // row_blocks)
    grad_rows, block_rows = split.grad_rows, split.block_rows
    bank = shape.bank(kernel, chunk, split.slice_units)
    words = in_order(
        WORDS,
        source_rows=rows.source,
        source_cols=shape.source_cols,
        target_rows=rows.target,
        target_cols=shape.target_cols,
        groups_h=rows.groups,
        groups_w=shape.groups_w,
        channels=split.planes,
        multiplier=shape.multiplier,
        chunk=chunk,
        chunks=split.chunks,
        row_blocks=row_blocks,
        units=split.units,
        shares=shares,
        batch=problem.batch,
        images=split.images,
        image_parts=split.image_parts,
        bank=bank,
        block_rows=block_rows,
        grad_rows=grad_rows,
        unit_rows=shape.unit.rows if shape.unit else 0,
        slice_units=split.slice_units,
    )
    copies = shape.multiplier if problem.kind is Kind.INPUT_GRADIENT else 1
    pitch = shape.pitch * cols.footprint.step
    beside = grad_rows * shape.grad_pitch
    if kernel.weaves:
        phases = len(kernel.rows.phases) * len(kernel.cols.phases)
        beside = kernel.height * phases * shape.pitch
    scratch = (bank + copies * block_rows * pitch + beside) * shape.number
    if direct:
        longest = max(shape.source_cols, shape.target_cols)
        scratch = (bank + longest + 4 * shape.lanes) * shape.number
    story: tuple[tuple[str, str], ...] = (
        ("rows are read", "in place" if direct else f"from copies {shape.pitch} apart"),
        ("tile", f"{shape.height} x {kernel.vectors * shape.lanes} groups"),
        ("rows per block", str(count)),
        ("channels per chunk", str(chunk)),
    )
    serial = problem.flops < _SERIAL_FLOPS
    if not to_filter:
        operands: tuple[Operand, ...] = ("first", "second", "result")
        if problem.kind is Kind.INPUT_GRADIENT:
            operands = ("second", "first", "result")
        if problem.bias:
            operands = (*operands, "bias")
        step = Step(kernel, operands, words, split.items, 1, scratch)
        return Plan(problem, name, (step,), serial=serial, story=story)
    operands = ("first", "second", "result" if shares == 1 else "partial")
    step = Step(kernel, operands, words, split.items, 1, scratch)
    story = (*story, ("shares", str(shares)))
    if shares == 1:
        return Plan(problem, name, (step,), serial=serial, story=story)
    elements = problem.rows.window * problem.cols.window * problem.out_c
    last = reduce.tree_step(problem.dtype.short, elements, shares, pitch=elements)
    return Plan(
        problem,
        name,
        (step, last),
        partial_bytes=shares * elements * shape.number,
        serial=serial,
        story=story,
    )


class PlaneShape:
    """The sizes of a problem in groups, vectors and padded rows."""

    def __init__(self, problem: Problem, target: Target, period: int) -> None:
        self.problem = problem
        self.target = target
        self.period = period
        self.number = arithmetic(element(problem.dtype.short)).size
        self.lanes = target.lanes(self.number)
        self.rows: Gather = gather(problem.rows, problem.kind)
        self.cols: Gather = gather(problem.cols, problem.kind)
        across = period or 1
        self.repeat = problem.group_out if period else 1
        """How often a channel stands in a flat row."""
        self.spread = self.repeat % self.lanes == 0
        copied = across // self.repeat if self.spread else across
        self.multiplier = 1 if period else problem.group_out
        """Planes of outputs to one of inputs."""
        self.source_cols = self.cols.source * (across // self.repeat)
        self.target_cols = self.cols.target * across
        self.groups_w = self.cols.groups * across
        self.row_windows = Windows(self.rows.footprint.phases, self.rows.footprint.step)
        self.col_windows = Windows(
            tuple(
                tuple(Tap(tap.number, tap.offset * copied) for tap in taps)
                for taps in self.cols.footprint.phases
            ),
            self.cols.footprint.step,
            copied,
        )
        self.slack = (
            min(
                self.rows.source - 1 - (self.rows.groups - 1) * self.row_windows.step,
                self.row_windows.highest,
            ),
            min(
                self.source_cols - 1 - (self.groups_w - 1) * self.col_windows.step,
                self.col_windows.highest + self.col_windows.step - 1,
            ),
        )
        reach = self.col_windows.highest + self.col_windows.step - 1
        self.reserve = max(0, -(-(reach - self.slack[1]) // self.col_windows.step))
        self.wide = 64 // self.number
        """Chains of a filter gradient along a row."""
        self.unit: PixelBox | None = None
        if problem.kind is Kind.FILTER_GRADIENT:
            self.unit = pixel_contract(problem).unit
        self.taps = problem.rows.window * problem.cols.window
        self.few_taps = self.taps <= FEW_TAPS
        """Whether all weights, or all sums, are in registers."""
        self.grad_pitch = self._few_lengths(-(-self.groups_w // self.lanes))
        self.pitch = self._pitch()
        self.alternate = (
            problem.dtype.short == "bf16"
            and self.few_taps
            and self.col_windows.step == 1
            and len(self.col_windows.phases) == 1
            and not period
            and self.groups_w > 2 * self.lanes
            and (problem.kind is not Kind.FILTER_GRADIENT or 2 * self.lanes <= self.wide)
        )
        """Whether bfloat16 read in place are taken in turn by two vectors."""
        self.reach = self.lanes * (2 if self.alternate else 1)
        self.cycle = pixel_contract(problem).chains * (period or 1) if self.unit else 0
        """Elements of a row that are of different chains, or of different channels (filter gradient)."""
        pieces = -(-min(self.cycle, self.groups_w) // self.reach)
        self.turns = max(1, pieces * (self.reach // self.lanes))
        """Vectors of them that a row has."""
        self.direct = self._is_direct()
        self.short_target = self.groups_w < self.lanes + (1 if self.direct else 0)
        self.height, self.vectors = self._tile()
        self.tap_cols = max(1, _SUMS // problem.rows.window)
        """Tap columns of a filter gradient that are summed in registers, with all their rows."""

    def _is_direct(self) -> bool:
        """Tell whether rows are to be read in place: small windows whose borders one masked load covers.

        Masked loads of anything before AVX are a branch per lane. Tiles that read 16-bit floats in place convert them
        once per tap: that pays for filter gradients, which copy two arrays otherwise.
        """
        problem, lanes = self.problem, self.reach
        if "avx" not in self.target.needs:
            return False
        if problem.dtype.itemsize != self.number and not self._converts_in_place():
            return False
        if not self.few_taps or problem.cols.stride > (1 if self.period else 2):
            return False
        if problem.kind is Kind.FILTER_GRADIENT and self.period:
            return False
        if self.repeat > 1:
            return False
        if problem.kind is Kind.INPUT_GRADIENT and problem.group_out > 1:
            return False
        if self.groups_w <= lanes:
            return True
        low, high = self.col_windows.lowest, self.col_windows.highest
        step = self.col_windows.step
        if problem.kind is Kind.FILTER_GRADIENT and self.reserve > 1:
            return False
        return (
            -low <= lanes * step
            and self.reserve <= lanes
            and lanes * step - 1 + high < self.source_cols
            and (self.groups_w - lanes - self.reserve) * step + low >= 0
        )

    def _converts_in_place(self) -> bool:
        """Tell whether 16-bit floats are to be converted at every tap.

        half takes one instruction; bfloat16 takes three, or one where two vectors take columns in turn.
        """
        if self.alternate:
            return True
        if self.problem.kind is not Kind.FILTER_GRADIENT:
            return False
        # Pairs of neighbours would be of two vectors' chains where one vector has all of them.
        alone = self.problem.dtype.short == "bf16" and self.lanes == self.wide
        by_cpu = alone or (self.problem.dtype.short == "f16" and self.target.has_half)
        return self.groups_w <= self.lanes or (by_cpu and self.groups_w > self.lanes)

    def _pitch(self) -> int:
        """Return a length every padded row fits in; few different ones, for kernels are made for each."""
        cols = self.col_windows
        data = max(-(-self.cols.source // cols.step) * cols.across, self.lanes)
        reach = -(-self.groups_w // self.lanes) * self.lanes
        if self.spread:
            reach //= self.repeat
        reach += max(0, cols.place(cols.highest))
        return self._few_lengths(-(-(cols.before + max(data, reach)) // self.lanes))

    def _few_lengths(self, wanted: int) -> int:
        """Round a number of vectors up, and return their elements."""
        unit = 1 << max(0, wanted.bit_length() - 3)
        return -(-wanted // unit) * unit * self.lanes

    def _tile(self) -> tuple[int, int]:
        """Return groups of rows and vectors of columns of a tile."""
        groups = self.rows.groups
        phases = len(self.rows.footprint.phases) * len(self.cols.footprint.phases)
        plane = self.rows.source * self.source_cols + self.rows.target * self.target_cols
        streams = self.direct and plane * self.number > self.target.l1_bytes // 2
        if self.problem.kind is Kind.FILTER_GRADIENT:
            most = 4
            if self.direct:
                most //= self.col_windows.step
                if groups <= 7 and self.short_target:
                    most = 7
            if self.unit:
                groups = self.unit.rows
                if self.groups_w > self.cycle:
                    return min(groups, band_along_rows(self.problem)), 1  # as the contract walks
            return _height(groups, most), 1
        many = not self.few_taps and self.target.vector_registers >= 32
        wide = self.groups_w > self.lanes if many else self.groups_w >= 2 * self.lanes
        vectors = 2 if phases == 1 and wide else 1
        if phases == 1 and self.groups_w < 2 * self.lanes and groups <= 14:
            # All rows at once: taps outside the image are left out, and long windows have sums enough to overlap.
            return groups if not self.direct or groups <= 7 else _height(groups, 7), 1
        # Many rows at a time are many streams: at 112 x 112, 4 rows take 1.45 ms and 2 take 1.18; at 28 x 28 0.38 and
        # 0.43 (batch 8, 32 and 192 channels, one thread of Zen 3).
        most = (2 if streams else 4) // self.col_windows.step if self.direct else 8
        sums = 4 if streams and phases > 1 else 8
        if many:
            # Weights are read once for more rows: 28 x 28, 7x7 0.57 -> 0.45 ms with AVX-512.
            sums = 16
        most = min(most, sums // (phases * vectors))
        return _height(groups, max(1, most)), vectors

    def block_rows(self, groups: int) -> int:
        """Return the source rows under some groups of rows."""
        windows = self.row_windows
        return (groups - 1) * windows.step + windows.highest - windows.lowest + 1

    def block_bytes(self, groups: int) -> int:
        """Return what a block of some groups of rows takes in the cache."""
        row = self.pitch * self.number
        source = self.block_rows(groups) * self.col_windows.step * row
        if self.problem.kind is Kind.FILTER_GRADIENT:
            return source + groups * self.grad_pitch * self.number
        return source * (self.multiplier if self.problem.kind is Kind.INPUT_GRADIENT else 1)

    def row_blocks(self) -> int:
        """Return into how many blocks to cut the rows: each fits half the first cache if that leaves enough rows."""
        groups = self.rows.groups
        if self.unit:
            return -(-groups // self.unit.rows)
        blocks = 1
        if self.direct:
            return blocks
        while (size := self.block_bytes(-(-groups // blocks))) > self.target.l1_bytes // 2:
            least = self.height if size > self.target.l2_bytes // 2 else max(self.height, 8)
            if groups // (blocks + 1) < least:
                break
            blocks += 1
        return blocks

    def bank(self, kernel: PlaneKernel, chunk: int, slice_units: int) -> int:
        """Return the elements in front of the rows: weights, or chains and sums of the filter gradient."""
        if self.unit:
            sums = -(-self.taps // self.lanes) * self.lanes * (slice_units.bit_length() + 1)
            if self.period:
                row = -(-self.taps * self.period // self.lanes) * self.lanes
                sums = row * (slice_units.bit_length() + 2) + self.lanes
            chains = self.taps * kernel.cycle
            size = self.wide + MEND_LEVELS + self.multiplier * (chains + sums)
            return -(-size // self.wide) * self.wide
        taps = kernel.window[0] * kernel.window[1] + (kernel.bias and kernel.period > 0)
        across = chunk
        if kernel.period:
            across = self.lanes + -(-kernel.period // 8) * 8
        line = 64 // self.number
        return -(-taps * across * self.multiplier // line) * line


def _slice_units(problem: Problem, units: int, chunks: int, number: int) -> int:
    """Return the units of a slice: the fewest slices of each chunk that keep threads busy, at a bearable weight."""
    most = reduce.affordable_shares(problem, number)
    sizes = [1 << j for j in range(max(1, units - 1).bit_length() + 1)]
    sizes = [size for size in sizes if -(-units // size) <= most] or sizes[-1:]

    def busy(size: int) -> float:
        items, work = chunks * -(-units // size), chunks * units / min(size, units)
        return min(1.0, work / -(-items // 8) / 6, work / -(-items // 16) / 10)

    return max(sizes, key=lambda size: (busy(size), size))


def _height(groups: int, most: int) -> int:
    """Return the tile height up to `most` that computes the fewest rows twice."""
    sizes = range(1, min(groups, most) + 1)
    return min(sizes, key=lambda size: (-(-groups // size) * (size + 2) / size, -size))
