"""A problem computed a few images at a time, so that operands and result may be larger than memory.

Forward results and input gradients of images do not touch each other: slices follow one another in the file. A filter
gradient is a sum over images. Its slices are computed in float32 (half and bfloat16 are widened first, which is
exact; float64 stays) and added in float64, and the total is rounded once. A problem that fits into one slice is one
plain call.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._base import dtypes
from ..._base.dtypes import AnyArray, DType
from ..._problem.convolution import Kind, Problem
from .sources import Source

_BLOCK = 1 << 20
"""Elements looked at together: their float64 copy has 8 MB."""


@dataclass(frozen=True)
class Operands:
    """What a problem reads; the one that is wanted is None."""

    input: Source | None
    filters: tuple[AnyArray, ...]
    """One, or none for a filter gradient, or two for a separable convolution."""
    grad: Source | None


@dataclass
class Summary:
    """What a person wants to know of a result without looking at all of it."""

    least: float | None = None
    most: float | None = None
    total: float = 0.0
    count: int = 0
    seconds: float = 0.0
    """Spent in calls of the operation."""
    preparing: float = 0.0
    """Seconds spent compiling or loading kernels."""
    _digest: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=8))

    def add(self, part: AnyArray) -> None:
        """Take in the next elements."""
        flat = part.reshape(-1)
        for at in range(0, flat.size, _BLOCK):
            block = flat[at : at + _BLOCK]
            self._digest.update(block.view(np.uint8).data)
            with np.errstate(all="ignore"):
                wide = block.astype(np.float64)
                least, most, total = float(wide.min()), float(wide.max()), float(wide.sum())
            self.include(least, most, total, block.size)

    def include(self, least: float | None, most: float | None, total: float, count: int) -> None:
        """Take in what is known of other elements; the checksum is not."""
        if least is not None and most is not None:  # there are some
            self.least = least if self.least is None else float(np.minimum(self.least, least))
            self.most = most if self.most is None else float(np.maximum(self.most, most))
        self.total += total
        self.count += count

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the time of a block."""
        start = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - start

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None

    @property
    def checksum(self) -> str:
        """BLAKE2b of the result's bytes, 16 hexadecimal digits."""
        return str(self._digest.hexdigest())


def images_at_once(in_a_row: tuple[Problem, ...], slice_bytes: int) -> int:
    """Return how many images fit into a slice, the widened copies of a filter gradient's operands included."""
    problem = in_a_row[0]
    shapes = (problem.input_shape, *(each.output_shape for each in in_a_row))
    elements = sum(math.prod(shape[1:]) for shape in shapes)
    itemsize = problem.dtype.itemsize
    if _accumulated(problem) is not problem.dtype:
        itemsize += 4
    whole = elements * problem.batch * problem.dtype.itemsize
    if whole <= slice_bytes:
        return max(1, problem.batch)
    return max(1, slice_bytes // (elements * itemsize))


def problems(problem: Problem, at_once: int) -> list[Problem]:
    """Return what the slices are: all have one size but the last, and those of a filter gradient may be wider."""
    sizes = dict.fromkeys(end - begin for begin, end in _slices(problem.batch, at_once))
    row = problem.dtype
    if len(sizes) > 1 or problem.batch > at_once:
        row = _accumulated(problem)
    return [replace(problem, batch=size, dtype=row) for size in sizes]


def compute_slices(
    problem: Problem,
    operands: Operands,
    call: Callable[[Any, Any], AnyArray],
    at_once: int,
    summary: Summary,
) -> Iterator[tuple[int, AnyArray | None]]:
    """Yield after each slice how many images were done, and the next part of the result if there is one.

    `call(input, grad)` computes a slice; what is wanted is passed as sizes.
    """
    if problem.kind is Kind.FILTER_GRADIENT:
        yield from _filter_gradient(problem, operands, call, at_once, summary)
        return
    source = operands.input if problem.kind is Kind.FORWARD else operands.grad
    assert source is not None
    for begin, end in _slices(problem.batch, at_once):
        images = source.images(begin, end)
        with summary.timed():
            if problem.kind is Kind.FORWARD:
                part = call(images, None)
            else:
                part = call((end - begin, *problem.input_shape[1:]), images)
        del images
        yield end - begin, part


def _filter_gradient(
    problem: Problem,
    operands: Operands,
    call: Callable[[Any, Any], AnyArray],
    at_once: int,
    summary: Summary,
) -> Iterator[tuple[int, AnyArray | None]]:
    assert operands.input is not None and operands.grad is not None
    slices = list(_slices(problem.batch, at_once))
    total = np.zeros(problem.filter_shape, np.float64)
    for begin, end in slices:
        x, g = operands.input.images(begin, end), operands.grad.images(begin, end)
        if len(slices) == 1:
            with summary.timed():
                part = call(x, g)
            yield end - begin, part
            return
        x, g = _wide(x, problem.dtype), _wide(g, problem.dtype)
        with summary.timed():
            part = call(x, g)
        del x, g
        with np.errstate(all="ignore"):  # infinities of both signs make a NaN, as in one call
            total += part
        yield end - begin, None
    yield 0, dtypes.round_once(total, problem.dtype)


def _accumulated(problem: Problem) -> DType:
    partial = problem.kind is Kind.FILTER_GRADIENT
    return dtypes.accumulator(problem.dtype) if partial else problem.dtype


def _wide(array: AnyArray, row: DType) -> AnyArray:
    wide = dtypes.accumulator(row)
    return array if wide is row else array.astype(wide.numpy)


def _slices(batch: int, at_once: int) -> Iterator[tuple[int, int]]:
    """Cut the batch; an empty one is one empty slice.

    >>> list(_slices(5, 2)), list(_slices(0, 2))
    ([(0, 2), (2, 4), (4, 5)], [(0, 0)])
    """
    for begin in range(0, max(batch, 1), at_once):
        yield begin, min(begin + at_once, batch)
