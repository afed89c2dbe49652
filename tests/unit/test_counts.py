"""What kernels cost a process is counted, told to a file, and told at the end of a run of tests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest

import kernel_counts
from convgrad._compiler.jit import Counts

PROGRAM = """
import os, sys
from convgrad._compiler import jit
from convgrad._compiler.kernel import KernelSource

ir = "define void @empty(ptr %args, i64 %begin, i64 %end, ptr %scratch) { ret void }"
jit.load("first", lambda: KernelSource("empty", ir), jit.host_target())
child = os.fork()
if child == 0:
    jit.load("second", lambda: KernelSource("empty", ir), jit.host_target())
    assert jit.counted().from_text == 1 and jit.counted().compiled == 0, "counted anew"
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_each_process_leaves_a_line(tmp_path):
    log = tmp_path / "kernels.jsonl"
    for file in (log, tmp_path):  # a folder cannot be written to, which costs nothing but the line
        environment = {
            **os.environ,
            "CONVGRAD_CACHE_DIR": str(tmp_path / "kept"),
            "CONVGRAD_DISK_CACHE": "1",
            "CONVGRAD_KERNEL_LOG": str(file),
        }
        done = subprocess.run(
            [sys.executable, "-W", "ignore:.*fork.*", "-c", PROGRAM],
            env=environment,
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        shutil.rmtree(tmp_path / "kept")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    child, parent = lines  # in the order in which they ended
    assert (parent["compiled"], parent["from_text"]) == (1, 0)
    assert (child["compiled"], child["from_text"]) == (0, 1)
    assert parent["llvm_s"] > 0 < parent["importing_s"] and child["llvm_s"] == 0
    assert parent["process"] != child["process"] and parent["cpu_s"] > 0
    assert kernel_counts.together(lines).compiled == 1
    assert kernel_counts.of_children(log, [parent["process"]]) == [child]
    with log.open("a") as file:
        file.write('{"process": 12, "prog')  # of a child whose files may not grow
    assert kernel_counts.of_children(log, [parent["process"]]) == [child]


def test_counts_are_added_and_taken_away():
    one, other = Counts(1, 2, 3, 0.5), Counts(10, 20, 30, 1.5)
    assert one + other == Counts(11, 22, 33, 2.0)
    assert (one + other) - other == one


def test_a_run_without_kernels_says_nothing():
    assert kernel_counts.told([{"seconds": 1.0, **asdict(Counts())}], []) == []


def test_the_slowest_tests_are_told_with_what_was_set_up_for_them():
    def report(name: str, when: str, duration: float) -> SimpleNamespace:
        return SimpleNamespace(nodeid=name, when=when, duration=duration)

    reports = [
        report("a", "setup", 2.0),
        report("a", "call", 1.5),
        report("b", "call", 3.0),
        report("c", "call", 0.9),
        SimpleNamespace(message="a warning has no duration"),
    ]
    assert kernel_counts.slowest(reports) == [
        "the 2 slowest of 3 tests: 6 of 7 s",
        "    3.5 s  a",
        "    3.0 s  b",
    ]
    assert kernel_counts.slowest(reports, most=1)[1:] == ["    3.5 s  a"]
    assert kernel_counts.slowest([report("d", "call", 0.5)]) == []


RUN = """
import os
import convgrad
import numpy as np

def test_something():
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1" == os.environ["CONVGRAD_NUM_THREADS"]
    assert convgrad.get_num_threads() == 1
    x, f = np.ones((1, 4, 4, 2), np.float32), np.ones((3, 3, 2, 1), np.float32)
    convgrad.depthwise_conv2d(x, f, 1, "SAME")
"""


def test_a_run_tells_it(tmp_path):
    """Under this folder's own conftest, in a test process of pytest-xdist; tests have one thread there."""
    tests = Path(__file__).parent.parent
    house = tmp_path / "tests"
    house.mkdir()
    for file in ("conftest.py", "kernel_counts.py", "machines.py"):
        (house / file).write_bytes((tests / file).read_bytes())
    (house / "test_run.py").write_text(RUN)
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["tests"]\n')
    # The kernels that are on disk will do, and other plugins take longer to import than all this.
    ours = (
        *("CONVGRAD_NUM_THREADS", "OPENBLAS_NUM_THREADS", "CONVGRAD_KERNEL_LOG"),
        *("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"),
    )
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n1",
            "-p",
            "xdist",
            "-p",
            "no:cacheprovider",
            "tests",
        ],
        cwd=tmp_path,
        env={**environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = [each for each in done.stdout.splitlines() if "of LLVM (" in each]
    assert line.startswith("kernels: ") and "% of the test processes' time)" in line
    assert "found on disk by key" in done.stdout
