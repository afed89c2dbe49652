"""The examples for C++, browsers and microcontrollers, built and run by their own scripts."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import convgrad

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
pytestmark = pytest.mark.cc_long


def built(script: str, out: Path, *needs: str, **more: str) -> str:
    """Run an example's script and return what it printed."""
    for each in needs:
        if shutil.which(each) is None:
            pytest.skip(f"there is no {each}")
    ended = subprocess.run(
        ["sh", str(EXAMPLES / script)],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "OUT": str(out),
            "PYTHON": sys.executable,
            "CONVGRAD": f"{shlex.quote(sys.executable)} -m convgrad",
            "PYTHONPATH": str(Path(convgrad.__file__).parents[1]),
            **more,
        },
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr  # a device speaks through its debugger


def test_digits_learn_in_cpp_on_a_pack(tmp_path: Path) -> None:
    printed = built("cpp/digits.sh", tmp_path, "g++", EPOCHS="10")
    assert "verdict: ok" in printed.partition("== pack")[2]
    recorded = (tmp_path / "problems.txt").read_text().splitlines()
    # 7 layers, three operations each, but for the gradient of the image.
    assert len(recorded) == 20


@pytest.mark.parametrize("target", ["wasm_simd", "wasm"])
def test_a_page_learns_filters(tmp_path: Path, target: str) -> None:
    printed = built("wasm/build.sh", tmp_path, "clang", "wasm-ld", "node", TARGET=target)
    assert "filters.wasm" in printed
    ended = subprocess.run(
        ["node", str(EXAMPLES / "wasm/learn_test.mjs"), str(tmp_path / "filters.wasm")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count("largest error") == 4


def test_a_microcontroller_learns_a_filter(tmp_path: Path) -> None:
    printed = built("cortex_m4/build.sh", tmp_path, "arm-none-eabi-gcc", "qemu-system-arm")
    assert ", learnt" in printed
