"""A plan of `dense_direct`: launches, words, tables and workspace, from the sizes in `sizes`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..plan import Operand, Plan, Step
from ..shared.amounts import whole_lines
from ..shared.levels import in_blocks
from ..shared.words import in_order
from . import turn
from .pack import WORDS as PACK_WORDS
from .pack import PackKernel
from .sizes import DirectSizes
from .tables import BlockTables, Taps
from .turn import TurnKernel
from .words import WORDS, DirectDenseKernel

_TURNED_ITEMS = 16
"""Items wanted of a source that is turned."""


@dataclass(frozen=True)
class _Cut:
    """The target cut into blocks."""

    images: int
    """Of a block."""
    block_rows: int
    block_cols: int
    row_blocks: int
    col_blocks: int
    blocks: int
    group_size: int
    """Numbers of one group that a block reads."""
    rows_at: int = 0
    """Where in the table the blocks of each axis are."""
    cols_at: int = 0
    table: bytes = b""
    far: bool = False
    """Whether the numbers of the table have 64 bits."""


def plan(name: str, it: DirectSizes) -> Plan:
    """Return the plan of some sizes under the name of the algorithm."""
    problem, tile = it.problem, it.tile
    cut = _flat(it) if it.flat else _listed(it)
    packs = it.packs(cut.blocks)
    beforehand = not packs and not it.in_place
    panels, panel_range = it.panels * it.groups, it.panel_range(cut.blocks)
    panel_ranges = -(-panels // panel_range)
    panel_at = whole_lines(it.groups * cut.group_size, it.number) if it.staged else 0
    pixels_at = panel_at + (whole_lines(it.taps * it.tap_size, it.number) if packs else 0)
    block_pixels = cut.images * cut.block_rows * cut.block_cols
    scratch = pixels_at + (block_pixels * it.panel if it.planes else 0)
    shape = {
        "depth": it.depth,
        "width": it.width,
        "groups": problem.groups,
        "taps": it.taps,
        "window_cols": problem.cols.window,
        "panels": it.panels,
    }
    line = 64 // it.number
    words = in_order(
        WORDS,
        **shape,
        **_pitches(it),
        filter_row=problem.groups * it.width,
        images=cut.images,
        batch=it.batch,
        row_blocks=cut.row_blocks,
        col_blocks=cut.col_blocks,
        panel_range=panel_range,
        panel_ranges=panel_ranges,
        rows_at=cut.rows_at,
        cols_at=cut.cols_at,
        block_pixels=block_pixels,
        block_size=block_pixels * it.depth,
        ahead=-(-tile.height * it.depth // panel_range // line) * line,
        group_size=cut.group_size,
        contract_block=it.contract.block,
        contract_blocks=it.contract.blocks,
        block_runs=it.contract.block_runs,
        panel_at=panel_at,
        pixels_at=pixels_at,
    )
    kernel = replace(_kernel(it, packs), far=cut.far)
    source: Operand = "first" if it.forward else "second"
    filter_: Operand = "second" if it.forward else "first"
    steps = []
    if beforehand:
        words_of_pack = in_order(PACK_WORDS, **shape)
        pack, items = _pack_kernel(it), panels * it.taps
        steps.append(Step(pack, (filter_, "packed"), words_of_pack, items, grain=4))
    if it.turned:
        steps.append(_turn(it, source))
        source = "partial"
    operands: tuple[Operand, ...] = (source, "packed" if beforehand else filter_, "result")
    if kernel.bias:
        operands = (*operands, "bias")
    items = cut.blocks * panel_ranges
    steps.append(
        Step(
            kernel,
            operands if it.flat else (*operands, "table"),
            words,
            items,
            # What follows what an item works on should be its thread's next one, for the prefetch to help.
            max(1, items // 32) if kernel.prefetch else 1,
            scratch * it.number,
            cut.table,
        )
    )
    return Plan(
        problem,
        name,
        tuple(steps),
        partial_bytes=it.source_bytes if it.turned else 0,
        packed_bytes=it.filter_bytes if beforehand else 0,
        serial=it.serial,
        story=_story(it, cut, panel_range, packs),
    )


def _flat(it: DirectSizes) -> _Cut:
    _, _, pixels = it.block()
    blocks = -(-it.pixels // pixels)
    return _Cut(1, 1, pixels, 1, blocks, blocks, pixels * it.depth * it.woven)


def _listed(it: DirectSizes) -> _Cut:
    images, rows, cols = it.cut()
    tap = it.depth * it.problem.groups * it.width if it.in_place else it.tap_size
    if it.dot:
        tap = it.depth
    window_cols = it.problem.cols.window
    taps = Taps(
        row=tap * window_cols,
        col=tap,
        cols=window_cols,
        depth=it.depth,
        woven=it.woven,
        reversed=not it.forward,
        source_col=it.depth * it.woven if it.staged else it.channels,
        contract=it.contract,
        rows=it.problem.rows.window,
    )
    tables = BlockTables(rows, cols, taps)
    return _Cut(
        images,
        rows.step,
        cols.step,
        len(rows.spans),
        len(cols.spans),
        -(-it.batch // images) * len(rows.spans) * len(cols.spans),
        it.group_size(images, rows, cols),
        tables.rows_at,
        tables.cols_at,
        tables.data,
        tables.far,
    )


def _pitches(it: DirectSizes) -> dict[str, int]:
    """Return the strides of source and target as they lie in memory, as words."""
    found = {}
    sizes = (
        ("source", it.rows.source, it.cols.source, it.channels, it.planes and not it.turned),
        ("target", it.rows.target, it.cols.target, it.problem.groups * it.width, it.planes),
    )
    for name, height, width, channels, planes in sizes:
        col = 1 if planes else channels
        found[f"{name}_image"] = height * width * channels
        found[f"{name}_row"] = width * col
        found[f"{name}_col"] = col
        found[f"{name}_plane"] = height * width if planes else 1
        found[f"{name}_cols"] = width
    return found


def _pack_kernel(it: DirectSizes) -> PackKernel:
    return PackKernel(
        it.problem.dtype.short,
        it.tile.vectors,
        transposed=not it.forward,
        whole=it.width >= it.panel,
        woven=it.woven,
        rows=it.dot,
    )


def _kernel(it: DirectSizes, packs: bool) -> DirectDenseKernel:
    dtype = it.problem.dtype
    return DirectDenseKernel(
        dtype.short,
        it.tile.height,
        it.tile.vectors,
        flat=it.flat,
        planes=it.planes,
        staged=it.staged,
        dot=it.contract.chains if it.dot else 0,
        woven=it.woven,
        in_place=it.in_place,
        pack=_pack_kernel(it) if packs else None,
        levels=it.contract.levels,
        blocked=in_blocks(it.contract, it.taps),
        narrow=it.narrow,
        prefetch=it.flat
        and it.groups == 1
        and not it.staged
        and it.source_bytes > 4 * it.target.l2_bytes,
        bias=it.problem.adds_bias,
    )


def _turn(it: DirectSizes, source: Operand) -> Step:
    """Return the launch that writes the source pixel by pixel."""
    wanted = max(1, -(-_TURNED_ITEMS // it.batch))
    part = max(1, it.source_pixels // wanted // it.lanes) * it.lanes
    parts = -(-it.source_pixels // part)
    words = in_order(
        turn.WORDS, channels=it.channels, pixels=it.source_pixels, parts=parts, part=part
    )
    return Step(TurnKernel(it.problem.dtype.short), (source, "partial"), words, it.batch * parts)


def _story(
    it: DirectSizes, cut: _Cut, panel_range: int, packs: bool
) -> tuple[tuple[str, str], ...]:
    size = f"{cut.images} x {cut.block_rows} x {cut.block_cols}"
    how = "by each item" if packs else "beforehand"
    source = "copied block by block" if it.staged else "read in place"
    return (
        ("tile", f"{it.tile.height} pixels x {it.panel} channels"),
        ("block", f"{cut.block_cols if it.flat else size} pixels, {cut.blocks} of them"),
        ("panels", f"{it.panels * it.groups}, {panel_range} at a time"),
        ("the filter is", "read in place" if it.in_place else f"packed {how}"),
        *([("groups in a vector", str(it.woven))] if it.woven > 1 else []),
        ("the source is", "turned beforehand" if it.turned else source),
    )
