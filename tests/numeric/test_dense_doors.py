"""The public doors of the dense operations, through kernels: exact on whole numbers, and never by the reference.

`test_operations` looks at the doors and mostly leaves the kernels out; `test_kernels` drives kernels by name. Here a
caller's arrays go all the way: non-contiguous operands, every door, `conv2d_transpose` and `separable_conv2d`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import convgrad
from calling import seeds
from cases import DOORS, KINDS, Case, Data, door_settings, run, whole_numbers
from convgrad._compiler import jit
from convgrad._engine import planner
from kernels import expected_exactly, problem_of, random_case_for, taken

NAMES = ("dense_direct", "dense_filter")


def dense_case(rng: np.random.Generator, **fixed: Any) -> Case:
    """Draw a dense or grouped case."""
    name = NAMES[int(rng.integers(2))]
    case, _ = random_case_for(rng, name, jit.host_target(), 16, depthwise=False, **fixed)
    return case


def awkward(rng: np.random.Generator, data: Data) -> Data:
    """Give an operand another order in memory, or holes: the doors take any."""
    which = int(rng.integers(4))
    if which == 0:
        return Data(*(np.asfortranarray(each) for each in (data.x, data.f, data.g)))
    if which == 1:
        return Data(*(np.repeat(each, 2, axis=-1)[..., ::2] for each in (data.x, data.f, data.g)))
    return data


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_every_door_is_exact(seed: int, checked: Any) -> None:
    rng = np.random.default_rng(8000 + seed)
    for turn in range(20):
        case = dense_case(rng)
        data = whole_numbers(case, rng)
        given = awkward(rng, data)
        for kind in KINDS[:2] if case.dtype == "int32" else KINDS:
            plan = planner.choose(problem_of(case, kind), jit.host_target())
            assert plan.algorithm != "reference", (case, kind)
            door = "raw" if case.dtype == "int32" else DOORS[turn % 3]
            got = run(case, kind, given, door)
            expected = expected_exactly(case, kind, data)
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(
                got.astype(np.float64), expected.astype(np.float64), str((case, kind, door))
            )
            checked["dense problems through the doors, exact integers"] += 1


def test_conv2d_transpose_is_exact_through_every_door(checked: Any) -> None:
    rng = np.random.default_rng(8100)
    for _ in range(25):
        case = dense_case(rng, dtype="float32")
        data = whole_numbers(case, rng)
        expected = expected_exactly(case, "input", data)
        for module, form in (
            (convgrad, "friendly"),
            (convgrad.nn, "v1"),
            (convgrad.compat.v1.nn, "v1"),
        ):
            _, settings = door_settings(case, form)
            got = module.conv2d_transpose(data.g, data.f, case.input_shape, **settings)
            np.testing.assert_array_equal(got, expected, str((case, module.__name__)))
            checked["dense problems through the doors, exact integers"] += 1


def test_separable_conv2d_is_exact_and_both_halves_run_kernels() -> None:
    rng = np.random.default_rng(8200)
    for _ in range(6):
        case, _ = random_case_for(rng, "depthwise_packed", jit.host_target(), 16, depthwise=True)
        data = whole_numbers(case, rng, 2)
        between = expected_exactly(case, "forward", data)
        channels, out = case.groups * case.group_out, int(rng.choice([1, 7, 16, 33]))
        mixing = Case(
            *(False, case.batch, case.out_size, 1, channels, out, (1, 1), (1, 1), (1, 1), "VALID"),
            *(case.data_format, case.dtype),
        )
        weights = rng.integers(-1, 2, mixing.filter_shape).astype(between.dtype)
        expected = expected_exactly(mixing, "forward", Data(between, weights, None))
        _, settings = door_settings(case, "friendly")
        got = convgrad.separable_conv2d(data.x, data.f, weights, **settings)
        assert taken("dense_direct", mixing, jit.host_target())
        np.testing.assert_array_equal(
            got.astype(np.float64), expected.astype(np.float64), str((case, out))
        )
