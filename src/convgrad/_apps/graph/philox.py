"""Random numbers by counting: Philox 4x32-10 (Salmon et al., 2011), as TensorFlow's random ops use it.

A number depends on the two seeds and on its place alone, so the same node gives the same numbers in every run, on every
machine and in every language. With seeds set they are TensorFlow's numbers of a first run, bit for bit for uniform ones
and to the last places of logarithm, sine and cosine for normal ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

PART = 1 << 18
"""Numbers that are drawn at a time: what lies between words and numbers takes ten times their memory."""

Words = np.ndarray[Any, np.dtype[np.uint32]]
AnyArray = np.ndarray[Any, np.dtype[Any]]

_ROUNDS = 10
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_STEPS = np.uint32(0x9E3779B9), np.uint32(0xBB67AE85)
_LOW, _SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32)


def words(seed: int, seed2: int, count: int, start: int = 0) -> Words:
    """Return so many 32-bit numbers, four for each count of the counter, which begins at `start`.

    >>> [int(word) for word in words(0, 0, 4)]  # the published test vector
    [1713891541, 3781805453, 3159862348, 2600524760]
    """
    groups = -(-count // 4)
    counter = np.arange(start, start + groups, dtype=np.uint64)
    a, b = (counter & _LOW).astype(np.uint32), (counter >> _SHIFT).astype(np.uint32)
    c = np.full(groups, seed2 & 0xFFFFFFFF, np.uint32)
    d = np.full(groups, (seed2 >> 32) & 0xFFFFFFFF, np.uint32)
    first, second = np.uint32(seed & 0xFFFFFFFF), np.uint32((seed >> 32) & 0xFFFFFFFF)
    with np.errstate(over="ignore"):
        for _ in range(_ROUNDS):
            left, right = (
                a.astype(np.uint64) * _MULTIPLIERS[0],
                c.astype(np.uint64) * _MULTIPLIERS[1],
            )
            a, b, c, d = (
                (right >> _SHIFT).astype(np.uint32) ^ b ^ first,
                (right & _LOW).astype(np.uint32),
                (left >> _SHIFT).astype(np.uint32) ^ d ^ second,
                (left & _LOW).astype(np.uint32),
            )
            first, second = first + _STEPS[0], second + _STEPS[1]
    return np.stack((a, b, c, d), axis=1).reshape(-1)[:count]


def uniform(seed: int, seed2: int, count: int, dtype: np.dtype[Any]) -> AnyArray:
    """Return numbers from [0, 1): as many bits of a word as the dtype's fraction has."""
    return _in_parts(_uniform, seed, seed2, count, dtype)


def normal(seed: int, seed2: int, count: int, dtype: np.dtype[Any]) -> AnyArray:
    """Return normally distributed numbers, by Box and Muller's formula from pairs of uniform ones."""
    return _in_parts(_normal, seed, seed2, count, dtype)


def _in_parts(draw: Any, seed: int, seed2: int, count: int, dtype: np.dtype[Any]) -> AnyArray:
    result: AnyArray = np.empty(count, dtype)
    for at in range(0, count, PART):
        part = result[at : at + PART]
        part[:] = draw(seed, seed2, part.size, dtype, at)
    return result


def _uniform(seed: int, seed2: int, count: int, dtype: np.dtype[Any], at: int) -> AnyArray:
    """Return the numbers from `at` on, a multiple of 4."""
    if dtype == np.float64:
        pairs = words(seed, seed2, 2 * count, at // 2).astype(np.uint64)
        whole = ((pairs[0::2] & np.uint64(0xFFFFF)) << _SHIFT) | pairs[1::2]
        exponent = np.uint64(1023) << np.uint64(52)
        result: AnyArray = (whole | exponent).view(np.float64) - 1.0
        return result
    found = words(seed, seed2, count, at // 4)
    bits: AnyArray
    if dtype == np.float32:
        bits = found & np.uint32(0x7FFFFF) | np.uint32(0x3F800000)
    elif dtype == np.float16:
        bits = (found & np.uint32(0x3FF) | np.uint32(15 << 10)).astype(np.uint16)
    else:
        bits = (found & np.uint32(0x7F) | np.uint32(127 << 7)).astype(np.uint16)
    result = bits.view(dtype) - dtype.type(1)
    return result


def _normal(seed: int, seed2: int, count: int, dtype: np.dtype[Any], at: int) -> AnyArray:
    even = count + count % 2
    if dtype == np.float64:
        pairs = _uniform(seed, seed2, even, dtype, at)
    else:  # all other types from float32 numbers
        pairs = _uniform(seed, seed2, even, np.dtype(np.float32), at).astype(np.float64)
    first = np.maximum(pairs[0::2], 1.0e-7)
    angle, radius = 2.0 * np.pi * pairs[1::2], np.sqrt(-2.0 * np.log(first))
    result = np.stack((np.sin(angle) * radius, np.cos(angle) * radius), axis=1).reshape(-1)
    drawn: AnyArray = result[:count].astype(dtype)
    return drawn
