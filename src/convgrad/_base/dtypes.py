"""One row per dtype: its names, what frameworks and compilers call it, its accumulator, and how it is rounded to.

A new dtype is a new row here, and a conversion in `_compiler/codegen/convert.py` if LLVM cannot widen it. What others
call it is data: nothing here knows frameworks, compilers or convolution.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

AnyArray = np.ndarray[Any, np.dtype[Any]]
"""Spelt without `numpy.typing`, whose import takes a third of numpy's own."""


@dataclass(frozen=True)
class DType:
    """A row: everything the layers need to know about one element type.

    The first five fields tell rows apart; problems are looked up by their hash.
    """

    name: str
    """The name in messages: half and bfloat16 as TensorFlow calls them, the rest as NumPy does."""
    short: str
    """The name inside kernel symbols: f16, bf16, f32, f64, i32."""
    numpy: np.dtype[Any]
    accumulator: str
    """`short` of the type sums are kept in, by kernels too; never narrower than float32."""
    unit: float
    """The rounding unit u (half the spacing at 1.0), 0 for integers: errors are stated in it."""
    underflow: float = field(compare=False, repr=False)
    """What a result near 0 may be off by: the dtype's least number, or bfloat16's where that is larger."""
    tolerance: float = field(compare=False, repr=False)
    """What an exported pack's self-test allows where sums are not exact, relative to the largest result."""
    partial: str = field(compare=False, repr=False)
    """`short` of the type that partial sums of filter gradients are kept in: wider than the dtype."""
    llvm: str = field(compare=False, repr=False)
    """What LLVM calls it in memory; 16-bit floats are bits there."""
    c: str = field(compare=False, repr=False)
    """What C calls it; "" where C has no such type."""
    cpp: str = field(compare=False, repr=False)
    """What C++ programs on TensorFlow's headers call it."""
    tensorflow: int = field(compare=False, repr=False)
    """TensorFlow's number of it, which exported packs have taken over."""
    tensorflow_name: str = field(compare=False, repr=False)
    """What the definitions of TensorFlow's ops call it; `DT_` and that in capitals is its other name."""
    torch: int = field(compare=False, repr=False)
    """The number PyTorch's C interface gives it; these have not changed since they were introduced."""
    xla: int = field(compare=False, repr=False)
    """XLA's number of it."""

    @property
    def itemsize(self) -> int:
        return self.numpy.itemsize

    @property
    def is_integer(self) -> bool:
        return self.unit == 0.0


HALF = DType(
    name="half",
    short="f16",
    numpy=np.dtype(np.float16),
    accumulator="f32",
    unit=2.0**-11,
    underflow=2.0**-24,
    tolerance=0.01,
    partial="f32",
    llvm="i16",
    c="",
    cpp="Eigen::half",
    tensorflow=19,
    tensorflow_name="half",
    torch=5,
    xla=10,
)
BFLOAT16 = DType(
    name="bfloat16",
    short="bf16",
    numpy=np.dtype(ml_dtypes.bfloat16),
    accumulator="f32",
    unit=2.0**-8,
    underflow=2.0**-133,
    tolerance=0.05,
    partial="f32",
    llvm="i16",
    c="",
    cpp="bfloat16",
    tensorflow=14,
    tensorflow_name="bfloat16",
    torch=15,
    xla=16,
)
FLOAT = DType(
    name="float32",
    short="f32",
    numpy=np.dtype(np.float32),
    accumulator="f32",
    unit=2.0**-24,
    underflow=2.0**-133,
    tolerance=1e-3,
    partial="f64",
    llvm="float",
    c="float",
    cpp="float",
    tensorflow=1,
    tensorflow_name="float",
    torch=6,
    xla=11,
)
DOUBLE = DType(
    name="float64",
    short="f64",
    numpy=np.dtype(np.float64),
    accumulator="f64",
    unit=2.0**-53,
    underflow=2.0**-133,
    tolerance=1e-9,
    partial="f64",
    llvm="double",
    c="double",
    cpp="double",
    tensorflow=2,
    tensorflow_name="double",
    torch=7,
    xla=12,
)
INT32 = DType(
    name="int32",
    short="i32",
    numpy=np.dtype(np.int32),
    accumulator="i32",
    unit=0.0,
    underflow=0.0,
    tolerance=0.0,
    partial="f64",
    llvm="i32",
    c="int32_t",
    cpp="int32_t",
    tensorflow=3,
    tensorflow_name="int32",
    torch=3,
    xla=4,
)

DTYPES = (HALF, BFLOAT16, FLOAT, DOUBLE, INT32)
FLOATING = tuple(row for row in DTYPES if not row.is_integer)
PLAIN_FIRST = tuple(sorted(FLOATING, key=lambda row: (row.itemsize < 4, -row.unit)))
"""Those that every kernel has before those that few have."""

_BY_NUMPY = {row.numpy: row for row in DTYPES}
_BY_SHORT = {row.short: row for row in DTYPES}


def by_short(short: str) -> DType:
    """Return the row that kernels call `short`."""
    return _BY_SHORT[short]


def find(dtype: np.dtype[Any]) -> DType | None:
    """Return the row of a NumPy dtype in either byte order, or None."""
    row = _BY_NUMPY.get(dtype)
    if row is not None:
        return row
    try:
        return _BY_NUMPY.get(dtype.newbyteorder("="))
    except TypeError:  # NumPy's variable-width strings have no byte order to ask for
        return None


def accumulator(row: DType) -> DType:
    """Return the row that sums of a dtype's products are kept in.

    >>> accumulator(HALF).name, accumulator(DOUBLE).name
    ('float32', 'float64')
    """
    return _BY_SHORT[row.accumulator]


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
