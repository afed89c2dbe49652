"""Kernels in C and in child processes: crashes and hangs are findings, and the documented interface compiles."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from convgrad._apps.check import child, findings, run
from convgrad._apps.cli.main import main
from convgrad.errors import ArgumentError
from convgrad.testing import check_op, implementation

PAGE = Path(__file__).resolve().parents[2] / "docs" / "checking-your-kernel.md"
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")


def compiled(folder: Path, change: tuple[str, str] | None = None) -> str:
    """Compile the example of the docs, with one piece of it exchanged."""
    source = re.search(r"```c\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert source is not None
    text = source.group(1)
    if change is not None:
        assert change[0] in text
        text = text.replace(*change)
    (folder / "mine.c").write_text(text)
    library = folder / "libmine.so"
    command = ["gcc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*command, str(folder / "mine.c"), "-o", str(library)], check=True)
    return f"{library}:my_conv2d"


@needs_gcc
def test_documented_example_passes(tmp_path: Path) -> None:
    report = check_op(compiled(tmp_path), "conv2d", problems=480, isolate=True)
    assert report.ok, str(report)
    assert {row.name: row.status for row in report.refusals} == {
        "NCHW": "refused",
        "half": "refused",
        "bfloat16": "refused",
        "float64": "refused",
        "accumulation": "partly refused",
        "mixed": "partly refused",
    }
    assert "returned 1" in report.row("NCHW").reason


@needs_gcc
def test_mistake_in_c_is_named(tmp_path: Path) -> None:
    wrong = compiled(tmp_path, ("r * a->dilation_h", "r * a->dilation_w"))
    report = check_op(wrong, "conv2d", problems=60, properties=["basic", "dilation"])
    assert report.findings[0].guess == "one dilation used for rows and columns"
    assert f"implementation('{wrong}', 'conv2d')" in report.findings[0].program


@needs_gcc
def test_writing_outside_the_result_is_seen(tmp_path: Path) -> None:
    wrong = compiled(tmp_path, ("    return 0;", "    *y = 1;\n    return 0;"))
    report = check_op(wrong, "conv2d", problems=20, properties=["basic"])
    assert report.row("basic").status == "died"
    assert report.findings[0].what.startswith("wrote outside the result")


@needs_gcc
def test_segmentation_fault_is_reported_with_its_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "_DEADLY_CALLS", 4)
    monkeypatch.setattr(run, "_DEATHS", 1)
    wrong = compiled(
        tmp_path,
        ("    return 0;", "    if (a->stride_h > 2) *(volatile char *)8 = 1;\n    return 0;"),
    )
    report = check_op(
        wrong, "conv2d", problems=24, properties=["basic", "stride", "valid"], isolate=True
    )
    assert not report.ok
    assert {
        row.name: row.status for row in report.rows if row.name in ("basic", "stride", "valid")
    } == {
        "basic": "pass",
        "stride": "died",
        "valid": "pass",
    }
    assert report.findings[0].what == "process died (signal 11, SIGSEGV)"
    assert "strides=(3" in report.findings[0].program or "strides=(4" in report.findings[0].program


KERNEL = """
import os
import time
from convgrad import reference

def hangs(*arguments, **settings):
    if settings["padding"] == "VALID":
        time.sleep(60)
    return reference.conv2d(*arguments, **settings).astype(arguments[0].dtype)

def loops(*arguments, **settings):
    while True:
        pass

def fails(*arguments, **settings):
    print("noise on standard output")
    return reference.conv2d(*arguments, **settings).astype(arguments[0].dtype) + 1

def forks_and_dies(*arguments, **settings):
    if os.fork() == 0:
        time.sleep(60)
    os._exit(3)

def forks(*arguments, **settings):
    os.fork()
    return reference.conv2d(*arguments, **settings).astype(arguments[0].dtype)

def writes(*arguments, **settings):
    for pipe in range(3, 12):
        try:
            os.write(pipe, b"garbage " * 9)
        except OSError:
            pass
    return reference.conv2d(*arguments, **settings).astype(arguments[0].dtype)

def never(*arguments, **settings):
    raise TypeError("not today")
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "somebodys_kernels.py").write_text(KERNEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(findings, "_DEADLY_CALLS", 0)
    return tmp_path


def test_hang_is_reported(module: Path) -> None:
    report = check_op(
        "somebodys_kernels:hangs",
        "conv2d",
        problems=2,
        properties=["valid"],
        isolate=True,
        timeout=1,
    )
    assert report.row("valid").status == "died"
    assert report.findings[0].what == "no answer in 1 s"


def test_a_kernel_that_often_does_not_answer_is_given_up(module: Path) -> None:
    """Three calls of every property took an hour at the usual time limit."""
    report = check_op("somebodys_kernels:hangs", "conv2d", isolate=True, timeout=0.3)
    assert sum(row.died for row in report.rows) == 3
    assert not report.ok


def test_a_kernel_that_never_answers_costs_a_few_time_limits(
    module: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It took 20: four problems, and then every smaller one."""
    monkeypatch.setattr(findings, "_DEADLY_CALLS", 60)
    calls = []
    observe = child.Isolated.observe
    monkeypatch.setattr(
        child.Isolated, "observe", lambda *given: calls.append(given) or observe(*given)
    )
    assert main(["check", "somebodys_kernels:loops", "conv2d", "--timeout", "0.5"]) == 1
    assert len(calls) <= 5
    told = capsys.readouterr().out
    assert "given up after 3 calls without an answer" in told
    assert "expected float32 [1, 1, 1, 1]" in told  # the plainest problem is tried first


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")


@needs_fork
def test_a_kernel_that_leaves_a_process_behind(module: Path) -> None:
    """The one left behind held the pipe open, so that no time limit ended the call."""
    report = check_op(
        "somebodys_kernels:forks_and_dies", "conv2d", problems=1, properties=["basic"], isolate=True, timeout=0.5
    )  # fmt: skip
    assert report.findings[0].what == "process ended (status 3)"


@needs_fork
def test_a_kernel_that_comes_back_twice(module: Path) -> None:
    """Both processes answered, and the answers of one problem were held against the next."""
    report = check_op("somebodys_kernels:forks", "conv2d", problems=8, isolate=True)
    assert report.ok, str(report)


def test_a_kernel_that_writes_into_our_pipe(module: Path) -> None:
    """It was a MemoryError: the first bytes were taken for a length."""
    report = check_op(
        "somebodys_kernels:writes", "conv2d", problems=1, properties=["basic"], isolate=True
    )
    assert report.findings[0].what.startswith("something else than the answer was written")


def test_command_line(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = [
        "conv2d",
        "--problems",
        "12",
        "--property",
        "basic",
        "--json",
        "--markdown",
        "page.md",
    ]
    assert main(["check", "somebodys_kernels:fails", *common]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is False
    assert told["properties"][0]["failed"] == 12
    assert "from somebodys_kernels import fails as kernel" in told["findings"][0]["program"]
    assert "| basic | **FAIL** |" in (module / "page.md").read_text(encoding="utf-8")


def test_command_line_refuses(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, words in (
        ("no_such_module_at_all", "No module named 'no_such_module_at_all'"),
        ("somebodys_kernels:absent", "has no function 'absent'"),
        (
            "somebodys_kernels:never",
            "refused every plain problem of conv2d; the first time it said: TypeError: not today",
        ),
        ("./libabsent.so:f", "cannot load './libabsent.so'"),
    ):
        assert main(["check", name, "conv2d", "--in-process"]) == 2
        assert words in capsys.readouterr().err


def test_a_pipe_is_no_library(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Loading it waited for five minutes."""
    os.mkfifo(tmp_path / "mine.so")
    assert main(["check", f"{tmp_path}/mine.so:f", "conv2d"]) == 2
    assert "it is a pipe, not a regular file" in capsys.readouterr().err


def test_command_line_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            [
                "check",
                "convgrad.reference",
                "conv2d",
                "--in-process",
                "--dtype",
                "float64",
                "--problems",
                "40",
            ]
        )
        == 0
    )
    out = capsys.readouterr().out
    assert out.startswith("convgrad.reference") and "40 problems, properties: 23 pass" in out
    narrow = ["--in-process", "--problems", "24", "--property", "half"]
    assert main(["check", "convgrad.reference", "conv2d", *narrow]) == 1
    assert (
        "likely cause: the result is float64 where the operands are not" in capsys.readouterr().out
    )


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize("answer", [None, "words", np.array([{}]), iter(())])
def test_what_is_no_array_is_a_finding(answer: object) -> None:
    """Comparing it with the truth was a TypeError of ours."""
    report = check_op(lambda *_, **__: answer, "conv2d", problems=2, properties=["basic"])
    assert report.row("basic").status == "died"
    assert report.findings[0].what.startswith("returned an array of ")


def test_an_error_without_words_is_a_refusal() -> None:
    def kernel(*arguments: object, **settings: object) -> None:
        raise Speechless

    with pytest.raises(ArgumentError, match=r"the first time it said: Speechless$"):
        check_op(kernel, "conv2d", problems=2)


def test_troubles_beside_the_numbers() -> None:
    from convgrad import reference

    kept: dict[object, np.ndarray] = {}

    def careless(x, f, **settings):  # one result array for each shape, used again
        y = reference.conv2d(x, f, **settings).astype(x.dtype)
        mine = kept.setdefault((y.shape, y.dtype), y)
        mine[...] = y
        if x.size:
            x.reshape(-1)[0] += 1
        return mine

    report = check_op(
        careless, "conv2d", problems=60, properties=["determinism", "operands-kept", "fresh-result"]
    )
    assert report.row("operands-kept").status == report.row("fresh-result").status == "FAIL"
    told = [each.what for each in report.findings]
    assert "an operand was written to" in told
    assert "the result shares memory with the result of an earlier call" in told


def test_same_seed_same_problems() -> None:
    seen: list[list[object]] = [[], [], []]
    for turn, seed in enumerate((1, 1, 2)):
        convolve = implementation("convgrad.reference", "conv2d")

        def kernel(x, f, turn=turn, convolve=convolve, **settings):
            seen[turn].append((x.tobytes(), f.tobytes(), str(settings)))
            return convolve(x, f, **settings).astype(x.dtype)

        check_op(kernel, "conv2d", problems=30, seed=seed)
    assert seen[0] == seen[1] != seen[2]


def test_wrong_arguments_are_refused() -> None:
    for wrong, words in (
        ({"op": "conv3d"}, "`op` must be one of"),
        ({"properties": ["speed"]}, "`properties` must be of"),
        ({"problems": 0}, "`problems` must be at least 1"),
        ({"isolate": True}, "`function` must be text"),
    ):
        with pytest.raises(ArgumentError, match=words):
            check_op(**{"function": print, "op": "conv2d", **wrong})
