"""A bias inside the kernels, and its gradient: every algorithm, layout and dtype against the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import convgrad
from biases import SIDES, assert_close, biased, compute, exactly
from calling import TARGETS, label
from cases import NUMPY, Case, normal, whole_numbers
from convgrad import _jit
from convgrad._algorithms import ALGORITHMS
from convgrad._targets import Target
from kernels import random_case_for

HOST = _jit.host_target()
NAMES = [name for name in ALGORITHMS if name != "reference"]
EXACT = [name for name in NAMES if name != "winograd_fast"]
"""F(4,3) divides by 24: whole numbers do not stay whole."""


@pytest.fixture(autouse=True)
def _all_algorithms() -> Any:
    """Let those take part that must be asked for."""
    with convgrad.options(winograd="fast"):
        yield


def whole_bias(case: Case, channels: int, rng: np.random.Generator) -> Any:
    return rng.integers(-9, 10, channels).astype(NUMPY[case.dtype])


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("target", TARGETS, ids=label)
def test_whole_numbers_come_out_exact(name: str, target: Target) -> None:
    """On memory that ends at a forbidden page: vectors of channels must not read past the last one's bias."""
    rng = np.random.default_rng([11, *name.encode()])
    for turn in range(5 if name.startswith("depthwise_") else 12):
        case, kinds = random_case_for(rng, name, target)
        data = whole_numbers(case, rng)
        for kind in kinds:
            for side in SIDES[kind]:
                problem = biased(case, kind, side)
                bias = whole_bias(case, problem.bias_c, rng)
                place = ("end", "end", "start", "shifted")[turn % 4]
                got = compute(name, target, problem, kind, data, bias, place)
                expected = exactly(case, kind, side, data, bias)
                for mine, exact in zip(got, expected, strict=True):
                    np.testing.assert_array_equal(
                        mine.astype(np.float64),
                        exact.astype(np.float64),
                        str((name, target.label, case, kind, side)),
                    )


@pytest.mark.parametrize("name", NAMES)
def test_rounding_stays_in_the_bound(name: str) -> None:
    rng = np.random.default_rng([12, *name.encode()])
    for _ in range(8):
        case, kinds = random_case_for(rng, name, HOST, largest=40, whole=False)
        data = normal(case, rng)
        for kind in kinds:
            for side in SIDES[kind]:
                problem = biased(case, kind, side)
                bias = rng.standard_normal(problem.bias_c).astype(problem.dtype.numpy)
                got = compute(name, HOST, problem, kind, data, bias)
                assert_close(case, kind, side, data, bias, got)
