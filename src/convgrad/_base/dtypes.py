"""One row per dtype: its names, its accumulator, and how a wide sum is rounded into it.

A new dtype is a new row here. This module knows dtypes and nothing of convolution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

AnyArray = np.ndarray[Any, np.dtype[Any]]
"""Spelt without `numpy.typing`, whose import takes a third of numpy's own."""


@dataclass(frozen=True)
class DType:
    """A row: everything the layers need to know about one element type."""

    name: str
    """The name in messages: half and bfloat16 as TensorFlow calls them, the rest as NumPy does."""
    short: str
    """The name inside kernel symbols: f16, bf16, f32, f64, i32."""
    numpy: np.dtype[Any]
    accumulator: str
    """`short` of the type sums are kept in, by kernels too; never narrower than float32."""
    unit: float
    """The rounding unit u (half the spacing at 1.0), 0 for integers: errors are stated in it."""

    @property
    def itemsize(self) -> int:
        return self.numpy.itemsize

    @property
    def is_integer(self) -> bool:
        return self.unit == 0.0


HALF = DType("half", "f16", np.dtype(np.float16), "f32", 2.0**-11)
BFLOAT16 = DType("bfloat16", "bf16", np.dtype(ml_dtypes.bfloat16), "f32", 2.0**-8)
FLOAT = DType("float32", "f32", np.dtype(np.float32), "f32", 2.0**-24)
DOUBLE = DType("float64", "f64", np.dtype(np.float64), "f64", 2.0**-53)
INT32 = DType("int32", "i32", np.dtype(np.int32), "i32", 0.0)

DTYPES = (HALF, BFLOAT16, FLOAT, DOUBLE, INT32)
FLOATING = (HALF, BFLOAT16, FLOAT, DOUBLE)

_BY_NUMPY = {row.numpy: row for row in DTYPES}


def find(dtype: np.dtype[Any]) -> DType | None:
    """Return the row of a NumPy dtype in either byte order, or None."""
    return _BY_NUMPY.get(dtype) or _BY_NUMPY.get(dtype.newbyteorder("="))


def accumulator(row: DType) -> DType:
    """Return the row that sums of a dtype's products are kept in.

    >>> accumulator(HALF).name, accumulator(DOUBLE).name
    ('float32', 'float64')
    """
    return next(each for each in DTYPES if each.short == row.accumulator)


def round_once(values: AnyArray, row: DType) -> AnyArray:
    """Round float64 values to `row` in one step, ties to even, overflow to infinity.

    >>> round_once(np.array([1.0 + 2.0**-8 + 2.0**-40]), BFLOAT16)
    array([1.00781], dtype=bfloat16)
    """
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        if row is BFLOAT16:
            values = _round_to_odd_float32(values)
        return values.astype(row.numpy)


def _round_to_odd_float32(values: AnyArray) -> AnyArray:
    """Round float64 to float32 so that a second rounding, to bfloat16, is the only one that shows.

    ml_dtypes rounds float64 to float32 to bfloat16, which turns just-above-a-tie into a tie. An inexact
    value that keeps an odd last bit can never look like a tie of the narrower type.
    """
    nearest = values.astype(np.float32)
    inexact = nearest.astype(np.float64) != values
    even = (nearest.view(np.uint32) & 1) == 0
    direction = np.where(values > nearest, np.float32(np.inf), np.float32(-np.inf))
    return np.where(
        inexact & even & np.isfinite(nearest), np.nextafter(nearest, direction), nearest
    )
