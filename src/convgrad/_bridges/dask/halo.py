"""Blocks whose windows reach over their chunk, computed without a copy of the chunk.

The core is computed on the chunk as it lies in memory, as if there were zeros around it. What its neighbours add is
computed apart, in bands along the edges, whose operands are small: the cells beside the edge and the neighbours'
strips. Bands of an image replace what the core has put there; bands of a filter gradient are added to it.

Copying a chunk takes 7 ms per 64 MB, where a depthwise 3x3 convolution of it takes 10. Where there is more to compute
for each cell the copy does not count, and one problem is simpler than five.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import NamedTuple

from ..._problem import geometry
from ..._problem.convolution import Kind, Problem
from ..._problem.geometry import Axis
from . import axes
from .axes import AxisPart, Range

LEAST = 4 << 20
"""Bytes of a chunk from which on it is not copied: bands are four calls more, and as many problems to plan."""
MOST_FLOPS = 512
"""Floating point operations for each cell up to which the copy would count: beyond, it is less than 5% of the time."""
MOST_AREA = 4
"""Bands may have the area of the block divided by this; else they are most of the work."""


class Band(NamedTuple):
    """A problem along an edge."""

    problem: Problem
    inside: tuple[Range, Range]
    """Rows and columns of the block's image that it reads."""
    at: tuple[Range, Range]
    """Rows and columns of the result that it makes, or of `out_backprop` that a filter gradient reads."""


class Halo(NamedTuple):
    """A block in two steps."""

    core: Problem
    bands: tuple[Band, ...]


class _Edges(NamedTuple):
    """Along one axis: the core, and what lies beside it at both ends, counted from the block's beginning."""

    core: Axis
    before: Range
    after: Range


def around(
    whole: Problem, part: Problem, rows: AxisPart, cols: AxisPart, centre: tuple[Range, Range]
) -> Halo | None:
    """Split a block around the chunk in its middle, whose rows and columns are given; None where it must be copied.

    `whole` is the problem of all chunks, `part` that of the block. `rows` and `cols` are the block's.
    """
    edges = {
        Kind.FORWARD: _of_outputs,
        Kind.INPUT_GRADIENT: _of_cells,
        Kind.FILTER_GRADIENT: _of_taps,
    }[part.kind]
    found = [
        edges(axis, each, middle)
        for axis, each, middle in zip((whole.rows, whole.cols), (rows, cols), centre, strict=True)
    ]
    along_rows, along_cols = found
    if along_rows is None or along_cols is None:
        return None
    extent = (rows.cells.size, cols.cells.size)
    if part.kind is Kind.FORWARD:
        extent = (rows.outputs.size, cols.outputs.size)
    top, bottom = along_rows.before, along_rows.after
    left, right = along_cols.before, along_cols.after
    middle, everywhere = Range(top.end, bottom.begin), Range(0, extent[1])
    places = [(top, everywhere), (bottom, everywhere), (middle, left), (middle, right)]
    area = sum(prod(each.size for each in place) for place in places)
    if area * MOST_AREA > prod(extent):
        return None
    bands = [_band(part, rows, cols, place) for place in places if all(r.size for r in place)]
    core = replace(part, rows=along_rows.core, cols=along_cols.core)
    return Halo(core, tuple(band for band in bands if not band.problem.is_empty))


def _band(part: Problem, rows: AxisPart, cols: AxisPart, place: tuple[Range, Range]) -> Band:
    """Return the problem of a band, which is a block of the block."""
    solve = axes.for_outputs if part.kind is Kind.FORWARD else axes.for_cells
    found = [
        solve(axis, wanted) for axis, wanted in zip((part.rows, part.cols), place, strict=True)
    ]
    problem = replace(part, rows=found[0].axis, cols=found[1].axis)
    cells = tuple(Range(each.cells.begin + each.lead, each.cells.end) for each in found)
    outputs = tuple(each.outputs for each in found)
    reads, makes = {
        Kind.FORWARD: (cells, outputs),
        Kind.INPUT_GRADIENT: (outputs, cells),
        Kind.FILTER_GRADIENT: (cells, outputs),
    }[part.kind]
    return Band(problem, (reads[0], reads[1]), (makes[0], makes[1]))


def _of_outputs(axis: Axis, part: AxisPart, chunk: Range) -> _Edges | None:
    """Split outputs: those that read cells in front of the chunk, those that read only the chunk, those behind."""
    wanted, reach = part.outputs, geometry.reach(axis.window, axis.dilation)
    core = _core(axis, wanted.begin, wanted.size, chunk)
    if core is None:
        return None
    first = wanted.begin if chunk.begin == 0 else -(-(chunk.begin + axis.before) // axis.stride)
    last = wanted.end
    if chunk.end < axis.size:
        last = (chunk.end + axis.before - reach) // axis.stride + 1
    return _checked(core, first - wanted.begin, last - wanted.begin, wanted.size)


def _of_cells(axis: Axis, part: AxisPart, chunk: Range) -> _Edges | None:
    """Split cells of an input gradient: those that outputs in front of the chunk of outputs read, and so on."""
    wanted, reach = part.cells, geometry.reach(axis.window, axis.dilation)
    pad = wanted.begin + axis.before - chunk.begin * axis.stride
    after = max(0, (chunk.size - 1) * axis.stride + reach - pad - wanted.size)
    core = axis._replace(size=wanted.size, before=pad, after=after, out=chunk.size)
    if part.lead or pad < 0 or not _is_solved(core):
        return None
    first, last = wanted.begin, wanted.end
    if chunk.begin > 0:
        first = (chunk.begin - 1) * axis.stride + reach - axis.before
    if chunk.end < axis.out:
        last = chunk.end * axis.stride - axis.before
    return _checked(core, first - wanted.begin, last - wanted.begin, wanted.size)


def _of_taps(axis: Axis, part: AxisPart, chunk: Range) -> _Edges | None:
    """Split the cells a filter gradient reads: in front of the chunk, the chunk, behind it."""
    core = _core(axis, part.outputs.begin, part.outputs.size, chunk)
    if core is None:
        return None
    cells = part.cells
    return _checked(core, chunk.begin - cells.begin, chunk.end - cells.begin, cells.size)


def _core(axis: Axis, first: int, count: int, chunk: Range) -> Axis | None:
    """Return some outputs as those of a convolution of one chunk with zeros around it, if they are."""
    pad = chunk.begin - (first * axis.stride - axis.before)
    stop = (count - 1) * axis.stride + geometry.reach(axis.window, axis.dilation) - pad
    core = axis._replace(size=chunk.size, before=pad, after=max(0, stop - chunk.size), out=count)
    return core if pad >= 0 and _is_solved(core) else None


def _is_solved(axis: Axis) -> bool:
    pads = (axis.before, axis.after)
    return geometry.solve(axis.size, axis.window, axis.stride, axis.dilation, pads) == axis


def _checked(core: Axis, first: int, last: int, size: int) -> _Edges | None:
    """Return the split, unless the ends meet."""
    first, last = max(first, 0), min(last, size)
    return _Edges(core, Range(0, first), Range(last, size)) if first < last else None


def worth_it(problem: Problem, chunk_bytes: int) -> bool:
    """Tell whether copying chunks of an image would count."""
    cells = prod(
        problem.input_shape if problem.kind is not Kind.INPUT_GRADIENT else problem.output_shape
    )
    return chunk_bytes >= LEAST and problem.flops <= MOST_FLOPS * cells
