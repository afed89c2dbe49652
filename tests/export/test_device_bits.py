"""Kernels of other instruction sets give this machine's bits; `tools/emulated_bits.py` tries hundreds of problems."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import device_bits
from convgrad._compiler import jit
from convgrad._compiler.jit import host
from device_trials import RUNNERS

TOOL = Path(__file__).resolve().parents[2] / "tools" / "emulated_bits.py"
PROBLEMS = 16
"""Among them are all six operations, two with a bias, two of Winograd's, four of batch norm."""


def device(name: str) -> device_bits.Device:
    for runner in RUNNERS[name]:
        if runner.missing():
            pytest.skip(f"{runner.missing()} is not installed")
    if not jit.host_target().has_fma:
        pytest.skip("this machine has no fused multiply-add")
    return device_bits.devices([name])[0]


def a_convolution() -> device_bits.Convolution:
    """Return a convolution that is quick to specify."""
    for each in device_bits.known(1):
        if isinstance(each, device_bits.Convolution) and each.beside_specification()[0]:
            return each
    raise AssertionError("none is drawn")


@pytest.mark.cc_long
@pytest.mark.parametrize("name", ["neon", "riscv64", "riscv64v", "cortex_m7", "cortex_m4"])
def test_rows_with_fma_give_the_same_bits(name, tmp_path):
    one = device(name)
    tried = [each for some in device_bits.campaign([one], PROBLEMS, tmp_path) for each in some]
    assert one.found.differing == []
    assert {"batch norm", "winograd", "dense_direct"} <= set(one.found.plans)
    inside = {each.number for each in tried if all(map(one.target.fuses, each.sum_bytes))}
    assert one.found.problems == inside and len(tried) == PROBLEMS
    assert one.found.outside == {each.number for each in tried} - inside
    assert one.found.differing_unfused == []
    assert one.found.too_large == 0


@pytest.mark.cc_long
@pytest.mark.parametrize("name", ["sse2", "wasm", "wasm_simd"])
def test_rows_without_fma_have_other_bits_that_are_the_same_among_them(name, tmp_path):
    """So `explain` says the truth about them, and docs/sums.md, which calls them a class of their own."""
    one = device(name)
    for _ in device_bits.campaign([one], PROBLEMS, tmp_path):
        pass
    assert one.found.problems == set() and len(one.found.outside) == PROBLEMS
    assert len(one.found.outside_differ) > PROBLEMS // 4
    assert device_bits.UNFUSED_ROW is not None or host.architecture() != "x86_64"
    assert one.found.differing_unfused == []


@pytest.mark.cc_long
def test_one_bit_is_noticed_and_told_with_the_algorithm(tmp_path):
    one = device("neon")
    first = a_convolution()
    for arrays in first.written.values():
        arrays[0].reshape(-1).view(np.uint8)[-arrays[0].itemsize] ^= 1
    one.compare([first], tmp_path)
    assert one.found.differ == one.found.plans and one.found.plans
    assert {each.split(",")[0] for each in one.found.differing} == set(one.found.plans)
    assert all("wrong at byte" in each and first.label in each for each in one.found.differing)


def test_numbers_here_are_those_of_the_specification():
    if not jit.host_target().has_fma:
        pytest.skip("this machine has no fused multiply-add")
    checked = 0
    for each in islice(device_bits.known(2), 12):
        quick, differing = each.beside_specification()
        checked += quick
        assert differing == [], each.label
    assert checked >= 4
    other = a_convolution()
    wrong = {name: (arrays[0] + 1, *arrays[1:]) for name, arrays in other.written.items()}
    assert replace(other, written=wrong).beside_specification()[1] != []


def test_missing_programs_are_named(tmp_path):
    done = subprocess.run(
        [sys.executable, str(TOOL), "--target", "neon"],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "not installed: aarch64-linux-gnu-gcc\n"
