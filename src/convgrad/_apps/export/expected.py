"""What a pack must compute, for its self-test: operands anybody can make, and the result in a few numbers.

Operands are small whole numbers, each a hash of its place. All sums then are whole numbers that the accumulator holds
exactly, in any order, with fused products or without. So the result's bits are the same on every target, and a digest
of them is enough. That is so as long as no sum can leave the accumulator's whole numbers; Winograd's F(4,3) divides by
3 and never keeps to it. Where it is not so, a few elements are compared within a tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from ... import _engine
from ..._base import dtypes, options
from ..._base.dtypes import AnyArray, DType
from ..._problem import oracle
from ..._problem.convolution import Kind, Problem
from .pack import Entry

SAMPLES = 4
MIX = (2654435761, 2246822519)
WEIGHT = 0x9E3779B97F4A7C15
_BLOCK = 1 << 16
"""Elements that are worked on at a time: what lies in the cache is four times as fast."""
_ODD = np.arange(1.0, 2 * _BLOCK, 2)
_SLOW = 100_000_000
"""Operations the oracle is asked for, 0.1 to 0.3 s; beyond, our own kernels, which are exact on such operands too."""
_ROOM = {"winograd": 256, "winograd_filter_gradient": 1024}
"""How much larger intermediate values of an algorithm are than its sums, fractions included."""
_NEVER_EXACT = frozenset({"winograd_fast"})


LARGEST = 1 << 28
"""Bytes of memory of a problem that the self-test knows a result of. Larger ones take a long time to compute, and
programs cannot have static memory of any size."""


@dataclass(frozen=True)
class Expected:
    """What the self-test knows of one problem."""

    spread: int
    """Operands are whole numbers from -spread to spread."""
    digest: int
    samples: tuple[tuple[int, float], ...]
    """Places in the result and what stands there."""
    tolerance: float
    """Relative; 0 if the digest decides."""


def expected(entry: Entry) -> Expected:
    """Compute what an entry must give for the operands of the self-test."""
    problem = entry.problem
    spread = next((each for each in (3, 1) if _is_exact(entry, each)), 0)
    exact = spread > 0
    spread = spread or 1
    first, second = (
        numbers(number, prod(shape), spread).reshape(shape)
        for number, shape in enumerate(problem.operand_shapes, 1)
    )
    result = dtypes.round_once(_computed(problem, first, second), problem.dtype)
    flat = np.ascontiguousarray(result).reshape(-1)
    # Inside, where few taps fall into the padding, and at both ends.
    places = sorted({at * max(flat.size - 1, 0) // (SAMPLES - 1) for at in range(SAMPLES)})
    samples = tuple((at, float(flat[at])) for at in places if flat.size)
    tolerance = 0.0 if exact else problem.dtype.tolerance
    return Expected(spread, digest(flat), samples, tolerance)


def numbers(which: int, count: int, spread: int) -> AnyArray:
    """Return an operand's elements, as float64; the self-test makes the same in C.

    >>> numbers(1, 8, 3).astype(int).tolist()
    [-2, -2, -1, 2, -1, 1, 1, 1]
    """
    found = np.empty(count)
    for start in range(0, count, _BLOCK):
        part = found[start : start + _BLOCK]
        at = np.arange(start, start + part.size, dtype=np.uint32) * np.uint32(2) + np.uint32(which)
        at *= np.uint32(MIX[0])
        at ^= at >> np.uint32(15)
        at *= np.uint32(MIX[1])
        at ^= at >> np.uint32(13)
        np.subtract((at >> np.uint32(8)) % np.uint32(2 * spread + 1), np.float64(spread), out=part)
    return found


def digest(array: AnyArray) -> int:
    """Return a digest of an array's bytes that shows any change of one element.

    Not FNV or the like, which take a byte at a time: Python needs 0.2 s for a megabyte of it. A sum of 16-bit units,
    each times an odd number of its own, is as quick as NumPy is, and loses no single unit.
    """
    units = array.view(np.uint8).view("<u2")
    total = units.size**2  # of the ones that are added to the units: 1 + 3 + 5 and so on
    for start in range(0, units.size, _BLOCK):
        part = units[start : start + _BLOCK].astype(np.float64)
        # Whole numbers below 2**53, so the sums are exact. No `@`: it wakes threads, which takes longer.
        total += 2 * start * int(part.sum())
        part *= _ODD[: part.size]
        total += int(part.sum())
    return total * WEIGHT % 2**64


def _is_exact(entry: Entry, spread: int) -> bool:
    """Return whether no sum of products of such operands leaves the whole numbers of its accumulator."""
    problem = entry.problem
    if entry.algorithm in _NEVER_EXACT:
        return False
    taps = problem.rows.window * problem.cols.window
    terms = {
        Kind.FORWARD: taps * problem.group_in,
        Kind.INPUT_GRADIENT: taps * problem.group_out,
        Kind.FILTER_GRADIENT: problem.batch * problem.rows.out * problem.cols.out,
    }[problem.kind]
    largest = spread * spread * terms * _ROOM.get(entry.algorithm, 1)
    return largest <= (2**53 if problem.dtype.accumulator == "f64" else 2**24)


def _computed(problem: Problem, first: AnyArray, second: AnyArray) -> AnyArray:
    """Return the result in float64."""
    if problem.is_empty:
        return np.zeros(problem.result_shape)
    if problem.flops <= _SLOW:
        return oracle.compute(problem, first, second)
    return _by_kernels(problem, first, second)


def _by_kernels(problem: Problem, first: AnyArray, second: AnyArray) -> AnyArray:
    wide: DType = dtypes.accumulator(problem.dtype)
    same = replace(problem, dtype=wide)
    operands = [np.ascontiguousarray(each, wide.numpy) for each in (first, second)]
    result: AnyArray = np.empty(problem.result_shape, wide.numpy)
    with options.options(winograd="off"):
        _engine.run(same, *(each.ctypes.data for each in (*operands, result)))
    return result.astype(np.float64)
