"""Driving one algorithm by name: its plan, its kernels, on arrays placed where we want them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from cases import DTYPES, KINDS, Case, Data, random_case, run
from convgrad import _dtypes, _planner, _prepare, _problem
from convgrad._arguments import FRIENDLY, settings
from convgrad._problem import Problem
from convgrad._targets import Target
from guard import guarded

Place = Literal["start", "end", "shifted"]
"""Against a forbidden page at its start or its end, or at an address with no more alignment than one element."""


def problem_of(case: Case, kind: str) -> Problem:
    """Return one of the three problems a case stands for."""
    dense = (_problem.CONV2D, _problem.CONV2D_INPUT, _problem.CONV2D_FILTER)
    depthwise = (_problem.DEPTHWISE, _problem.DEPTHWISE_INPUT, _problem.DEPTHWISE_FILTER)
    call = (depthwise if case.depthwise else dense)[KINDS.index(kind)]
    row = _dtypes.find(DTYPES[case.dtype])
    assert row is not None
    how = settings("test", FRIENDLY, case.strides, case.padding, case.data_format, case.dilations)
    grad = None if kind == "forward" else case.output_shape
    return _problem.build(call, how, row, case.input_shape, case.filter_shape, grad)


def compute(
    name: str, target: Target, case: Case, kind: str, data: Data, place: Place = "end"
) -> Any:
    """Run one algorithm on copies of its operands; the result starts full of rubbish."""
    problem = problem_of(case, kind)
    execute = _prepare.prepare(_planner.choose_named(problem, target, name), target)
    operands = {"forward": (data.x, data.f), "input": (data.f, data.g), "filter": (data.x, data.g)}
    first, second = (placed(each, place) for each in operands[kind])
    result = placed(np.full(problem.result_shape, 77, problem.dtype.numpy), place)
    execute(first, second, result)
    return result


def placed(values: Any, place: Place) -> Any:
    """Return a copy at a place."""
    if place != "shifted":
        return guarded(values, place)
    memory = np.zeros(values.size + 3, values.dtype)
    result = memory[3:].reshape(values.shape)
    result[...] = values
    return result


def expected_exactly(case: Case, kind: str, data: Data) -> Any:
    """Return the exact result on whole numbers, rounded once to the case's dtype."""
    exact = run(case, kind, data, "reference", exact=True)
    row = _dtypes.find(DTYPES[case.dtype])
    assert row is not None
    return _dtypes.round_once(exact.astype(np.float64), row)


def random_case_for(
    rng: np.random.Generator, name: str, target: Target, largest: int = 24, **fixed: Any
) -> Case:
    """Draw a case one algorithm takes for all three operations; narrow and wide, few and many channels."""
    while True:
        draw: dict[str, Any] = {
            "depthwise": True,
            "size": tuple(int(n) for n in rng.integers(1, largest, 2)),
            "groups": int(rng.choice([1, 2, 3, 5, 8, 9, 12, 16, 17, 24, 40, 72])),
            "group_out": int(rng.choice([1, 1, 1, 1, 2, 3, 4])),
        }
        if rng.random() < 0.6:
            draw["window"] = tuple(int(n) for n in rng.choice([1, 2, 3, 3, 3, 5, 7], 2))
            draw["strides"] = tuple(int(n) for n in rng.integers(1, 3, 2))
        if rng.random() < 0.4:
            draw["padding"] = "SAME"
            draw["dilations"] = (1, 1)
        case = random_case(rng, **{**draw, **fixed})
        if 0 in (*case.input_shape, *case.output_shape):
            continue
        reasons = (_planner.refusals(problem_of(case, kind), target)[name] for kind in KINDS)
        if not any(reasons):
            return case
