"""Every algorithm with kernels, driven by name: exact numbers, memory bounds, rounding, bits on any number of threads.

A new algorithm is picked up from the table; it needs no test of its own for any of this.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import convgrad
from calling import TARGETS, label
from cases import KINDS, normal, whole_numbers
from convgrad import _jit
from convgrad._algorithms import ALGORITHMS
from convgrad._targets import Target
from kernels import Place, compute, expected_exactly, random_case_for
from tolerance import assert_close

NAMES = [name for name in ALGORITHMS if name != "reference"]
HOST = _jit.host_target()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("target", TARGETS, ids=label)
def test_whole_numbers_come_out_exact(name: str, target: Target, checked: Any) -> None:
    rng = np.random.default_rng([1, *name.encode()])
    for turn in range(12):
        case = random_case_for(rng, name, target)
        data = whole_numbers(case, rng)
        for kind in KINDS:
            place: Place = ("start", "end", "shifted")[turn % 3]
            got = compute(name, target, case, kind, data, place)
            np.testing.assert_array_equal(
                got.astype(np.float64),
                expected_exactly(case, kind, data).astype(np.float64),
                str((case, kind, place)),
            )
            checked[f"{name} problems on guarded memory, exact integers"] += 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["start", "end"])
def test_no_cell_outside_the_arrays_is_touched(name: str, place: Place, checked: Any) -> None:
    rng = np.random.default_rng([2, *name.encode()])
    for _ in range(30):
        case = random_case_for(rng, name, HOST)
        data = whole_numbers(case, rng)
        for kind in KINDS:
            got = compute(name, HOST, case, kind, data, place)
            np.testing.assert_array_equal(
                got.astype(np.float64),
                expected_exactly(case, kind, data).astype(np.float64),
                str((case, kind, place)),
            )
            checked[f"{name} problems on guarded memory, exact integers"] += 1


@pytest.mark.parametrize("name", NAMES)
def test_rounding_stays_in_the_bound_and_threads_change_no_bit(name: str, checked: Any) -> None:
    rng = np.random.default_rng([3, *name.encode()])
    for _ in range(45):
        case = random_case_for(rng, name, HOST, largest=48)
        data = normal(case, rng)
        for kind in KINDS:
            results = []
            for count in (1, 2, 3, 8):
                with convgrad.threads(count):
                    results.append(compute(name, HOST, case, kind, data))
            assert_close(case, kind, data, results[0])
            for other in results[1:]:
                assert other.tobytes() == results[0].tobytes(), (case, kind)
            checked["problems with the same bits on 1, 2, 3 and 8 threads"] += 1
