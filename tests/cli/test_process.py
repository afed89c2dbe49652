"""The program as the shell sees it: killed, terminated, read half-way."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

posix = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")
ENVIRONMENT = {**os.environ, "CONVGRAD_KERNELS": "0"}
"""Without the compiler the program starts in a third of the time."""
COMMAND = [sys.executable, "-m", "convgrad"]


def begin_endless(folder: Path) -> subprocess.Popen[bytes]:
    """Start a run whose output takes minutes, and wait until some of it is on disk."""
    run = [*COMMAND, "run", "conv2d", "--random", "10000000,16,16,4", "--filter-sizes", "1,1,4,4"]
    process = subprocess.Popen(
        [*run, "--slice-bytes", "64K", "-o", "y.npy"],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    for _ in range(6000):
        if any(path.stat().st_size > 1 << 16 for path in folder.glob(".y.npy.*")):
            return process
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    raise AssertionError("nothing was written in a minute")


@posix
def test_killed_half_way(tmp_path):
    process = begin_endless(tmp_path)
    process.kill()
    process.communicate()
    (partial,) = tmp_path.iterdir()  # nothing under the final name
    assert partial.name.startswith(".y.npy.") and partial.name.endswith(".convgrad-partial")
    run = ["run", "conv2d", "--random", "2,4,4,1", "--filter-sizes", "1,1,1,1", "-o", "y.npy"]
    subprocess.run([*COMMAND, *run], cwd=tmp_path, env=ENVIRONMENT, check=True, capture_output=True)
    assert [path.name for path in tmp_path.iterdir()] == ["y.npy"]  # the next run cleans up
    assert np.load(tmp_path / "y.npy").shape == (2, 4, 4, 1)


@posix
def test_asked_to_end(tmp_path):
    process = begin_endless(tmp_path)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 143
    assert errors == b"convgrad run: terminated\n"
    assert list(tmp_path.iterdir()) == []


@posix
def test_a_reader_that_leaves():
    """`convgrad ... | head -1` prints no traceback, wherever the pipe breaks."""
    pytest.importorskip("shtab")
    # More than a buffer, which breaks while printing, and less, which breaks at the end.
    for each in (["completion", "bash"], ["--help"]):
        process = subprocess.Popen(
            [*COMMAND, *each], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait() in (
            0,
            130,
        )  # argparse may meet the broken pipe first, and says nothing


@posix
def test_standard_streams_that_are_closed(tmp_path):
    """Python has None in their place: `isatty` was an AttributeError, and errors were printed into the JSON."""
    run = f"{shlex.join(COMMAND)} run conv2d --random 2,4,4,1 --filter-sizes 1,1,1,1 -o y.npy"
    how = {"shell": True, "cwd": tmp_path, "env": ENVIRONMENT, "capture_output": True}
    assert subprocess.run(f"{run} <&- >&- 2>&-", **how).returncode == 0
    assert np.load(tmp_path / "y.npy").shape == (2, 4, 4, 1)
    again = subprocess.run(f"{run} --json 2>&-", **how)
    assert again.returncode == 2  # y.npy is there
    assert set(json.loads(again.stdout)) == {"error", "kind"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("words", ["info --json", "nothing --json"])
def test_nowhere_to_print_to(words):
    """A full disk was a traceback, and another one at the interpreter's end."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, *words.split()], env=ENVIRONMENT, stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1 and done.stderr.startswith(b"convgrad")
