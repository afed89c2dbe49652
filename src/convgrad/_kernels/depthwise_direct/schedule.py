"""Depthwise convolution and its gradients on channels-last images, straight from and to the caller's memory.

This module holds the schedule: which problems the kernel takes and which tile it gets. The mechanism is in
`kernel` and `tile`. The rule was fitted on Zen 3 (2 cores, AVX2, 32 MB of L3), in
bytes and registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..._compiler.codegen import arithmetic, element
from ..._compiler.targets import Target
from ..._problem.convolution import Kind, Problem
from ..._problem.sums.pixels import along_rows, is_flat, one_row, pixel_contract
from ..plan import Operand, Plan, Step
from ..shared import reduce, units
from ..shared.gather import Footprint, Gather, gather
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
"""Sums of a filter gradient's chunk, of runs and units: more would leave no room in L2 for the images."""
_SUM_BYTES = 16
"""Of a tap and a channel, of run and unit: rows of the images are to stay in L1 beside them. 14x14x576 takes 0.157 ms
so, and 0.170 with 12 (AVX2, batch 8, one thread of Zen 5)."""


def why_not(problem: Problem, target: Target) -> str | None:
    """Return why this algorithm cannot compute the problem, or None if it can."""
    if problem.group_in != 1 or problem.group_out != 1:
        return "only depthwise problems of multiplier 1"
    if problem.data_format != "NHWC":
        return "only NHWC"
    if problem.dtype.is_integer:
        return "no integers"
    if problem.kind is Kind.FILTER_GRADIENT and along_rows(problem):
        return "the contract adds its pixels along rows"
    if max(problem.rows.window, problem.cols.window) > _LARGEST_WINDOW:
        return f"windows above {_LARGEST_WINDOW} are not unrolled"
    lanes = target.lanes(_number_size(problem))
    if problem.in_c < lanes:
        return f"fewer channels than lanes ({problem.in_c} < {lanes})"
    if problem.kind is Kind.INPUT_GRADIENT and max(problem.rows.stride, problem.cols.stride) > 2:
        return "input gradients of strides above 2 have too many phases for one tile"
    if not _widths(problem, _gathers(problem)[1], _registers(target)):
        return "the windows at the left and right border overlap"
    return None


def candidates(problem: Problem, target: Target) -> Sequence[Candidate]:
    """Offer the tile of a rule: of all that were tried it is near the best for its kind of image."""
    rows, cols = _gathers(problem)
    tile, chunk, row_block = _tile(problem, target, rows, cols)
    split = _Split.of(problem, target, tile, chunk, row_block)
    to_filter = problem.kind is Kind.FILTER_GRADIENT
    items = (split.slices if to_filter else split.units) * split.chunks
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
    slices: int
    """Of a filter gradient."""
    slice_units: int

    @staticmethod
    def of(problem: Problem, target: Target, tile: Tile, chunk: int, row_block: int) -> _Split:
        lanes = target.lanes(_number_size(problem))
        rows, _ = _gathers(problem)
        chunk = min(chunk, -(-problem.in_c // lanes) * lanes)
        chunks = -(-problem.in_c // chunk)
        if problem.kind is Kind.FILTER_GRADIENT:
            contract = pixel_contract(problem)
            row_block, count = contract.unit.rows, contract.units
            each = units.slice_size(problem, count, chunks, _number_size(problem))
            if tile.rows > 1:
                each = max(2, each)  # so that a slice begins with a whole tile: see `_tall`
            row_blocks = -(-rows.groups // row_block)
            return _Split(chunk, chunks, row_block, row_blocks, count, -(-count // each), each)
        row_block = min(max(1, row_block // tile.rows), -(-rows.groups // tile.rows)) * tile.rows
        row_blocks = -(-rows.groups // row_block)
        return _Split(chunk, chunks, row_block, row_blocks, problem.batch * row_blocks, 0, 0)


def plan_with(problem: Problem, target: Target, tile: Tile, chunk: int, row_block: int) -> Plan:
    """Plan with a given tile, channels per chunk and groups of rows per block (filter gradients choose the last)."""
    number = _number_size(problem)
    lanes = target.lanes(number)
    rows, cols = _gathers(problem)
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
        pieces=to_filter and pixel_contract(problem).run.cols < cols.groups,
        row_runs=to_filter and _row_runs(problem, tile, cols),
        channels=channels if problem.kind is Kind.FILTER_GRADIENT else 0,
        alternate=split.chunks == 1 and _alternates(problem, lanes),
        bias=problem.adds_bias or (to_filter and problem.bias == "output"),
    )
    taps = problem.rows.window * problem.cols.window
    bank_rows = taps + (to_filter and kernel.bias)
    chunk = split.chunk
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
    contract = pixel_contract(problem)
    words += in_order(units.WORDS, **units.words(contract, split.slice_units))
    run_parts = -(-contract.unit.cols // contract.run.cols)
    # The runs of a tile, the total of their unit, and the levels of the tree above it.
    banks = (tile.rows * run_parts if tile.rows > 1 else 1) + 1 + units.levels(split.slice_units)
    scratch = chunk * bank_rows * number * banks
    slices, pitch = split.slices, bank_rows * channels
    step = Step(kernel, ("first", "second", "partial"), words, slices * split.chunks, 1, scratch)
    dtype, elements = problem.dtype.short, taps * channels
    ends = [reduce.tree_step(dtype, elements, slices, pitch=pitch)]
    if kernel.bias:
        ends.append(
            reduce.tree_step(dtype, channels, slices, pitch=pitch, start=elements, to="bias")
        )
    return Plan(
        problem,
        NAME,
        (step, *ends),
        partial_bytes=slices * pitch * number,
        serial=serial,
        story=(*story, ("slices", str(slices))),
    )


def _gathers(problem: Problem) -> tuple[Gather, Gather]:
    """Return rows and columns; a filter gradient sees an image whose pixels have a window each as one row."""
    rows, cols = problem.rows, problem.cols
    if problem.kind is Kind.FILTER_GRADIENT and is_flat(problem):
        rows, cols = one_row(problem)
    return gather(rows, problem.kind), gather(cols, problem.kind)


def _tile(problem: Problem, target: Target, rows: Gather, cols: Gather) -> tuple[Tile, int, int]:
    """Return the tile, the channels of a chunk and the groups of rows of a block."""
    registers = _registers(target)
    lanes = target.lanes(_number_size(problem))
    widths = _widths(problem, cols, registers)
    image = _image_bytes(problem, rows, cols)
    window = max(problem.rows.window, problem.cols.window)
    to_filter = problem.kind is Kind.FILTER_GRADIENT
    everything = 1 << 30

    def pick(rows_: int, cols_: int, vectors: int, ahead: int) -> Tile:
        """Come as near as the problem allows to the tile asked for."""
        if problem.in_c % (lanes * vectors):
            vectors = 1
        height = (rows_ if _tall(problem, rows_) else 1) if to_filter else min(rows_, rows.groups)
        width = max((width for width in widths if width <= cols_), default=min(widths))
        tile = Tile(height, width, vectors, ahead)
        return _ordered(problem, tile, registers) if to_filter else tile

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
    if streams and to_filter:
        # Two rows read every source row half as often: 56x56x144 takes 0.85 ms, with one row 1.05, where rows are asked
        # for in time, and 1.3 where not (batch 8, one thread of Zen 5).
        if _tall(problem, 2):
            # Half a line at a time, and every other column: 112x112x96 takes 1.36 ms, 2x4 1.7 (AVX2).
            if stride == 2 and lanes * _number_size(problem) < 64:
                return pick(2, 2, 2, 512), everything, whole_rows
            return pick(2, 4, 1, 512), everything, whole_rows
        width = min(widths, key=lambda width: (_left_over(problem, cols, width), -width))
        return pick(1, width, 1, 512), everything, whole_rows
    if streams and stride == 2:
        if problem.kind is Kind.INPUT_GRADIENT:
            return pick(2, 1, 1, 0), everything, whole_rows
        return pick(2, 1, 2, 512), everything, whole_rows
    if streams and stride == 1:
        if image > 3 * _LARGE_IMAGE // 2 and problem.in_c >= 64:
            return pick(4, 1, 1, 512), everything, whole_rows
        return pick(1, 4, 2, 512), everything, whole_rows
    if several:
        return pick(2, 1, 1, 0), everything, whole_rows
    if dilated and image > _LARGE_IMAGE and window <= 3:
        return pick(1, 4, 2, 512), everything, whole_rows
    if to_filter:
        width = min(widths, key=lambda width: (_left_over(problem, cols, width), -width))
        taps = problem.rows.window * problem.cols.window
        chunk = _even_chunk(problem.in_c, _SUMS_BYTES // (taps * _SUM_BYTES), lanes)
        return _ordered(problem, Tile(1, width, 1), registers), chunk, whole_rows
    if window > 3 and stride == 1 and cols.groups >= 20:
        return pick(2, 4, 1, 0), everything, whole_rows
    width = min(widths, key=lambda width: (_waste(cols.groups, width), -width))
    return Tile(1, width, 1), everything, whole_rows


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


def _ordered(problem: Problem, tile: Tile, registers: int) -> Tile:
    """Keep all sums of a filter gradient in registers if they fit beside the tile, else those of one source row."""
    taps = problem.rows.window * problem.cols.window
    sums = tile.rows * (taps + tile.cols) * tile.vectors
    return replace(tile, order="resident" if sums + 1 <= registers else "rows")


def _tall(problem: Problem, height: int) -> bool:
    """Tell whether tiles of a filter gradient may have several rows: these are runs of their own then.

    Images, and slices of two units or more, must begin with a whole tile.
    """
    out, unit, run, *_ = pixel_contract(problem)
    if run.images * run.rows > 1 or unit.cols < out.cols or out.rows % height:
        return False
    sums = problem.rows.window * problem.cols.window * problem.in_c * _number_size(problem)
    if sums * height * -(-unit.cols // run.cols) > _SUMS_BYTES:
        return False
    return unit.rows % height == 0 or (height == 2 and -(-out.rows // unit.rows) % 2 == 0)


def _row_runs(problem: Problem, tile: Tile, cols: Gather) -> bool:
    """Tell whether every row is a run of a filter gradient, with tiles of their own at both ends of it."""
    run, shape = pixel_contract(problem).run, cols.footprint
    if run.images * run.rows > 1 or run.cols < cols.groups or tile.cols == cols.groups:
        return False
    return tile.rows == 1 and tile.order == "rows" and bool(shape.before and shape.after)


def _waste(groups: int, width: int) -> float:
    """Rate a width: columns computed over columns wanted, with a small toll on narrow tiles."""
    return -(-groups // width) * width / groups + (0.06 if width < 7 else 0.0)


def _left_over(problem: Problem, cols: Gather, width: int) -> float:
    """Rate a width for a filter gradient: tiles of a row, those of one column for the half of one."""
    if width == cols.groups:
        return 1.0
    shape, found = cols.footprint, 0.0
    for begin, end in _runs(problem):
        inner = end - begin
        inner -= width if shape.before and begin == 0 else 0
        inner -= width if shape.after and end == cols.groups else 0
        found += (end - begin - inner) // width + inner // width + inner % width * 0.4
    return found * (width + 2)


def _runs(problem: Problem) -> Iterator[tuple[int, int]]:
    """Yield where the runs of a row begin and end: the first ones, and the last."""
    out, unit, run, *_ = pixel_contract(problem)
    last = (out.cols - 1) // unit.cols * unit.cols
    for begin in dict.fromkeys((0, last)):
        end = min(begin + unit.cols, out.cols)
        for start in range(begin, end, run.cols):
            yield start, min(start + run.cols, end)


def _widths(problem: Problem, cols: Gather, registers: int) -> list[int]:
    """Return the widths (in groups of columns) at which a tile meets one border only, or spans all columns."""
    shape: Footprint = cols.footprint
    to_filter = problem.kind is Kind.FILTER_GRADIENT
    phases = len(shape.phases)
    taps = max(len(taps) for taps in shape.phases)
    most = max(1, min(8, registers - taps - 2) // phases)
    runs = list(_runs(problem)) if to_filter else []
    fits = []
    for width in range(1, most + 1):
        if cols.groups == width:
            fits.append(width)
            continue
        if width < max(shape.before, shape.after):
            continue
        if to_filter:
            borders = [
                bool(shape.before and begin == 0) + bool(shape.after and end == cols.groups)
                for begin, end in runs
            ]
            room = [end - begin for begin, end in runs]
            room_enough = all(
                width * each <= size for each, size in zip(borders, room, strict=True)
            )
            if room_enough and cols.groups >= width:
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
