"""Every algorithm with kernels, driven by name: exact numbers, memory bounds, rounding, bits on any number of threads.

A new algorithm is picked up from the table; it needs no test of its own for any of this.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calling import few_and_more, foreign
from cases import Case, Data, normal, whole_numbers
from convgrad._compiler import jit
from convgrad._compiler.targets import Target
from kernels import NAMES, Place, asked, compute, expected_exactly, random_case_for, taken
from tolerance import assert_close

HOST = jit.host_target()


def turns(name: str, depthwise: int) -> int:
    """Depthwise kernels know their window, so nearly each case compiles one; dense kernels are few."""
    return depthwise if name.startswith("depthwise_") else 3 * depthwise


def assert_exact(
    name: str, target: Target, case: Case, kind: str, data: Data, place: Place
) -> None:
    got = compute(name, target, case, kind, data, place)
    np.testing.assert_array_equal(
        got.astype(np.float64),
        expected_exactly(case, kind, data).astype(np.float64),
        str((name, target.label, case, kind, place)),
    )


@pytest.mark.parametrize(
    ("name", "target", "depthwise", "seed"), foreign(NAMES, host=3, few=2, more=6)
)
def test_whole_numbers_come_out_exact(
    name: str, target: Target, depthwise: int, seed: int, checked: Any
) -> None:
    rng = np.random.default_rng([seed, *name.encode()])
    for turn in range(turns(name, depthwise)):
        case, kinds = random_case_for(rng, name, target)
        data = whole_numbers(case, rng)
        for kind in kinds:
            assert_exact(name, target, case, kind, data, ("start", "end", "shifted")[turn % 3])
            checked[f"{name} problems on guarded memory, exact integers"] += 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["start", "end"])
@pytest.mark.parametrize(("depthwise", "seed"), few_and_more(4, 15, seed=2))
def test_no_cell_outside_the_arrays_is_touched(
    name: str, place: Place, depthwise: int, seed: int, checked: Any
) -> None:
    rng = np.random.default_rng([seed, *name.encode()])
    for _ in range(turns(name, depthwise)):
        case, kinds = random_case_for(rng, name, HOST)
        data = whole_numbers(case, rng)
        for kind in kinds:
            assert_exact(name, HOST, case, kind, data, place)
            checked[f"{name} problems on guarded memory, exact integers"] += 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("turns", "seed"), few_and_more(6, 18, seed=3))
def test_rounding_stays_in_the_bound_and_threads_change_no_bit(
    name: str, turns: int, seed: int, checked: Any
) -> None:
    rng = np.random.default_rng([seed, *name.encode()])
    for _ in range(turns):
        case, kinds = random_case_for(rng, name, HOST, largest=48, whole=False)
        data = normal(case, rng)
        for kind in kinds:
            counts = (1, 2, 3, 8, 2)
            results = [compute(name, HOST, case, kind, data, threads=count) for count in counts]
            assert_close(case, kind, data, results[0], name)
            for other in results[1:]:
                assert other.tobytes() == results[0].tobytes(), (case, kind)
            checked["problems with the same bits on 1, 2, 3 and 8 threads and when repeated"] += 1


def test_threads_that_are_asked_for_take_part() -> None:
    """Each has a workspace of its own: tests of bits on any number of threads would else prove nothing."""
    case = Case(False, 4, (28, 28), 1, 64, 64, (3, 3), (1, 1), (1, 1), "SAME")
    data = normal(case, np.random.default_rng(9))
    wanted = []
    for count in (1, 2, 4):
        compute("winograd", HOST, case, "forward", data, threads=count)
        wanted.append(asked[-1])
    assert wanted[0] < wanted[1] < wanted[2]


@pytest.mark.parametrize("name", NAMES)
def test_int32_wraps_around(name: str) -> None:
    """Where an algorithm takes it: sums of any 32-bit numbers, modulo 2**32."""
    rng = np.random.default_rng([4, *name.encode()])
    for data_format in ("NHWC", "NCHW"):
        for groups, group_in, group_out in ((1, 5, 20), (2, 33, 3), (1, 64, 64)):
            case = Case(
                *(False, 2, (7, 9), groups, group_in, group_out, (3, 3), (1, 1), (1, 1), "SAME"),
                *(data_format, "int32"),
            )
            shapes = (case.input_shape, case.filter_shape, case.output_shape)
            x, f, g = (rng.integers(-(2**31), 2**31, shape, dtype=np.int32) for shape in shapes)
            for kind in taken(name, case, HOST):
                assert_exact(name, HOST, case, kind, Data(x, f, g), "end")
