"""Kernels run on the devices of their rows, and ask for nothing but what a compiler brings along.

A few problems per row; `tools/devices.py` tries more, and compiles for all systems.
"""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from convgrad._compiler.jit import host, llvm, objects
from convgrad._compiler.targets import ALL, TARGETS, find
from convgrad._engine import prepare
from device_trials import RUNNERS, Kernels, Size, campaign, helpers, trials

pytestmark = pytest.mark.cc_long
HELPERS = {
    "cortex_m4": {
        *("__aeabi_uldivmod", "__aeabi_dadd", "__aeabi_dsub", "__aeabi_dmul", "__aeabi_dcmpeq"),
        *("__aeabi_dcmpun", "__aeabi_d2f", "__aeabi_f2d"),
    },
    "cortex_m7": {"__aeabi_uldivmod"},
}
"""What objects of a row may ask of the compiler's library, libgcc or compiler-rt; the other rows ask for nothing."""


@pytest.mark.parametrize("name", RUNNERS)
def test_kernels_are_right_on_their_device(name, tmp_path):
    for tool in ("llvm-nm", "clang"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    for runner in RUNNERS[name]:
        if runner.missing():
            pytest.skip(f"{runner.missing()} is not installed")
    runnable = {row.name for row in host.targets.runnable(host.architecture(), host.features())}
    if "avx2" not in runnable:
        pytest.skip("random numbers are compared with this machine's, which has no AVX2")
    found = campaign(find(name), Size(list(RUNNERS).index(name), part=13), tmp_path)
    assert found["failures"] == [] and found["runs"] >= 8
    assert set(found["helpers"]) <= HELPERS.get(name, set())


@pytest.mark.parametrize(
    ("row", "system"),
    [(row, system) for row in ALL for system in row.systems[1:]],
    ids=lambda each: each.name,
)
def test_other_systems_ask_for_nothing_either(row, system, tmp_path):
    """Neither for `_fltused` and `__chkstk`, which Windows' compilers have, nor for anything of a C library."""
    if shutil.which("llvm-nm") is None:
        pytest.skip("llvm-nm is not installed")
    kernels = Kernels(row, system.triple)
    for trial in trials(row, np.random.default_rng(len(row.name)), Size(3, part=29)):
        kernels.add(prepare.identities(trial.plan))
    assert helpers(kernels.compiled(), system, tmp_path) == set()


@pytest.mark.parametrize("row", TARGETS, ids=lambda row: row.name)
def test_packs_for_linux_hold_the_objects_of_the_jit(row):
    """Byte for byte: so what a pack computes has the bits of the JIT on the same row."""
    kernels = Kernels(row, row.triple)
    for trial in trials(row, np.random.default_rng(5), Size(2, part=17)):
        kernels.add(prepare.identities(trial.plan))
    for source in kernels.sources:
        as_jit = llvm.Machine(row.triple, row.cpu, row.features)
        assert llvm.compile_for(source.ir, as_jit) == llvm.compile_for(
            source.ir, objects.machine(row, row.triple)
        )
