"""The dense filter gradient, grouped or not, of any geometry, layout and float dtype.

``dw[r, s, c, g, k] = sum over n, p, q of x[n, p@r, q@s, g, c] * dy[n, p, q, g, k]``. Seen from one tap it is a
product of two long thin matrices whose rows are pixels, so the pixels are what is cut into chunks that fit the
second-level cache, and a tile of c x k stays in registers while a chunk's pixels run by. This module holds the
schedule; the mechanism is in `kernel`, the geometry in `tables`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Literal

from ..._compiler.codegen import arithmetic, element
from ..._compiler.targets import Target
from ..._problem.convolution import Kind, Problem
from ..._problem.sums.pixels import along_rows
from ..plan import Operand, Plan, Step
from ..shared import reduce
from ..shared.amounts import whole_lines
from ..shared.gather import MOST_LISTED, listed_taps
from ..shared.table import Candidate
from ..shared.words import FARTHEST, in_order
from . import choice, lists, merge, tables, work
from .choice import schedules
from .sizes import Sizes, flat
from .words import SUM_WORDS, WORDS, DenseFilterKernel

_CLAIM = 1_000_000
"""Flops worth a thread's claim: 20 us of one AVX2 core, some ten times what waking a thread costs."""

NAME = choice.NAME

_MOST_PAIRS = 1 << 22
"""Entries of the lists of pixels, at most: 32 MB a thread. Windows as large as a large image need more."""


def why_not(problem: Problem, target: Target) -> str | None:
    """Return why this algorithm cannot compute the problem, or None if it can."""
    if problem.kind is not Kind.FILTER_GRADIENT:
        return "only filter gradients"
    if problem.dtype.is_integer:
        return "no integers"
    if problem.is_empty:
        return "nothing to add up"
    if along_rows(problem):
        return "the contract adds its pixels along rows"
    if (taps := listed_taps(problem)) > MOST_LISTED:
        return f"the lists of taps would have {taps} entries"
    if max(size for axis in flat(problem)[1:] for size in (axis.size, axis.out)) > FARTHEST:
        return f"the table holds places along an axis up to {FARTHEST}"
    pairs = schedules(problem, target)[0].pairs
    if pairs > _MOST_PAIRS:
        return f"the lists of pixels would have {pairs} entries"
    return None


def candidates(problem: Problem, target: Target) -> Sequence[Candidate]:
    """Offer the best of all splits of the work, and then the next best."""
    serial = problem.flops < work.SERIAL_FLOPS
    return [
        Candidate(
            work.work(NAME, problem, target, it, serial), partial(_plan, problem, it), _label(it)
        )
        for it in schedules(problem, target)
    ]


def at_least(problem: Problem, target: Target) -> float:
    """Return microseconds that none of them beats: to list them takes milliseconds."""
    if choice.folds(problem):
        return 0.0
    return work.at_least(NAME, problem, target, choice.tile(problem, target))


def _label(it: Sizes) -> str:
    return f"{it.slices} x {it.group_parts} x {it.tile_parts} x {it.panel_parts}"


def _plan(problem: Problem, it: Sizes) -> Plan:
    out: Operand = "result" if it.direct else "partial"
    dtype, summed = problem.dtype.short, _summed(problem)
    wide = arithmetic(element(dtype))
    partial_bytes = it.partial_bytes
    sums_at = whole_lines(partial_bytes // wide.size, wide.size)
    kernel = DenseFilterKernel(
        dtype=dtype,
        data_format=problem.data_format,
        out=dtype if it.direct else wide.short,
        rows=it.rows,
        few=it.few,
        vectors=it.vectors,
        diagonal=it.diagonal,
        sets=it.contract.chains,
        folded=bool(it.fold),
        straight=it.straight,
        prefetch=it.prefetch,
        sums=summed,
    )
    table, words, scratch, sums_stack_at = _tables(problem, it, summed)
    operands: tuple[Operand, ...] = ("first", "second", out, "table")
    if summed:
        operands = ("first", "second", out, "partial", "table")
        words += in_order(
            SUM_WORDS,
            sums_at=sums_at,
            sums_pitch=problem.bias_c,
            sums_stack_at=sums_stack_at,
        )
    least = min(it.grain, -(-_CLAIM * it.items // max(1, problem.flops)))
    steps = [Step(kernel, operands, words, it.items, it.grain, scratch, table, max(1, least))]
    if not it.direct:
        last = merge.step(
            dtype,
            slices=it.slices,
            taps=it.taps,
            group_in=it.out_rows // it.merged,
            group_out=it.group_out // it.merged,
            groups=it.groups * it.merged,
            merged=it.merged,
            pitches=it.pitches,
        )
        steps.append(last)
    if summed:
        channels = problem.bias_c
        steps.append(
            reduce.tree_step(dtype, channels, it.slices, pitch=channels, start=sums_at, to="bias")
        )
        partial_bytes = (sums_at + it.slices * channels) * wide.size
    images, rows, cols = it.unit
    story = (
        ("tile", f"{it.rows} x {it.vectors * it.lanes} channels"),
        ("chunk", f"{images} images x {rows} rows x {cols} columns"),
        ("items", f"{it.slices} slices x {it.items // it.slices} blocks of channels"),
        ("columns of windows as channels", "yes" if it.fold else "no"),
        ("scratch", f"{steps[0].scratch_bytes >> 10} KB per thread"),
        ("partial sums", "none" if it.direct else f"{partial_bytes >> 10} KB"),
    )
    return Plan(
        problem,
        NAME,
        tuple(steps),
        partial_bytes=partial_bytes,
        serial=problem.flops < work.SERIAL_FLOPS,
        story=story,
    )


def _summed(problem: Problem) -> Literal["", "x", "y"]:
    """Return whose pixels the kernel adds up besides: those of x only where each has a window of its own.

    In NCHW a channel's pixels are added in another order, side by side in the lanes.
    """
    if problem.data_format == "NCHW":
        return ""
    if problem.bias == "output":
        return "y"
    axes = (problem.rows, problem.cols)
    alone = all(axis.window == axis.stride == 1 and axis.size == axis.out for axis in axes)
    return "x" if problem.bias == "input" and alone else ""


def _tables(
    problem: Problem, it: Sizes, summed: Literal["", "x", "y"]
) -> tuple[bytes, tuple[int, ...], int, int]:
    """Return the table, the words, the scratch and where the sums of pixels wait in it."""
    batch, rows, cols = flat(problem)
    nhwc = problem.data_format == "NHWC"
    table, places = tables.table(it.row_blocks, it.col_blocks, it.col_axis.size, not it.straight)
    unit, run = it.unit, it.contract.run
    last = batch - (it.image_blocks - 1) * unit.images
    x_zero = unit.images * it.row_blocks.most_cells * it.col_blocks.most_cells
    y_zero = prod(unit)
    width = it.vectors * it.lanes
    x_tile, y_tile = (
        _apart((x_zero + 1) * it.x_width, it.number),
        _apart((y_zero + 1) * width, it.number),
    )
    x_plane, y_plane = rows.size * cols.size, rows.out * cols.out
    x_tiles, y_tiles = it.most_tiles, it.most_panels
    slack = it.lanes
    y_at = -(-(x_tiles * x_tile + slack) // 16) * 16
    ends_at = -(-(y_at + y_tiles * y_tile + slack) // 16) * 16
    words_of = lists.WORD.size // it.number
    lists_at = ends_at + lists.index_room(1, it.runs) * words_of
    index_room = 0 if it.straight else lists.index_room(it.part_taps, it.runs)
    stack_at = whole_lines(lists_at + (index_room + it.pairs) * words_of, it.number)
    stack_pitch = whole_lines(it.stack_pitch, it.number)
    sums_stack_at = stack_at + it.levels * stack_pitch
    scratch = sums_stack_at * it.number
    if summed:
        tiles, part = (y_tiles, width) if summed == "y" else (x_tiles, it.x_width)
        scratch += it.levels * tiles * -(-part // it.lanes) * it.lanes * it.number
    slice_pitch, group_pitch, tap_pitch, row_pitch = it.pitches
    sizes = {
        "chunks": it.chunks,
        "groups": it.groups,
        "slice_chunks": it.units,
        "group_parts": it.group_parts,
        "tile_parts": it.tile_parts,
        "panel_parts": it.panel_parts,
        "keeps_x": int(it.keeps_x),
        "row_blocks": it.row_blocks.count,
        "col_blocks": it.col_blocks.count,
        "image_blocks": it.image_blocks,
        "images": unit.images,
        "last_images": last,
        "x_block_rows": unit.rows * it.row_axis.stride,
        "x_block_cols": unit.cols * it.col_axis.stride,
        "y_block_rows": unit.rows,
        "y_block_cols": unit.cols,
        "classes": len(it.row_blocks.classes) + len(it.col_blocks.classes),
        "taps": it.taps,
        "tap_parts": -(-it.row_axis.window // it.part_rows),
        "part_rows": it.part_rows,
        "tap_rows": it.row_axis.window,
        "tap_cols": it.col_axis.window,
        "ends_at": ends_at,
        "lists_at": lists_at,
        "index_room": index_room,
        "stack_at": stack_at,
        "stack_pitch": stack_pitch,
        "run_images": run.images,
        "run_rows": run.rows,
        "run_cols": run.cols,
        "x_rows": rows.size,
        "x_cols": cols.size,
        "x_pixel": problem.in_c if nhwc else 1,
        "x_channel": 1 if nhwc else x_plane,
        "x_image": problem.in_c * x_plane,
        "x_channels": problem.in_c if not it.fold else it.group_in,
        "x_fold": problem.in_c,
        "x_before": cols.before if it.fold else 0,
        "x_window": cols.window,
        "x_step": cols.stride,
        "x_edges": int(
            it.fold > 0 and (cols.before > 0 or it.col_axis.size - cols.before > cols.size)
        ),
        "y_rows": rows.out,
        "y_cols": cols.out,
        "y_pixel": problem.out_c if nhwc else 1,
        "y_channel": 1 if nhwc else y_plane,
        "y_image": problem.out_c * y_plane,
        "y_channels": problem.out_c,
        "group_in": it.group_in,
        "group_out": it.group_out,
        "big_tiles": it.big_tiles,
        "tiles": it.tiles,
        "panels": it.panels,
        "whole_tiles": it.tiles if it.padded_in == it.out_rows else it.tiles - 1,
        "whole_panels": it.group_out // width,
        "x_tile": x_tile,
        "y_tile": y_tile,
        "x_zero": x_zero,
        "y_zero": y_zero,
        "y_at": y_at,
        "out_slice": slice_pitch,
        "out_group": group_pitch,
        "out_tap": tap_pitch,
        "out_row": row_pitch,
        "out_rows": it.out_rows,
        "out_cols": it.group_out if it.direct else it.padded_out,
    }
    return table, in_order(WORDS, **places, **sizes), scratch, sums_stack_at


def _apart(elements: int, size: int) -> int:
    """Return a distance of tiles that is whole lines, but no multiple of 1 KB: those meet in few sets of a cache."""
    line = 64 // size
    lines = -(-elements // line)
    return (lines + (lines % 16 == 0)) * line
