"""Fused multiplication and addition of arrays in NumPy: ``a * b + c``, exact and then rounded once, on any CPU.

float32: the product of two float32 is exact in float64, whose sum with a third is rounded twice, to float64 and to
float32. That differs from one rounding only where the first has made a tie, or where the result is subnormal, whose
ties lie elsewhere. There the sum is rounded to odd first: an inexact number whose last bit is 1 is never taken for a
tie.

float64: Boldo and Melquiond's sum of the two halves of a product and of a third number, rounded to odd. Where a half
could overflow or underflow, fractions of Python's integers are added.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..._base.dtypes import AnyArray

_HALVES = 134217729.0
"""2**27 + 1: splits a float64 into two numbers of 26 bits."""
_LARGE, _SMALL = 2.0**900, 2.0**-900
"""Of a product and its factors, beyond which halves may not be exact."""
_BELOW_FLOAT32 = (1 << 29) - 1
"""Bits of a float64 behind those of a float32."""
_TIE = 1 << 28
_LEAST_NORMAL = 2.0**-126


def fma32(a: AnyArray, b: AnyArray, c: AnyArray) -> AnyArray:
    """Return a * b + c for float32 numbers held as float64, as float32 held as float64.

    >>> fma32(np.array(1 + 2.0**-12), np.array(1 - 2.0**-12), np.array(-1.0)).item() == -(2.0**-24)
    True
    """
    product = a * b
    total = np.asarray(product + c)
    rounded = np.asarray(total.astype(np.float32).astype(np.float64))
    unsure = (total.view(np.int64) & _BELOW_FLOAT32) == _TIE
    unsure |= (np.abs(total) < _LEAST_NORMAL) & (total != 0)
    if unsure.any():
        first = np.broadcast_to(product, total.shape)[unsure]
        odd = _to_odd(*_two_sum(first, np.broadcast_to(c, total.shape)[unsure]))
        rounded[unsure] = odd.astype(np.float32)
    return rounded


def fma64(a: AnyArray, b: AnyArray, c: AnyArray) -> AnyArray:
    """Return a * b + c for float64 numbers.

    >>> fma64(np.array(1 + 2.0**-30), np.array(1 - 2.0**-30), np.array(-1.0)).item() == -(2.0**-60)
    True
    """
    a, b, c = np.broadcast_arrays(a, b, c)
    product = a * b
    result = _boldo_melquiond(a, b, c, product)
    size = np.abs(product)
    factors = np.maximum(np.abs(a), np.abs(b))
    safe = (size < _LARGE) & (size > _SMALL) & (factors < _LARGE) & (np.abs(c) < _LARGE)
    safe |= (a == 0) & (np.abs(b) < np.inf) | (b == 0) & (np.abs(a) < np.inf)
    if not safe.all():
        result = np.where((a == 0) | (b == 0), product + c, result)
        rest = ~safe
        result[rest] = [
            _fma_of_one(*each)
            for each in zip(a[rest].tolist(), b[rest].tolist(), c[rest].tolist(), strict=True)
        ]
    return np.asarray(result)


def _two_sum(a: AnyArray, b: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Return a sum and what rounding it has left out, exactly."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _to_odd(total: AnyArray, rest: AnyArray) -> AnyArray:
    """Return total + rest rounded to odd: of the two neighbours of an inexact sum the one whose last bit is 1."""
    bits = total.view(np.int64)
    inexact = ((bits & 1) == 0) & (rest != 0) & np.isfinite(total)
    step = np.where((rest > 0) == (total > 0), 1, -1)  # away from zero, or towards it
    return np.asarray(np.where(inexact, bits + step, bits).view(np.float64))


def _boldo_melquiond(a: AnyArray, b: AnyArray, c: AnyArray, product: AnyArray) -> AnyArray:
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    rest = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    low, low_rest = _two_sum(c, rest)
    high, high_rest = _two_sum(product, low)
    return np.asarray(high + _to_odd(*_two_sum(low_rest, high_rest)))


def _split(a: AnyArray) -> tuple[AnyArray, AnyArray]:
    wide = a * _HALVES
    high = wide - (wide - a)
    return high, a - high


def _fma_of_one(a: float, b: float, c: float) -> float:
    if not np.isfinite(a) or not np.isfinite(b):
        return a * b + c
    if not np.isfinite(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact)  # rounded once, subnormal numbers too
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")
