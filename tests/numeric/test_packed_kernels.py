"""`depthwise_packed` driven by itself: every geometry, dtype, layout and vector width against exact sums.

Whole numbers are summed exactly in any order, so results must equal the oracle's, rounded once. Operands and results
lie against pages that may not be touched, at addresses with no more alignment than one element has.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

from cases import DTYPES, KINDS, Case, Data, normal, random_case, run, whole_numbers
from convgrad import _dtypes, _engine, _jit, _planner, _problem, _runtime
from convgrad._algorithms.depthwise_packed import NAME
from convgrad._algorithms.depthwise_packed_columns import columns
from convgrad._geometry import solve
from convgrad._problem import Call, Kind, Problem, Settings
from convgrad.errors import ArgumentError
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
    return _problem.build(CALLS[kind], settings, dtype, case.input_shape, case.filter_shape, grad)


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
@pytest.mark.parametrize("seed", range(3))
def test_random_problems_are_exact(seed: int, bits: int, checked: Any) -> None:
    rng = np.random.default_rng(100 * bits + seed)
    for turn in range(15):
        case = random_problem(rng)
        data = whole_numbers(case, rng)
        for kind in KINDS:
            check_exactly(case, kind, data, bits, ("start", "end")[turn % 2])
            checked["packed depthwise problems, exact"] += 1


SHAPES = {
    "ConvNeXt": Case(True, 2, (14, 14), 40, 1, 1, (7, 7), (1, 1), (1, 1), "SAME"),
    "small image": Case(True, 2, (7, 7), 24, 1, 1, (7, 7), (1, 1), (1, 1), "SAME"),
    "two uneven tiles": Case(True, 1, (9, 11), 16, 1, 1, (5, 5), (1, 1), (1, 1), "SAME"),
    "RepLKNet": Case(True, 1, (20, 20), 16, 1, 1, (31, 31), (1, 1), (1, 1), "SAME"),
    "column blocks": Case(True, 1, (12, 61), 72, 1, 1, (9, 7), (1, 1), (1, 1), "SAME"),
    "strided column blocks": Case(True, 1, (30, 121), 33, 1, 1, (7, 7), (2, 3), (1, 1), "SAME"),
    "large image": Case(True, 1, (34, 90), 65, 1, 1, (3, 3), (1, 1), (1, 1), "SAME"),
    "stride above window": Case(True, 2, (23, 29), 9, 1, 1, (2, 3), (5, 7), (1, 1), "VALID"),
    "stride above image": Case(True, 1, (5, 6), 9, 1, 1, (2, 3), (50, 70), (1, 1), "SAME"),
    "dilated by more than the image": Case(
        True, 1, (6, 5), 8, 1, 1, (3, 3), (1, 1), (2**30, 2**30), "SAME"
    ),
    "pads above the window": Case(
        True, 1, (4, 5), 8, 1, 1, (3, 2), (1, 2), (1, 1), ((9, 4), (3, 20))
    ),
    "atrous": Case(True, 1, (33, 33), 16, 1, 1, (3, 3), (1, 1), (12, 12), "SAME"),
    "one long row": Case(True, 1, (1, 700), 9, 1, 1, (1, 9), (1, 1), (1, 3), "SAME"),
    "one long row with holes": Case(True, 1, (2, 700), 9, 1, 1, (7, 2), (1, 5), (1, 1), "SAME"),
    "one long column": Case(True, 1, (900, 2), 9, 1, 1, (9, 1), (2, 1), (1, 1), "SAME"),
    "multiplier 2": Case(True, 1, (9, 20), 37, 1, 2, (3, 3), (1, 1), (1, 1), "SAME"),
    "multiplier 3": Case(True, 1, (9, 20), 33, 1, 3, (3, 3), (2, 2), (1, 1), "SAME"),
    "multiplier 4": Case(True, 1, (9, 9), 64, 1, 4, (3, 3), (1, 1), (1, 1), "SAME"),
    "one channel, many results": Case(True, 2, (9, 9), 1, 1, 40, (3, 3), (1, 1), (1, 1), "SAME"),
}


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("name", SHAPES)
def test_special_shapes_are_exact(name: str, data_format: str, checked: Any) -> None:
    rng = np.random.default_rng(7)
    for dtype in ("float32", "bfloat16"):
        case = replace(SHAPES[name], data_format=data_format, dtype=dtype)
        data = whole_numbers(case, rng, 2)
        for kind in KINDS:
            check_exactly(case, kind, data, 256, "end")
            checked["packed depthwise problems, exact"] += 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_errors_stay_within_the_bound(dtype: str) -> None:
    rng = np.random.default_rng(11)
    for data_format in ("NHWC", "NCHW"):
        for _ in range(4):
            case = replace(random_problem(rng), data_format=data_format, dtype=dtype)
            data = normal(case, rng)
            for kind in KINDS:
                assert_close(case, kind, data, compute(case, kind, data, 256, "start"))


@pytest.mark.parametrize(
    "name", ["ConvNeXt", "large image", "multiplier 3", "one long row with holes"]
)
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_bits_do_not_depend_on_threads(name: str, data_format: str) -> None:
    rng = np.random.default_rng(13)
    case = replace(SHAPES[name], batch=3, data_format=data_format)
    data = normal(case, rng)
    for kind in KINDS:
        results = []
        for threads in (1, 2, 3, 8):
            with _runtime.threads(threads):
                results.append(compute(case, kind, data, 256, "end").tobytes())
        assert len(set(results)) == 1, (case, kind)


def test_scratch_is_bounded() -> None:
    """Even large images and windows take little of it, and what would be absurd is refused."""
    target = _jit.host_target()
    for size, window, dilation in ((14, 7, 1), (56, 7, 1), (512, 3, 1), (1024, 31, 1), (64, 3, 24)):
        for data_format in ("NHWC", "NCHW"):
            case = Case(
                *(True, 1, (size, size), 96, 1, 1, (window, window), (1, 1)),
                *((dilation, dilation), "SAME", data_format),
            )
            for kind in KINDS:
                plan = _planner.choose_named(problem_of(case, kind), target, NAME)
                assert plan.steps[0].scratch_bytes <= 1 << 20, (case, kind, plan.story)
    case = Case(True, 1, (4096, 4096), 8, 1, 1, (1500, 1500), (1, 1), (1, 1), "SAME")
    with pytest.raises(ArgumentError, match="scratch"):
        _planner.choose_named(problem_of(case, "forward"), target, NAME)


def test_refuses_what_is_not_depthwise() -> None:
    target = _jit.host_target()
    settings = Settings((1, 1), (1, 1), "SAME", "NHWC")
    shapes = (1, 4, 4, 4), (3, 3, 2, 6), None
    problem = _problem.build(_problem.CONV2D, settings, _dtypes.FLOAT, *shapes)
    with pytest.raises(ArgumentError, match="depthwise"):
        _planner.choose_named(problem, target, NAME)


def test_columns_of_any_size_stay_small() -> None:
    """Strides and dilations beyond the image leave few taps and phases, not billions."""
    wide = columns(solve(10, 3, 2**31, 1, "SAME"), Kind.INPUT_GRADIENT)
    assert len(wide.phases) <= 3
    far = columns(solve(10, 5, 1, 2**31, "SAME"), Kind.FORWARD)
    assert [phase.count for phase in far.phases] == [1]
