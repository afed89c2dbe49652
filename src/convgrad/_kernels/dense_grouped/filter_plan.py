"""The plan of a grouped filter gradient: one launch, and one that adds the slices if there are several."""

from __future__ import annotations

from math import prod

from ..._compiler.codegen import arithmetic, element
from ..._problem.convolution import Kind
from ..._problem.geometry import Axis, tap_span
from ..plan import Operand, Plan, Step
from ..shared import reduce
from ..shared.gather import Gather, gather
from ..shared.words import in_order, narrow
from .filter_gradient import TAP, UNIT, WORDS, GroupedFilterKernel
from .filter_sizes import GroupedFilterSizes
from .geometry import AxisClasses, RowBlock

_ONE = Axis(1, 1, 1, 1, 0, 0, 1)
"""A window of one cell: what it reads need not be listed."""


def plan_filter(name: str, sizes: GroupedFilterSizes, serial: bool) -> Plan:
    """Plan a filter gradient with given sizes."""
    problem, cut, contract = sizes.problem, sizes.cut, sizes.contract
    slices, unit, run = sizes.slices(cut), contract.unit, contract.run
    number = arithmetic(element(problem.dtype.short)).short
    numbers: list[int] = []
    places = []
    for axis in (sizes.row_axis, sizes.col_axis):
        places.append(len(numbers))
        for tap in range(axis.window):
            first, last, _ = tap_span(axis, tap)
            shift = tap * axis.dilation - axis.before
            if first >= last:  # it meets nothing, and may be far outside
                first = last = shift = 0
            numbers += in_order(TAP, first=first, last=last, shift=shift)
    blocks = [
        _blocks(axis, size) for axis, size in ((sizes.rows, unit.rows), (sizes.cols, unit.cols))
    ]
    blocks_at = []
    for each in blocks:
        blocks_at.append(len(numbers))
        for block in each:
            numbers += in_order(UNIT, **vars(block))
    read = prod(max(block.source_count for block in each) for each in blocks)
    staged = unit.images * read * cut.channels * sizes.lanes
    line = 64 // sizes.number
    grads_at = -(-staged // line) * line
    grads = prod(unit) * problem.group_out * sizes.lanes
    totals_at = grads_at + -(-grads // line) * line
    bank_at = totals_at + sizes.taps * prod(sizes.tile) * sizes.lanes
    elements = prod(problem.filter_shape)
    words = in_order(
        WORDS,
        source_rows=sizes.rows.source,
        source_cols=sizes.cols.source,
        target_rows=sizes.rows.target,
        target_cols=sizes.cols.target,
        row_stride=sizes.row_axis.stride,
        col_stride=sizes.col_axis.stride,
        window_rows=problem.rows.window,
        window_cols=problem.cols.window,
        lane_blocks=sizes.lane_blocks,
        row_blocks=len(blocks[0]),
        col_blocks=len(blocks[1]),
        images=unit.images,
        batch=problem.batch,
        units=sizes.units,
        slice_units=1 << cut.levels,
        levels=cut.levels,
        run_images=run.images,
        run_rows=run.rows,
        run_cols=run.cols,
        tap_rows_at=places[0],
        tap_cols_at=places[1],
        row_blocks_at=blocks_at[0],
        col_blocks_at=blocks_at[1],
        grads_at=grads_at,
        totals_at=totals_at,
        bank_at=bank_at,
        slice_pitch=elements if slices > 1 else 0,
    )
    kernel = GroupedFilterKernel(
        problem.dtype.short,
        number if slices > 1 else problem.dtype.short,
        problem.group_in,
        problem.group_out,
        cut.channels,
        sizes.tile,
        sizes.planes,
        contract.chains,
    )
    target: Operand = "partial" if slices > 1 else "result"
    steps = [
        Step(
            kernel,
            ("first", "second", target, "table"),
            words,
            sizes.items(cut),
            1,
            bank_at * sizes.number + sizes.bank_bytes(cut),
            narrow(numbers),
        )
    ]
    if slices > 1:
        steps.append(reduce.tree_step(problem.dtype.short, elements, slices, pitch=elements))
    tile = f"{sizes.tile[0]} x {sizes.tile[1]} channels x {sizes.lanes} groups"
    return Plan(
        problem,
        name,
        tuple(steps),
        partial_bytes=sizes.partial_bytes(cut),
        serial=serial,
        story=(
            ("tile", tile),
            ("unit", f"{unit.images} x {unit.rows} x {unit.cols} pixels, {sizes.units} of them"),
            ("input channels at a time", str(cut.channels)),
            ("slices", str(slices)),
            ("items", str(sizes.items(cut))),
        ),
    )


def _blocks(axis: Gather, size: int) -> list[RowBlock]:
    """Cut the outputs along an axis into pieces, each with what it reads."""
    starts = range(0, axis.target, size)
    counts = [min(size, axis.target - start) for start in starts]
    pairs = zip(starts, counts, strict=True)
    if axis.footprint == gather(_ONE, Kind.FILTER_GRADIENT).footprint:
        return [RowBlock(start, count, start, count) for start, count in pairs]
    cells = AxisClasses(axis)
    return [cells.block(start, count) for start, count in pairs]
