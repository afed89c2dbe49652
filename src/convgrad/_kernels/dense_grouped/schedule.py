"""Grouped convolution and its gradients with as many groups side by side as a vector has lanes.

This module holds the schedule: which problems the kernels take, and their plans. How a problem is cut is in `sizes`,
the mechanism in `kernel`, the geometry in `geometry`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ..._compiler.codegen import arithmetic, element
from ..._compiler.targets import Target
from ..._problem.convolution import Kind, Problem
from ..plan import Operand, Plan, Step
from ..shared.amounts import whole_lines
from ..shared.levels import in_blocks
from ..shared.table import Candidate
from ..shared.words import in_order, narrow
from .filter_plan import plan_filter
from .filter_sizes import GroupedFilterSizes
from .geometry import AxisClasses, BlockTable
from .pack import WORDS as PACK_WORDS
from .pack import GroupedPackKernel
from .sizes import GroupedBlock, GroupedSizes
from .words import WORDS, GroupedKernel
from .work import filter_work, work

NAME = "dense_grouped"

_MOST_CHANNELS = 64
"""Of one group: a block of lanes has as many vectors per pixel."""
_LARGEST_WINDOW = 15
_MOST_CELLS = 4096
"""Rows or columns of an image that are listed one by one."""
_MOST_SCRATCH = 8 << 20
_SERIAL_FLOPS = 1_000_000
"""Below about 10 us of work, waking another thread costs more than it saves."""


def why_not(problem: Problem, target: Target) -> str | None:
    """Return why this algorithm cannot compute the problem, or None if it can."""
    if problem.dtype.is_integer:
        return "no integers"
    if problem.depthwise or problem.group_in == 1:
        return "only groups of several channels"
    lanes = target.lanes(arithmetic(element(problem.dtype.short)).size)
    if problem.groups % lanes:
        return f"groups do not fill the lanes ({problem.groups} % {lanes})"
    channels = (problem.group_in, problem.group_out)
    if max(channels) > _MOST_CHANNELS:
        return f"more than {_MOST_CHANNELS} channels in a group"
    to_filter = problem.kind is Kind.FILTER_GRADIENT
    turned = channels if problem.data_format == "NHWC" else channels[1:] if to_filter else ()
    if any(n < lanes and lanes % n for n in turned):
        return "groups that are neither a vector wide nor a power of two"
    axes = (problem.rows, problem.cols)
    if max(axis.window for axis in axes) > _LARGEST_WINDOW:
        return f"windows above {_LARGEST_WINDOW} are not listed"
    if max(max(axis.size, axis.out) for axis in axes) > _MOST_CELLS:
        return f"images above {_MOST_CELLS} are not listed"
    if max(axis.stride for axis in axes) > _LARGEST_WINDOW:
        return f"strides above {_LARGEST_WINDOW} are not listed"
    if to_filter:
        cut = _filter_sizes(problem, target)
        scratch = cut.unit_bytes(cut.cut) + cut.bank_bytes(cut.cut)
    else:
        sizes = _sizes(problem, target)
        scratch = sizes.block_bytes(sizes.block)
    if scratch > _MOST_SCRATCH:
        return "a row of the image takes too much memory"
    return None


def candidates(problem: Problem, target: Target) -> Sequence[Candidate]:
    """Offer one way: tile and block follow from the problem by a rule."""
    serial = problem.flops < _SERIAL_FLOPS
    if problem.kind is Kind.FILTER_GRADIENT:
        cut = _filter_sizes(problem, target)
        return (Candidate(filter_work(NAME, cut, serial), lambda: plan_filter(NAME, cut, serial)),)
    sizes = _sizes(problem, target)
    return (Candidate(work(NAME, sizes, serial), lambda: plan_with(sizes)),)


@lru_cache(maxsize=8)
def _sizes(problem: Problem, target: Target) -> GroupedSizes:
    """Return the sizes, worked out once for callers that ask in a row."""
    return GroupedSizes(problem, target)


@lru_cache(maxsize=8)
def _filter_sizes(problem: Problem, target: Target) -> GroupedFilterSizes:
    return GroupedFilterSizes(problem, target)


def plan_with(sizes: GroupedSizes) -> Plan:
    """Plan a forward pass or an input gradient with given sizes."""
    problem, block = sizes.problem, sizes.block
    rows, cols = AxisClasses(sizes.rows), AxisClasses(sizes.cols)
    table = BlockTable(
        rows,
        cols,
        block.rows,
        source_cols=sizes.cols.source,
        contract=sizes.contract,
        weights=sizes.outputs * sizes.lanes,
    )
    kernel = GroupedKernel(
        problem.dtype.short,
        sizes.depth,
        sizes.width,
        sizes.pixels,
        sizes.outputs,
        planes=sizes.planes,
        levels=sizes.contract.levels,
        block=sizes.contract.block if in_blocks(sizes.contract, sizes.taps) else sizes.depth,
        bias=problem.adds_bias,
    )
    read = max(each.source_count for each in table.blocks)
    staged = block.images * read * sizes.cols.source * sizes.depth * sizes.lanes
    pixels = block.images * block.rows * sizes.cols.target
    sums_at = whole_lines(staged, sizes.number)
    sources_at = sums_at + whole_lines(pixels * sizes.width * sizes.lanes, sizes.number)
    listed = pixels + sizes.pixels * (1 + len(rows.walks) * len(cols.walks))
    targets_at = sources_at + whole_lines(listed * 8 // sizes.number, sizes.number)
    scratch = targets_at * sizes.number + listed * 8
    words = in_order(
        WORDS,
        source_rows=sizes.rows.source,
        source_cols=sizes.cols.source,
        target_rows=sizes.rows.target,
        target_cols=sizes.cols.target,
        lane_blocks=sizes.lane_blocks,
        row_blocks=sizes.row_blocks,
        images=block.images,
        batch=problem.batch,
        panel_ranges=block.ranges,
        range_panels=-(-sizes.panels // block.ranges),
        row_classes=len(rows.walks),
        col_classes=len(cols.walks),
        row_classes_at=table.row_classes_at,
        col_classes_at=table.col_classes_at,
        cols_at=table.cols_at,
        blocks_at=table.blocks_at,
        block_runs=sizes.contract.block_runs,
        packed_block=sizes.panels * sizes.panel_size,
        packed_panel=sizes.panel_size,
        sums_at=sums_at,
        sources_at=sources_at,
        targets_at=targets_at,
    )
    source: Operand = "first" if sizes.forward else "second"
    filter_: Operand = "second" if sizes.forward else "first"
    pack = GroupedPackKernel(
        problem.dtype.short,
        problem.group_in,
        problem.group_out,
        sizes.outputs,
        transposed=not sizes.forward,
    )
    beside: tuple[Operand, ...] = ("bias",) if kernel.bias else ()
    order = [row * problem.cols.window + col for row in rows.order for col in cols.order]
    steps = (
        Step(
            pack,
            (filter_, "packed", "table"),
            in_order(PACK_WORDS, groups=problem.groups, taps=sizes.taps, panels=sizes.panels),
            sizes.lane_blocks * sizes.taps,
            table=narrow(order),
        ),
        Step(
            kernel,
            (source, "packed", "result", *beside, "table"),
            words,
            sizes.items,
            1,
            scratch,
            narrow(table.numbers),
        ),
    )
    return Plan(
        problem,
        NAME,
        steps,
        packed_bytes=sizes.filter_size * sizes.number,
        serial=problem.flops < _SERIAL_FLOPS,
        story=_story(sizes, block),
    )


def _story(sizes: GroupedSizes, block: GroupedBlock) -> tuple[tuple[str, str], ...]:
    tile = f"{sizes.pixels} pixels x {sizes.outputs} channels x {sizes.lanes} groups"
    return (
        ("tile", tile),
        ("block", f"{block.images} images x {block.rows} rows x {sizes.lanes} groups"),
        ("panels", f"{sizes.panels}, cut into {block.ranges}"),
        ("items", str(sizes.items)),
    )
