"""The example that needs JAX."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import convgrad

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPT = str(EXAMPLES / "jax_digits.py")
NO_JAX = """
import runpy, sys
sys.modules["jax"] = None
sys.path.insert(0, {folder!r})
runpy.run_path({script!r})
"""


def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", *command],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(convgrad.__file__).parents[1])},
    )


def test_digits_are_learnt_by_both(tmp_path: Path) -> None:
    """Four epochs of sixteen, as native JAX takes seconds for each: both learn, with the same losses up to rounding."""
    pytest.importorskip("sklearn")
    done = run(SCRIPT, "--epochs", "4", folder=tmp_path)
    assert done.returncode in (0, 1) and done.stderr == "", done.stdout + done.stderr
    assert "\x1b" not in done.stdout and "\r" not in done.stdout
    rows = re.findall(r"^ +(\d+) +([\d.]+) +[\d.]+ +([\d.]+) +[\d.]+$", done.stdout, re.MULTILINE)
    assert [int(row[0]) for row in rows] == [1, 2, 3, 4]
    assert all(abs(float(theirs) - float(ours)) < 0.1 for _, theirs, ours in rows)
    assert max(float(rows[-1][1]), float(rows[-1][2])) < 0.5 * float(rows[0][1])
    shares = re.findall(r"^(JAX|convgrad) +([\d.]+)% of the test images", done.stdout, re.M)
    assert [name for name, _ in shares] == ["JAX", "convgrad"]
    assert min(float(share) for _, share in shares) >= 70


@pytest.mark.single
def test_digits_fail_where_too_little_is_learnt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Networks as they were before training, in this process: compiling the steps would take longer than all else."""
    pytest.importorskip("sklearn")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import jax_digits as example

    def untrained(epochs: int, rate: float, seed: int) -> dict[str, Any]:
        made = {
            name: example.Trainer(seed, rate, 1, name == "convgrad") for name in ("JAX", "convgrad")
        }
        for each in made.values():
            each.seconds.append(1.0)
        return made

    monkeypatch.setattr(example, "train", untrained)
    monkeypatch.setattr(sys, "argv", ["jax_digits.py"])
    assert example.main() == 1
    assert "verdict: NOT LEARNT, 97% are required" in capsys.readouterr().out


def test_without_jax_it_says_so(tmp_path: Path) -> None:
    done = run("-c", NO_JAX.format(folder=str(EXAMPLES), script=SCRIPT), folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "jax_digits.py: JAX is not installed: pip install jax\n"


def test_help(tmp_path: Path) -> None:
    done = run(SCRIPT, "--help", folder=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("usage: jax_digits.py")
    assert "--epochs" in done.stdout
