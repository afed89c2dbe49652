"""`round_once` against rounding done with exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from convgrad._base import dtypes
from convgrad._base.dtypes import BFLOAT16, FLOAT, HALF, DType

# precision in bits, exponent of the smallest subnormal, largest finite value
FORMATS = {
    "half": (11, -24, 65504.0),
    "bfloat16": (8, -133, float.fromhex("0x1.fep127")),
    "float32": (24, -149, float.fromhex("0x1.fffffep127")),
}


def nearest(value: float, row: DType) -> float:
    """Round a finite float64 to the nearest number of a format, ties to even, by integer arithmetic."""
    precision, smallest, largest = FORMATS[row.name]
    if value == 0:
        return value
    exponent = max(math.frexp(value)[1] - precision, smallest)
    scaled = Fraction(value) / Fraction(2) ** exponent
    rounded = float(round(scaled) * Fraction(2) ** exponent)  # Python rounds ties to even
    return math.copysign(math.inf, value) if abs(rounded) > largest else rounded


def candidates(row: DType) -> list[float]:
    """Ties, values just beside ties, subnormals, the largest numbers, and everything between."""
    rng = np.random.default_rng(0)
    precision, smallest, largest = FORMATS[row.name]
    values = list(rng.standard_normal(2000) * 2.0 ** rng.integers(smallest - 3, 130, 2000))
    for base in (1.0, 3.0, 2.0**smallest * 5, largest):
        for step in range(4):
            for nudge in (0.0, 2.0**-52, -(2.0**-52), 2.0**-30, -(2.0**-30)):
                tie = base * (1 + (2 * step + 1) * 2.0**-precision)
                values.append(tie * (1 + nudge))
                values.append(-tie * (1 + nudge))
    return values


@pytest.mark.parametrize("row", [HALF, BFLOAT16, FLOAT], ids=lambda row: row.name)
def test_rounds_once_to_nearest_even(row: DType) -> None:
    values = candidates(row)
    got = dtypes.round_once(np.array(values), row).astype(np.float64)
    expected = np.array([nearest(value, row) for value in values])
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("row", [HALF, BFLOAT16, FLOAT], ids=lambda row: row.name)
def test_specials_stay_themselves(row: DType) -> None:
    values = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0])
    got = dtypes.round_once(values, row).astype(np.float64)
    np.testing.assert_array_equal(got, values)
    assert np.signbit(got[-1])
