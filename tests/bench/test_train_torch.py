"""`convgrad bench train` with PyTorch: the networks are those of the papers, and a tiny run ends well.

PyTorch is imported in children only: it changes the process it is imported in.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from bench.train_torch_inside import PARAMETERS
from child_python import child_environment
from convgrad._apps.cli.main import main

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed"),
]
INSIDE = Path(__file__).with_name("train_torch_inside.py")


def test_inside_a_process_with_pytorch() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(INSIDE)],
        cwd=INSIDE.parents[2],
        env=child_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout and "skipped" not in done.stdout


def test_a_tiny_run(capsys: Any) -> None:
    how = ["--image", "32", "--batch", "2", "--rounds", "1", "--steps", "1", "--threads", "1"]
    asked = ["--configurations", "native,native_cl,native_cl#2", "--json"]
    assert main(["bench", "train", *how, *asked]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [row["status"] for row in printed["rows"]] == ["ok"] * 3, printed["rows"]
    for row in printed["rows"]:
        assert row["parameters"] == PARAMETERS["mobilenet_v2"]
        assert row["losses"][0] == pytest.approx(6.9, abs=1.0)
        assert all(part > 0 for part in row["turns"][0]["steps"][0])
        assert row["peak_bytes"] > 100e6
    _, one, twin = printed["rows"]
    assert one["losses"][0] == pytest.approx(twin["losses"][0], rel=1e-5)
    assert [each["what"] for each in printed["comparisons"]] == ["control"]
    assert printed["machine"]["versions"]["torch"]
