"""The example that needs Keras, on PyTorch, whose start is the quickest."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from child_python import child_environment

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPT = str(EXAMPLES / "keras_digits.py")
ABSENT = """
import runpy, sys
sys.modules["keras"] = None
sys.path.insert(0, {folder!r})
runpy.run_path({script!r})
"""


def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=child_environment({"KERAS_BACKEND": "torch"}),
        capture_output=True,
        text=True,
        check=False,
    )


def test_both_train_and_too_little_is_a_failure(tmp_path: Path) -> None:
    """One epoch of a tiny rate, for the sake of time: both losses are the same up to rounding."""
    pytest.importorskip("sklearn")
    done = run(SCRIPT, "--epochs", "1", "--rate", "1e-6", folder=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "7 of 7 layers are computed by convgrad." in done.stdout
    rows = re.findall(r"^ +(\d+) +([\d.]+) +[\d.]+ +([\d.]+) +[\d.]+$", done.stdout, re.MULTILINE)
    assert len(rows) == 1 and abs(float(rows[0][1]) - float(rows[0][2])) < 0.01
    shares = re.findall(r"^(Keras|convgrad) +([\d.]+)% of the test images", done.stdout, re.M)
    assert [name for name, _ in shares] == ["Keras", "convgrad"]
    assert done.stdout.endswith("verdict: NOT LEARNT, 97% are required\n")


def test_without_keras_it_says_so(tmp_path: Path) -> None:
    done = run("-c", ABSENT.format(folder=str(EXAMPLES), script=SCRIPT), folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("keras_digits.py: Keras or its backend is not installed (")
    assert done.stderr.endswith("): pip install keras torch\n")
