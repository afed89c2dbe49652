"""Winograd's identities for a filter of 3 taps: a few products in a transformed space instead of many plain ones.

Along one axis, m outputs of a 3-tap filter need ``points = m + 2`` products instead of 3 m:

    y = A^T ((G w) * (B^T x))        x: points inputs, w: 3 taps, y: m outputs, * lane by lane

and in two dimensions the same matrices act on rows and columns: U = G w G^T, V = B^T x B, y = A^T (U * V) A. Summed
over channels, U * V is one matrix product per frequency. F(2,3) does 2.25 times fewer multiplications than the plain
sum, F(4,3) 4 times fewer.

F(2,3) has only 0, 1, -1 and 1/2 in its matrices: whole numbers stay exact, and each output uses the numbers of its own
3x3 window and no others, so an infinity does not leak. F(4,3) divides by 24 and mixes neighbours with weights up to 5:
its errors are about ten times as large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..._compiler.codegen import KernelBuilder, Vector

Matrix = tuple[tuple[float, ...], ...]
Grid = list[list[Vector]]


@dataclass(frozen=True)
class Scheme:
    """One identity."""

    outputs: int
    """Along an axis: a tile is outputs x outputs."""
    input_matrix: Matrix
    """B^T."""
    filter_matrix: Matrix
    """G."""
    output_matrix: Matrix
    """A^T."""

    @property
    def points(self) -> int:
        """Inputs of a tile along an axis."""
        return self.outputs + 2

    @property
    def frequencies(self) -> int:
        return self.points**2


F2 = Scheme(
    outputs=2,
    input_matrix=((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
    filter_matrix=((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1)),
    output_matrix=((1, 1, 1, 0), (0, 1, -1, -1)),
)
F4 = Scheme(
    outputs=4,
    input_matrix=(
        (4, 0, -5, 0, 1, 0),
        (0, -4, -4, 1, 1, 0),
        (0, 4, -4, -1, 1, 0),
        (0, -2, -1, 2, 1, 0),
        (0, 2, -1, -2, 1, 0),
        (0, 4, 0, -5, 0, 1),
    ),
    filter_matrix=(
        (1 / 4, 0, 0),
        (-1 / 6, -1 / 6, -1 / 6),
        (-1 / 6, 1 / 6, -1 / 6),
        (1 / 24, 1 / 12, 1 / 6),
        (1 / 24, -1 / 12, 1 / 6),
        (0, 0, 1),
    ),
    output_matrix=(
        (1, 1, 1, 1, 1, 0),
        (0, 1, -1, 2, -2, 0),
        (0, 1, 1, 4, 4, 0),
        (0, 1, -1, 8, -8, 1),
    ),
)
SCHEMES = {2: F2, 4: F4}
"""By outputs of a tile."""


def both_ways(k: KernelBuilder, matrix: Matrix, grid: Grid) -> Grid:
    """Return matrix x grid x matrix^T."""
    width = len(grid[0])
    columns = [_apply(k, matrix, [row[j] for row in grid]) for j in range(width)]
    return [_apply(k, matrix, [column[i] for column in columns]) for i in range(len(matrix))]


def _apply(k: KernelBuilder, matrix: Matrix, values: Sequence[Vector]) -> list[Vector]:
    return [_combine(k, row, values) for row in matrix]


def _combine(k: KernelBuilder, weights: Sequence[float], values: Sequence[Vector]) -> Vector:
    """Return the weighted sum of values; it starts with a weight of 1 if there is one."""
    terms = [(w, v) for w, v in zip(weights, values, strict=True) if w]
    terms.sort(key=lambda term: term[0] != 1)
    shared = {abs(weight) for weight, _ in terms}
    if len(shared) == 1 and shared != {1}:
        # One multiplication behind the sum: fewer roundings than one per term.
        scale = shared.pop()
        total = _combine(k, [weight / scale for weight, _ in terms], [v for _, v in terms])
        return total * scale
    weight, total = terms[0]
    if weight != 1:
        total = total * weight
    for weight, value in terms[1:]:
        if weight == 1:
            total = total + value
        elif weight == -1:
            total = total - value
        else:
            total = k.fma(value, k.constant(value.element, value.lanes, weight), total)
    return total


def turned(matrix: Matrix) -> Matrix:
    """Return the transpose."""
    return tuple(zip(*matrix, strict=True))
