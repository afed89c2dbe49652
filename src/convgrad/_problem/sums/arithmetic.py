"""Arithmetic in the type of the sums, for the contract as a program: every number is held as float64.

Rounded after every operation, also where NumPy's own operation would be right: float32 held as float64 saves `fma32`
two conversions of each operand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..._base.dtypes import AnyArray
from .fma import fma32, fma64


class Numbers(NamedTuple):
    """How numbers of one type are added; all are held as float64."""

    fma: Callable[[AnyArray, AnyArray, AnyArray], AnyArray]
    add: Callable[[AnyArray, AnyArray], AnyArray]
    times: Callable[[AnyArray, float], AnyArray]


def _add32(a: AnyArray, b: AnyArray) -> AnyArray:
    """Add float32 numbers: a sum of two that is rounded to float64 first is rounded right."""
    return np.asarray((a + b).astype(np.float32).astype(np.float64))


def _add64(a: AnyArray, b: AnyArray) -> AnyArray:
    return np.asarray(a + b)


def _times32(a: AnyArray, b: float) -> AnyArray:
    return np.asarray((a * b).astype(np.float32).astype(np.float64))


def _times64(a: AnyArray, b: float) -> AnyArray:
    return np.asarray(a * b)


FLOAT32 = Numbers(fma32, _add32, _times32)
FLOAT64 = Numbers(fma64, _add64, _times64)
