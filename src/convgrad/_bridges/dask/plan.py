"""Which blocks a problem on chunked operands is computed in, and what of which chunks each block reads.

The problem's axes are cut independently, so a block is one range of each: images, rows, columns, groups, input channels
and output channels (of a group). Axes of the result give its chunks, axes that are summed over give partial sums. A
block is a `Problem` of its own. Nothing here knows Dask: chunks are tuples of sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, NamedTuple

from ..._base import dtypes
from ..._problem.convolution import Kind, Problem, Shape
from . import axes, halo
from .axes import AxisPart, Range
from .boxes import Box, Chunks, Overlaps
from .halo import Halo

SMALLEST = 1 << 20
"""Bytes below which no chunk of a result is, unless one of the operands' was, or the result is one chunk."""
LARGEST = 128 << 20
"""Bytes above which a block of a result is cut, unless the operands' chunks are larger: as large as Dask's own are."""
GATHERED = 64 << 20
"""Bytes of an image's block up to which chunks of channels that are summed over are brought together. One sum is
quicker than partial sums, and has the bits of a call without chunks."""
FAN_IN = 8
"""Partial sums that one task adds. The tree is the same for any number of workers: it follows from the chunks alone."""

Cut = tuple[Range, ...]


class PlannedBlock(NamedTuple):
    """One task: where its result goes, which of the partial sums it is, and what it computes from what."""

    place: tuple[int, ...]
    part: int
    problem: Problem
    lead: tuple[int, int]
    """Rows and columns of zeros in front of what the problem computes."""
    first: Box
    second: Box
    halo: Halo | None = None
    """How it is computed without a copy of its chunk, where that counts."""

    @property
    def shape(self) -> Shape:
        """Of the result, zeros in front included."""
        problem, (rows, cols) = self.problem, self.lead
        made = problem.result_shape
        ahead = (0, 0, 0, 0) if not any(self.lead) else ordered(problem, (0, rows, cols, 0))
        return tuple(size + more for size, more in zip(made, ahead, strict=True))


class Cuts(NamedTuple):
    """The ranges each axis is cut into. Rows and columns are the input's for an input gradient, else the output's."""

    batch: Cut
    rows: Cut
    cols: Cut
    groups: Cut
    inputs: Cut
    outputs: Cut


@dataclass(frozen=True)
class ChunkPlan:
    """A problem on chunked operands."""

    problem: Problem
    first: Chunks
    second: Chunks
    cuts: Cuts
    joined: tuple[Cut, ...]
    """Chunks of the result along each of its axes: its blocks, or several of them together."""

    @property
    def chunks(self) -> Chunks:
        """Chunks of the result."""
        return tuple(tuple(each.size for each in cut) for cut in self.joined)

    @cached_property
    def blocks_along(self) -> tuple[Cut, ...]:
        """Blocks of the result along each of its axes."""
        return _along_result(self.problem, self.cuts)

    @property
    def parts(self) -> int:
        """Partial sums of each block of the result."""
        cuts = self.cuts
        return {
            Kind.FORWARD: len(cuts.inputs),
            Kind.INPUT_GRADIENT: len(cuts.outputs),
            Kind.FILTER_GRADIENT: len(cuts.batch) * len(cuts.rows) * len(cuts.cols),
        }[self.problem.kind]

    def part_place(self, part: int) -> tuple[int, ...]:
        """Return where a partial sum's cells lie: its number along each axis that is summed over."""
        if self.problem.kind is not Kind.FILTER_GRADIENT:
            return (part,)
        rows, cols = len(self.cuts.rows), len(self.cuts.cols)
        return part // (rows * cols), part // cols % rows, part % cols

    @property
    def filter_operand(self) -> int | None:
        return filter_operand(self.problem)

    @property
    def result_is_joined(self) -> bool:
        return self.joined != self.blocks_along

    def blocks(self) -> Iterator[PlannedBlock]:
        """Yield the blocks, partial sums of one place in the order in which they are added."""
        problem, cuts = self.problem, self.cuts
        kind = problem.kind
        dtype = dtypes.accumulator(problem.dtype) if self.parts > 1 else problem.dtype
        whole = kind is Kind.INPUT_GRADIENT
        solve = axes.for_cells if whole else axes.for_outputs
        rows = [solve(problem.rows, each) for each in cuts.rows]
        cols = [solve(problem.cols, each) for each in cuts.cols]
        image = Overlaps(self.first) if kind is not Kind.INPUT_GRADIENT else None
        taps = Overlaps(self.second if kind is Kind.FORWARD else self.first)
        grad = Overlaps(self.second) if kind is not Kind.FORWARD else None
        numbered = [list(enumerate(cut)) for cut in (cuts.groups, cuts.inputs, cuts.outputs)]
        for (gi, groups), (ci, inputs), (ki, outputs) in product(*numbered):
            of_input, of_output, of_filter = _channels(problem, groups, inputs, outputs)
            filters = None if kind is Kind.FILTER_GRADIENT else taps.box(of_filter)
            for (ni, images), (pi, row), (qi, col) in product(
                enumerate(cuts.batch), enumerate(rows), enumerate(cols)
            ):
                part = replace(
                    problem,
                    batch=images.size,
                    rows=row.axis,
                    cols=col.axis,
                    groups=groups.size,
                    group_in=inputs.size,
                    group_out=outputs.size,
                    dtype=dtype,
                )
                boxes: list[Box] = []
                if image is not None:
                    place = (images, row.cells, col.cells, of_input)
                    boxes.append(image.box(ordered(problem, place)))
                if filters is not None:
                    boxes.append(filters)
                if grad is not None:
                    place = (images, row.outputs, col.outputs, of_output)
                    boxes.append(grad.box(ordered(problem, place)))
                at, number = self._number(ni, pi, qi, gi, ci, ki)
                split = self._halo(part, row, col, boxes[self.haloed])
                lead = (row.lead, col.lead)
                yield PlannedBlock(at, number, part, lead, boxes[0], boxes[1], split)

    @property
    def haloed(self) -> int:
        """Which operand is the image that windows reach over chunks of."""
        return 1 if self.problem.kind is Kind.INPUT_GRADIENT else 0

    def _halo(self, part: Problem, row: AxisPart, col: AxisPart, box: Box) -> Halo | None:
        """Return how a block is computed around the one whole chunk in its middle, if it is."""
        if len(box.pieces) < 2 or part.is_empty:
            return None
        if part.kind is Kind.FILTER_GRADIENT and self.parts == 1:
            return None  # what is added in float64 would not be rounded
        chunks = (self.first, self.second)[self.haloed]
        piece = box.pieces[box.middle]
        shape = tuple(sizes[at] for sizes, at in zip(chunks, piece.chunk, strict=True))
        sizes = tuple(each.size for each in piece.inside)
        _, rows, cols, _ = by_axis(part, tuple(zip(piece.at, sizes, strict=True)))
        beside = by_axis(part, tuple(zip(box.shape, sizes, strict=True)))
        only_around = all(size == whole for size, whole in (beside[0], beside[3]))
        if sizes != shape or not only_around:
            return None
        if not halo.worth_it(part, prod(shape) * part.dtype.itemsize):
            return None
        starts = (row.outputs, col.outputs) if self.haloed else (row.cells, col.cells)
        centre = [
            Range(start.begin + at, start.begin + at + size)
            for start, (at, size) in zip(starts, (rows, cols), strict=True)
        ]
        return halo.around(self.problem, part, row, col, (centre[0], centre[1]))

    def _number(
        self, ni: int, pi: int, qi: int, gi: int, ci: int, ki: int
    ) -> tuple[tuple[int, ...], int]:
        """Return the place of a block in the result, and its number among the partial sums of that place."""
        problem, cuts = self.problem, self.cuts
        if problem.kind is Kind.FILTER_GRADIENT:
            place = (0, 0, gi, 0) if problem.depthwise else (0, 0, ci, gi + ki)
            return place, (ni * len(cuts.rows) + pi) * len(cuts.cols) + qi
        forward = problem.kind is Kind.FORWARD
        channel = gi + (ki if forward else ci)  # one of the two is the only one
        return ordered(problem, (ni, pi, qi, channel)), ci if forward else ki


def cut(problem: Problem, first: Chunks, second: Chunks) -> ChunkPlan:
    """Cut a problem by the chunks of its operands."""
    cuts = _cut_large(problem, _cut(problem, first, second), first, second)
    along = _along_result(problem, cuts)
    if problem.kind is not Kind.FILTER_GRADIENT:
        along = _join_small(problem, along, first, second)
    return ChunkPlan(problem, first, second, cuts, along)


def filter_operand(problem: Problem) -> int | None:
    """Return which operand of a problem is the filter: the first, the second, or none."""
    places = {Kind.FORWARD: 1, Kind.INPUT_GRADIENT: 0, Kind.FILTER_GRADIENT: None}
    return places[problem.kind]


def one_group(problem: Problem) -> bool:
    """Tell whether channels are all connected: then their chunks are input and output channels, else groups."""
    return problem.groups == 1 and not problem.depthwise


def _cut(problem: Problem, first: Chunks, second: Chunks) -> Cuts:
    kind, p = problem.kind, problem
    groups: Cut = (Range(0, p.groups),)
    inputs: Cut = (Range(0, p.group_in),)
    outputs: Cut = (Range(0, p.group_out),)
    if kind is Kind.FILTER_GRADIENT:
        x, g = by_axis(p, first), by_axis(p, second)
        batch = axes.ranges(axes.edges(max(g[0], x[0], key=_filled)), p.batch)
        rows, cols = (
            axes.ranges(axes.edges(of_g), axis.out)
            if _filled(of_g) >= _filled(of_x)
            else axes.outputs_of(axis, of_x)
            for axis, of_x, of_g in ((p.rows, x[1], g[1]), (p.cols, x[2], g[2]))
        )
        if one_group(p):
            inputs = axes.ranges(axes.edges(x[3]), p.group_in)
            outputs = axes.ranges(axes.edges(g[3]), p.group_out)
        else:
            finer = (
                (g[3], p.group_out)
                if _filled(g[3]) >= _filled(x[3]) and p.group_out
                else (x[3], p.group_in)
            )
            groups = _group_cuts(p, *finer)
        return Cuts(batch, rows, cols, groups, inputs, outputs)
    forward = kind is Kind.FORWARD
    image = by_axis(p, first if forward else second)
    taps = second if forward else first
    cut = axes.outputs_of if forward else axes.cells_of
    batch = axes.ranges(axes.edges(image[0]), p.batch)
    rows, cols = cut(p.rows, image[1]), cut(p.cols, image[2])
    if not one_group(p):
        groups = _group_cuts(p, image[3], p.group_in if forward else p.group_out)
    elif forward:
        inputs = axes.ranges(axes.edges(image[3]), p.group_in)
        outputs = axes.ranges(axes.edges(taps[3]), p.group_out)
        inputs = _gathered(p, image, inputs)
    else:
        inputs = axes.ranges(axes.edges(taps[2]), p.group_in)
        outputs = axes.ranges(axes.edges(image[3]), p.group_out)
        outputs = _gathered(p, image, outputs)
    return Cuts(batch, rows, cols, groups, inputs, outputs)


def _filled(chunks: Sequence[int]) -> int:
    """Return how many chunks have any cells."""
    return sum(size > 0 for size in chunks)


def _group_cuts(problem: Problem, chunks: Sequence[int], per_group: int) -> Cut:
    per_group = max(per_group, 1)
    return axes.ranges((edge // per_group for edge in axes.edges(chunks)), problem.groups)


def _gathered(problem: Problem, image: Chunks, cut: Cut) -> Cut:
    """Join chunks of channels that are summed over, as far as a block of all of them is not too large."""
    pixels = prod(max(each, default=0) for each in image[:3])
    nbytes = pixels * sum(image[3]) * problem.dtype.itemsize
    return axes.joined(cut, min(len(cut), max(1, -(-nbytes // GATHERED))))


def _cut_large(problem: Problem, cuts: Cuts, first: Chunks, second: Chunks) -> Cuts:
    """Halve blocks of the result that are too large: images, then rows, columns and channels."""
    if problem.kind is Kind.FILTER_GRADIENT:
        return cuts  # as large as the filter, or its part
    most = max(LARGEST, *(_most_bytes(problem, each) for each in (first, second)))
    made = "outputs" if problem.kind is Kind.FORWARD else "inputs"
    for name in ("batch", "rows", "cols", made if one_group(problem) else "groups"):
        while True:
            along = _along_result(problem, cuts)
            sizes = [max(each.size for each in cut) for cut in along]
            cut: Cut = getattr(cuts, name)
            if prod(sizes) * problem.dtype.itemsize <= most or max(r.size for r in cut) < 2:
                break
            cuts = cuts._replace(**{name: axes.halved(cut)})
    return cuts


def _join_small(
    problem: Problem, along: tuple[Cut, ...], first: Chunks, second: Chunks
) -> tuple[Cut, ...]:
    """Join blocks of a result until none is smaller than promised; along the axis that has most, first."""
    image = first if problem.kind is Kind.FORWARD else second
    least, item = min(SMALLEST, _least_bytes(problem, image)), problem.dtype.itemsize
    if _most_bytes(problem, image) < SMALLEST:
        return along  # small chunks are what was asked for
    while True:
        smallest = prod(min(each.size for each in cut) for cut in along) * item
        largest = prod(max(each.size for each in cut) for cut in along) * item
        most = max(range(len(along)), key=lambda axis: len(along[axis]))
        # The largest too: a sliver at an operand's edge says nothing of what chunks should be.
        if (smallest >= least and largest >= SMALLEST) or len(along[most]) == 1:
            return along
        cut = axes.joined(along[most], -(-len(along[most]) // 2))
        along = (*along[:most], cut, *along[most + 1 :])


def _most_bytes(problem: Problem, chunks: Chunks) -> int:
    return prod(max(each, default=0) for each in chunks) * problem.dtype.itemsize


def _least_bytes(problem: Problem, chunks: Chunks) -> int:
    """Return the bytes of an operand's smallest chunk that has any."""
    sizes = (min((size for size in each if size), default=0) for each in chunks)
    return prod(sizes) * problem.dtype.itemsize


def _along_result(problem: Problem, cuts: Cuts) -> tuple[Cut, ...]:
    """Return the ranges of the result's four axes."""
    p = problem
    if p.kind is Kind.FILTER_GRADIENT:
        taps = ((Range(0, p.rows.window),), (Range(0, p.cols.window),))
        if p.depthwise:
            return (*taps, cuts.groups, cuts.outputs)
        outputs = cuts.outputs if one_group(p) else _times(cuts.groups, p.group_out)
        return (*taps, cuts.inputs, outputs)
    forward = p.kind is Kind.FORWARD
    per_group, cut = (p.group_out, cuts.outputs) if forward else (p.group_in, cuts.inputs)
    channels = cut if one_group(p) else _times(cuts.groups, per_group)
    return ordered(p, (cuts.batch, cuts.rows, cuts.cols, channels))


def _times(cut: Cut, factor: int) -> Cut:
    return tuple(Range(begin * factor, end * factor) for begin, end in cut)


def _channels(
    problem: Problem, groups: Range, inputs: Range, outputs: Range
) -> tuple[Range, Range, tuple[Range, ...]]:
    """Return the channels of the input and of the output that a block has, and its part of the filter."""
    p = problem
    taps = (Range(0, p.rows.window), Range(0, p.cols.window))
    if one_group(p):
        return inputs, outputs, (*taps, inputs, outputs)
    (of_input,), (of_output,) = _times((groups,), p.group_in), _times((groups,), p.group_out)
    filters = (groups, outputs) if p.depthwise else (inputs, of_output)
    return of_input, of_output, (*taps, *filters)


def by_axis(problem: Problem, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what stands in the layout's order in the order images, rows, columns, channels."""
    if problem.data_format == "NHWC":
        return values
    return values[0], values[2], values[3], values[1]


def ordered(problem: Problem, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what stands in the order images, rows, columns, channels in the layout's."""
    if problem.data_format == "NHWC":
        return values
    return values[0], values[3], values[1], values[2]
