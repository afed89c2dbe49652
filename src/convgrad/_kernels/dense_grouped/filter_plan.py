"""The plan of a grouped filter gradient: one launch, and one that adds the shares if there are several."""

from __future__ import annotations

from math import prod

from ..._problem.geometry import tap_span
from ..plan import Operand, Plan, Step
from ..shared import reduce
from ..shared.words import in_order, narrow
from .filter_gradient import TAP, UNIT, WORDS, GroupedFilterKernel
from .filter_sizes import GroupedFilterSizes
from .geometry import AxisClasses


def plan_filter(name: str, sizes: GroupedFilterSizes, serial: bool) -> Plan:
    """Plan a filter gradient with given sizes."""
    problem, cut = sizes.problem, sizes.cut
    shared = cut.shares > 1
    partial = reduce.partial_type(problem.dtype.short)
    numbers: list[int] = []
    places = []
    for axis in (problem.rows, problem.cols):
        places.append(len(numbers))
        for tap in range(axis.window):
            first, last, _ = tap_span(axis, tap)
            shift = tap * axis.dilation - axis.before
            if first >= last:  # it meets nothing, and may be far outside
                first = last = shift = 0
            numbers += in_order(TAP, first=first, last=last, shift=shift)
    rows = AxisClasses(sizes.rows)
    blocks = [
        rows.block(start, min(cut.rows, sizes.rows.target - start))
        for start in range(0, sizes.rows.target, cut.rows)
    ]
    blocks_at = len(numbers)
    for each in blocks:
        numbers += in_order(UNIT, **vars(each))
    read = max(each.source_count for each in blocks)
    staged = cut.images * read * sizes.cols.source * cut.channels * sizes.lanes
    line = 64 // sizes.number
    grads_at = -(-staged // line) * line
    grads = cut.images * cut.rows * sizes.cols.target * problem.group_out * sizes.lanes
    bank_at = grads_at + -(-grads // line) * line
    elements = prod(problem.filter_shape)
    row_run, col_run = sizes.runs(cut)
    words = in_order(
        WORDS,
        source_rows=sizes.rows.source,
        source_cols=sizes.cols.source,
        target_rows=sizes.rows.target,
        target_cols=sizes.cols.target,
        row_stride=problem.rows.stride,
        col_stride=problem.cols.stride,
        window_rows=problem.rows.window,
        window_cols=problem.cols.window,
        lane_blocks=sizes.lane_blocks,
        row_blocks=len(blocks),
        images=cut.images,
        batch=problem.batch,
        units=sizes.units(cut),
        shares=cut.shares,
        row_run=row_run,
        col_run=col_run,
        tap_rows_at=places[0],
        tap_cols_at=places[1],
        blocks_at=blocks_at,
        grads_at=grads_at,
        bank_at=bank_at,
        share_pitch=elements if shared else 0,
    )
    kernel = GroupedFilterKernel(
        problem.dtype.short,
        partial if shared else problem.dtype.short,
        problem.group_in,
        problem.group_out,
        cut.channels,
        sizes.tile,
        sizes.planes,
    )
    target: Operand = "partial" if shared else "result"
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
    if shared:
        steps.append(reduce.step(problem.dtype.short, elements, cut.shares, partial))
    tile = f"{sizes.tile[0]} x {sizes.tile[1]} channels x {sizes.lanes} groups"
    return Plan(
        problem,
        name,
        tuple(steps),
        partial_bytes=sizes.partial_bytes(cut),
        serial=serial,
        story=(
            ("tile", tile),
            ("unit", f"{cut.images} images x {cut.rows} rows, {sizes.units(cut)} of them"),
            ("input channels at a time", str(cut.channels)),
            ("shares", str(cut.shares)),
            ("items", str(sizes.items(cut))),
        ),
    )
