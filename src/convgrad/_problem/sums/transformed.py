"""The contract of Winograd's numbers as a program: transforms, products of each frequency, and the way back.

    y = A^T ((G w G^T) * (B^T x B)) A

Filters are transformed in float64 and rounded once, inputs in float32. A frequency is a sum over channels, in runs and
chains (`winograd.RUN`, `winograd.CHAIN`), transformed back in float64 and rounded once; then the bias is added. What is
not finite then is the plain sum in float64: taps in order, then channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..._base.dtypes import AnyArray
from .. import oracle
from ..convolution import Kind, Problem
from . import winograd
from .arithmetic import FLOAT32, FLOAT64, Numbers
from .fma import fma64
from .gather import is_coarse

Matrix = tuple[tuple[float, ...], ...]
Grid = list[list[AnyArray]]


class Identity(NamedTuple):
    """Matrices of an identity for three taps."""

    inputs: Matrix
    """B^T."""
    filters: Matrix
    """G."""
    outputs: Matrix
    """A^T: as many rows as a tile has outputs along an axis."""


IDENTITIES = {
    winograd.F2: Identity(
        ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
        ((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1)),
        ((1, 1, 1, 0), (0, 1, -1, -1)),
    ),
    winograd.F4: Identity(
        (
            (4, 0, -5, 0, 1, 0),
            (0, -4, -4, 1, 1, 0),
            (0, 4, -4, -1, 1, 0),
            (0, -2, -1, 2, 1, 0),
            (0, 2, -1, -2, 1, 0),
            (0, 4, 0, -5, 0, 1),
        ),
        (
            (1 / 4, 0, 0),
            (-1 / 6, -1 / 6, -1 / 6),
            (-1 / 6, 1 / 6, -1 / 6),
            (1 / 24, 1 / 12, 1 / 6),
            (1 / 24, -1 / 12, 1 / 6),
            (0, 0, 1),
        ),
        ((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1)),
    ),
}


class Across(NamedTuple):
    """One axis of a problem seen as a forward pass of stride 1."""

    written: int
    read: int
    dilation: int
    before: int


def compute(
    problem: Problem, first: AnyArray, second: AnyArray, bias: AnyArray | None, numbers: str
) -> AnyArray:
    """Return the sums of a forward pass or an input gradient, as float32: [n, row, column, group, channel]."""
    forward = problem.kind is Kind.FORWARD
    axes = (problem.rows, problem.cols)
    if forward:
        source = oracle.grouped_image(problem, first)
        weights = oracle.grouped_filter(problem, second)
        rows, cols = (Across(a.out, a.size, a.dilation, a.before) for a in axes)
    else:
        source = oracle.grouped_image(problem, second)
        weights = oracle.grouped_filter(problem, first)[::-1, ::-1].transpose(0, 1, 4, 3, 2)
        rows, cols = (Across(a.size, a.out, a.dilation, 2 * a.dilation - a.before) for a in axes)
    identity = IDENTITIES[numbers]
    grid = [[weights[r, s] for s in range(3)] for r in range(3)]
    packed = [
        [each.astype(np.float32).astype(np.float64) for each in line]
        for line in _both_ways(FLOAT64, identity.filters, grid)
    ]
    shape = (problem.batch, rows.written, cols.written, problem.groups, weights.shape[4])
    result = np.zeros(shape)
    for down in range(rows.dilation):
        for right in range(cols.dilation):
            at = (slice(None), slice(down, None, rows.dilation), slice(right, None, cols.dilation))
            if 0 not in result[at].shape:
                phases = ((rows, down), (cols, right))
                chain = 0 if is_coarse(problem) else winograd.CHAIN
                result[at] = _phase(identity, source, packed, phases, chain, result[at].shape)
    failed = ~np.isfinite(result)
    if bias is not None:
        result = FLOAT32.add(result, bias)
    if failed.any():
        exact = _plain(source, weights, rows, cols, result.shape)
        if bias is not None:
            exact = exact + bias
        result = np.where(failed, exact.astype(np.float32), result)
    return result


def _phase(
    identity: Identity,
    source: AnyArray,
    packed: Grid,
    phases: tuple[tuple[Across, int], tuple[Across, int]],
    chain: int,
    shape: tuple[int, ...],
) -> AnyArray:
    """Return the cells of one phase of a dilated window: an image of its own."""
    step = len(identity.outputs)
    tiles = [-(-size // step) for size in shape[1:3]]
    places = []
    for (axis, start), count in zip(phases, tiles, strict=True):
        at = start + axis.dilation * np.arange(count * step + 2) - axis.before
        places.append(np.where((at >= 0) & (at < axis.read), at, axis.read))
    pads = [(0, 0), (0, 1), (0, 1), (0, 0), (0, 0)]
    cells = np.pad(source, pads)[:, places[0]][:, :, places[1]]
    points = range(len(identity.inputs))
    reach = [count * step for count in tiles]
    grid = [
        [cells[:, i : i + reach[0] : step, j : j + reach[1] : step] for j in points] for i in points
    ]
    products = [
        [_frequency(v, u, chain) for v, u in zip(line, weights, strict=True)]
        for line, weights in zip(_both_ways(FLOAT32, identity.inputs, grid), packed, strict=True)
    ]
    result = np.zeros((shape[0], *reach, *shape[3:]))
    for i, line in enumerate(_both_ways(FLOAT64, identity.outputs, products)):
        for j, each in enumerate(line):
            result[:, i::step, j::step] = each.astype(np.float32)
    return result[:, : shape[1], : shape[2]]


def _frequency(v: AnyArray, u: AnyArray, chain: int) -> AnyArray:
    """Return the sum over channels of v [.., group, c] and u [c, group, k]: runs in order, of chains in order."""
    depth = len(u)
    runs = max(1, depth // winograd.RUN)
    sums = None
    for run in range(runs):
        stop = depth if run == runs - 1 else (run + 1) * winograd.RUN
        channels = range(run * winograd.RUN, stop)
        total = np.zeros((*v.shape[:-1], u.shape[2]))
        for start in range(0, len(channels), chain or len(channels)):
            each = np.zeros_like(total)
            for c in channels[start : start + (chain or len(channels))]:
                each = FLOAT32.fma(v[..., c, None], u[c], each)
            total = FLOAT32.add(total, each)
        sums = total if sums is None else FLOAT32.add(sums, total)
    assert sums is not None
    return sums


def _both_ways(of: Numbers, matrix: Matrix, grid: Grid) -> Grid:
    """Return matrix x grid x matrix^T: columns first, then rows."""
    columns = [
        [_combined(of, row, [line[j] for line in grid]) for row in matrix]
        for j in range(len(grid[0]))
    ]
    return [
        [_combined(of, row, [column[i] for column in columns]) for row in matrix]
        for i in range(len(matrix))
    ]


def _combined(of: Numbers, weights: Sequence[float], values: Sequence[AnyArray]) -> AnyArray:
    """Return a weighted sum: a term of weight 1 first, the others in order; one factor behind it if all share it."""
    terms = [(w, v) for w, v in zip(weights, values, strict=True) if w]
    terms.sort(key=lambda term: term[0] != 1)
    sizes = {abs(weight) for weight, _ in terms}
    if len(sizes) == 1 and sizes != {1}:
        scale = sizes.pop()
        inner = _combined(of, [weight / scale for weight, _ in terms], [v for _, v in terms])
        return of.times(inner, scale)
    weight, total = terms[0]
    if weight != 1:
        total = of.times(total, weight)
    for weight, value in terms[1:]:
        if abs(weight) == 1:
            total = of.add(total, value if weight == 1 else -value)
        else:
            total = of.fma(value, np.asarray(float(weight)), total)
    return total


def _plain(
    source: AnyArray, weights: AnyArray, rows: Across, cols: Across, shape: tuple[int, ...]
) -> AnyArray:
    """Return the plain sums in float64."""
    total = np.zeros(shape)
    for r in range(3):
        for s in range(3):
            h, w = (
                np.arange(axis.written) + tap * axis.dilation - axis.before
                for axis, tap in ((rows, r), (cols, s))
            )
            p = np.flatnonzero((h >= 0) & (h < rows.read))
            q = np.flatnonzero((w >= 0) & (w < cols.read))
            at = np.ix_(np.arange(shape[0]), p, q)
            pixels = source[np.ix_(np.arange(shape[0]), h[p], w[q])]
            for c in range(source.shape[4]):
                total[at] = fma64(pixels[..., c, None], weights[r, s, c], total[at])
    return total
