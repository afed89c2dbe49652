"""Verbs take a problem in one line, a layer, or a file of both, and mean the same by it."""

from __future__ import annotations

import pytest

import convgrad
from convgrad.errors import ArgumentError

LINE = "conv2d_backprop_filter 2x8x8x4 3x3x4x6 strides=2,1 padding=0,2:1,1 dtype=float16"


def test_explain_takes_a_line_as_one_word_or_as_many(convgrad_command):
    one = convgrad_command("explain", LINE, "--json").document
    many = convgrad_command("explain", *LINE.split(), "--json").document
    behind = convgrad_command("explain", *LINE.split()[:3], "--json", *LINE.split()[3:]).document
    options = convgrad_command(
        "explain", *LINE.split()[:3], "--strides", "2,1", "--padding", "0,2:1,1", "--dtype", "half", "--json"
    ).document  # fmt: skip
    assert one["problem"] == LINE
    for each in (many, behind, options):
        assert {**each, "roofline_ms": 0, "roof_gflops": 0, "roof_gb_per_second": 0} == {
            **one,
            "roofline_ms": 0,
            "roof_gflops": 0,
            "roof_gb_per_second": 0,
        }
    assert str(convgrad.explain(LINE)) == str(
        convgrad.explain(
            "conv2d_backprop_filter", (2, 8, 8, 4), (3, 3, 4, 6), (2, 1), ((0, 2), (1, 1)), dtype="half"
        )
    )  # fmt: skip


def test_explain_takes_layers_and_files(convgrad_command, tmp_path):
    ops = ["depthwise_conv2d" + end for end in ("", "_backprop_input", "_backprop_filter")]
    layer = convgrad_command("explain", "1x8x8x4k3", "dtype=float64", "--json").document
    assert [each["operation"] for each in layer] == ops
    assert {each["dtype"] for each in layer} == {"float64"}
    file = tmp_path / "my problems.txt"
    file.write_text(f"# two of them\n\n{LINE} # mine\n1x8x8x4k3\n{LINE}\n")
    ending = convgrad_command("explain", f"@{file}", "--json")
    assert [each["operation"] for each in ending.document] == ["conv2d_backprop_filter", *ops]
    told = convgrad_command("explain", f"@{file}").out
    assert told.count("workspace ") == 4
    file.write_text(LINE)
    assert isinstance(convgrad_command("explain", f"@{file}", "--json").document, list)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([LINE, "--strides", "2"], "--strides is not for a problem in one line: write strides=... there"),
        (["conv2d", "1x4x4x1", "1x1x1x1", "strides=2", "--dtype", "half"], "write dtype=... there"),
        ([f"{LINE} stride=2"], "got 'stride=2'; did you mean 'strides'?"),
        ([LINE, "1x4x4x1"], "every word must be key=value, got '1x4x4x1'"),
        ([LINE, "--output-shape", "1x1x1x1"], "`output_shape` must be left out"),
        (["conv2d_transpose", "1x4x4x1", "1x1x1x1", "strides=2"], "conv2d_transpose takes options"),
        (["@nothing.txt"], "cannot read problems from 'nothing.txt': No such file or directory"),
        (["@."], "it is a folder, not a regular file"),
        (["conv2d", "1x4x4x1", "1x1x1x1", "2"], "every word must be key=value, got '2'"),
    ],
)  # fmt: skip
def test_explain_says_what_is_wrong_with_a_line(convgrad_command, words, reason):
    ending = convgrad_command("explain", *words)
    assert ending.status == 2
    assert reason in ending.err


@pytest.mark.parametrize(("content", "reason"), [
    (b"# nothing\n", "holds no problem"),
    (b"\xff\xfe", "it is not text"),
    (b"conv2d 1x4x4x1\n", "line 1: INPUT and FILTER must follow conv2d"),
])  # fmt: skip
def test_files_that_are_refused(convgrad_command, tmp_path, content, reason):
    file = tmp_path / "list.txt"
    file.write_bytes(content)
    ending = convgrad_command("explain", f"@{file}")
    assert ending.status == 2
    assert "list.txt" in ending.err and reason in ending.err


@pytest.mark.parametrize("argument", [
    {"strides": 2}, {"padding": "VALID"}, {"dtype": "half"}, {"input_shape": (1, 4, 4, 1)},
    {"dilations": True}, {"data_format": None}, {"pointwise_shape": (1, 1, 1, 1)},
])  # fmt: skip
def test_a_line_stands_alone_in_python_too(argument):
    (name,) = argument
    with pytest.raises(ArgumentError, match=f"explain: `{name}` must be left out"):
        convgrad.explain(LINE, **argument)


def test_python_says_what_is_wrong_with_a_line():
    with pytest.raises(
        ArgumentError, match=r"explain: problem 'conv2d 1x4': INPUT and FILTER must"
    ):
        convgrad.explain("conv2d 1x4")
    with pytest.raises(ArgumentError, match="`op` must be one of"):
        convgrad.explain("conv3d", (1, 4, 4, 1), (1, 1, 1, 1))


def test_check_takes_lines_layers_and_files(convgrad_command, tmp_path):
    file = tmp_path / "list.txt"
    file.write_text("conv2d 1x4x4x2 3x3x2x2\nconv2d_backprop_input 1x4x4x2 3x3x2x2\n")
    words = ("check", "convgrad:conv2d", "conv2d", "--in-process", "--json")
    named = (
        "--problem",
        "conv2d 1x5x5x2 1x1x2x3 strides=2",
        "--problem",
        f"@{file}",
        "--problem",
        "1x3x3x1k1o2",
    )
    ending = convgrad_command(*words, *named)
    assert ending.status == 0
    assert ending.document["settings"]["lines"] == [
        "conv2d 1x5x5x2 1x1x2x3 strides=2 padding=0,0:0,0",
        "conv2d 1x4x4x2 3x3x2x2 padding=1,1:1,1",
        "conv2d 1x3x3x1 1x1x1x2 padding=0,0:0,0",
    ]
    assert ending.document["problems"] == 15


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--problems", "7"], "--problems is for drawn problems, and --problem names them"),
        (["--dtype", "half"], "--dtype is for drawn problems"),
        (["--layout", "NCHW"], "--layout is for drawn problems"),
        (["--problem", "conv2d_backprop_input 1x4x4x1 1x1x1x1"], "has no problem of conv2d"),
        (["--problem", "conv2d 99999999x99999x9x9 1x1x9x1"], "there is no memory for its"),
        (["--property", "dilation"], "among those the problems can show"),
    ],
)
def test_check_says_what_is_wrong_with_problems(convgrad_command, words, reason):
    fixed = ("check", "convgrad:conv2d", "conv2d", "--problem", "conv2d 1x4x4x1 1x1x1x1")
    ending = convgrad_command(*fixed, *words)
    assert ending.status == 2
    assert reason in ending.err
