"""`CONVGRAD_RECORD`: a file of the problems a program computes, which costs nothing and never stops it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import convgrad
from convgrad import _engine
from convgrad._base import config
from convgrad._engine import record
from convgrad._problem.convolution import Problem
from convgrad._problem.text import read_lines


@pytest.fixture
def fresh(monkeypatch):
    """An engine that remembers nothing, so that every problem is met for the first time."""
    monkeypatch.setattr(_engine, "memory", {})
    monkeypatch.setattr(record, "_seen", set())
    monkeypatch.setattr(record, "_places", {})
    monkeypatch.setattr(record, "_given_up", set())


X = np.ones((1, 5, 6, 2), np.float32)
G = np.ones((1, 3, 3, 2), np.float16)


def work() -> None:
    for _ in range(3):
        convgrad.depthwise_conv2d(X, np.ones((3, 3, 2, 1), np.float32), 1, "SAME")
        convgrad.conv2d_backprop_input(
            (1, 5, 6, 4), np.ones((1, 1, 4, 2), np.float16), G, 2, "SAME"
        )
    convgrad.conv2d(X[:0], np.ones((1, 1, 2, 2), np.float32), 1, "SAME")  # empty


LINES = [
    "depthwise_conv2d 1x5x6x2 3x3x2x1 padding=1,1:1,1",
    "conv2d_backprop_input 1x5x6x4 1x1x4x2 strides=2 padding=0,0:0,0 dtype=float16",
]


def test_each_problem_is_written_once(fresh, tmp_path):
    file = tmp_path / "problems.txt"
    file.write_text("# mine\n")
    with config.scope(record=str(file), kernels=False):
        work()
        _engine.memory.clear()
        work()
    assert file.read_text().splitlines() == ["# mine", *LINES]
    assert len(read_lines(file.read_text(), file.name)) == 2


@pytest.mark.parametrize("before", ["", "# mine", "# mine\n"])
def test_a_last_line_without_an_end_gets_one(fresh, tmp_path, before):
    file = tmp_path / "problems.txt"
    file.write_text(before)
    with config.scope(record=str(file), kernels=False):
        work()
    assert file.read_text().splitlines() == [*before.splitlines(), *LINES]


def test_half_a_line_on_a_full_disk_is_noticed(fresh, tmp_path, monkeypatch):
    monkeypatch.setattr(record.os, "write", lambda descriptor, data: len(data) - 1)
    with (
        config.scope(record=str(tmp_path / "problems.txt"), kernels=False),
        pytest.warns(RuntimeWarning, match="No space left"),
    ):
        work()


def test_the_variable_of_a_process(tmp_path):
    program = (
        "import os, numpy as np, convgrad\n"
        "one = np.ones((1, 1, 1, 1), np.float32)\n"
        "convgrad.conv2d(one, one, 1, 'SAME')\n"
        "os.chdir('/')\n"
        "convgrad.conv2d(one, one, 2, 'SAME')\n"
    )
    path = os.pathsep.join([str(Path(convgrad.__file__).parents[1]), *sys.path])
    environment = {**os.environ, "CONVGRAD_RECORD": "here.txt", "PYTHONPATH": path}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True)
    lines = ["conv2d 1x1x1x1 1x1x1x1 padding=0,0:0,0", "conv2d 1x1x1x1 1x1x1x1 strides=2 padding=0,0:0,0"]  # fmt: skip
    assert (tmp_path / "here.txt").read_text().splitlines() == lines * 2


def test_a_file_that_cannot_be_written_warns_once(fresh, tmp_path):
    for bad in (tmp_path, tmp_path / "missing" / "x.txt", tmp_path / "a\0b"):
        with (
            config.scope(record=str(bad), kernels=False),
            warnings.catch_warnings(record=True) as said,
        ):
            warnings.simplefilter("always")
            _engine.memory.clear()
            work()
        assert len(said) == 1, bad
        assert "problems cannot be recorded in" in str(said[0].message)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_nobody_reads_is_not_waited_for(fresh, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    pipe = config.scope(record=str(tmp_path / "pipe"), kernels=False)
    with pipe, pytest.warns(RuntimeWarning, match="cannot be recorded"):
        work()


def test_lines_of_threads_stay_whole(fresh, tmp_path):
    file = str(tmp_path / "problems.txt")
    problems = read_lines("\n".join(f"conv2d 1x{n}x{n}x1 3x3x1x1" for n in range(3, 60)), "x")

    def write() -> None:
        for problem in problems:
            record.note(file, problem)

    threads = [threading.Thread(target=write) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert set(read_lines(Path(file).read_text(), "x")) == set(problems)


def test_repeated_calls_do_not_ask(fresh, monkeypatch, tmp_path):
    x, f = np.ones((1, 4, 4, 2), np.float32), np.ones((3, 3, 2, 2), np.float32)
    with config.scope(record=str(tmp_path / "problems.txt")):
        convgrad.conv2d(x, f, 1, "SAME")
        monkeypatch.setattr(record, "note", None)
        before = config.get
        asked = []
        monkeypatch.setattr(config, "get", lambda name: asked.append(name) or before(name))
        convgrad.conv2d(x, f, 1, "SAME")
    assert "record" not in asked


def test_without_the_switch_nothing_is_imported():
    program = (
        "import sys, numpy as np, convgrad\n"
        "one = np.ones((1, 1, 1, 1), np.float32)\n"
        "convgrad.conv2d(one, one, 1, 'SAME')\n"
        "assert not {'convgrad._engine.record', 'convgrad._problem.text'} & set(sys.modules)\n"
    )
    path = os.pathsep.join([str(Path(convgrad.__file__).parents[1]), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path}
    environment.pop("CONVGRAD_RECORD", None)
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


def test_a_bias_is_not_told(fresh, tmp_path):
    """The line is the same with one and without: a reader of it explains, measures or packs the convolution."""
    file = tmp_path / "problems.txt"
    taps, bias = np.ones((3, 3, 2, 1), np.float32), np.ones(2, np.float32)
    with config.scope(record=str(file), kernels=False):
        y = convgrad.depthwise_conv2d(X, taps, 1, "SAME")
        (problem,) = [key[0] for key in _engine.memory if isinstance(key[0], Problem)]
        places = [each.ctypes.data for each in (X, taps, y, bias)]
        _engine.run(replace(problem, bias="output"), *places)
    assert len(file.read_text().splitlines()) == 1
