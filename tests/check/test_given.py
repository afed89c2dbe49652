"""`check` on problems that are named: exactly these are tried, with all data that makes sense for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from convgrad import reference
from convgrad._problem.text import read, write
from convgrad.errors import ArgumentError
from convgrad.testing import check_op

LINES = [
    "conv2d 2x9x8x4 3x3x2x6 strides=2 dtype=float64",
    "conv2d 1x4x7x7 3x3x4x6 strides=1,2 dilations=2 padding=2,1:0,3 data_format=NCHW dtype=bfloat16",
    "conv2d 1x2x2x1 3x3x1x1",
    "conv2d 1x6x6x40 3x3x40x2 padding=VALID",
    "conv2d 0x4x4x1 1x1x1x1",
]


def right(*arrays: Any, **how: Any) -> Any:
    return reference.conv2d(*arrays, **how).astype(arrays[0].dtype)


def test_exactly_these_problems_are_tried():
    calls: list[tuple[Any, ...]] = []

    def noted(*arrays: Any, **how: Any) -> Any:
        calls.append((*(each.shape for each in arrays), arrays[0].dtype.name, how["padding"]))
        return right(*arrays, **how)

    report = check_op(noted, "conv2d", problems=LINES)
    assert report.ok, str(report)
    shapes = {(read(line).input_shape, read(line).filter_shape) for line in LINES}
    assert {call[:2] for call in calls} == shapes
    assert {call[3] for call in calls} == {
        "SAME",
        "VALID",
        ((2, 1), (0, 3)),
    }  # as they were written
    assert {call[2] for call in calls} == {"float32", "float64", "bfloat16"}
    assert report.as_dict()["settings"]["lines"] == [write(read(line)) for line in LINES]
    names = {row.name: row.problems for row in report.rows}
    assert names == {
        "groups": 1, "stride-dilation": 1, "large-window": 1, "valid": 1, "empty": 1,
        "nan": 8, "accumulation": 5, "determinism": 4, "operands-kept": 22, "fresh-result": 22,
    }  # fmt: skip


def test_a_layer_gives_the_operation_that_is_asked_for():
    def gradient(*arrays: Any, **how: Any) -> Any:
        result = reference.depthwise_conv2d_backprop_filter(*arrays, **how)
        return result.astype(arrays[0].dtype)

    op = "depthwise_conv2d_backprop_filter"
    report = check_op(gradient, op, problems=["2x6x6x4k3s2x1"])
    assert report.ok and report.row("unequal-strides").passed == 1
    assert report.as_dict()["settings"]["lines"][0].startswith(f"{op} ")


def test_a_mistake_is_found_and_made_smaller():
    def no_dilation(*arrays: Any, dilations: Any, **how: Any) -> Any:
        kept = np.asarray(right(*arrays, dilations=dilations, **how))
        return right(*arrays, dilations=1, **how).reshape(kept.shape)

    report = check_op(no_dilation, "conv2d", problems="conv2d 1x9x9x4 3x3x4x4 dilations=2")
    assert not report.ok
    assert report.row("dilation").failed == 1
    assert report.findings[0].guess == "dilation ignored"


def test_properties_of_named_problems():
    one = ["conv2d 1x4x4x2 3x3x2x2 strides=2"]
    report = check_op(right, "conv2d", problems=one, properties=["nan"])
    assert [row.name for row in report.rows] == ["nan"]
    report = check_op(right, "conv2d", problems=one, properties=["operands-kept"])
    assert report.row("operands-kept").passed == 5
    with pytest.raises(
        ArgumentError, match=r"`properties` .*can show, stride, nan, .* got dilation"
    ):
        check_op(right, "conv2d", problems=one, properties=["dilation"])


@pytest.mark.parametrize(
    ("problems", "more", "says"),
    [
        (["conv2d_backprop_input 1x4x4x1 1x1x1x1"], {}, "must be of conv2d, got conv2d_backprop_input"),
        (["1x4x4x1k3"], {}, "must be of conv2d, got depthwise_conv2d 1x4x4x1"),
        (["conv2d 1x4x4x1 1x1x1x1 stride=2"], {}, "check_op: problem .*did you mean 'strides'"),
        (["conv2d 1x4x4x1 1x1x1x1 dtype=int32"], {}, "must be of half, bfloat16, .*dtype=int32"),
        ([], {}, "at least one line"),
        (["# nothing"], {}, "must be of conv2d, got '# nothing'"),
        ([7], {}, "must be a number or lines of text, got 7"),
        (2.5, {}, "must be a number or lines of text, got 2.5"),
        (0, {}, "at least 1"),
        (LINES, {"dtypes": ["half"]}, "`dtypes` must be left out"),
        (LINES, {"layouts": "NHWC"}, "`layouts` must be left out"),
    ],
)  # fmt: skip
def test_what_is_said_about_other_problems(problems, more, says):
    with pytest.raises(ArgumentError, match=says):
        check_op(right, "conv2d", problems=problems, **more)


def test_numbers_of_numpy_are_numbers():
    assert check_op(right, "conv2d", problems=np.int64(3)).problems == 3
