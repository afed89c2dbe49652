"""Kernels at the corners of the matrix: shapes that take a path of their own, bounds on memory, refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import convgrad
from cases import KINDS, Case, Data, run, whole_numbers
from convgrad import _dtypes, _jit, _planner, _problem
from convgrad._algorithms import ALGORITHMS
from convgrad._algorithms.depthwise_packed_columns import columns
from convgrad._errors import ArgumentError
from convgrad._geometry import solve
from convgrad._problem import Kind, Settings
from kernels import compute, expected_exactly, problem_of, random_case_for

HOST = _jit.host_target()
PACKED = "depthwise_packed"
NAMES = [name for name in ALGORITHMS if name != "reference"]

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
@pytest.mark.parametrize("shape", SHAPES)
def test_special_shapes_are_exact(shape: str, data_format: str, checked: Any) -> None:
    """By the universal algorithm, and by whatever else takes them."""
    rng = np.random.default_rng(7)
    for dtype, names in (("float32", NAMES), ("bfloat16", [PACKED])):
        case = replace(SHAPES[shape], data_format=data_format, dtype=dtype)
        data = whole_numbers(case, rng, 2)
        for kind in KINDS:
            refusals = _planner.refusals(problem_of(case, kind), HOST)
            for name in names:
                if refusals[name] is None:
                    got = compute(name, HOST, case, kind, data)
                    np.testing.assert_array_equal(
                        got.astype(np.float64),
                        expected_exactly(case, kind, data).astype(np.float64),
                        str((name, case, kind)),
                    )
                    checked["special shapes, exact integers"] += 1
            assert refusals[PACKED] is None, (case, kind)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_a_number_reaches_its_windows_and_no_other_image_or_channel(
    name: str, bad: float
) -> None:
    """A padding cell may be skipped or multiplied as 0, so a filter gradient may show it at all taps of the channel."""
    rng = np.random.default_rng([25, *name.encode()])
    for _ in range(10):
        case = random_case_for(rng, name, HOST, 12)
        data = whole_numbers(case, rng, 2)
        data = Data(*(np.abs(each) + each.dtype.type(1) for each in (data.x, data.f, data.g)))
        for kind, operand in (("forward", "x"), ("input", "g"), ("filter", "x"), ("filter", "g")):
            spoiled = {each: getattr(data, each).copy() for each in "xfg"}
            position = tuple(int(rng.integers(size)) for size in spoiled[operand].shape)
            spoiled[operand][position] = bad
            probe = {each: np.abs(getattr(data, each)) for each in "xfg"}
            probe[operand] = np.zeros_like(spoiled[operand])
            probe[operand][position] = 1
            touched = run(case, kind, Data(**probe), "reference") != 0
            got = ~np.isfinite(compute(name, HOST, case, kind, Data(**spoiled)).astype(np.float64))
            assert got[touched].all(), (case, kind, operand)
            if kind == "filter":
                touched = np.broadcast_to(touched.any(axis=(0, 1), keepdims=True), touched.shape)
                touched = touched if touched.any() else np.ones_like(touched)
            assert not got[~touched].any(), (case, kind, operand)


def test_scratch_is_bounded() -> None:
    """Even large images and windows take little of it, and what would be absurd is refused."""
    for size, window, dilation in ((14, 7, 1), (56, 7, 1), (512, 3, 1), (1024, 31, 1), (64, 3, 24)):
        for data_format in ("NHWC", "NCHW"):
            case = Case(
                *(True, 1, (size, size), 96, 1, 1, (window, window), (1, 1)),
                *((dilation, dilation), "SAME", data_format),
            )
            for kind in KINDS:
                plan = _planner.choose(problem_of(case, kind), HOST)
                assert plan.algorithm != "reference"
                assert plan.steps[0].scratch_bytes <= 1 << 20, (case, kind, plan.story)
                assert plan.partial_bytes <= 8 << 20, (case, kind, plan.story)
    case = Case(True, 1, (4096, 4096), 8, 1, 1, (1500, 1500), (1, 1), (1, 1), "SAME")
    with pytest.raises(ArgumentError, match="scratch"):
        _planner.choose_named(problem_of(case, "forward"), HOST, PACKED)


def test_refusals_name_their_reason() -> None:
    case = Case(True, 1, (8, 8), 4, 1, 1, (3, 3), (1, 3), (1, 1), "SAME", "NCHW")
    with pytest.raises(ArgumentError, match="column strides above 2"):
        _planner.choose_named(problem_of(case, "forward"), HOST, "depthwise_plane")
    shapes = (1, 4, 4, 4), (3, 3, 2, 6), None
    settings = Settings((1, 1), (1, 1), "SAME", "NHWC")
    dense = _problem.build(_problem.CONV2D, settings, _dtypes.FLOAT, *shapes)
    for name in NAMES:
        with pytest.raises(ArgumentError, match=f"{name} does not take this problem: only "):
            _planner.choose_named(dense, HOST, name)


def test_columns_of_any_size_stay_small() -> None:
    """Strides and dilations beyond the image leave few taps and phases, not billions."""
    wide = columns(solve(10, 3, 2**31, 1, "SAME"), Kind.INPUT_GRADIENT)
    assert len(wide.phases) <= 3
    far = columns(solve(10, 5, 1, 2**31, "SAME"), Kind.FORWARD)
    assert [phase.count for phase in far.phases] == [1]


def test_every_realistic_depthwise_problem_has_a_kernel() -> None:
    """Nothing in the documented matrix at a realistic size may land on the reference."""
    rng = np.random.default_rng(5)
    for _ in range(2000):
        case = random_case_for(rng, PACKED, HOST, 64)
        for kind in KINDS:
            plan = _planner.choose(problem_of(case, kind), HOST)
            assert plan.algorithm != "reference", (case, kind)


def test_kernels_can_be_switched_off() -> None:
    x = np.ones((1, 8, 8, 8), np.float32)
    f = np.ones((3, 3, 8, 1), np.float32)
    with convgrad._config.scope(kernels=False):
        slow = convgrad.depthwise_conv2d(x, f, 1, "SAME")
    np.testing.assert_array_equal(slow, convgrad.depthwise_conv2d(x, f, 1, "SAME"))
