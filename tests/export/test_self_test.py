"""A pack's own test passes, and does not where anything it depends on was changed."""

from __future__ import annotations

import re
import subprocess

import numpy as np
import pytest

import convgrad
from convgrad._apps.export import expected as known
from convgrad._apps.export import pack, self_test
from convgrad._problem import oracle
from convgrad._problem import text as _problem_text
from packs import COMPILERS, STRICT, run, tool

LINES = """
conv2d 2x14x14x16 3x3x16x24 strides=2
conv2d_backprop_input 2x14x14x16 3x3x16x24
conv2d_backprop_filter 2x14x14x16 3x3x16x24
conv2d_backprop_filter 2x7x9x5 3x3x5x4 dtype=bfloat16
conv2d 1x8x9x9 3x3x8x5 data_format=NCHW dtype=float16
conv2d 1x9x9x300 3x3x300x2 dtype=float16
depthwise_conv2d_backprop_input 1x9x9x5 3x3x5x2 dtype=float64
depthwise_conv2d_backprop_filter 2x12x12x8 3x3x8x1
conv2d_backprop_input 0x4x4x2 1x1x2x3
conv2d_backprop_filter 0x4x4x2 1x1x2x3
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("test") / "pack"
    convgrad.export(LINES, place, name="it")
    return place


def compiled(
    folder, output, *more, compiler="gcc", standard="c99", test="it_test.c", source="it.c"
):
    language = ["-x", "c++"] if "++" in standard else []
    words = [*more, f"-std={standard}", "-O1", "-I", folder]
    files = (folder / test, folder / source, "-x", "none", folder / "libit.a", "-o", output)
    run(tool(compiler), *words, *language, *files)
    return subprocess.run([str(output)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("compiler", "standard"), COMPILERS)
def test_it_passes(folder, tmp_path, compiler, standard):
    done = compiled(folder, tmp_path / "test", *STRICT, compiler=compiler, standard=standard)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "it: 10 problems, 0 failed, 0 left out"
    assert done.stdout.count("right ") == 10


@pytest.mark.cc_long
@pytest.mark.parametrize("what", ["table", "word", "digest", "sample"])
def test_it_fails_where_one_number_was_changed(folder, tmp_path, what):
    source, test = (folder / "it.c").read_text(), (folder / "it_test.c").read_text()
    if what == "table":
        found = re.search(r"it_table_\w+\[\d+\] = \{\n\s+(\d+)", source)
        assert found, "a problem with a table is needed here"
        source = source[: found.start(1)] + str(int(found[1]) ^ 1) + source[found.end(1) :]
    elif what == "word":
        # How many rows or channels a kernel goes through; a pointer's distance might leave the memory.
        found = re.search(
            r"(it_depthwise_dw\w+_words_0\[\d+\] = \{\n)(.*?)\n\};", source, re.DOTALL
        )
        numbers = found[2].replace("\n", " ").split(",")
        at = max(i for i, number in enumerate(numbers) if number.strip() == "12")
        numbers[at] = " 11"
        source = source[: found.start(2)] + ",".join(numbers) + source[found.end(2) :]
    elif what == "digest":
        test, count = re.subn(r"(_entry, 0x[0-9a-f]{7})([0-9a-f])u", _other_digit, test, count=1)
        assert count == 1
    else:
        test, count = re.subn(r"\{(-?\d+)\.0,", lambda m: f"{{{int(m[1]) + 1}.0,", test, count=1)
        assert count == 1
    assert (source, test) != ((folder / "it.c").read_text(), (folder / "it_test.c").read_text())
    (tmp_path / "changed.c").write_text(source)
    (tmp_path / "changed_test.c").write_text(test)
    done = compiled(
        folder, tmp_path / "test", source=tmp_path / "changed.c", test=tmp_path / "changed_test.c"
    )
    assert done.returncode == 1, done.stdout
    assert "FAILED" in done.stdout and "wrong numbers" in done.stdout
    assert "0 failed" not in done.stdout


def _other_digit(match: re.Match[str]) -> str:
    return f"{match[1]}{int(match[2], 16) ^ 1:x}u"


@pytest.mark.cc_long
def test_with_less_memory_it_says_what_it_left_out(folder, tmp_path):
    done = compiled(folder, tmp_path / "test", "-Dit_TEST_BYTES=20000")
    assert done.returncode == 0
    left = [line for line in done.stdout.splitlines() if line.startswith("left out")]
    assert left and all("needs" in line for line in left)
    assert done.stdout.splitlines()[-1] == f"it: 10 problems, 0 failed, {len(left)} left out"
    done = compiled(folder, tmp_path / "test", "-Dit_TEST_BYTES=0")
    assert "left out" in done.stdout


@pytest.mark.cc_long
def test_without_any_memory_it_does_not_pass(tmp_path):
    convgrad.export("conv2d 1x8x8x4 3x3x4x8", tmp_path / "pack", name="it")
    done = compiled(tmp_path / "pack", tmp_path / "test", "-Dit_TEST_BYTES=64")
    assert done.returncode == 1, done.stdout


def test_operands_are_small_whole_numbers_of_every_size():
    drawn = known.operand_numbers(1, 10_000, 3)
    assert set(drawn) == {-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0}
    assert abs(drawn.mean()) < 0.1
    assert (known.operand_numbers(2, 10_000, 3) != drawn).mean() > 0.8


@pytest.mark.parametrize("count", [0, 1, 65535, 65536, 200001])
def test_the_digest_is_the_sum_the_program_takes(count):
    """The program adds up one unit after the other; here blocks of them are added."""
    units = np.random.default_rng(count).integers(0, 2**16, count, np.uint16)
    units[::7] = 2**16 - 1
    weights = (np.arange(count, dtype=np.uint64) * np.uint64(2) + np.uint64(1)) * np.uint64(
        known.WEIGHT
    )
    plain = ((units.astype(np.uint64) + np.uint64(1)) * weights).sum(dtype=np.uint64)
    assert known.digest(units) == int(plain)


def test_operands_do_not_depend_on_blocks(monkeypatch):
    whole = known.operand_numbers(2, 70001, 3)
    monkeypatch.setattr(known, "_BLOCK", 999)
    assert np.array_equal(whole, known.operand_numbers(2, 70001, 3))


def test_the_digest_shows_any_change():
    rng = np.random.default_rng(0)
    array = rng.standard_normal(1000).astype(np.float32)
    before = known.digest(array)
    for at in range(0, 4000, 7):
        changed = array.copy()
        changed.view(np.uint8)[at] ^= 1
        assert known.digest(changed) != before
    assert known.digest(np.roll(array, 1)) != before


def test_kernels_and_the_oracle_agree_on_large_problems():
    """Above a size our own kernels compute what is expected."""
    problem = _problem_text.read("conv2d 1x12x12x16 3x3x16x24 dtype=float16")
    first, second = (
        known.operand_numbers(at, int(np.prod(shape)), 3).reshape(shape)
        for at, shape in enumerate((problem.input_shape, problem.filter_shape), 1)
    )
    assert np.array_equal(
        known._by_kernels(problem, first, second), oracle.compute(problem, first, second)
    )


@pytest.mark.cc_long
def test_sums_that_are_not_exact_are_compared_with_a_tolerance(tmp_path):
    """Winograd's F(4,3) divides by 3."""
    with convgrad.options(winograd="fast"):
        report = convgrad.export("conv2d 2x28x28x64 3x3x64x64", tmp_path / "pack", name="it")
    (entry,) = report.pack.entries
    assert entry.algorithm == "winograd_fast"
    assert known.expected(entry).tolerance > 0
    assert compiled(tmp_path / "pack", tmp_path / "test").returncode == 0
    text = (tmp_path / "pack/it_test.c").read_text()
    wrong = re.sub(r"\{(-?\d+)\.0,", lambda m: f"{{{int(m[1]) + 5}.0,", text, count=1)
    assert wrong != text
    (tmp_path / "pack/it_test.c").write_text(wrong)
    assert compiled(tmp_path / "pack", tmp_path / "test").returncode == 1


@pytest.mark.cc_long
def test_the_largest_problems_are_left_out(monkeypatch, tmp_path):
    """Their results would take minutes, and programs cannot have static memory of any size."""
    monkeypatch.setattr(self_test, "LARGEST", 3000)
    convgrad.export("conv2d 1x8x8x4 3x3x4x8\nconv2d 1x3x3x1 1x1x1x1", tmp_path / "pack", name="it")
    done = compiled(tmp_path / "pack", tmp_path / "test")
    assert done.returncode == 0
    assert re.search(r"left out conv2d 1x8x8x4 .*\n", done.stdout), done.stdout


@pytest.mark.cc_long
def test_memory_of_the_test_is_what_its_program_counts(folder):
    report_needed = re.search(r"#define it_TEST_BYTES (\d+)", (folder / "it_test.c").read_text())[1]
    made = pack.make_pack("it", _problem_text.read_lines(LINES, "LINES"), *_target())
    assert int(report_needed) == max(map(self_test.memory, made.entries))


def _target():
    from convgrad._apps.export.door import chosen_target

    return chosen_target(None, None, None, None, None)
