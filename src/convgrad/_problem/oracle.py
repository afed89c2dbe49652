"""The three sums, written to be obviously right: one tap at a time, one whole-array expression per tap.

Both the public oracle (`convgrad.reference`) and the algorithm of last resort run this code. It takes float64 or
integer arrays and gives the same type back; it knows no kernel, no threads and no narrow dtype.

`einsum` without path optimisation adds in a fixed order and never calls a threaded BLAS, so the bits are the same on
every run and machine load. A tap in the padding is skipped, not multiplied by zero.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from math import prod

import numpy as np

from .._base import headroom
from .._base.dtypes import AnyArray
from .._base.fp_mode import default_mode
from .convolution import Kind, Problem
from .geometry import Axis, tap_span, taps_inside


def compute(problem: Problem, first: AnyArray, second: AnyArray) -> AnyArray:
    """Return the result of `problem` for its two operands, in the order the operation names them.

    The operands are (input, filter), (filter, out_backprop) or (input, out_backprop).
    """
    headroom.ask(headroom.FOR_LOOPS + _temporary_bytes(problem), "to add up")
    # Inf - Inf and 0 * Inf are NaN without comment, as in any kernel.
    with default_mode(), np.errstate(all="ignore"):
        if problem.kind is Kind.FORWARD:
            return joined(
                problem,
                _forward(problem, grouped_image(problem, first), grouped_filter(problem, second)),
            )
        if problem.kind is Kind.INPUT_GRADIENT:
            taps, grad = grouped_filter(problem, first), grouped_image(problem, second)
            return joined(problem, _input_gradient(problem, taps, grad))
        return _filter_gradient(
            problem, grouped_image(problem, first), grouped_image(problem, second)
        )


def add_bias(problem: Problem, image: AnyArray, bias: AnyArray) -> AnyArray:
    """Return an image with a number added to each of its channels."""
    if problem.data_format == "NCHW":
        bias = bias[:, None, None]
    with np.errstate(all="ignore"):
        return image + bias


def sum_pixels(problem: Problem, image: AnyArray) -> AnyArray:
    """Return the sum of each channel of an image over all pixels of the batch: the gradient of a bias."""
    with np.errstate(all="ignore"):
        total: AnyArray = image.sum(axis=(0, 2, 3) if problem.data_format == "NCHW" else (0, 1, 2))
    return total


def _forward(problem: Problem, x: AnyArray, f: AnyArray) -> AnyArray:
    """y[n, p, q, g, k] = sum over r, s, c of x[n, p@r, q@s, g, c] * f[r, s, c, g, k]."""
    out = (problem.batch, problem.rows.out, problem.cols.out, problem.groups, problem.group_out)
    y = np.zeros(out, x.dtype)
    for r, s, cells, outputs in _pairs(problem):
        y[outputs] += np.einsum("npqgc,cgk->npqgk", x[cells], f[r, s])
    return y


def _input_gradient(problem: Problem, f: AnyArray, grad: AnyArray) -> AnyArray:
    """dx[n, p@r, q@s, g, c] += sum over k of grad[n, p, q, g, k] * f[r, s, c, g, k], for every tap."""
    shape = (problem.batch, problem.rows.size, problem.cols.size, problem.groups, problem.group_in)
    dx = np.zeros(shape, grad.dtype)
    for r, s, cells, outputs in _pairs(problem):
        dx[cells] += np.einsum("npqgk,cgk->npqgc", grad[outputs], f[r, s])
    return dx


def _filter_gradient(problem: Problem, x: AnyArray, grad: AnyArray) -> AnyArray:
    """df[r, s, c, g, k] = sum over n, p, q of x[n, p@r, q@s, g, c] * grad[n, p, q, g, k]."""
    taps = (problem.rows.window, problem.cols.window)
    df = np.zeros((*taps, problem.group_in, problem.groups, problem.group_out), x.dtype)
    for r, s, cells, outputs in _pairs(problem):
        df[r, s] = np.einsum("npqgc,npqgk->cgk", x[cells], grad[outputs])
    return df.reshape(problem.filter_shape)


def _temporary_bytes(problem: Problem) -> int:
    """Return the bytes of the sums and of what one tap adds to them."""
    pixels = problem.batch * problem.rows.out * problem.cols.out * problem.groups
    added = {
        Kind.FORWARD: pixels * problem.group_out,
        Kind.INPUT_GRADIENT: pixels * problem.group_in,
        Kind.FILTER_GRADIENT: 0,
    }
    return 8 * (prod(problem.result_shape) + added[problem.kind])


Slices = tuple[slice, slice, slice]


def _pairs(problem: Problem) -> Iterator[tuple[int, int, Slices, Slices]]:
    """Yield every tap (r, s) with the input cells it reads and the outputs that read them, pair by pair."""
    everything = slice(None)
    if problem.is_empty:
        return
    rows = _axis_pairs(problem.rows)
    cols = list(_axis_pairs(problem.cols))
    for (r, row_cells, row_outputs), (s, col_cells, col_outputs) in itertools.product(rows, cols):
        yield r, s, (everything, row_cells, col_cells), (everything, row_outputs, col_outputs)


def _axis_pairs(axis: Axis) -> Iterator[tuple[int, slice, slice]]:
    for tap in itertools.chain.from_iterable(taps_inside(axis)):
        span = tap_span(axis, tap)
        if span.first < span.last:
            stop = span.start + (span.last - span.first - 1) * axis.stride + 1
            yield tap, slice(span.start, stop, axis.stride), slice(span.first, span.last)


def grouped_image(problem: Problem, array: AnyArray) -> AnyArray:
    """View an image tensor as [n, row, column, group, channel in group]."""
    if problem.data_format == "NCHW":
        array = array.transpose(0, 2, 3, 1)
    array = np.ascontiguousarray(array)
    per_group = array.shape[3] // problem.groups if problem.groups else 1
    return array.reshape(*array.shape[:3], problem.groups, per_group)


def grouped_filter(problem: Problem, array: AnyArray) -> AnyArray:
    """View a filter as [r, s, channel in group, group, output channel in group]."""
    taps = (problem.rows.window, problem.cols.window)
    shape = (*taps, problem.group_in, problem.groups, problem.group_out)
    return np.ascontiguousarray(array).reshape(shape)


def joined(problem: Problem, image: AnyArray) -> AnyArray:
    """Undo `grouped_image`."""
    image = image.reshape(*image.shape[:3], image.shape[3] * image.shape[4])
    return image if problem.data_format == "NHWC" else image.transpose(0, 3, 1, 2)
