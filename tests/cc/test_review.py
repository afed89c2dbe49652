"""Rounding and printing of numbers, memory that is written over, and headers in several parts of one program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cc_programs import PROGRAMS, Builds, found, one_and_others, run, setting

FIRST = found()[:1]


def odd_floats(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return floats of all sizes: every half, the ties between halves, and bits at random."""
    with np.errstate(invalid="ignore", over="ignore"):
        halves = np.arange(0x10000, dtype=np.uint16).view(np.float16).astype(np.float32)
        steps = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
        ties = (steps[1:] + steps[:-1]) / 2
        words = rng.integers(0, 2**32, 200_000, dtype=np.uint32)
        parts = [halves, ties.astype(np.float32), -ties.astype(np.float32), words.view(np.float32)]
        found = np.concatenate(parts)
        bits = found.view(np.uint32)
        # The ties of bfloat16, and the neighbours of everything.
        shorts = (bits & 0xFFFF0000) | 0x8000
        return np.concatenate([bits, bits + 1, bits - 1, shorts, shorts + 1, shorts - 1])


def same_numbers(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    """Compare bits; where one is a NaN, only that the other is one too."""
    nan = np.isnan(expected.astype(np.float32))
    assert (np.isnan(found.astype(np.float32)) == nan).all()
    word = f"u{found.dtype.itemsize}"
    np.testing.assert_array_equal(found[~nan].view(word), expected[~nan].view(word))


@pytest.mark.cc_long
@pytest.mark.parametrize("compiler", FIRST)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_are_rounded_as_numpy_does(compiler: str, builds: Builds, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    bfloat16 = np.dtype(ml_dtypes.bfloat16)
    floats = odd_floats(rng).view(np.float32)
    doubles = np.concatenate(
        [floats.astype(np.float64), np.nextafter(floats.astype(np.float64), np.inf)]
    )
    words = np.arange(0x10000, dtype=np.uint16)
    for name, array in (("float", floats), ("double", doubles), ("half", words)):
        array.tofile(tmp_path / name)
    program = builds.program(PROGRAMS / "review_numbers.cc", setting(compiler, "C++20"))
    done = run(program, str(tmp_path))
    assert done.returncode == 0, done.stderr
    for source, name, dtype in (
        (floats, "float_half", np.dtype(np.float16)),
        (floats, "float_bfloat16", bfloat16),
        (doubles, "double_half", np.dtype(np.float16)),
        (doubles.astype(np.float32), "double_bfloat16", bfloat16),
        (words.view(np.float16), "half_float", np.dtype(np.float32)),
        (words.view(bfloat16), "bfloat16_float", np.dtype(np.float32)),
    ):
        same_numbers(np.fromfile(tmp_path / name, dtype), source.astype(dtype))


@pytest.mark.cc_long
@pytest.mark.parametrize("compiler", FIRST)
def test_tensors_are_printed_as_tensorflow_prints_them(compiler: str, builds: Builds) -> None:
    """What TensorFlow's own Tensor prints for this program is in goldens/summaries.txt."""
    done = run(builds.program(PROGRAMS / "review_numbers.cc", setting(compiler, "C++20")))
    assert done.stdout == (PROGRAMS / "goldens" / "summaries.txt").read_text()


@pytest.mark.parametrize("compiler", FIRST)
def test_memory_is_written_over_only_where_nobody_reads(compiler: str, builds: Builds) -> None:
    done = run(builds.all_together(setting(compiler, "C++17")), "review_reuse")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


@pytest.mark.parametrize("compiler", FIRST)
def test_modes_of_the_caller_change_no_bit(compiler: str, builds: Builds) -> None:
    done = run(builds.all_together(setting(compiler, "C++17")), "fp_mode")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stdout + done.stderr


@pytest.mark.cc_long
@pytest.mark.parametrize("compiler", found())
def test_modes_of_the_caller_change_no_bit_on_openmp(compiler: str, builds: Builds) -> None:
    how, openmp = setting(compiler, "C++17"), ("-fopenmp", "-DCONVGRAD_THREADS_OPENMP")
    done = run(builds.program(PROGRAMS / "fp_mode.cc", how, *openmp))
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stdout + done.stderr


@pytest.mark.cc_long
@pytest.mark.parametrize("compiler", one_and_others())
def test_two_parts_of_a_program_include_everything(compiler: str, builds: Builds) -> None:
    """Linked and as shared libraries, begun before main, and after a fork."""
    how, part = setting(compiler, "C++17"), PROGRAMS / "review_part.cc"
    libraries = [
        builds.program(part, how, f"-DPART={number}", "-shared", "-fPIC") for number in (1, 2)
    ]
    main = PROGRAMS / "review_parts.cc"
    done = run(builds.program(main, how, "-ldl"), *map(str, libraries))
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    done = run(builds.program(main, how, "-DLINKED", *map(str, libraries)))
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
