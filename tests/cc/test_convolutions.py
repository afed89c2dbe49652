"""Convolutions in C++: numbers against the reference, words against TensorFlow's, bits against the JIT."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import convgrad
from conv_file import NAMES, Case, Program, random_cases
from convgrad import _problem_text

HERE = Path(__file__).parent
INCLUDE = Path(convgrad.__file__).parent / "include"
STRICT = [
    "-std=c++17",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wshadow",
    "-pedantic",
    "-Werror",
    "-pthread",
]
COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]
SANITIZED = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
TOLERANCES = {"float": 1e-6, "double": 1e-11, "half": 1e-3, "bfloat16": 8e-3}

pytestmark = pytest.mark.skipif(not COMPILERS, reason="needs g++ or clang++")


def _compile(
    source: str,
    to: Path,
    *more: str | Path,
    compiler: str | None = None,
    flags: tuple[str, ...] = ("-O1",),
) -> Path:
    command = [
        compiler or COMPILERS[0],
        *STRICT,
        *flags,
        f"-I{INCLUDE}",
        HERE / source,
        *more,
        "-o",
        to,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return to


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    folder = tmp_path_factory.mktemp("conv_run")
    return Program(_compile("conv_run.cc", folder / "conv_run"), folder)


def _compare(cases: list[Case], program: Program) -> int:
    for case, answer in zip(cases, program.run(cases), strict=True):
        assert answer.result is not None, (case.line(), answer.message)
        expected = case.expected()
        assert answer.result.shape == expected.shape, case.line()
        if expected.dtype == np.int32:
            assert np.array_equal(answer.result, expected), case.line()
            continue
        name = next(name for name, dtype in NAMES.items() if dtype == answer.result.dtype)
        near = TOLERANCES[name]
        found = answer.result.astype(np.float64)
        assert np.allclose(found, expected, rtol=near, atol=1e-5 * (near > 1e-5) + 1e-9), (
            case.line()
        )
    return len(cases)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("dtype", ["float", "double", "half", "bfloat16", "int32"])
def test_sums_are_the_references(
    program: Program, dtype: str, large: bool, checked: dict[str, int]
) -> None:
    cases = random_cases(7, 40 if large else 150, [dtype], large, threads=2)
    checked["convolutions in C++"] += _compare(cases, program)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    "flags",
    [
        (*SANITIZED, "-O1"),
        ("-O1", "-g", "-fsanitize=thread"),
        ("-O1", "-std=c++20"),
        ("-O1", "-DCONVGRAD_THREADS_NONE"),
    ],
    ids=["address", "thread", "c++20", "no_threads"],
)
def test_every_build_computes_the_same(
    tmp_path: Path, compiler: str, flags: tuple[str, ...]
) -> None:
    built = Program(
        _compile("conv_run.cc", tmp_path / "built", compiler=compiler, flags=flags), tmp_path
    )
    _compare(random_cases(8, 80, list(TOLERANCES), threads=3), built)
    _compare(random_cases(9, 20, list(TOLERANCES), large=True, threads=3), built)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_headers_need_neither_exceptions_nor_rtti(tmp_path: Path, compiler: str) -> None:
    _compile(
        "conv_threads.cc",
        tmp_path / "threads",
        compiler=compiler,
        flags=("-fno-exceptions", "-fno-rtti"),
    )
    _compile(
        "conv_gradients.cc",
        tmp_path / "out",
        compiler=compiler,
        flags=("-fno-exceptions", "-fno-rtti"),
    )


def test_bits_do_not_depend_on_threads(program: Program) -> None:
    once = program.run(random_cases(11, 60, list(NAMES)[:5], large=True, threads=1))
    for threads in (2, 3, 7):
        again = program.run(random_cases(11, 60, list(NAMES)[:5], large=True, threads=threads))
        for one, other in zip(once, again, strict=True):
            assert one.result is not None and other.result is not None
            assert one.result.tobytes() == other.result.tobytes()


def test_nan_and_infinity_reach_their_windows_alone(program: Program) -> None:
    x = np.zeros((2, 5, 5, 2), np.float32)
    x[0, 0, 0, 0], x[1, 4, 4, 1] = np.nan, np.inf
    f = np.ones((3, 3, 2, 1), np.float32)
    for case in (Case("Conv2D", (x, f)), Case("DepthwiseConv2dNative", (x, f))):
        (answer,) = program.run([case])
        assert answer.result is not None
        assert np.array_equal(answer.result, case.expected().astype(np.float32), equal_nan=True)


def _golden(verb: str) -> list[tuple[str, str]]:
    lines = (HERE / "goldens" / "convolutions.txt").read_text().splitlines()
    pairs = [
        line.removeprefix(verb + " ").split("\t") for line in lines if line.startswith(verb + " ")
    ]
    return [(line, answer) for line, answer in pairs]


def test_shape_rules_say_what_tensorflow_says(program: Program) -> None:
    pairs = _golden("INFER")
    for (line, wanted), found in zip(
        pairs, program.infer([line for line, _ in pairs]), strict=True
    ):
        if wanted.startswith("[?") and line.startswith("op=Conv2DBackpropInput "):
            found = (
                "[?" + found[found.index(",") :]
            )  # TensorFlow forgets a batch that input_sizes knows
        if line.startswith("op=Depthwise") and "Attr dilations has value" in found:
            continue  # TensorFlow takes such dilations for ones
        assert found == wanted, line
    assert len(pairs) > 500


def _case(line: str) -> Case:
    values: dict[str, str] = {}
    inputs = []
    for word in line.split():
        key, _, value = word.partition("=")
        values[key] = value
        if key == "in":
            dtype, _, rest = value.partition(":")
            sizes, _, numbers = rest.partition("=")
            shape = tuple(int(size) for size in sizes.split("x") if size)
            given = [int(number) for number in numbers.split(";") if number]
            ones = np.ones(shape, np.float32)
            inputs.append(np.array(given, np.int32).reshape(shape) if dtype == "int32" else ones)
    ints = {
        name: tuple(int(number) for number in values[name].split(",") if number)
        for name in ("strides", "dilations", "explicit")
    }
    return Case(
        values["op"], tuple(inputs), **ints, padding=values["padding"], data_format=values["format"]
    )


def test_kernels_say_what_tensorflow_says(program: Program) -> None:
    pairs = _golden("RUN")
    answers = program.run([_case(line) for line, _ in pairs])
    for (line, wanted), answer in zip(pairs, answers, strict=True):
        if answer.result is None and wanted.startswith("["):
            assert "must have at least 1" in answer.message, line  # TensorFlow computes nonsense
            continue
        found = f"{answer.code} {answer.message}"
        if answer.result is not None:
            found = "[" + ",".join(map(str, answer.result.shape)) + "]"
        assert found == wanted, line
    assert len(pairs) > 300


X, F, Y = (
    np.ones((1, 5, 5, 2), np.float32),
    np.ones((3, 3, 2, 4), np.float32),
    np.ones((1, 5, 5, 8), np.float32),
)
SIZES_X, SIZES_F = np.array(X.shape, np.int32), np.array(F.shape, np.int32)
BACK = "DepthwiseConv2dNativeBackprop"
REFUSED = [  # where TensorFlow's kernels die, ignore the argument or compute nonsense
    (Case(f"{BACK}Input", (SIZES_X, F, Y), strides=(1, 0, 1, 1)), 3, "strides should be larger than 0"),
    (Case(f"{BACK}Filter", (X, SIZES_F, Y), strides=(1, -2, 1, 1)), 3, "strides should be larger than 0"),
    (Case(f"{BACK}Filter", (X, SIZES_F, Y), dilations=(1,)), 3, "dilations field must specify 4"),
    (Case(f"{BACK}Input", (SIZES_X, F, Y), dilations=(1, 0, 1, 1)), 3, "Dilated rates should be larger"),
    (Case(f"{BACK}Input", (SIZES_X, F, Y), dilations=(2, 1, 1, 1)), 3, "support dilations in the batch"),
    (Case("Conv2DBackpropInput", (SIZES_X, F, Y[..., :4]), strides=(1, 0, 1, 1)), 3, "strides should be"),
    (Case("Conv2D", (X, F), padding="EXPLICIT", explicit=(0, 0, 2**31, 0, 0, 0, 0, 0)), 3, "below 2**31"),
    (Case("Conv2D", (X[..., :0], F)), 3, "at least 1 channel"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "code", "words"), REFUSED)
def test_what_tensorflow_dies_of_is_refused(
    program: Program, case: Case, code: int, words: str
) -> None:
    (answer,) = program.run([case])
    assert (answer.code, words in answer.message) == (code, True), answer.message


def test_derivatives_are_those_of_central_differences(tmp_path: Path) -> None:
    built = _compile("conv_gradients.cc", tmp_path / "gradients")
    done = subprocess.run([built], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "flags",
    [("-O1",), (*SANITIZED, "-O1"), ("-O1", "-g", "-fsanitize=thread"), ("-DCONVGRAD_THREADS_OPENMP", "-fopenmp")],
    ids=["plain", "address", "thread", "openmp"],
)  # fmt: skip
def test_pool_runs_every_chunk_once(tmp_path: Path, flags: tuple[str, ...]) -> None:
    if "-fopenmp" in flags and COMPILERS[0] != "g++":
        pytest.skip("needs g++ for OpenMP")
    built = _compile("conv_threads.cc", tmp_path / "threads", flags=flags)
    done = subprocess.run([built], capture_output=True, text=True, timeout=120)
    assert (done.returncode, "wrong" in done.stdout) == (0, False), (
        done.stdout,
        done.stderr[-2000:],
    )


@pytest.fixture
def recorded(program: Program) -> Callable[[list[Case], Path], str]:
    def record(cases: list[Case], file: Path) -> str:
        program.environment = {**os.environ, "CONVGRAD_RECORD": str(file)}
        try:
            program.run(cases)
        finally:
            program.environment = {}
        return program.errors

    return record


def test_recordings_are_in_the_one_spelling(recorded: Callable[..., str], tmp_path: Path) -> None:
    cases = [case for case in random_cases(13, 60, list(TOLERANCES)) if not case.problem().is_empty]
    assert recorded([*cases, *cases], tmp_path / "met") == ""
    wanted = list(dict.fromkeys(_problem_text.write(case.problem()) for case in cases))
    assert (tmp_path / "met").read_text().splitlines() == wanted


def test_a_recording_that_cannot_be_written_is_said_once(
    recorded: Callable[..., str], tmp_path: Path
) -> None:
    said = recorded(random_cases(13, 20, ["float"]), tmp_path / "none" / "met")
    assert said.count("CONVGRAD_RECORD") == 1 and said.count("\n") == 1


def test_record_export_link_gives_the_bits_of_the_jit(
    recorded: Callable[..., str], tmp_path: Path
) -> None:
    cases = [
        case
        for case in random_cases(17, 40, ["float", "double", "half"])
        if not case.problem().is_empty
    ]
    cases += random_cases(18, 8, ["float"], large=True)
    cases = [case for case in cases if not case.problem().is_empty]
    recorded(cases, tmp_path / "met")
    convgrad.export(tmp_path / "met", tmp_path / "pack", name="met", target="host", with_test=False)
    folder = tmp_path / "pack"
    objects = tmp_path / "met.o"
    subprocess.run(
        ["gcc", "-std=c99", "-c", f"-I{folder}", folder / "met.c", "-o", objects], check=True
    )
    flags = ("-O1", f"-I{folder}", '-DCONVGRAD_TEST_PACK="met.h"', "-DCONVGRAD_TEST_NAME=met")
    built = Program(
        _compile("conv_run.cc", tmp_path / "linked", objects, folder / "libmet.a", flags=flags),
        tmp_path,
    )
    for threads in (1, 2):
        given = [Case(**{**case.__dict__, "threads": threads}) for case in cases]
        for case, answer in zip(given, built.run(given), strict=True):
            assert answer.result is not None, answer.message
            with convgrad.threads(1):
                wanted = np.asarray(getattr(convgrad.raw_ops, case.op)(**_arguments(case)))
            assert answer.result.tobytes() == wanted.tobytes(), case.line()
        assert built.said == f"{len(cases)} on packs, 0 on plain loops\n"


def _arguments(case: Case) -> dict[str, object]:
    names = (
        ("input", "filter") if len(case.inputs) == 2 else ("input", "filter_sizes", "out_backprop")
    )
    if case.op.endswith("BackpropInput"):
        names = ("input_sizes", "filter", "out_backprop")
    return {
        **dict(zip(names, case.inputs, strict=True)),
        "strides": list(case.strides),
        "dilations": list(case.dilations),
        "padding": case.padding,
        "explicit_paddings": list(case.explicit),
        "data_format": case.data_format,
    }
