"""Dense 3x3 convolution of stride 1 by Winograd's F(2,3): forward and input gradient.

``y[p, q, k] = sum over r, s, c of x[p + r, q + s, c] * w[r, s, c, k]`` is computed for tiles of 2x2 outputs with 16
multiplications per channel pair instead of 36 (`winograd_scheme`). Two launches: the filter is transformed
(`filter_transform`), then everything else is one fused pass over blocks of tiles (`kernel`); or three, where few tiles
are shared by many items. This module holds the schedule, `sizes` its numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ..._compiler.targets import Target
from ..._problem.convolution import Problem
from ..._problem.sums.winograd import F2, RUN, refusal
from ..plan import Operand, Plan, Step
from ..shared.table import Candidate
from ..shared.winograd_scheme import SCHEMES
from .filter_transform import FilterTransformKernel
from .sizes import ITEMS, VECTORS, WinogradSizes
from .work import work

NAME = F2
WINOGRAD = "auto"
"""The least value of the switch that allows it."""

_LARGEST_SHARED = 8 << 20
"""Bytes of V that are written by a launch of their own: as much as the third cache holds beside the rest."""
_SERIAL_FLOPS = 400_000


def why_not(problem: Problem, target: Target) -> str | None:
    """Return why this algorithm cannot compute the problem, or None if it can."""
    return refusal(problem)


def candidates(problem: Problem, target: Target) -> Sequence[Candidate]:
    """Offer the block of tiles and the split of the panels that a rule chooses, with few tiles in two ways."""
    return offered(problem, target, 2, NAME)


def offered(problem: Problem, target: Target, outputs: int, name: str) -> Sequence[Candidate]:
    """Offer a scheme."""
    serial = problem.flops < _SERIAL_FLOPS
    ways = [WinogradSizes(problem, target, SCHEMES[outputs])]
    if ways[0].items < 2 * ITEMS and not serial:
        apart = replace(ways[0], apart=True)
        if apart.shared_bytes <= _LARGEST_SHARED:
            ways.append(apart)
    return [
        Candidate(
            work(name, it, serial),
            partial(_plan, problem, it, outputs, name),
            "input apart" if it.apart else "",
        )
        for it in ways
    ]


def _plan(problem: Problem, it: WinogradSizes, outputs: int, name: str) -> Plan:
    operands: tuple[Operand, ...] = ("first", "second", "packed", "result")
    first: tuple[Operand, ...] = ("second", "packed")
    if it.to_input:
        operands, first = ("second", "first", "packed", "result"), ("first", "packed")
    dtype = problem.dtype.short
    transform = Step(
        FilterTransformKernel(outputs, dtype, VECTORS, it.to_input),
        first,
        it.filter_words,
        problem.groups * it.panels * it.filter_blocks,
        grain=1,
    )
    steps = [transform]
    if it.apart:
        operands = (*operands, "partial")
        inputs = it.kernel("inputs")
        items = it.bundles * it.blocks * -(-it.block_tiles // inputs.piece)
        steps.append(Step(inputs, operands, it.words, items, 1, scratch_bytes=it.scratch_bytes))
    main = it.kernel("products" if it.apart else "fused")
    if main.bias:
        operands = (*operands, "bias")
    steps.append(Step(main, operands, it.words, it.items, scratch_bytes=it.scratch_bytes))
    return Plan(
        problem,
        name,
        tuple(steps),
        partial_bytes=it.shared_bytes,
        packed_bytes=4 * problem.groups * it.panels * it.scheme.frequencies * it.filter_pitch,
        serial=problem.flops < _SERIAL_FLOPS,
        story=(
            (
                "scheme",
                f"F({outputs},3): {outputs}x{outputs} outputs from {it.scheme.points}x{it.scheme.points} inputs",
            ),
            ("tile", f"{it.rows} tiles x {it.width} channels, runs of {RUN}"),
            ("tiles per block", str(it.block_tiles)),
            ("parts of the channels", str(it.parts)),
        ),
    )
