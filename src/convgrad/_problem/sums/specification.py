"""The contract of sums as a program: the very bits that kernels give, slowly, and with no kernel's help.

Written in NumPy, with a fused multiply-add of its own, so that anybody can check a result without our kernels, on any
CPU. Vectorised over results, or over runs of pixels: 10 to 40 million products a second. Float32 numbers are held as
float64 here, which `fma32` wants, and rounded after every addition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, product
from math import prod
from typing import NamedTuple

import numpy as np

from ..._base import dtypes
from ..._base.dtypes import AnyArray
from ..._base.fp_mode import default_mode
from .. import oracle
from ..convolution import Kind, Problem
from ..geometry import Axis, taps_inside
from . import transformed, winograd
from .arithmetic import FLOAT32, FLOAT64, Numbers
from .gather import GROUP, GatherContract, gather_contract, sum_bytes
from .pixels import PixelBox, PixelContract, bias_contract, pixel_contract

_MOST_CELLS = 1 << 18
"""Numbers of one step: chains of so many results are followed at once."""
MOST_PRODUCTS = 1_000_000
"""50 ns each, or less."""
MOST_STEPS = 4_000
"""Of NumPy, 20 us each at least, however few numbers they are about."""


def _arithmetic(problem: Problem) -> Numbers:
    """Return the arithmetic of a problem's sums."""
    return FLOAT64 if sum_bytes(problem) == 8 else FLOAT32


def why_not(problem: Problem, numbers: str) -> str | None:
    """Return why a class of numbers has no specification here, or None."""
    if numbers == winograd.F2_FILTER:
        return "filter gradients by Winograd's identities have no specification"
    return None


def is_quick(problem: Problem, numbers: str) -> bool:
    """Tell whether a problem is computed here in less than about 0.1 s: few products, and few steps."""
    if problem.is_empty or problem.dtype.is_integer:
        return True
    taps = problem.rows.window * problem.cols.window
    if problem.kind is Kind.FILTER_GRADIENT:
        steps = taps * prod(pixel_contract(problem).run)
    else:
        steps = taps * gather_contract(problem).depth * problem.rows.stride * problem.cols.stride
        steps *= (
            1 if numbers == winograd.SUMS else problem.rows.dilation * problem.cols.dilation * 2
        )
    return problem.flops // 2 <= MOST_PRODUCTS and steps <= MOST_STEPS


def compute(
    problem: Problem,
    first: AnyArray,
    second: AnyArray,
    bias: AnyArray | None = None,
    numbers: str = winograd.SUMS,
) -> tuple[AnyArray, AnyArray | None]:
    """Return the result of a problem, in its dtype, and the gradient of its bias if it is one with such a gradient.

    The operands are in the problem's dtype, or wider with numbers of that dtype. `numbers` is the problem's class, see
    `winograd.numerical_class`, for which `why_not` has no reason.
    """
    with default_mode(), np.errstate(all="ignore"):
        if problem.dtype.is_integer:
            return _integers(problem, first, second, bias)
        wide = first.astype(np.float64), second.astype(np.float64)
        if problem.kind is Kind.FILTER_GRADIENT:
            beside = None
            if problem.bias:
                beside = _bias_gradient(problem, wide[0 if problem.bias == "input" else 1])
            if problem.is_empty:
                return np.zeros(problem.filter_shape, problem.dtype.numpy), beside
            return _rounded(problem, _filter_gradient(problem, *wide)), beside
        per_channel = None
        if problem.bias:
            assert bias is not None
            per_channel = bias.astype(np.float64).reshape(problem.groups, -1)
        if numbers == winograd.SUMS:
            total = _gathered(problem, *wide)
            if per_channel is not None:
                total = _arithmetic(problem).add(total, per_channel)
        else:
            total = transformed.compute(problem, *wide, per_channel, numbers)
        return oracle.joined(problem, _rounded(problem, total)), None


def _integers(
    problem: Problem, first: AnyArray, second: AnyArray, bias: AnyArray | None
) -> tuple[AnyArray, AnyArray | None]:
    """Add modulo 2**64, which is right modulo 2**32 in every order."""
    operands = first.astype(np.int64), second.astype(np.int64)
    total, beside = oracle.compute(problem, *operands), None
    if problem.kind is Kind.FILTER_GRADIENT and problem.bias:
        image = operands[0 if problem.bias == "input" else 1]
        beside = oracle.sum_pixels(problem, image).astype(np.int32)
    elif bias is not None:
        total = oracle.add_bias(problem, total, bias.astype(np.int64))
    return total.astype(np.int32), beside


def _rounded(problem: Problem, total: AnyArray) -> AnyArray:
    """Round sums to the dtype of the result; a zero loses its sign."""
    return dtypes.round_once(total + 0.0, problem.dtype)


# Forward passes and input gradients


class Step(NamedTuple):
    """A tap of the cells of a phase, along one axis."""

    position: int
    tap: int
    cells: slice
    """Of the phase: those whose tap lies in the source."""
    source: slice
    """What they read."""


def _gathered(problem: Problem, first: AnyArray, second: AnyArray) -> AnyArray:
    """Return the sums of a forward pass or an input gradient: [n, row, column, group, channel]."""
    forward = problem.kind is Kind.FORWARD
    rows, cols = problem.rows, problem.cols
    if forward:
        source, filters = (
            oracle.grouped_image(problem, first),
            oracle.grouped_filter(problem, second),
        )
        weights = filters  # [r, s, c, g, k]
        shape = (problem.batch, rows.out, cols.out, problem.groups, problem.group_out)
    else:
        source, filters = (
            oracle.grouped_image(problem, second),
            oracle.grouped_filter(problem, first),
        )
        weights = filters.transpose(0, 1, 4, 3, 2)  # [r, s, k, g, c]
        shape = (problem.batch, rows.size, cols.size, problem.groups, problem.group_in)
    result = np.zeros(shape)
    if problem.is_empty:
        return result
    planes = np.ascontiguousarray(source.transpose(4, 0, 1, 2, 3))  # channels summed over first
    order = gather_contract(problem)
    for row_cells, row_steps in _phases(rows, forward, order.row_spacing):
        for col_cells, col_steps in _phases(cols, forward, order.col_spacing):
            at = (slice(None), row_cells, col_cells)
            result[at] = _chained(
                _arithmetic(problem), order, planes, weights, row_steps, col_steps, result[at].shape
            )
    return result


def _phases(axis: Axis, forward: bool, spacing: int) -> Iterator[tuple[slice, list[Step]]]:
    """Yield cells of the target that have the same taps, and these in order: by ascending cells of the source."""
    taps = list(chain.from_iterable(taps_inside(axis)))
    if forward:
        steps = []
        for tap in taps:
            shift = tap * axis.dilation - axis.before
            cells = _inside(axis.out, shift, axis.stride, axis.size)
            steps += _step(tap, tap, cells, shift, axis.stride)
        yield slice(0, axis.out), steps
        return
    for phase in range(min(axis.stride, axis.size)):
        count = len(range(phase, axis.size, axis.stride))
        steps = []
        for tap in reversed(taps):
            shift, rest = divmod(phase + axis.before - tap * axis.dilation, axis.stride)
            if rest == 0:
                position = (axis.window - 1 - tap) // spacing
                steps += _step(position, tap, _inside(count, shift, 1, axis.out), shift, 1)
        yield slice(phase, None, axis.stride), steps


def _inside(count: int, shift: int, stride: int, size: int) -> range:
    """Return for which of `count` cells ``i * stride + shift`` lies in an axis."""
    first = max(0, -(shift // stride))
    return range(first, max(first, min(count, (size - 1 - shift) // stride + 1)))


def _step(position: int, tap: int, cells: range, shift: int, stride: int) -> list[Step]:
    if not cells:
        return []
    start = cells.start * stride + shift
    stop = start + (len(cells) - 1) * stride + 1
    return [Step(position, tap, slice(cells.start, cells.stop), slice(start, stop, stride))]


def _chained(
    of: Numbers,
    order: GatherContract,
    planes: AnyArray,
    weights: AnyArray,
    row_steps: list[Step],
    col_steps: list[Step],
    shape: tuple[int, ...],
) -> AnyArray:
    """Add the products of the cells of one phase."""
    now, total, grand = (np.zeros((order.chains, *shape)) for _ in range(3))
    before = 0
    for block in range(order.blocks):
        channels = range(block * order.block, min(order.depth, (block + 1) * order.block))
        for row in row_steps:
            for col in col_steps:
                run = block * order.block_runs + row.position * order.row_runs
                run += col.position // order.taps
                if order.levels and run != before:
                    total, now = of.add(total, now), np.zeros_like(now)
                    if run // GROUP != before // GROUP:
                        grand, total = of.add(grand, total), np.zeros_like(total)
                before = run
                cells = (slice(None), row.cells, col.cells)
                for channel in channels:
                    sums = now[(channel - channels.start) % order.chains]
                    value = planes[channel][:, row.source, col.source, :, None]
                    weight = weights[row.tap, col.tap, channel]
                    sums[cells] = of.fma(value, weight, sums[cells])
    return _halves(of, of.add(grand, of.add(total, now)))


def _halves(of: Numbers, chains: AnyArray) -> AnyArray:
    """Add chains, halves onto halves: the first axis goes."""
    while len(chains) > 1:
        half = len(chains) // 2
        chains = of.add(chains[:half], chains[half:])
    return np.asarray(chains[0])


# Filter gradients


class Leaves(NamedTuple):
    """The runs of all units: their pixels, and which of them a unit adds."""

    pixels: AnyArray
    """[run, pixel]: images, rows and columns as one number, -1 behind the last."""
    cols: AnyArray
    """[run, pixel]: the pixel's column in the box that the run is."""
    runs: AnyArray
    """[unit, run of the unit]: numbers of runs, -1 behind the last."""


def _filter_gradient(problem: Problem, first: AnyArray, second: AnyArray) -> AnyArray:
    """df[r, s, c, g, k], as a filter."""
    x, grad = (_pixels(oracle.grouped_image(problem, each)) for each in (first, second))
    taps = (problem.rows.window, problem.cols.window)
    result = np.zeros((*taps, problem.groups, problem.group_in, problem.group_out))
    if not problem.is_empty:
        order = pixel_contract(problem)
        met = (list(chain.from_iterable(taps_inside(a))) for a in (problem.rows, problem.cols))
        for r, s in product(*met):
            place = _read_by(problem, r, s)
            result[r, s] = _added(_arithmetic(problem), order, x, grad, place)
    return np.ascontiguousarray(result.transpose(0, 1, 3, 2, 4)).reshape(problem.filter_shape)


def _pixels(image: AnyArray) -> AnyArray:
    """View an image as [pixel, group, channel], the pixels of all images in the order n, p, q."""
    return image.reshape(-1, *image.shape[3:])


def _read_by(problem: Problem, r: int, s: int) -> AnyArray:
    """Return for every pixel of the output which cell of the input a tap reads, as one number; -1 for padding."""
    rows, cols = problem.rows, problem.cols
    h = np.arange(rows.out) * rows.stride + r * rows.dilation - rows.before
    w = np.arange(cols.out) * cols.stride + s * cols.dilation - cols.before
    there = ((h >= 0) & (h < rows.size))[:, None] & ((w >= 0) & (w < cols.size))
    cells = np.where(there, h[:, None] * cols.size + w, -1)
    images = np.arange(problem.batch)[:, None, None] * (rows.size * cols.size)
    return np.where(there, images + cells, -1).ravel()


def _added(
    of: Numbers, order: PixelContract, x: AnyArray, grad: AnyArray, place: AnyArray
) -> AnyArray:
    """Return the sums of one tap, [group, c, k], of x [cell, group, c] and grad [pixel, group, k]."""
    leaves = _leaves(order)
    at_once = max(1, _MOST_CELLS // max(1, x.shape[1] * x.shape[2] * grad.shape[2] * order.chains))
    parts = []
    for start in range(0, len(leaves.pixels), at_once):
        some = slice(start, start + at_once)
        pixels = leaves.pixels[some]
        cells = np.where(pixels >= 0, place[pixels], -1)
        chains = _chains(order, cells, leaves.cols[some])
        parts.append(_runs(of, order.chains, x, grad, cells, pixels, chains))
    sums = np.concatenate(parts)
    units = np.zeros((len(leaves.runs), *sums.shape[1:]))
    for column in leaves.runs.T:
        here = column >= 0
        units[here] = of.add(units[here], sums[column[here]])
    return tree(of, units)


def _chains(order: PixelContract, cells: AnyArray, cols: AnyArray) -> AnyArray:
    """Return the chain of each pixel of some runs: they take turns, or lanes lie along columns."""
    if order.band:
        return np.asarray(cols % order.chains)
    there = cells >= 0
    return np.asarray((np.cumsum(there, axis=1) - there) % order.chains)


def _runs(
    of: Numbers,
    chains: int,
    x: AnyArray,
    grad: AnyArray,
    cells: AnyArray,
    pixels: AnyArray,
    turns: AnyArray,
) -> AnyArray:
    """Return the sums of some runs: [run, group, c, k]."""
    sums = np.zeros((chains, len(pixels), x.shape[1], x.shape[2], grad.shape[2]))
    for pixel, cell, turn in zip(pixels.T, cells.T, turns.T, strict=True):
        here = np.flatnonzero(cell >= 0)
        if len(here):
            value, other = x[cell[here]][..., None], grad[pixel[here]][:, :, None]
            at = (turn[here], here)
            sums[at] = of.fma(value, other, sums[at])
    return _halves(of, sums)


def _leaves(order: PixelContract) -> Leaves:
    """Cut all outputs into units and these into runs."""
    pixels: list[AnyArray] = []
    cols: list[AnyArray] = []
    units: list[list[int]] = []
    for unit in _cut(PixelBox(0, 0, 0), order.out, order.unit):
        units.append([])
        for start, size in _cut(*unit, order.run):
            units[-1].append(len(pixels))
            walk = _walk(size, order)
            pixels.append(_numbered(order.out, start, size)[walk])
            cols.append(walk % size.cols)
    return Leaves(_filled_up(pixels), _filled_up(cols), _filled_up(units))


def _walk(size: PixelBox, order: PixelContract) -> AnyArray:
    """Return the order in which the pixels of a box are met: n, p, q, or in bands where chains lie along rows."""
    n, p, q = (axis.ravel() for axis in np.indices(size))
    if not order.band:
        return np.arange(prod(size))
    return np.lexsort((q, p, q // order.chains, p // order.band, n))


def _filled_up(lists: Sequence[Sequence[int] | AnyArray]) -> AnyArray:
    """Return lists as the rows of an array, -1 behind the last of each."""
    rows = np.full((len(lists), max(map(len, lists), default=0)), -1)
    for row, some in zip(rows, lists, strict=True):
        row[: len(some)] = some
    return rows


def _cut(start: PixelBox, size: PixelBox, most: PixelBox) -> Iterator[tuple[PixelBox, PixelBox]]:
    """Yield where the boxes of a box start and how large they are, in the order n, p, q."""
    ends = [first + length for first, length in zip(start, size, strict=True)]
    for n in range(start.images, ends[0], most.images):
        for p in range(start.rows, ends[1], most.rows):
            for q in range(start.cols, ends[2], most.cols):
                sizes = (
                    min(each, end - first)
                    for each, end, first in zip(most, ends, (n, p, q), strict=True)
                )
                yield PixelBox(n, p, q), PixelBox(*sizes)


def _numbered(out: PixelBox, start: PixelBox, size: PixelBox) -> AnyArray:
    n, p, q = (np.arange(first, first + length) for first, length in zip(start, size, strict=True))
    return ((n[:, None, None] * out.rows + p[:, None]) * out.cols + q).ravel()


def tree(of: Numbers, leaves: AnyArray) -> AnyArray:
    """Add neighbours, then their sums, and so on; one that is left over goes up as it is."""
    while len(leaves) > 1:
        pairs = of.add(leaves[: len(leaves) // 2 * 2 : 2], leaves[1::2])
        leaves = np.concatenate([pairs, leaves[len(pairs) * 2 :]])
    return np.asarray(leaves[0])


# Gradients of a bias


def _bias_gradient(problem: Problem, image: AnyArray) -> AnyArray:
    """Return the sums of an image's channels: a filter gradient whose other image is 1 everywhere."""
    if problem.data_format == "NCHW":
        image = image.transpose(0, 2, 3, 1)
    grad = image.reshape(prod(image.shape[:3]), 1, image.shape[3])
    if 0 in grad.shape:
        return _rounded(problem, np.zeros(image.shape[3]))
    ones, place = np.ones((1, 1, 1)), np.zeros(len(grad), np.int64)
    total = _added(_arithmetic(problem), bias_contract(problem), ones, grad, place)
    return _rounded(problem, total.reshape(-1))
