"""`depthwise_plane` and `depthwise_flat`, driven directly: exact numbers, memory bounds, bits on threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import convgrad
from calling import TARGETS, label
from cases import DTYPES, KINDS, Case, Data, normal, random_case, run, whole_numbers
from convgrad import _dtypes, _engine, _planner, _problem, _runtime
from convgrad._arguments import FRIENDLY, settings
from convgrad._problem import Problem
from convgrad._targets import Target
from guard import guarded
from tolerance import assert_close

CALLS = {
    "forward": _problem.DEPTHWISE,
    "input": _problem.DEPTHWISE_INPUT,
    "filter": _problem.DEPTHWISE_FILTER,
}
ALGORITHMS = ("depthwise_plane", "depthwise_flat")
HOST = max(TARGETS, key=lambda target: (target.has_fma, target.vector_bits == 256))


def problem_of(case: Case, kind: str) -> Problem:
    row = _dtypes.find(DTYPES[case.dtype])
    assert row is not None
    how = (case.strides, case.padding, case.data_format, case.dilations)
    chosen = settings("test", FRIENDLY, *how)
    grad = None if kind == "forward" else case.output_shape
    return _problem.build(CALLS[kind], chosen, row, case.input_shape, case.filter_shape, grad)


def operands(kind: str, data: Data) -> tuple[Any, Any]:
    return {"forward": (data.x, data.f), "input": (data.f, data.g), "filter": (data.x, data.g)}[
        kind
    ]


def prepared(case: Case, kind: str, name: str, target: Target) -> Any:
    plan = _planner.choose_named(problem_of(case, kind), target, name)
    return _engine.prepare(plan, target)


def compute(case: Case, kind: str, data: Data, name: str, target: Target) -> Any:
    """Run one algorithm on a result full of rubbish."""
    result = np.full(problem_of(case, kind).result_shape, 77, DTYPES[case.dtype])
    prepared(case, kind, name, target)(*operands(kind, data), result)
    return result


def exact(case: Case, kind: str, data: Data) -> Any:
    row = _dtypes.find(DTYPES[case.dtype])
    assert row is not None
    values = run(case, kind, data, "reference", exact=True)
    return _dtypes.round_once(values.astype(np.float64), row)


def some_case(rng: np.random.Generator, name: str, target: Target, largest: int = 24) -> Case:
    """Draw a case an algorithm takes."""
    flat = name == "depthwise_flat"
    while True:
        case = random_case(
            rng,
            depthwise=True,
            data_format="NHWC" if flat else "NCHW",
            size=tuple(int(n) for n in rng.integers(1, largest, 2)),
            window=tuple(int(n) for n in rng.choice([1, 2, 3, 3, 3, 4, 5, 7], 2)),
            strides=(1, 1) if flat else (int(rng.choice([1, 1, 2, 2, 3])), int(rng.integers(1, 3))),
            group_out=1 if flat else int(rng.choice([1, 1, 1, 2, 3])),
        )
        if 0 in (*case.input_shape, *case.output_shape):
            continue
        if all(_planner.refusals(problem_of(case, k), target)[name] is None for k in KINDS):
            return case


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("target", TARGETS, ids=label)
def test_whole_numbers_are_exact(name: str, target: Target) -> None:
    rng = np.random.default_rng(21)
    for _ in range(40 if target == HOST else 8):
        case = some_case(rng, name, target)
        data = whole_numbers(case, rng)
        for kind in KINDS:
            got = compute(case, kind, data, name, target)
            np.testing.assert_array_equal(got, exact(case, kind, data), str((case, kind)))


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("at", ["start", "end"])
def test_memory_around_the_arrays_is_not_touched(name: str, at: Any) -> None:
    rng = np.random.default_rng(22)
    for _ in range(30):
        case = some_case(rng, name, HOST, 40)
        data = whole_numbers(case, rng)
        data = Data(guarded(data.x, at), guarded(data.f, at), guarded(data.g, at))
        for kind in KINDS:
            shape = problem_of(case, kind).result_shape
            result = guarded(np.full(shape, 77, DTYPES[case.dtype]), at)
            prepared(case, kind, name, HOST)(*operands(kind, data), result)
            np.testing.assert_array_equal(result, exact(case, kind, data), str((case, kind)))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_arrays_need_no_alignment(name: str) -> None:
    rng = np.random.default_rng(23)
    for _ in range(10):
        case = some_case(rng, name, HOST)
        data = whole_numbers(case, rng)
        data = Data(*(shifted(each, int(rng.integers(1, 16))) for each in (data.x, data.f, data.g)))
        for kind in KINDS:
            shape = problem_of(case, kind).result_shape
            result = shifted(np.zeros(shape, DTYPES[case.dtype]), 3)
            prepared(case, kind, name, HOST)(*operands(kind, data), result)
            np.testing.assert_array_equal(result, exact(case, kind, data), str((case, kind)))


def shifted(values: Any, elements: int) -> Any:
    memory = np.zeros(values.size + elements, values.dtype)
    result = memory[elements:].reshape(values.shape)
    result[...] = values
    return result


@pytest.mark.parametrize("name", ALGORITHMS)
def test_rounding_errors_stay_small_and_threads_change_no_bit(name: str) -> None:
    rng = np.random.default_rng(24)
    for _ in range(10):
        case = some_case(rng, name, HOST, 80)
        data = normal(case, rng)
        for kind in KINDS:
            results = []
            for threads in (1, 2, 3, 8):
                with _runtime.threads(threads):
                    results.append(compute(case, kind, data, name, HOST))
            assert len({result.tobytes() for result in results}) == 1, (case, kind)
            assert_close(case, kind, data, results[0])


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_a_number_reaches_its_own_windows_and_no_others(name: str, bad: float) -> None:
    rng = np.random.default_rng(25)
    for _ in range(15):
        case = some_case(rng, name, HOST, 12)
        data = whole_numbers(case, rng, 2)
        data = Data(*(np.abs(each) + each.dtype.type(1) for each in (data.x, data.f, data.g)))
        for kind, operand in (
            ("forward", "x"),
            ("input", "g"),
            ("filter", "x"),
            ("filter", "g"),
        ):
            spoiled = {each: getattr(data, each).copy() for each in "xfg"}
            position = tuple(int(rng.integers(size)) for size in spoiled[operand].shape)
            spoiled[operand][position] = bad
            probe = {each: np.abs(getattr(data, each)) for each in "xfg"}
            probe[operand] = np.zeros_like(spoiled[operand])
            probe[operand][position] = 1
            touched = run(case, kind, Data(**probe), "reference") != 0
            got = compute(case, kind, Data(**spoiled), name, HOST).astype(np.float64)
            np.testing.assert_array_equal(~np.isfinite(got), touched, str((case, kind, operand)))


def test_refusals_name_their_reason() -> None:
    case = Case(True, 1, (8, 8), 4, 1, 1, (3, 3), (1, 3), (1, 1), "SAME", "NCHW")
    with pytest.raises(convgrad.errors.ArgumentError, match="column strides above 2"):
        prepared(case, "forward", "depthwise_plane", HOST)
