"""One axis cut into parts: which cells of the image and which outputs belong together.

Output p reads the cells ``p*stride + r*dilation - before``. A part of the outputs needs a range of cells, which
overlaps the next part's where windows reach over; a part of the cells needs, for a gradient, all outputs whose windows
touch it. Both are convolutions of their own with other pads, so a part is an `Axis` again.

All in Python integers, without arrays.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from ..._problem import geometry
from ..._problem.geometry import Axis


class Range(NamedTuple):
    """Cells `[begin, end)`."""

    begin: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.begin


class AxisPart(NamedTuple):
    """A range of an axis of the image and the outputs it is computed with, as a problem's axis."""

    cells: Range
    outputs: Range
    axis: Axis
    lead: int = 0
    """Cells in front that no window touches: zeros of an input gradient. `axis` begins behind them."""


class Overlap(NamedTuple):
    """What of a chunk lies in a range: its number, the cells inside of it, and where they go."""

    chunk: int
    inside: Range
    at: int


def ranges(edges: Iterable[int], size: int) -> tuple[Range, ...]:
    """Cut `[0, size)` at some edges; ranges without cells are left out, unless there are no cells at all.

    >>> ranges([3, 3, 9], 5)
    (Range(begin=0, end=3), Range(begin=3, end=5))
    >>> ranges([0], 0)
    (Range(begin=0, end=0),)
    """
    cuts = sorted({min(max(edge, 0), size) for edge in edges} | {0, size})
    if len(cuts) == 1:
        return (Range(0, 0),)
    return tuple(map(Range, cuts, cuts[1:]))


def edges(chunks: Sequence[int]) -> list[int]:
    """Return where chunks end.

    >>> edges((4, 0, 3))
    [4, 4, 7]
    """
    return list(accumulate(chunks))


def outputs_of(axis: Axis, chunks: Sequence[int]) -> tuple[Range, ...]:
    """Cut the outputs where the image is cut: each belongs to the chunk that has the middle of its window.

    >>> outputs_of(geometry.solve(10, 3, 1, 1, "SAME"), (4, 6))
    (Range(begin=0, end=4), Range(begin=4, end=10))
    """
    middle = geometry.reach(axis.window, axis.dilation) // 2 - axis.before
    return ranges((-((middle - edge) // axis.stride) for edge in edges(chunks)), axis.out)


def cells_of(axis: Axis, chunks: Sequence[int]) -> tuple[Range, ...]:
    """Cut the image where the outputs are cut, so that `outputs_of` gives those cuts back.

    >>> cells_of(geometry.solve(10, 3, 2, 1, "SAME"), (2, 3))
    (Range(begin=0, end=4), Range(begin=4, end=10))
    """
    middle = geometry.reach(axis.window, axis.dilation) // 2 - axis.before
    # A stride's worth of edges would do: the one closest to the outputs' own, times the stride.
    shift = min(max(0, middle - axis.stride + 1), middle)
    return ranges((edge * axis.stride + shift for edge in edges(chunks)), axis.size)


def for_outputs(axis: Axis, wanted: Range) -> AxisPart:
    """Return the cells some outputs read, and the convolution that makes the outputs of them.

    >>> for_outputs(geometry.solve(10, 3, 1, 1, "SAME"), Range(4, 10))[:2]
    (Range(begin=3, end=10), Range(begin=4, end=10))
    """
    size, window, stride, dilation, before, _, _ = axis
    start = wanted.begin * stride - before
    stop = (wanted.end - 1) * stride + geometry.reach(window, dilation) - before
    begin, end = max(start, 0), min(stop, size)
    if begin >= end or not wanted.size:  # in the padding, all of it
        nothing = Axis(0, window, stride, dilation, 0, 0, wanted.size)
        return AxisPart(Range(0, 0), wanted, nothing)
    part = Axis(end - begin, window, stride, dilation, begin - start, stop - end, wanted.size)
    return AxisPart(Range(begin, end), wanted, part)


def for_cells(axis: Axis, wanted: Range) -> AxisPart:
    """Return the outputs whose windows touch some cells, and the convolution whose gradient those cells get.

    >>> for_cells(geometry.solve(10, 3, 1, 1, "SAME"), Range(4, 10))[:2]
    (Range(begin=4, end=10), Range(begin=3, end=10))
    """
    _, window, stride, dilation, before, _, out = axis
    reach = geometry.reach(window, dilation)
    first = max(0, -((reach - 1 - wanted.begin - before) // stride))
    last = min(out, (wanted.end - 1 + before) // stride + 1)
    if first >= last or not wanted.size or not window:
        nothing = Axis(wanted.size, window, stride, dilation, 0, 0, 0)
        return AxisPart(wanted, Range(0, 0), nothing)
    pad = wanted.begin + before - first * stride
    lead = max(0, -pad)
    pad, size = max(pad, 0), wanted.size - lead
    after = max(0, (last - first - 1) * stride + reach - pad - size)
    part = Axis(size, window, stride, dilation, pad, after, last - first)
    return AxisPart(wanted, Range(first, last), part, lead)


def overlaps(ends: Sequence[int], wanted: Range) -> list[Overlap]:
    """Return what of which chunks lies in a range; `ends` are the chunks' `edges`.

    >>> overlaps([4, 10], Range(3, 5))
    [Overlap(chunk=0, inside=Range(begin=3, end=4), at=0), Overlap(chunk=1, inside=Range(begin=0, end=1), at=1)]
    """
    found = []
    for number in range(bisect_right(ends, wanted.begin), len(ends)):
        start = ends[number - 1] if number else 0
        if start >= wanted.end:
            break
        begin, end = max(wanted.begin, start), min(wanted.end, ends[number])
        if begin < end:
            inside = Range(begin - start, end - start)
            found.append(Overlap(number, inside, begin - wanted.begin))
    return found


def halved(cut: Sequence[Range]) -> tuple[Range, ...]:
    """Cut each range once more in the middle, where it has two cells or more.

    >>> halved([Range(0, 1), Range(1, 4)])
    (Range(begin=0, end=1), Range(begin=1, end=2), Range(begin=2, end=4))
    """
    halves: list[Range] = []
    for begin, end in cut:
        middle = (begin + end) // 2
        halves += [Range(begin, middle)] if middle > begin else []
        halves.append(Range(middle, end))
    return tuple(halves)


def joined(cut: Sequence[Range], into: int) -> tuple[Range, ...]:
    """Join neighbours so that `into` ranges are left, of as equal numbers of old ones as can be.

    >>> joined([Range(0, 1), Range(1, 4), Range(4, 6)], 2)
    (Range(begin=0, end=1), Range(begin=1, end=6))
    """
    count = len(cut)
    stops = [count * (number + 1) // into for number in range(into)]
    return tuple(
        Range(cut[first].begin, cut[stop - 1].end)
        for first, stop in zip([0, *stops], stops, strict=False)
    )
