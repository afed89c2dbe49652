"""Convolutions in C++: numbers against the reference, words against TensorFlow's, bits against the JIT."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import convgrad
from cc_programs import PROGRAMS, Builds, Setting, found, run, setting, settings
from conv_file import NAMES, Case, Program, random_cases
from convgrad._problem import text as _problem_text

TOLERANCES = {"float": 1e-6, "double": 1e-11, "half": 1e-3, "bfloat16": 8e-3}


@pytest.fixture(scope="module")
def program(builds: Builds, tmp_path_factory: pytest.TempPathFactory) -> Program:
    built = builds.all_together(settings()[0])
    return Program(built, tmp_path_factory.mktemp("conv_run"), ("conv_run",))


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
    program: Program, dtype: str, large: bool, checked: Counter[str]
) -> None:
    cases = random_cases(7, 40 if large else 150, [dtype], large, threads=2)
    checked["convolutions in C++"] += _compare(cases, program)


def _compare_some(built: Program) -> None:
    _compare(random_cases(8, 80, list(TOLERANCES), threads=3), built)
    _compare(random_cases(9, 20, list(TOLERANCES), large=True, threads=3), built)


@pytest.mark.cc_long
@pytest.mark.parametrize("how", settings()[1:], ids=str)
def test_every_build_computes_the_same(tmp_path: Path, how: Setting, builds: Builds) -> None:
    _compare_some(Program(builds.all_together(how), tmp_path, ("conv_run",)))


@pytest.mark.cc_long
@pytest.mark.parametrize("compiler", found())
@pytest.mark.parametrize("variant", ["threads", "no threads"])
def test_threads_are_watched_and_done_without(
    tmp_path: Path, variant: str, compiler: str, builds: Builds
) -> None:
    how = setting(compiler, "threads" if variant == "threads" else "C++17")
    more = () if variant == "threads" else ("-DCONVGRAD_THREADS_NONE",)
    _compare_some(Program(builds.program(PROGRAMS / "conv_run.cc", how, *more), tmp_path))


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
    lines = (PROGRAMS / "goldens" / "convolutions.txt").read_text().splitlines()
    pairs = [
        line.removeprefix(verb + " ").split("\t") for line in lines if line.startswith(verb + " ")
    ]
    return [(line, answer) for line, answer in pairs]


def test_shape_rules_say_what_tensorflow_says(program: Program) -> None:
    pairs = _golden("INFER")
    answers = program.infer([line for line, _ in pairs])
    for (line, wanted), answer in zip(pairs, answers, strict=True):
        if line.startswith("op=Depthwise") and "Attr dilations has value" in answer:
            continue  # TensorFlow takes such dilations for ones
        if wanted.startswith("[?") and line.startswith("op=Conv2DBackpropInput "):
            # TensorFlow forgets a batch that input_sizes knows.
            answer = "[?" + answer[answer.index(",") :]
        assert answer == wanted, line
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


def test_derivatives_are_those_of_central_differences(builds: Builds) -> None:
    done = run(builds.all_together(settings()[0]), "conv_gradients")
    assert done.returncode == 0, done.stdout


WRAPPED = ("-DCONVGRAD_TEST_WRAPPED", "-Wl,--wrap=pthread_create")
OPENMP = ("-DCONVGRAD_THREADS_OPENMP", "-fopenmp")


def _check_pool(built: Path) -> None:
    done = run(built)
    assert (done.returncode, "wrong" in done.stdout) == (0, False), done.stdout + done.stderr
    assert "child: right" in done.stdout


def test_pool_runs_every_chunk_once(builds: Builds) -> None:
    """With threads that the system refuses, through a `pthread_create` that the program wraps."""
    _check_pool(builds.program(PROGRAMS / "conv_threads.cc", settings()[0], *WRAPPED))


@pytest.mark.cc_long
@pytest.mark.parametrize("compiler", found())
@pytest.mark.parametrize(
    ("variant", "more"),
    [
        ("sanitized", WRAPPED),
        ("threads", WRAPPED),
        ("plain", WRAPPED),
        ("C++20", OPENMP),
        ("C++20", ("-DCONVGRAD_THREADS_NONE",)),
    ],
    ids=["address", "thread", "no_exceptions", "openmp", "none"],
)
def test_pool_in_every_build(
    variant: str, more: tuple[str, ...], compiler: str, builds: Builds
) -> None:
    """OpenMP's own threads are not forked either: its loops in a child end, too."""
    _check_pool(builds.program(PROGRAMS / "conv_threads.cc", setting(compiler, variant), *more))


@pytest.fixture
def recorded(program: Program) -> Callable[[list[Case], Path], str]:
    def record(cases: list[Case], file: Path) -> str:
        program.environment = {"CONVGRAD_RECORD": str(file)}
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


@pytest.mark.parametrize("word", ["", "0", "1"])
def test_what_ran_is_said_once_for_each_problem(program: Program, word: str) -> None:
    cases = [case for case in random_cases(13, 20, ["float"]) if not case.problem().is_empty]
    program.environment = {"CONVGRAD_VERBOSE": word}
    try:
        program.run([*cases, *cases])
    finally:
        program.environment = {}
    lines = dict.fromkeys(_problem_text.write(case.problem()) for case in cases)
    wanted = [f"convgrad: {line}: plain loops" for line in lines] if word == "1" else []
    assert program.errors.splitlines() == wanted


def _linked(cases: list[Case], tmp_path: Path, builds: Builds, how: Setting) -> Program:
    """Return the program with a pack of what was recorded."""
    folder = tmp_path / "pack"
    convgrad.export(tmp_path / "met", folder, name="met", target="host", with_test=False)
    code = tmp_path / "met.o"
    compiler = {"g++": "gcc", "clang++": "clang"}.get(how.compiler, how.compiler)
    command = [compiler, "-std=c99", "-c", f"-I{folder}", folder / "met.c", "-o", code]
    subprocess.run(command, check=True)
    flags = (f"-I{folder}", '-DCONVGRAD_TEST_PACK="met.h"', "-DCONVGRAD_TEST_NAME=met")
    source = PROGRAMS / "conv_run.cc"
    return Program(
        builds.program(source, how, str(code), str(folder / "libmet.a"), *flags), tmp_path
    )


def _pack_cases() -> list[Case]:
    cases = random_cases(17, 40, ["float", "double", "half"])
    cases += random_cases(18, 8, ["float"], large=True)
    return [case for case in cases if not case.problem().is_empty]


def _check_bits(cases: list[Case], built: Program, threads: int) -> None:
    given = [Case(**{**case.__dict__, "threads": threads}) for case in cases]
    for case, answer in zip(given, built.run(given), strict=True):
        assert answer.result is not None, answer.message
        with convgrad.threads(1):
            wanted = np.asarray(getattr(convgrad.raw_ops, case.op)(**_arguments(case)))
        assert answer.result.tobytes() == wanted.tobytes(), case.line()
    assert built.said == f"{len(cases)} on packs, 0 on plain loops\n"


@pytest.mark.cc_long
def test_record_export_link_gives_the_bits_of_the_jit(
    recorded: Callable[..., str], tmp_path: Path, builds: Builds
) -> None:
    cases = _pack_cases()
    recorded(cases, tmp_path / "met")
    built = _linked(cases, tmp_path, builds, settings()[0])
    for threads in (1, 2):
        _check_bits(cases, built, threads)
    built.environment = {"CONVGRAD_VERBOSE": "1", "CONVGRAD_RECORD": str(tmp_path / "again")}
    _check_bits(cases, built, 1)
    said = built.errors.splitlines()
    assert said and all(line.endswith(": met") for line in said)
    assert (tmp_path / "again").read_text() == ""  # what a pack has needs no recording


@pytest.mark.cc_long
@pytest.mark.parametrize("compiler", found())
@pytest.mark.parametrize("variant", ["sanitized", "threads"])
def test_a_linked_pack_under_sanitizers(
    recorded: Callable[..., str], tmp_path: Path, builds: Builds, variant: str, compiler: str
) -> None:
    cases = _pack_cases()
    recorded(cases, tmp_path / "met")
    built = _linked(cases, tmp_path, builds, setting(compiler, variant))
    for threads in (2, 5):
        _check_bits(cases, built, threads)


def test_packs_are_chosen_by_what_the_processor_has(builds: Builds) -> None:
    """One for AVX-512 is refused where there is none; one for AVX2 is asked before one for SSE2."""
    done = run(builds.program(PROGRAMS / "pack_ranks.cc", settings()[0]))
    assert done.returncode == 0, done.stdout


@pytest.mark.cc_long
@pytest.mark.parametrize("how", settings()[1:], ids=str)
def test_packs_are_chosen_so_in_every_build(how: Setting, builds: Builds) -> None:
    done = run(builds.program(PROGRAMS / "pack_ranks.cc", how))
    assert done.returncode == 0, done.stdout


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
