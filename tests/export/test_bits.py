"""A pack of the host's row computes the bits of the JIT: all dtypes, layouts and operations, any number of threads."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import convgrad
import fp_modes
from cases import KINDS, random_case
from convgrad._apps.export import names, pack
from convgrad._compiler import jit as _jit
from convgrad._compiler import targets
from convgrad._problem import text as _problem_text
from kernels import problem_of
from packs import Library, jit, operands

LARGER = """
conv2d 4x14x14x32 3x3x32x48
conv2d_backprop_input 4x14x14x32 3x3x32x48
conv2d_backprop_filter 4x14x14x32 3x3x32x48
conv2d 2x20x20x16 1x1x16x40 strides=2
conv2d_backprop_input 2x20x20x16 1x1x16x40 strides=2 dtype=float64
conv2d_backprop_filter 3x24x24x8 5x5x8x16 padding=VALID dtype=bfloat16
conv2d 4x32x14x14 3x3x32x48 data_format=NCHW dtype=float16
conv2d_backprop_filter 4x32x14x14 3x3x8x48 data_format=NCHW
depthwise_conv2d 4x28x28x96 3x3x96x1 strides=2
depthwise_conv2d_backprop_input 4x28x28x96 3x3x96x1 strides=2 dtype=float16
depthwise_conv2d_backprop_filter 4x28x28x96 3x3x96x1
depthwise_conv2d_backprop_filter 4x48x28x28 5x5x48x2 data_format=NCHW dtype=float64
"""
"""With work for several threads."""


def export(folder, problems):
    convgrad.export(problems, folder, name="exact", target="host", with_test=False)
    return Library(folder, "exact")


@pytest.mark.cc_long
@pytest.mark.parametrize("seed", [1, 2])
def test_random_problems_have_the_bits_of_the_jit(tmp_path, seed):
    rng = np.random.default_rng(seed)
    cases = [random_case(rng) for _ in range(18)]
    problems = list(dict.fromkeys(problem_of(case, kind) for case in cases for kind in KINDS))
    dtypes = {problem.dtype.name for problem in problems}
    assert dtypes == {"half", "bfloat16", "float32", "float64"}
    library = export(tmp_path / "pack", problems)
    for problem in problems:
        first, second = operands(problem, rng)
        want = jit(problem, first, second)
        got = library.call(problem, first, second)
        assert got.tobytes() == want.tobytes(), _problem_text.write(problem)


def test_threads_and_modes_of_the_caller_change_no_bit(tmp_path):
    """On subnormal numbers, too: threads of the caller begin with its floating-point mode."""
    rng = np.random.default_rng(3)
    problems = _problem_text.read_lines(LARGER, "LARGER")
    library = export(tmp_path / "pack", LARGER)
    for problem in problems:
        first, second = operands(problem, rng)
        want = jit(problem, first, second).tobytes()
        assert library.call(problem, first, second).tobytes() == want
        for threads in (1, 2, 3, 8):
            got = library.call(problem, first, second, threads)
            assert got.tobytes() == want, (_problem_text.write(problem), threads)
        for mode in fp_modes.MODES if fp_modes.AVAILABLE else ():
            with fp_modes.set_to(mode):
                found = [library.call(problem, first, second, threads) for threads in (0, 3)]
            assert {each.tobytes() for each in found} == {want}, (problem, mode)
    assert len(problems) == 12
    first, second = operands(problems[0], rng)
    first *= np.float32(2.0**-140)
    want = jit(problems[0], first, second)
    assert want.any() and np.abs(want).max() < np.finfo(np.float32).tiny
    for mode in fp_modes.MODES if fp_modes.AVAILABLE else ():
        with fp_modes.set_to(mode):
            found = [library.call(problems[0], first, second, threads) for threads in (0, 3)]
        assert {each.tobytes() for each in found} == {want.tobytes()}, mode


@pytest.mark.cc_long
def test_the_look_up_finds_what_the_function_runs(tmp_path):
    library = export(tmp_path / "pack", LARGER)

    class Descriptor(ctypes.Structure):
        _fields_ = [
            *((f"i{at}", ctypes.c_int32) for at in range(4)),
            *((f"n{at}", ctypes.c_int64) for at in range(17)),
        ]

    whole = ctypes.byref(ctypes.c_char.in_dll(library.code, "exact"))
    problems = _problem_text.read_lines(LARGER, "LARGER")
    known = {pack.descriptor(problem) for problem in problems}
    for problem in problems:
        numbers = pack.descriptor(problem)
        name = names.function("exact", problem)
        entry = ctypes.addressof(ctypes.c_char.in_dll(library.code, f"{name}_entry"))
        assert library.code.find_in(whole, ctypes.byref(Descriptor(*numbers))) == entry
        for at in range(len(numbers)):  # any other number is another problem
            for other in (-1, 2**31 - 1, -(2**31), numbers[at] + 1):
                changed = list(numbers)
                changed[at] = other
                found = library.code.find_in(whole, ctypes.byref(Descriptor(*changed)))
                assert (found is not None) == (tuple(changed) in known), (problem, at, other)


def test_without_options_the_row_has_its_own_caches(tmp_path):
    """A pack is the same wherever it is written, unless the host is asked for."""
    report = convgrad.export("1x8x8x4k3", tmp_path / "pack", name="caches", with_test=False)
    row = report.pack.target
    assert row.name == _jit.host_target().name
    assert row == targets.find(row.name)
