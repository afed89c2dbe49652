"""One line of text for every problem, both ways; and what is said about lines that are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import random_case
from convgrad._base.dtypes import DTYPES, INT32
from convgrad._base.errors import ArgumentError
from convgrad._problem import layer_text
from convgrad._problem.convolution import CONV2D_FILTER, OPS, Kind, Settings, build
from convgrad._problem.text import parse, read, read_line, read_lines, write

ROWS = {row.name: row for row in DTYPES}


def problems(case: Any) -> list[Any]:
    how = Settings(case.strides, case.dilations, case.padding, case.data_format)
    return [
        build(call, how, ROWS[case.dtype], case.input_shape, case.filter_shape, None)
        for call in OPS
        if call.depthwise is case.depthwise
    ]


@pytest.mark.parametrize("seed", range(8))
def test_every_problem_is_read_back(seed):
    """Both layouts, four dtypes, groups, multipliers, any pads, empty axes: whatever the tests draw."""
    rng = np.random.default_rng([seed, 16])
    for _ in range(150):
        for problem in problems(random_case(rng)):
            line = write(problem)
            assert read(line) == problem, line
            assert write(read(line)) == line
            assert " padding=" in line and "SAME" not in line


SIZE = st.one_of(st.integers(0, 12), st.integers(0, 2**34))
STEP = st.one_of(st.integers(1, 6), st.integers(1, 2**31 - 1))


@settings(deadline=None, max_examples=400)
@given(
    st.sampled_from(OPS),
    st.tuples(SIZE, SIZE, SIZE),
    st.tuples(st.integers(0, 5), st.integers(0, 5)),
    st.tuples(STEP, STEP),
    st.tuples(STEP, STEP),
    st.one_of(st.sampled_from(["SAME", "VALID"]), st.tuples(*[st.tuples(SIZE, SIZE)] * 2)),
    st.sampled_from(["NHWC", "NCHW"]),
    st.sampled_from(DTYPES),
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)),
)
def test_extreme_problems_are_read_back(
    call, sizes, window, strides, dilations, padding, layout, row, channels
):
    batch, height, width = sizes
    groups, group_in, group_out = channels
    if row is INT32 and (call.depthwise or call.kind is Kind.FILTER_GRADIENT):
        row = DTYPES[0]
    depth = (groups, group_out) if call.depthwise else (group_in, groups * group_out)
    in_c = groups if call.depthwise else groups * group_in
    image = (batch, height, width, in_c) if layout == "NHWC" else (batch, in_c, height, width)
    how = Settings(strides, dilations, padding, layout)
    try:
        problem = build(call, how, row, image, (*window, *depth), None)
    except ArgumentError:
        return
    assert read(write(problem)) == problem


def test_a_window_of_nothing_keeps_the_word():
    """The gradients of TensorFlow take it, and no pads give the output size SAME gives."""
    how = Settings((1, 1), (1, 1), "SAME", "NHWC")
    problem = build(CONV2D_FILTER, how, ROWS["float32"], (1, 4, 4, 2), (0, 3, 2, 5), None)
    line = write(problem)
    assert line == "conv2d_backprop_filter 1x4x4x2 0x3x2x5 padding=SAME"
    assert read(line) == problem


@pytest.mark.parametrize(
    ("line", "canonical"),
    [
        ("conv2d 8x28x28x64 3x3x64x64", "conv2d 8x28x28x64 3x3x64x64 padding=1,1:1,1"),
        (
            "  depthwise_conv2d_backprop_filter\t8x56x56x144 3x3x144x1 dtype=float32 strides=2,2 padding=same # why",
            "depthwise_conv2d_backprop_filter 8x56x56x144 3x3x144x1 strides=2 padding=0,1:0,1",
        ),
        (
            "conv2d 8x64x28x28 3X3X64X64 data_format=nchw dilations=1,2 strides=2,1 dtype=half padding=VALID",
            "conv2d 8x64x28x28 3x3x64x64 strides=2,1 dilations=1,2 padding=0,0:0,0 data_format=NCHW dtype=float16",
        ),
        (
            "conv2d_backprop_input 1,8,8,4 3,3,2,6 padding=0,2:3,1 dtype=bfloat16",
            "conv2d_backprop_input 1x8x8x4 3x3x2x6 padding=0,2:3,1 dtype=bfloat16",
        ),
        (
            "conv2d 1x4x4x1 1x1x1x1 dtype=int32",
            "conv2d 1x4x4x1 1x1x1x1 padding=0,0:0,0 dtype=int32",
        ),
        ("conv2d 0x4x4x1 1x1x1x1", "conv2d 0x4x4x1 1x1x1x1 padding=0,0:0,0"),
    ],
)
def test_lines_in_their_canonical_form(line, canonical):
    assert write(read(line)) == canonical


def test_how_a_line_was_written_is_kept():
    assert read_line("conv2d 1x4x4x1 3x3x1x1").settings.padding == "SAME"
    assert read_line("conv2d 1x4x4x1 3x3x1x1 padding=1,1:1,1").settings.padding == ((1, 1), (1, 1))


A = "conv2d 1x4x4x1 3x3x1x1"
WRONG = [
    ("", "is empty"),
    ("# only this", "is empty"),
    ("conv2dd 1x4x4x1 3x3x1x1", "OP must be one of .*, got 'conv2dd'; did you mean 'conv2d'?"),
    ("xyz", "got 'xyz'; a line reads OP INPUT FILTER"),
    ("conv2d", "INPUT and FILTER must follow conv2d, two shapes .*, got ''"),
    ("conv2d 1x4x4x1", "got '1x4x4x1'"),
    ("conv2d strides=2 1x4x4x1 3x3x1x1", "INPUT and FILTER must follow conv2d"),
    ("conv2d 1x4x4 3x3x1x1", "INPUT must be four sizes .*, got 3 of them: '1x4x4'"),
    ("conv2d 1x4x4x1 3x3x1xk", "FILTER must be four sizes .*, got '3x3x1xk'"),
    ("conv2d 1x4x4x-1 3x3x1x1", "INPUT must be four sizes"),
    ("conv2d 1x4x4x" + "9" * 5000 + " 3x3x1x1", "INPUT must be four sizes"),
    ("conv2d 1x4x4x\u0661 3x3x1x1", "INPUT must be four sizes"),
    (f"{A} 2", "every word must be key=value, got '2'"),
    (f"{A} strides:2", "got 'strides:2'; did you mean 'strides'?"),
    (
        f"{A} stride=2",
        "the key must be one of strides, .*, got 'stride=2'; did you mean 'strides'?",
    ),
    (f"{A} strides=2 strides=3", "`strides` must be given once, got '2' and '3'"),
    (f"{A} strides=", "`strides` must be a whole number, .*, got ''"),
    (f"{A} strides=2,2,2", "`strides` must be .*, got '2,2,2'"),
    (f"{A} strides=1,2,3,1", "write strides=2,3, got '1,2,3,1'"),
    (f"{A} strides=1,1,3,2", "write strides=3,2"),
    (f"{A} strides=0", "`strides` must be from 1 to 2147483647, got '0'"),
    (f"{A} dilations=2,0", "`dilations` must be from 1 to"),
    (f"{A} dilations={2**31}", "`dilations` must be from 1 to"),
    (f"{A} padding=SAMEE", "`padding` must be SAME, VALID .*, got 'SAMEE'; did you mean 'SAME'?"),
    (f"{A} padding=1", "`padding` must be"),
    (f"{A} padding=1,1:1", "`padding` must be"),
    (f"{A} padding=-1,1:1,1", "`padding` must be"),
    (f"{A} padding=1,1:1,1:1,1", "`padding` must be"),
    (f"{A} data_format=HWCN", "`data_format` must be NHWC or NCHW, got 'HWCN'"),
    (f"{A} dtype=float23", "`dtype` must be one of .*, got 'float23'; did you mean 'float.."),
    ("depthwise_conv2d 1x4x4x1 3x3x1x1 dtype=int32", "for depthwise_conv2d, got 'int32'"),
    ("conv2d 1x4x4x3 3x3x2x1", "depth must be evenly divisible"),
    (f"{A[:-7]}9x9x1x1 padding=VALID", "output size would be negative"),
    ("1x4x4x1k3", "stands for the three operations on a layer"),
    ("1x4x4x1k3z", "'z' means nothing"),
    ("1x4x4x1k3 strides=2", "`strides` stands in the layer's own text"),
    ("1x4x4x1k3 half", "every word must be key=value, got 'half'"),
    ("0x4x4x1k3", "every size must be at least 1"),
    ("1x4x4x4k3o4g3", "groups must divide"),
    ("1x4x4x4k3g2", "`g` needs `o`"),
    ("1x4x4x4k3m2o2", "`m` is for depthwise"),
    ("1x4x4x4k3s0", "`s` must be from 1"),
]


@pytest.mark.parametrize(("line", "says"), WRONG)
def test_what_is_said_about_other_lines(line, says):
    with pytest.raises(ArgumentError, match=says.replace("?", r"\?")) as caught:
        read(line)
    assert str(caught.value).startswith("problem ")
    assert len(str(caught.value)) < 800


@pytest.mark.parametrize(("line", "says"), WRONG[2:])
def test_a_line_of_a_file_is_named(line, says):
    if line == "1x4x4x1k3":
        return  # right there
    with pytest.raises(ArgumentError, match=r"^list\.txt, line 3: .*" + says.replace("?", r"\?")):
        read_lines(f"# two\n\n{line}\n", "list.txt")


def test_a_file_of_lines_and_layers():
    text = (
        "\ufeff# a recording\r\n"
        "conv2d 1x4x4x2 3x3x2x4   # first\r\n"
        "\r\n"
        "conv2d 1x4x4x2 3x3x2x4 padding=1,1:1,1\r\n"
        "mine:2x6x6x4k3x1s2x1d1p0x1x0x0o8g2 dtype=float64 data_format=NCHW\n"
        "4x4x2k3b1"
    )
    found = [write(each) for each in read_lines(text, "x")]
    layer = "2x4x6x6 3x1x2x8 strides=2,1 padding=0,1:0,0 data_format=NCHW dtype=float64"
    assert found == [
        "conv2d 1x4x4x2 3x3x2x4 padding=1,1:1,1",
        f"conv2d {layer}",
        f"conv2d_backprop_input {layer}",
        f"conv2d_backprop_filter {layer}",
        *(
            f"depthwise_conv2d{end} 1x4x4x2 3x3x2x1 padding=1,1:1,1"
            for end in ("", "_backprop_input", "_backprop_filter")
        ),
    ]
    assert read_lines("", "x") == []
    assert [line.call.kind for line in parse("1x4x4x2k3")] == list(Kind)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("56x56x8k3p1x2x3", "`p` takes 1, 2 or 4 numbers, not 3"),
        ("56x56x8k3s1x2x3", "`s` takes 1 or 2 numbers, not 3"),
        ("56x56x8k3o1x2", "`o` takes one number, not 2"),
        ("56x56x8k3vp1", "cannot both be given"),
        ("56x56x8k3p1p2", "`p` is given twice"),
        ("56x56x8k" + "3" * 30, "at most 20 digits"),
    ],
)
def test_what_is_said_about_layers(text, says):
    with pytest.raises(ArgumentError, match=says):
        layer_text.parse(text)
