"""The benchmark takes problems in one line: any strides, pads, dtype and layout, and one operation each."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.rows import flat
from convgrad._apps.bench import runner
from convgrad._apps.bench.contests import Contest, expect, of_line, operands_of, our_call
from convgrad._apps.bench.peers import request_of
from convgrad._apps.cli.main import main
from convgrad._problem.text import parse_lines, read, read_line, write

TINY = ["--peers", "none", "--rounds", "1", "--seconds", "0.001", "--threads", "1"]
LINES = [
    "conv2d 2x9x8x4 3x3x2x6 strides=2,1 padding=0,1:2,0 dtype=float64",
    "conv2d_backprop_input 1x4x7x7 3x2x4x6 dilations=2,1 padding=1,1:0,1 data_format=NCHW dtype=bfloat16",
    "depthwise_conv2d_backprop_filter 2x6x6x3 3x3x3x2 strides=2 padding=0,1:0,1",
]


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    asked: list[Any] = []
    monkeypatch.setattr(runner, "probe", lambda *how: asked.append(how) or flat())
    return asked


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_a_contest(line: str) -> None:
    contest = of_line(read_line(line))
    assert write(contest.problem) == line
    arrays = operands_of(contest)
    result = our_call(contest, arrays)()
    assert result.dtype == read(line).dtype.numpy
    assert expect(contest).error(contest, result) < 1e-2
    asked = request_of(contest)
    rows, cols = contest.problem.rows, contest.problem.cols
    assert asked.pads == ((rows.before, rows.after), (cols.before, cols.after))
    assert asked.strides == (rows.stride, cols.stride)


def test_pads_that_have_a_name_are_told_by_it() -> None:
    """Some peers know nothing but words, and recordings hold nothing but numbers."""
    assert of_line(read_line(LINES[2])).layer.padding == "SAME"
    assert of_line(read_line("conv2d 1x4x4x1 3x3x1x1 padding=0,0:0,0")).layer.padding == "VALID"
    assert of_line(read_line(LINES[0])).layer.padding == ((0, 1), (2, 0))


def test_a_run_of_lines(probes: list[Any], tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "list.txt"
    file.write_text("\n".join(LINES[:2]))
    words = LINES[2].split()
    save = tmp_path / "run.json"
    arguments = ["bench", *words[:3], f"@{file}", *TINY, "--memory", "--save", str(save), "--json"]
    assert main(["bench", "--list", "--json", *words, f"@{file}"]) == 0
    assert [each["problem"] for each in json.loads(capsys.readouterr().out)] == [
        LINES[2],
        *LINES[:2],
    ]
    assert main(arguments) == 0
    printed = json.loads(capsys.readouterr().out)
    first = "depthwise_conv2d_backprop_filter 2x6x6x3 3x3x3x2 padding=1,1:1,1"
    assert [row["line"] for row in printed["rows"]] == [first, *LINES[:2]]
    assert [(row["op"], row["layout"], row["dtype"]) for row in printed["rows"]] == [
        ("dw", "NHWC", "float32"),
        ("fwd", "NHWC", "float64"),
        ("dx", "NCHW", "bfloat16"),
    ]
    assert all(row["ours"]["status"] == "ok" for row in printed["rows"])
    assert all("reason" not in row["memory"] for row in printed["rows"])
    assert [how[1] for how in probes] == ["float32", "float64"]  # each by its own roof
    assert main(["bench", "--from", str(save)]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^problem +op +layout +dtype +ours ms ", shown, re.MULTILINE)
    assert "several dtypes several layouts, 1 threads" in shown


def test_lines_that_agree(probes: list[Any], capsys: Any) -> None:
    line = "conv2d 1x4x4x2 3x3x2x3 dtype=half data_format=NCHW"
    assert main(["bench", "--shape", line.replace("1x4x4x2", "1x2x4x4"), *TINY, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    how = printed["settings"]
    assert (how["dtype"], how["layout"], how["ops"]) == ("half", "NCHW", ["fwd"])
    assert len(printed["rows"]) == 1 and len(probes) == 1


def test_layers_beside_lines(probes: list[Any], capsys: Any) -> None:
    words = ["1x4x4x3k3s2x1p1x0", LINES[2], "1x4x4x3k1", "dtype=float64"]
    assert main(["bench", *words, "--list", "--json"]) == 0
    listed = [each["problem"] for each in json.loads(capsys.readouterr().out)]
    expected = parse_lines("\n".join([words[0], words[1], " ".join(words[2:])]), "x")
    assert listed == [write(line.problem) for line in expected]
    assert len(listed) == 7


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([LINES[0], "--dtype", "half"], "--dtype is for layers, and a line says its own"),
        ([LINES[0], "--ops", "fwd"], "--ops is for layers"),
        (["@list.txt", "--layout", "both"], "--layout is for layers"),
        (["busy", "--shape", LINES[0]], "busy takes layers such as"),
        (["dense", "--shape", LINES[0]], "dense takes layers such as"),
        (["@nothing.txt"], "cannot read problems from 'nothing.txt'"),
        (["conv2d 0x4x4x1 1x1x1x1"], "it is empty, so that there is nothing to measure"),
        (["conv2d 1x4x4x1 1x1x1x1 dtype=int32"], "dtype must be one of"),
        (["conv2d 99999999x99999x9x9 1x1x9x1"], "there is no memory for its"),
        (["conv2d", "1x4x4x1"], "INPUT and FILTER must follow conv2d"),
        (["conv2d 1x4x4x1 1x1x1x1 stride=1"], "did you mean 'strides'?"),
        ([*LINES, "--plot", "x.svg"], "--plot draws problems of one dtype"),
        ([LINES[0], "--model", "resnet50"], "--model stands alone"),
    ],
)
def test_what_is_said_about_lines(words: list[str], reason: str, capsys: Any) -> None:
    assert main(["bench", *words, *TINY]) == 2
    assert reason in capsys.readouterr().err


def test_operands_of_a_line_are_those_of_its_layer() -> None:
    contest = of_line(read_line(LINES[1]))
    assert isinstance(contest, Contest)
    last = operands_of(Contest(contest.layer, contest.op, contest.dtype, "NHWC"))
    assert np.array_equal(operands_of(contest).x, last.x.transpose(0, 3, 1, 2))
