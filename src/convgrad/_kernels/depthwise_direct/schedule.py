"""Depthwise convolution and its gradients on channels-last images, straight from and to the caller's memory.

This module holds the schedule: which problems the kernel takes and which tile it gets. The mechanism is in
`kernel` and `tile`. The rule was fitted on Zen 3 (2 cores, AVX2, 32 MB of L3), in
bytes and registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..._compiler.codegen import arithmetic, element
from ..._compiler.targets import Target
from ..._problem.convolution import Kind, Problem
from ..plan import Operand, Plan, Step
from ..shared import reduce
from ..shared.gather import Footprint, Gather, gather
from ..shared.pixel_sum import with_bias
from ..shared.table import Candidate
from ..shared.words import in_order
from .words import WORDS, DirectKernel, Tile
from .work import work

NAME = "depthwise_direct"

_LARGEST_WINDOW = 5
"""Kernel rows are unrolled; larger windows take `depthwise_packed`, which loops over them."""
_LARGE_IMAGE = 1 << 20
"""Bytes of one image and its result above which whole rows are streamed with prefetch (half of Zen 3's L2 per core)."""
_SERIAL_FLOPS = 400_000
"""Below about 10 us of work, waking another thread costs more than it saves."""
_ITEMS = 16
"""Items a forward pass or an input gradient is cut into at least, where its rows allow."""
_SUMS_BYTES = 24 << 10
"""Sums of a filter gradient's chunk, both levels: more would leave no room in L2 for the images."""


def why_not(problem: Problem, target: Target) -> str | None:
    """Return why this algorithm cannot compute the problem, or None if it can."""
    if problem.group_in != 1 or problem.group_out != 1:
        return "only depthwise problems of multiplier 1"
    if problem.data_format != "NHWC":
        return "only NHWC"
    if problem.dtype.is_integer:
        return "no integers"
    if max(problem.rows.window, problem.cols.window) > _LARGEST_WINDOW:
        return f"windows above {_LARGEST_WINDOW} are not unrolled"
    lanes = target.lanes(_number_size(problem))
    if problem.in_c < lanes:
        return f"fewer channels than lanes ({problem.in_c} < {lanes})"
    if problem.kind is Kind.INPUT_GRADIENT and max(problem.rows.stride, problem.cols.stride) > 2:
        return "input gradients of strides above 2 have too many phases for one tile"
    if not _widths(problem.kind, gather(problem.cols, problem.kind), _registers(target)):
        return "the windows at the left and right border overlap"
    return None


def candidates(problem: Problem, target: Target) -> Sequence[Candidate]:
    """Offer the tile of a rule: of all that were tried it is near the best for its kind of image."""
    rows, cols = gather(problem.rows, problem.kind), gather(problem.cols, problem.kind)
    tile, chunk, row_block = _tile(problem, target, rows, cols)
    split = _Split.of(problem, target, tile, chunk, row_block)
    to_filter = problem.kind is Kind.FILTER_GRADIENT
    items = (split.shares if to_filter else split.units) * split.chunks
    serial = problem.flops < _SERIAL_FLOPS
    done = work(NAME, problem, target, tile, rows, cols, items, serial)
    return (Candidate(done, lambda: plan_with(problem, target, tile, chunk, row_block)),)


@dataclass(frozen=True)
class _Split:
    """How the work is cut: channels of a chunk, groups of rows of a block, and how many there are."""

    chunk: int
    chunks: int
    row_block: int
    row_blocks: int
    units: int
    shares: int
    """Of a filter gradient."""

    @staticmethod
    def of(problem: Problem, target: Target, tile: Tile, chunk: int, row_block: int) -> _Split:
        lanes = target.lanes(_number_size(problem))
        rows, cols = gather(problem.rows, problem.kind), gather(problem.cols, problem.kind)
        chunk = min(chunk, -(-problem.in_c // lanes) * lanes)
        if problem.kind is Kind.FILTER_GRADIENT:
            row_block = _unit_pixels(tile) // cols.groups
        row_block = min(max(1, row_block // tile.rows), -(-rows.groups // tile.rows)) * tile.rows
        chunks = -(-problem.in_c // chunk)
        row_blocks = -(-rows.groups // row_block)
        units = problem.batch * row_blocks
        wide = element(reduce.partial_type(problem.dtype.short)).size
        most = min(units, reduce.affordable_shares(problem, wide))
        shares = reduce.balanced_shares(chunks, most)
        return _Split(chunk, chunks, row_block, row_blocks, units, shares)


def plan_with(problem: Problem, target: Target, tile: Tile, chunk: int, row_block: int) -> Plan:
    """Plan with a given tile, channels per chunk and groups of rows per block (filter gradients choose the last)."""
    number = _number_size(problem)
    lanes = target.lanes(number)
    rows, cols = gather(problem.rows, problem.kind), gather(problem.cols, problem.kind)
    channels = problem.in_c
    split = _Split.of(problem, target, tile, chunk, row_block)
    to_filter = problem.kind is Kind.FILTER_GRADIENT
    kernel = DirectKernel(
        problem.kind,
        problem.dtype.short,
        rows.footprint,
        cols.footprint,
        (problem.rows.window, problem.cols.window),
        tile,
        single=tile.cols == cols.groups,
        channels=channels if problem.kind is Kind.FILTER_GRADIENT else 0,
        alternate=split.chunks == 1 and _alternates(problem, lanes),
        bias=problem.adds_bias or (to_filter and problem.bias == "output"),
    )
    taps = problem.rows.window * problem.cols.window
    bank_rows = taps + (to_filter and kernel.bias)
    wide = element(reduce.partial_type(problem.dtype.short)).size
    chunk, shares = split.chunk, split.shares
    words = in_order(
        WORDS,
        source_rows=rows.source,
        source_cols=cols.source,
        target_rows=rows.target,
        target_cols=cols.target,
        groups_h=rows.groups,
        groups_w=cols.groups,
        channels=channels,
        chunk=chunk,
        chunks=split.chunks,
        row_block=split.row_block,
        row_blocks=split.row_blocks,
        units=split.units,
        shares=shares,
    )
    scratch = (chunk + (lanes if kernel.alternate else 0)) * bank_rows * number
    story = (
        ("tile", f"{tile.rows} x {tile.cols} pixels x {tile.vectors * lanes} channels"),
        ("channels per chunk", str(chunk)),
        ("rows per block", str(split.row_block)),
        ("prefetch", f"{tile.prefetch} elements" if tile.prefetch else "none"),
    )
    serial = problem.flops < _SERIAL_FLOPS
    if problem.kind is not Kind.FILTER_GRADIENT:
        operands: tuple[Operand, ...] = ("first", "second", "result")
        if problem.kind is Kind.INPUT_GRADIENT:
            operands = ("second", "first", "result")
        if kernel.bias:
            operands = (*operands, "bias")
        step = Step(kernel, operands, words, split.units * split.chunks, 1, scratch)
        return Plan(problem, NAME, (step,), serial=serial, story=story)
    partial = reduce.partial_type(problem.dtype.short)
    scratch += chunk * bank_rows * wide
    step = Step(kernel, ("first", "second", "partial"), words, shares * split.chunks, 1, scratch)
    elements = taps * channels
    ends: tuple[Step, ...] = (reduce.step(problem.dtype.short, elements, shares, partial),)
    if kernel.bias:
        ends = with_bias(problem.dtype.short, partial, shares, elements, channels)
    return Plan(
        problem,
        NAME,
        (step, *ends),
        partial_bytes=shares * bank_rows * channels * wide,
        serial=serial,
        story=(*story, ("shares", str(shares))),
    )


def _tile(problem: Problem, target: Target, rows: Gather, cols: Gather) -> tuple[Tile, int, int]:
    """Return the tile, the channels of a chunk and the groups of rows of a block."""
    registers = _registers(target)
    lanes = target.lanes(_number_size(problem))
    widths = _widths(problem.kind, cols, registers)
    image = _image_bytes(problem, rows, cols)
    window = max(problem.rows.window, problem.cols.window)
    to_filter = problem.kind is Kind.FILTER_GRADIENT
    everything = 1 << 30

    def pick(rows_: int, cols_: int, vectors: int, ahead: int) -> Tile:
        """Come as near as the problem allows to the tile asked for."""
        if problem.in_c % (lanes * vectors):
            vectors = 1
        height = _height(rows_, rows.groups, to_filter)
        width = max((width for width in widths if width <= cols_), default=min(widths))
        tile = Tile(height, width, vectors, ahead)
        return replace(tile, order=_order(problem, tile, registers)) if to_filter else tile

    dilated = max(problem.rows.dilation, problem.cols.dilation) > 1
    streams = image > _LARGE_IMAGE and window <= 3 and not dilated
    stride = max(problem.rows.stride, problem.cols.stride)
    whole_rows = _blocks(problem, rows.groups)
    several = len(rows.footprint.phases) * len(cols.footprint.phases) > 1
    if window <= 3 and not several and _alternates(problem, lanes):
        # Converting takes longer than waiting for memory. 4x1 tiles convert a source cell three times where 1x4 do so
        # 1.5 times: 0.30 and 0.21 ms for 74x74x128, batch 1, on one thread of Zen 3; asking ahead only costs.
        pairs = problem.in_c % (2 * lanes) == 0
        if pairs and (streams or (stride == 1 and cols.groups % 4 == 0)):
            return pick(1, 4, 2, 0), everything, whole_rows
        streams = False
    if streams and stride == 2:
        if problem.kind is Kind.INPUT_GRADIENT:
            return pick(2, 1, 1, 0), everything, whole_rows
        return pick(2, 1, 2, 512), everything, whole_rows
    if streams and stride == 1:
        large = image > 3 * _LARGE_IMAGE // 2 and problem.in_c >= 64
        if large:
            return pick(2, 2, 1, 512) if to_filter else pick(4, 1, 1, 512), everything, whole_rows
        return pick(1, 4, 2, 512), everything, whole_rows
    if several:
        return pick(2, 1, 1, 0), everything, whole_rows
    if dilated and image > _LARGE_IMAGE and window <= 3:
        return pick(1, 4, 2, 512), everything, whole_rows
    if window > 3 and stride == 1 and cols.groups >= 20 and not to_filter:
        return pick(2, 4, 1, 0), everything, whole_rows
    width = min(widths, key=lambda width: (_waste(cols.groups, width), -width))
    taps = problem.rows.window * problem.cols.window
    chunk = (
        _even_chunk(problem.in_c, _SUMS_BYTES // (taps * 12), lanes) if to_filter else everything
    )
    return Tile(1, width, 1), chunk, whole_rows


def _alternates(problem: Problem, lanes: int) -> bool:
    """Tell whether vectors are to hold every other channel: they come in pairs, the last of which is moved back."""
    if problem.kind is Kind.FILTER_GRADIENT or problem.dtype.short != "bf16":
        return False
    pairs = -(-problem.in_c // (2 * lanes))
    return problem.in_c >= 2 * lanes and 16 * lanes * pairs <= 9 * problem.in_c


def _blocks(problem: Problem, groups: int) -> int:
    """Return the groups of rows of a block: few blocks, but enough items for the threads to finish together."""
    wanted = -(-_ITEMS // problem.batch)
    return max(4, -(-groups // wanted))


def _even_chunk(channels: int, most: int, lanes: int) -> int:
    """Return the channels of equal chunks of at most `most` channels each."""
    vectors = -(-channels // lanes)
    chunks = -(-vectors // max(1, most // lanes))
    return -(-vectors // chunks) * lanes


def _unit_pixels(tile: Tile) -> int:
    """Return the pixels of a filter gradient's unit: about 48 additions in a row, for errors of about 2 u.

    A tile's own products form a chain of their own, except where all sums stay in registers.
    """
    return 96 if tile.order == "resident" else 48 * tile.rows * tile.cols


def _order(problem: Problem, tile: Tile, registers: int) -> Literal["rows", "columns", "resident"]:
    """Keep all sums of a filter gradient in registers if they fit beside the tile, else those of one column."""
    taps = problem.rows.window * problem.cols.window
    if (taps + tile.rows * tile.cols) * tile.vectors + 1 <= registers:
        return "resident"
    return "columns" if tile.rows > 1 else "rows"


def _waste(groups: int, width: int) -> float:
    """Rate a width: columns computed over columns wanted, with a small toll on narrow tiles."""
    return -(-groups // width) * width / groups + (0.06 if width < 7 else 0.0)


def _height(wanted: int, groups: int, exact: bool) -> int:
    """Return the largest tile height up to `wanted`; a filter gradient's must divide the rows."""
    fits = (size for size in range(1, min(wanted, groups) + 1) if not exact or groups % size == 0)
    return max(fits)


def _widths(kind: Kind, cols: Gather, registers: int) -> list[int]:
    """Return the widths (in groups of columns) at which a tile meets one border only, or spans all columns."""
    shape: Footprint = cols.footprint
    phases = len(shape.phases)
    taps = max(len(taps) for taps in shape.phases)
    most = max(1, min(8, registers - taps - 2) // phases)
    fits = []
    for width in range(1, most + 1):
        if cols.groups == width:
            fits.append(width)
            continue
        if width < max(shape.before, shape.after):
            continue
        if kind is Kind.FILTER_GRADIENT:
            borders = (width if shape.before else 0) + (width if shape.after else 0)
            if cols.groups >= max(borders, width):
                fits.append(width)
        elif cols.groups >= width + shape.before + shape.after:
            fits.append(width)
    return fits


def _registers(target: Target) -> int:
    """Vector registers to fill: no rule here gains from more than 16."""
    return min(target.vector_registers, 16)


def _image_bytes(problem: Problem, rows: Gather, cols: Gather) -> int:
    """Return the bytes of one image and its result."""
    pixels = rows.source * cols.source + rows.target * cols.target
    return pixels * problem.in_c * problem.dtype.itemsize


def _number_size(problem: Problem) -> int:
    return arithmetic(element(problem.dtype.short)).size
