"""Depthwise convolution and its gradients on channels-last images of few channels, as planes of flat rows.

A row of W pixels and C channels is one vector of W*C elements; a tap is a shift by C times its offset, and the weights
repeat after C lanes.

Where windows move by several columns the pixels of a row are parted into sub-rows, or woven from them. With a
multiplier M each channel is copied M times, so that a row has W*C*M elements; if M fills vectors, it is not copied but
spread when it is read. The kernel and most of the schedule are those of `depthwise_plane`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._compiler.codegen import arithmetic, element
from ..._compiler.targets import Target
from ..._problem.convolution import Kind, Problem
from ..._problem.sums.pixels import along_rows
from ..shared.table import Candidate
from . import schedule

NAME = "depthwise_flat"

_MOST_OUTPUTS = 64
"""Output channels: a filter gradient has sums for each place a channel may have in a vector."""


def why_not(problem: Problem, target: Target) -> str | None:
    """Return why this algorithm cannot compute the problem, or None if it can."""
    if problem.data_format != "NHWC":
        return "only NHWC"
    if (problem.in_c, problem.out_c) == (1, 1):
        return "only several channels: one is a plane"
    if problem.group_out != 1 and problem.kind is Kind.INPUT_GRADIENT:
        return "no input gradients of multipliers"
    if problem.kind is Kind.FILTER_GRADIENT:
        if not along_rows(problem):
            return "the contract adds its pixels in one chain, not along rows"
        return schedule.refusal(problem, target, problem.out_c)
    if problem.dtype.is_integer:
        return "no integers"
    lanes = target.lanes(arithmetic(element(problem.dtype.short)).size)
    if problem.in_c >= lanes:
        return f"channels fill a vector ({problem.in_c} >= {lanes})"
    if problem.out_c > _MOST_OUTPUTS:
        return f"more than {_MOST_OUTPUTS} output channels"
    return schedule.refusal(problem, target, problem.out_c)


def candidates(problem: Problem, target: Target) -> Sequence[Candidate]:
    """Offer the tile, the blocks of rows and the split of the work that a rule chooses."""
    return schedule.offered(problem, target, NAME, problem.out_c)
