"""What a pack must compute, for its self-test: operands anybody can make, and the result in a few numbers.

Operands are small whole numbers, each a hash of its place. All sums then are whole numbers that the accumulator holds
exactly, in any order, with fused products or without. So the result's bits are the same on every target, and a digest
of them is enough. That is so as long as no sum can leave the accumulator's whole numbers; Winograd's F(4,3) divides by
3 and never keeps to it, and batch norm divides by roots. Where it is not so, a few elements of every array that is made
are compared within a tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ... import _engine
from ..._base import dtypes, options
from ..._base.dtypes import AnyArray, DType
from ..._problem import oracle
from ..._problem.convolution import Kind, Problem
from ..._problem.norm import without_kernels
from .pack import Entry
from .recipe import Recipe, Run

SAMPLES = 4
MORE_SAMPLES = 16
"""Of an array where no digest decides."""
POSITIVE = frozenset({"running_var"})
"""Places whose numbers are from 1 to spread + 1 instead: a variance has a root."""
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
    """Of all that is made: the sum of each array's digest times 1, 3, 5 and so on."""
    samples: tuple[tuple[int, int, float], ...]
    """Numbers of places, where in them, and what stands there."""
    tolerance: float
    """Relative; 0 if the digest decides."""


def expected(entry: Entry) -> Expected:
    """Compute what an entry must give for the operands of the self-test."""
    what = entry.recipe
    spread = next((each for each in (3, 1) if _is_exact(entry, each)), 0)
    exact = spread > 0
    spread = spread or _spread(what)
    arrays = _computed(what, spread)
    total, odd, samples = 0, 1, []
    many = SAMPLES if what.problem is not None else MORE_SAMPLES
    for number, place in enumerate(what.callers):
        if place.role == "made":
            flat = arrays[place.name]
            total, odd = total + digest(flat) * odd, odd + 2
            # Inside, where few taps fall into the padding, and at both ends.
            spots = sorted({at * max(flat.size - 1, 0) // (many - 1) for at in range(many)})
            samples += [(number, at, float(flat[at])) for at in spots if flat.size]
    tolerance = 0.0 if exact else what.dtype.tolerance
    return Expected(spread, total % 2**64, tuple(samples), tolerance)


def _spread(what: Recipe) -> int:
    """Return how large operands are where results are not exact; batch norm backwards multiplies five of them."""
    asked = what.asked
    return 1 if isinstance(asked, Problem) or "dx" in {each.name for each in what.places} else 3


def _computed(what: Recipe, spread: int) -> dict[str, AnyArray]:
    """Return all places after all parts have run, flat."""
    arrays: dict[str, AnyArray] = {}
    for number, place in enumerate(what.places, 1):
        if place.role == "constant":
            arrays[place.name] = np.frombuffer(place.data, place.dtype.numpy)
            continue
        found = operand_numbers(number, place.elements, spread)
        if place.name in POSITIVE:
            found = np.abs(found) + 1
        arrays[place.name] = found.astype(place.dtype.numpy)
    for part in what.parts:
        if isinstance(part.asked, Problem):
            _convolve(part.asked, [arrays[name] for name in part.seen if name is not None])
        else:
            _pass(part, arrays)
    return arrays


def _convolve(problem: Problem, places: list[AnyArray]) -> None:
    """Compute a convolution into its places."""
    wide = [
        each.astype(np.float64).reshape(shape if each.size else (0,))
        for each, shape in zip(places[:2], problem.operand_shapes, strict=True)
    ]
    result = _sums(replace(problem, bias=""), wide[0], wide[1])
    if problem.bias:
        axis = 3 if problem.data_format == "NHWC" else 1
        if problem.adds_bias:
            shape = [1, 1, 1, 1]
            shape[axis] = problem.bias_c
            result = result + places[3].astype(np.float64).reshape(shape)
        else:
            image = np.zeros(()) if problem.is_empty else wide[problem.bias == "output"]
            others = tuple(each for each in range(4) if each != axis)
            sums = np.zeros(problem.bias_c) if problem.is_empty else image.sum(axis=others)
            places[3][:] = dtypes.round_once(sums, problem.dtype)
    places[2][:] = np.ascontiguousarray(dtypes.round_once(result, problem.dtype)).reshape(-1)


def _pass(part: Run, arrays: dict[str, AnyArray]) -> None:
    """Compute batch norm into its places."""
    assert not isinstance(part.asked, Problem)
    run = without_kernels.executor(part.asked.task)
    run(*(0 if name is None else arrays[name].ctypes.data for name in part.seen))


def operand_numbers(which: int, count: int, spread: int) -> AnyArray:
    """Return an operand's elements, as float64; the self-test makes the same in C.

    >>> operand_numbers(1, 8, 3).astype(int).tolist()
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
    if problem is None or entry.algorithm in _NEVER_EXACT:
        return False
    taps = problem.rows.window * problem.cols.window
    terms = {
        Kind.FORWARD: taps * problem.group_in,
        Kind.INPUT_GRADIENT: taps * problem.group_out,
        Kind.FILTER_GRADIENT: problem.batch * problem.rows.out * problem.cols.out,
    }[problem.kind]
    largest = (spread * terms + 1) * spread * _ROOM.get(entry.algorithm, 1)
    return largest <= (2**53 if problem.dtype.accumulator == "f64" else 2**24)


def _sums(problem: Problem, first: AnyArray, second: AnyArray) -> AnyArray:
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
