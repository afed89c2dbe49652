"""The example that needs TensorFlow, with few epochs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tensorflow_bridge import children

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RUN = """
import runpy, sys
sys.argv = {words!r}
{before}
sys.path.insert(0, {folder!r})
runpy.run_path({script!r}, run_name="__main__")
"""


def script(*words: str, before: str = "") -> str:
    path = EXAMPLES / "tensorflow_digits.py"
    return RUN.format(
        words=[path.name, *words], folder=str(EXAMPLES), script=str(path), before=before
    )


def test_digits_are_learnt_before_and_after(tmp_path: Path) -> None:
    """Both reach the accuracy, and begin with the same loss up to rounding."""
    pytest.importorskip("sklearn")
    done = children.run(script())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "convgrad computes Conv2D" in done.stdout
    rows = re.findall(r"^ +(\d+) +([\d.]+) +[\d.]+$", done.stdout, re.MULTILINE)
    epochs = [int(row[0]) for row in rows]
    half = len(rows) // 2
    assert epochs == [*range(1, half + 1)] * 2
    losses = [float(row[1]) for row in rows]
    assert abs(losses[0] - losses[half]) < 0.05
    assert losses[half - 1] < 0.15 and losses[-1] < 0.15
    shares = re.findall(r"^(TensorFlow|convgrad) +([\d.]+)% of the test images", done.stdout, re.M)
    assert [name for name, _ in shares] == ["TensorFlow", "convgrad"]
    assert min(float(share) for _, share in shares) >= 97
    assert done.stdout.endswith("verdict: ok\n")


def test_without_tensorflow_it_says_so() -> None:
    done = children.run(script(before="sys.modules['tensorflow'] = None"))
    assert done.returncode == 1
    assert done.stderr == (
        "tensorflow_digits.py: TensorFlow is not installed: pip install tensorflow-cpu\n"
    )
