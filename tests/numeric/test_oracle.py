"""The oracle against the sums written a second way, against finite differences, and against its own adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import convgrad
import naive
from calling import seeds
from cases import KINDS, Data, normal, random_case, run, whole_numbers


@pytest.mark.parametrize("seed", seeds(5, 12))
def test_exact_integers_equal_the_second_way(seed: int, checked: Any) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(100):
        case = random_case(rng, dtype="float64")
        data = whole_numbers(case, rng, 9)
        whole = Data(*(each.astype(np.int64) for each in (data.x, data.f, data.g)))
        for kind in KINDS:
            got = run(case, kind, data, "reference", exact=True)
            assert got.dtype == np.int64
            np.testing.assert_array_equal(got, naive.compute(case, kind, whole), str((case, kind)))
            checked["oracle problems, exact integers, second way"] += 1


@pytest.mark.parametrize("seed", range(3))
def test_float64_equals_the_second_way(seed: int, checked: Any) -> None:
    rng = np.random.default_rng(1000 + seed)
    for _ in range(60):
        case = random_case(rng, dtype="float64")
        data = normal(case, rng)
        for kind in KINDS:
            got = run(case, kind, data, "reference")
            expected = naive.compute(case, kind, data)
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12, err_msg=str(case))
            checked["oracle problems, float64, second way"] += 1


@pytest.mark.parametrize("seed", range(4))
def test_gradients_equal_finite_differences(seed: int, checked: Any) -> None:
    """The loss <conv(x, f), g> is linear in x and in f, so a difference of step 1 is exact for whole numbers."""
    rng = np.random.default_rng(2000 + seed)
    for _ in range(6):
        case = random_case(rng, dtype="float64", batch=1, groups=2, group_out=2)
        data = whole_numbers(case, rng)

        def loss(x: Any, f: Any, case: Any = case, data: Data = data) -> float:
            return float((run(case, "forward", Data(x, f, data.g), "reference") * data.g).sum())

        base = loss(data.x, data.f)
        for kind, of in (("input", data.x), ("filter", data.f)):
            gradient = run(case, kind, data, "reference")
            for position in np.ndindex(of.shape):
                moved = of.copy()
                moved[position] += 1
                x, f = (moved, data.f) if kind == "input" else (data.x, moved)
                assert loss(x, f) - base == gradient[position], (case, kind, position)
            checked["oracle problems, finite differences"] += 1


def test_exact_mode_uses_python_integers_beyond_64_bits() -> None:
    big = np.full((1, 1, 1, 1), 2.0**62)
    got = convgrad.reference.conv2d(big, big, 1, "SAME", exact=True)
    assert got.dtype == object
    assert got.item() == 2**124


def test_accepts_every_real_dtype_and_returns_float64() -> None:
    for dtype in (np.float16, np.float32, np.int8, np.uint64, np.bool_):
        one = np.ones((1, 1, 1, 1), dtype)
        assert convgrad.reference.conv2d(one, one, 1, "VALID").dtype == np.float64
