"""Kernels at the corners of the matrix: shapes that take a path of their own, spoiled numbers, refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import convgrad
from cases import KINDS, Case, Data, random_case, run, whole_numbers
from convgrad._base.errors import ArgumentError
from convgrad._compiler import jit
from convgrad._engine import planner
from convgrad._kernels import ALGORITHMS
from convgrad._kernels.dense_direct import sizes as dense_direct
from convgrad._kernels.depthwise_packed.columns import columns
from convgrad._problem.convolution import Kind
from convgrad._problem.geometry import solve
from kernels import FIXED, NAMES, UNIVERSAL, compute, expected_exactly, problem_of, random_case_for
from shapes import DENSE_SHAPES, SHAPES

HOST = jit.host_target()
FORMS = ("NHWC", "NCHW")


NAMED = [*SHAPES, *(f"dense: {name}" for name in DENSE_SHAPES)]


def in_turn() -> list[Any]:
    """Return parameters: every shape in one layout, every other in both; of bfloat16 a third. The rest is long."""
    found = []
    for number, shape in enumerate(NAMED):
        for place, form in enumerate(FORMS):
            for dtype, always in (
                ("float32", number % 2 == 0 or number // 2 % 2 == place),
                ("bfloat16", number % 6 == 3 * place),
            ):
                marks = [] if always else [pytest.mark.long]
                found.append(
                    pytest.param(shape, form, dtype, id=f"{shape}-{form}-{dtype}", marks=marks)
                )
    return found


@pytest.mark.parametrize(("shape", "data_format", "dtype"), in_turn())
def test_special_shapes_are_exact(shape: str, data_format: str, dtype: str, checked: Any) -> None:
    """By the universal algorithm, and by whatever else takes them."""
    rng = np.random.default_rng(7)
    found = SHAPES.get(shape) or DENSE_SHAPES[shape.removeprefix("dense: ")]
    universal = UNIVERSAL[found.depthwise]
    case = replace(found, data_format=data_format, dtype=dtype)
    data = whole_numbers(case, rng, 2)
    for kind in KINDS:
        problem = problem_of(case, kind)
        refusals = {name: planner.why_not(name, problem, HOST) for name in ALGORITHMS}
        takers = [name for name in universal[kind] if refusals[name] is None]
        assert takers, (case, kind)
        expected = expected_exactly(case, kind, data).astype(np.float64)
        for name in NAMES if dtype == "float32" else takers[:1]:
            if refusals[name] is None:
                got = compute(name, HOST, case, kind, data)
                np.testing.assert_array_equal(
                    got.astype(np.float64), expected, str((name, case, kind))
                )
                checked["special shapes, exact integers"] += 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_a_number_reaches_its_windows_and_no_other_image_or_channel(
    name: str, bad: float
) -> None:
    """A padding cell may be skipped or multiplied as 0, so a filter gradient may show it at all taps of the channel.

    For the same reason one in the filter may show at the borders of its channel's image.
    """
    rng = np.random.default_rng([25, *name.encode()])
    for _ in range(6):
        case, kinds = random_case_for(rng, name, HOST, 14, whole=False, **FIXED.get(name, {}))
        data = whole_numbers(case, rng, 2)
        data = Data(*(np.abs(each) + each.dtype.type(1) for each in (data.x, data.f, data.g)))
        for kind, operand in (
            *(("forward", "x"), ("input", "g"), ("filter", "x"), ("filter", "g")),
            *(("forward", "f"), ("input", "f")),
        ):
            if kind not in kinds:
                continue
            spoiled = {each: getattr(data, each).copy() for each in "xfg"}
            position = _anywhere_or_border(rng, spoiled[operand].shape)
            spoiled[operand][position] = bad
            probe = {each: np.abs(getattr(data, each)) for each in "xfg"}
            probe[operand] = np.zeros_like(spoiled[operand])
            probe[operand][position] = 1
            touched = run(case, kind, Data(**probe), "reference") != 0
            got = ~np.isfinite(compute(name, HOST, case, kind, Data(**spoiled)).astype(np.float64))
            assert got[touched].all(), (case, kind, operand)
            if kind == "filter" or operand == "f":
                rows = 0 if kind == "filter" else case.data_format.index("H")
                anywhere = touched.any(axis=(rows, rows + 1), keepdims=True)
                touched = np.broadcast_to(anywhere, touched.shape)
                touched = touched if touched.any() else np.ones_like(touched)
            assert not got[~touched].any(), (case, kind, operand)


def _anywhere_or_border(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Padding lies beside the first and last cells, so every other position is among them."""
    border = rng.random() < 0.5
    return tuple(int(rng.choice([0, n - 1]) if border else rng.integers(n)) for n in shape)


def test_refusals_name_their_reason() -> None:
    case = Case(True, 1, (8, 8), 4, 1, 1, (3, 3), (1, 5), (1, 1), "SAME", "NCHW")
    with pytest.raises(ArgumentError, match="column strides above 4"):
        planner.choose_named(problem_of(case, "forward"), HOST, "depthwise_plane")
    case = Case(False, 1, (4, 4), 1, 2, 3, (3, 3), (1, 1), (1, 1), "SAME")
    for name in NAMES:
        if name.startswith("depthwise_"):
            with pytest.raises(ArgumentError, match=f"{name} does not take this problem: only "):
                planner.choose_named(problem_of(case, "forward"), HOST, name)


def test_columns_of_any_size_stay_small() -> None:
    """Strides and dilations beyond the image leave few taps and phases, not billions."""
    wide = columns(solve(10, 3, 2**31, 1, "SAME"), Kind.INPUT_GRADIENT)
    assert len(wide.phases) <= 3
    far = columns(solve(10, 5, 1, 2**31, "SAME"), Kind.FORWARD)
    assert [phase.count for phase in far.phases] == [1]


@pytest.mark.parametrize("depthwise", [True, False])
def test_every_realistic_problem_has_a_kernel(depthwise: bool) -> None:
    """Nothing in the documented matrix at a realistic size may land on the reference."""
    rng = np.random.default_rng(5)
    for name in dict.fromkeys(names[0] for names in UNIVERSAL[depthwise].values()):
        for _ in range(300):
            case, kinds = random_case_for(rng, name, HOST, 64)
            for kind in kinds:
                plan = planner.choose(problem_of(case, kind), HOST)
                assert plan.algorithm != "reference", (case, kind)
    for _ in range(300):
        case = random_case(rng, depthwise=depthwise)
        if 0 not in (*case.input_shape, *case.output_shape):
            for kind in KINDS:
                problem = problem_of(case, kind)
                refusals = {name: planner.why_not(name, problem, HOST) for name in ALGORITHMS}
                takers = [refusals[name] for name in UNIVERSAL[depthwise][kind]]
                assert None in takers, (case, kind)


def test_kernels_can_be_switched_off() -> None:
    x = np.ones((1, 8, 8, 8), np.float32)
    f = np.ones((3, 3, 8, 1), np.float32)
    with convgrad._base.config.scope(kernels=False):
        slow = convgrad.depthwise_conv2d(x, f, 1, "SAME")
    np.testing.assert_array_equal(slow, convgrad.depthwise_conv2d(x, f, 1, "SAME"))


@pytest.mark.parametrize("most", [1, 4096, 30_000])
def test_blocks_cut_to_fit_their_scratch_are_exact(
    most: int, monkeypatch: pytest.MonkeyPatch, checked: Any
) -> None:
    """Down to one pixel, or one period of phases, of one image: as where a window reaches over megabytes."""
    rng = np.random.default_rng(most)
    cut = 0
    for _ in range(7):
        case, kinds = random_case_for(rng, "dense_direct", HOST, 24, depthwise=False)
        data = whole_numbers(case, rng)
        for kind in kinds:
            problem = problem_of(case, kind)
            usual = planner.choose_named(problem, HOST, "dense_direct")
            with monkeypatch.context() as tight:
                tight.setattr(dense_direct, "_MOST_SCRATCH", most)
                plan = planner.choose_named(problem, HOST, "dense_direct")
                got = compute("dense_direct", HOST, case, kind, data)
            expected = expected_exactly(case, kind, data)
            np.testing.assert_array_equal(
                got.astype(np.float64), expected.astype(np.float64), str((case, kind, most))
            )
            cut += plan != usual
            checked["special shapes, exact integers"] += 1
    assert cut > 1
