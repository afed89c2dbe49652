"""Which cells a cell of a convolution's result is made of: the sums of the six operations, written as lists of cells.

All sizes come from the problem, so that padding, strides, dilations, groups and layouts are those of the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from ..._base.dtypes import AnyArray
from ..._base.errors import ArgumentError
from ..._problem.convolution import Kind, Problem
from ..._problem.geometry import Axis

MOST_ADDED = 5_000_000
"""Terms that are looked at: some 500 MB of indices."""


@dataclass
class Cells:
    """One factor of every term: cells of an input."""

    input: int
    """Its number among the node's inputs."""
    index: AnyArray
    """[terms, dimensions]"""
    inside: AnyArray | None = None
    """Whether each lies in the tensor; the others lie in the padding and count as 0."""


def cells(problem: Problem, at: tuple[int, ...]) -> list[Cells]:
    """Return both factors of all terms of one element of the result, in the order of the sum's letters."""
    if problem.kind is Kind.FORWARD:
        return _forward(problem, at)
    if problem.kind is Kind.INPUT_GRADIENT:
        return _input_gradient(problem, at)
    return _filter_gradient(problem, at)


def _forward(problem: Problem, at: tuple[int, ...]) -> list[Cells]:
    """y[n,p,q,o] = sum over r, s, c of x[n,p@r,q@s,c] * f[r,s,c,o]"""
    n, p, q, o = _split(problem, at)
    r, s, c = _grid(problem.rows.window, problem.cols.window, problem.group_in)
    group = o // problem.group_out
    image = _read(problem, n, p, q, r, s, group * problem.group_in + c)
    return [Cells(0, *image), Cells(1, _taps(problem, r, s, c, o))]


def _filter_gradient(problem: Problem, at: tuple[int, ...]) -> list[Cells]:
    """df[r,s,c,o] = sum over n, p, q of x[n,p@r,q@s,c] * dy[n,p,q,o]"""
    r, s, c, o = at
    if problem.depthwise:  # [r, s, group, multiple]
        c, o = 0, c * problem.group_out + o
    n, p, q = _grid(problem.batch, problem.rows.out, problem.cols.out)
    group = o // problem.group_out
    image = _read(problem, n, p, q, r, s, group * problem.group_in + c)
    return [Cells(0, *image), Cells(2, _joined(problem, n, p, q, o))]


def _input_gradient(problem: Problem, at: tuple[int, ...]) -> list[Cells]:
    """dx[n,h,w,c] = sum over r, s, k of f[r,s,c,k] * dy[n,p,q,k], for the outputs whose tap (r, s) reads (h, w)"""
    n, h, w, channel = _split(problem, at)
    group, c = divmod(channel, problem.group_in)
    rows, cols = _readers(problem.rows, h), _readers(problem.cols, w)
    a, b, k = _grid(len(rows), len(cols), problem.group_out)
    o = group * problem.group_out + k
    r, p, s, q = rows[a, 0], rows[a, 1], cols[b, 0], cols[b, 1]
    return [Cells(1, _taps(problem, r, s, c, o)), Cells(2, _joined(problem, n, p, q, o))]


def _readers(axis: Axis, cell: int) -> AnyArray:
    """Return the taps that read a cell and the outputs they read it for, as pairs."""
    taps = np.arange(axis.window)
    shifted = cell + axis.before - taps * axis.dilation
    outputs = shifted // axis.stride
    right = (shifted % axis.stride == 0) & (outputs >= 0) & (outputs < axis.out)
    return np.stack([taps[right], outputs[right]], 1)


def _read(
    problem: Problem,
    n: AnyArray | int,
    p: AnyArray | int,
    q: AnyArray | int,
    r: AnyArray | int,
    s: AnyArray | int,
    c: AnyArray | int,
) -> tuple[AnyArray, AnyArray]:
    """Return the cells of the image that taps read, and which of them are in it."""
    rows, cols = problem.rows, problem.cols
    h = np.asarray(p * rows.stride + r * rows.dilation - rows.before)
    w = np.asarray(q * cols.stride + s * cols.dilation - cols.before)
    inside = (h >= 0) & (h < rows.size) & (w >= 0) & (w < cols.size)
    return _joined(problem, n, h, w, c), inside


def _taps(
    problem: Problem, r: AnyArray, s: AnyArray, c: AnyArray | int, o: AnyArray | int
) -> AnyArray:
    if problem.depthwise:
        group, k = o // problem.group_out, o % problem.group_out
        return _rows(r, s, group, k)
    return _rows(r, s, c, o)


def _split(problem: Problem, at: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Return image, row, column and channel of an index into an image tensor."""
    n, a, b, c = at
    return (n, a, b, c) if problem.data_format == "NHWC" else (n, b, c, a)


def _joined(
    problem: Problem,
    n: AnyArray | int,
    row: AnyArray | int,
    col: AnyArray | int,
    channel: AnyArray | int,
) -> AnyArray:
    if problem.data_format == "NHWC":
        return _rows(n, row, col, channel)
    return _rows(n, channel, row, col)


def _rows(*columns: AnyArray | int) -> AnyArray:
    """Return columns of indices as rows, numbers repeated."""
    return np.stack(np.broadcast_arrays(*columns), -1)


def _grid(*sizes: int) -> tuple[AnyArray, ...]:
    """Return all combinations of indices, one array each, the last changing fastest."""
    if prod(sizes) > MOST_ADDED:
        raise ArgumentError(f"the cell is made of {prod(sizes)} terms, too many to list.")
    found = np.indices(sizes).reshape(len(sizes), -1)
    return tuple(found)
