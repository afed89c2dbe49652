"""`depthwise_packed` driven by itself: every geometry, dtype, layout and vector width against exact sums.

Whole numbers are summed exactly in any order, so results must equal the oracle's, rounded once. Operands and results
lie against pages that may not be touched, at addresses with no more alignment than one element has.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from cases import DTYPES, KINDS, Case, Data, normal, random_case, run, whole_numbers
from convgrad import _dtypes, _engine, _jit, _planner, _problem, _runtime
from convgrad._algorithms.depthwise_packed import NAME
from convgrad._problem import Call, Problem, Settings
from guard import guarded
from tolerance import assert_close

CALLS: dict[str, Call] = {
    "forward": _problem.DEPTHWISE,
    "input": _problem.DEPTHWISE_INPUT,
    "filter": _problem.DEPTHWISE_FILTER,
}


def problem_of(case: Case, kind: str) -> Problem:
    padding: Any = case.padding
    settings = Settings(case.strides, case.dilations, padding, case.data_format)
    dtype = next(row for row in _dtypes.DTYPES if row.name == case.dtype)
    grad = None if kind == "forward" else case.output_shape
    return _problem.build(
        CALLS[kind], settings, dtype, case.input_shape, case.filter_shape, grad
    )


def compute(case: Case, kind: str, data: Data, bits: int, at: Literal["start", "end"]) -> Any:
    """Run one problem on guarded copies of its operands."""
    problem = problem_of(case, kind)
    target = _jit.host_target().with_vector_bits(bits)
    execute = _engine.prepare(_planner.choose_named(problem, target, NAME), target)
    operands = {
        "forward": (data.x, data.f),
        "input": (data.f, data.g),
        "filter": (data.x, data.g),
    }
    first, second = (guarded(each, at) for each in operands[kind])
    result = guarded(np.full(problem.result_shape, 77, problem.dtype.numpy), at)
    execute(first, second, result)
    return result


def check_exactly(case: Case, kind: str, data: Data, bits: int, at: Any) -> None:
    got = compute(case, kind, data, bits, at)
    exact = run(case, kind, data, "reference", exact=True)
    expected = exact.astype(np.float64).astype(DTYPES[case.dtype])
    np.testing.assert_array_equal(got, expected, str((case, kind, bits, at)))


def random_problem(rng: np.random.Generator) -> Case:
    """Draw a case that is not empty, some of them with many channels or wide images."""
    while True:
        fixed: dict[str, Any] = {"depthwise": True}
        if rng.random() < 0.5:
            fixed["groups"] = int(rng.integers(1, 80))
        if rng.random() < 0.3:
            fixed["group_out"] = int(rng.choice([2, 3, 4, 5, 8, 16, 20]))
        if rng.random() < 0.3:
            fixed["size"] = (int(rng.integers(1, 20)), int(rng.integers(10, 40)))
        if rng.random() < 0.2:
            fixed["window"] = (int(rng.integers(1, 14)), int(rng.integers(6, 34)))
            fixed["padding"] = "SAME"
        if rng.random() < 0.1:
            fixed["strides"] = (int(rng.integers(1, 30)), int(rng.integers(5, 30)))
        case = random_case(rng, **fixed)
        if not problem_of(case, "forward").is_empty:
            return case


@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("seed", range(4))
def test_random_problems_are_exact(seed: int, bits: int, checked: Any) -> None:
    rng = np.random.default_rng(100 * bits + seed)
    for turn in range(25):
        case = random_problem(rng)
        data = whole_numbers(case, rng)
        for kind in KINDS:
            check_exactly(case, kind, data, bits, ("start", "end")[turn % 2])
            checked["packed depthwise problems, exact"] += 1
