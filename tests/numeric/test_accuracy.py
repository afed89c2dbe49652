"""Accuracy on a fixed problem, in units of the dtype's rounding: relative Frobenius error of N8 28x28x64, 3x3, SAME.

One rounding of a float gives about 0.41 u in this measure. PyTorch's float32 filter gradient is at 24 u here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cases import KINDS, UNITS, Case, Data, normal, run
from convgrad import _oracle
from kernels import problem_of

LIMITS = {"float32": 2.5, "float64": 4.0, "half": 0.45, "bfloat16": 0.45}
"""float64 has no wider type to add long sums in."""


def exactly(case: Case, kind: str, data: Data) -> Any:
    """Return the result in long double: float64 itself would be off by 20 u of float64."""
    operands = {"forward": (data.x, data.f), "input": (data.f, data.g), "filter": (data.x, data.g)}
    first, second = (each.astype(np.longdouble) for each in operands[kind])
    return _oracle.compute(problem_of(case, kind), first, second)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", sorted(LIMITS))
@pytest.mark.parametrize("kind", KINDS)
def test_depthwise_errors_stay_small(kind: str, dtype: str, data_format: str) -> None:
    case = Case(
        *(True, 8, (28, 28), 64, 1, 1, (3, 3), (1, 1), (1, 1), "SAME"),
        data_format=data_format,
        dtype=dtype,
    )
    data = normal(case, np.random.default_rng(0))
    exact = exactly(case, kind, data)
    difference = run(case, kind, data).astype(np.longdouble) - exact
    error = float(np.sqrt((difference**2).sum() / (exact**2).sum()))
    assert error / UNITS[dtype] <= LIMITS[dtype], error / UNITS[dtype]
    assert error > 0, "an exact result means that the wrong thing was asked"
