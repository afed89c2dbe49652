"""Counts that the work of several families has in common."""

from __future__ import annotations

from math import prod

from ..._compiler.targets import Target
from ..._problem.convolution import Kind, Problem
from ..._problem.geometry import Axis, tap_span

_MOST_TAPS = 512
"""Taps of an axis that are counted one by one; of longer windows those beside the image are not left out."""

MEANT_FOR_OTHERS = 1.5
"""Handicap of dense algorithms on depthwise problems: their predictions are off by a quarter there, and those of the
depthwise ones too. With it the picks of the depthwise lists take no longer than those of rules made for them did."""

_KINDS = {Kind.FORWARD: "forward", Kind.INPUT_GRADIENT: "input", Kind.FILTER_GRADIENT: "filter"}


def kind_of_work(algorithm: str, problem: Problem, *more: str) -> str:
    """Return the name of a kind of work: algorithm, operation, and what else there is to tell."""
    return " ".join((algorithm, _KINDS[problem.kind], *more))


def meetings(axis: Axis) -> int:
    """Return how often a tap of an axis meets a cell, over all windows.

    >>> from convgrad._problem.geometry import solve
    >>> meetings(solve(5, 3, 1, 1, "SAME"))
    13
    """
    if axis.window > _MOST_TAPS:
        return axis.window * axis.out
    spans = (tap_span(axis, tap) for tap in range(axis.window))
    return max(1, sum(span.last - span.first for span in spans))


def traffic(problem: Problem, target: Target) -> dict[str, float]:
    """Return the lines of operands and result by where they come from if the same call is repeated.

    What fits the second cache costs nothing here. A third cache that is half full begins to lose lines.
    """
    shapes = (problem.input_shape, problem.filter_shape, problem.output_shape)
    size = sum(map(prod, shapes)) * problem.dtype.itemsize
    if size <= target.l2_bytes:
        return {"near lines": 0.0, "far lines": 0.0}
    lost = min(1.0, max(0.0, 2 * size / target.l3_bytes - 1))
    return {"near lines": size * (1 - lost) / 64, "far lines": size * lost / 64}


def whole_lines(elements: int, size: int) -> int:
    """Round a number of elements of some size up to whole cache lines.

    >>> whole_lines(17, 4)
    32
    """
    return -(-elements * size // 64) * 64 // size
