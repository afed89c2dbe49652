"""A bias inside the kernels, and its gradient: every algorithm, layout and dtype against the oracle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import convgrad
from biases import (
    SIDES,
    assert_close,
    biased,
    channels_last,
    compute,
    exactly,
    operands,
    pixels_of,
)
from calling import few_and_more, foreign
from cases import KINDS, NUMPY, Case, Data, normal, whole_numbers
from convgrad import _engine
from convgrad._base import config
from convgrad._base.errors import InternalError
from convgrad._compiler import jit
from convgrad._compiler.kernel import spelled
from convgrad._compiler.targets import Target
from convgrad._engine import planner
from convgrad._kernels import ALGORITHMS
from convgrad._problem.convolution import Problem
from kernels import problem_of, random_case_for, taken

HOST = jit.host_target()
NAMES = [name for name in ALGORITHMS if name != "reference"]
EXACT = [name for name in NAMES if name != "winograd_fast"]
"""F(4,3) divides by 24: whole numbers do not stay whole."""


@pytest.fixture(autouse=True)
def _all_algorithms() -> Any:
    """Let those take part that must be asked for."""
    with convgrad.options(winograd="fast"):
        yield


def whole_bias(case: Case, channels: int, rng: np.random.Generator) -> Any:
    return rng.integers(-9, 10, channels).astype(NUMPY[case.dtype])


@pytest.mark.parametrize(("name", "target", "turns", "seed"), foreign(EXACT, host=3, few=2, more=6))
def test_whole_numbers_come_out_exact(name: str, target: Target, turns: int, seed: int) -> None:
    """On memory that ends at a forbidden page: vectors of channels must not read past the last one's bias."""
    rng = np.random.default_rng([10 + seed, *name.encode()])
    for turn in range(min(4, turns) if name.startswith("depthwise_") else turns):
        case, kinds = random_case_for(rng, name, target)
        data = whole_numbers(case, rng)
        for kind in kinds:
            for side in SIDES[kind]:
                problem = biased(case, kind, side)
                bias = whole_bias(case, problem.bias_c, rng)
                place = ("end", "end", "start", "shifted")[turn % 4]
                got = compute(name, target, problem, kind, data, bias, place)
                expected = exactly(case, kind, side, data, bias)
                for mine, exact in zip(got, expected, strict=True):
                    np.testing.assert_array_equal(
                        mine.astype(np.float64),
                        exact.astype(np.float64),
                        str((name, target.label, case, kind, side)),
                    )


TAILS = [
    (False, 1, 3, 5, (1, 1)),
    (False, 1, 5, 3, (3, 2)),
    (False, 1, 19, 3, (1, 1)),
    (False, 1, 3, 19, (1, 1)),
    (False, 8, 2, 2, (3, 3)),
    (False, 3, 5, 7, (3, 3)),
    (True, 5, 1, 1, (3, 3)),
    (True, 13, 1, 1, (3, 3)),
    (True, 21, 1, 1, (7, 7)),
    (True, 5, 1, 2, (3, 3)),
]
"""Depthwise, groups, channels of a group in and out, window: channels that fill no vector, or a little more."""


def tails_in_turn() -> list[Any]:
    """Return parameters (layout, dtype, tails): half in each layout, a quarter in bfloat16; the rest is long."""
    found = []
    for number, layout in enumerate(("NHWC", "NCHW")):
        for dtype, step in (("float32", 2), ("bfloat16", 4)):
            always = TAILS[number::step]
            rest = [tail for tail in TAILS if tail not in always]
            long = pytest.mark.long
            found.append(pytest.param(layout, dtype, always, id=f"{layout}-{dtype}"))
            found.append(pytest.param(layout, dtype, rest, id=f"{layout}-{dtype}-rest", marks=long))
    return found


@pytest.mark.parametrize(("layout", "dtype", "tails"), tails_in_turn())
def test_no_bias_behind_the_last_channel_is_read_or_written(
    layout: str, dtype: str, tails: list[Any]
) -> None:
    for depthwise, groups, inner, outer, window in tails:
        case = Case(
            *(depthwise, 2, (5, 6), groups, inner, outer, window, (1, 1), (1, 1), "SAME"),
            *(layout, dtype),
        )
        data = whole_numbers(case, np.random.default_rng(23))
        for name in EXACT:
            for kind in taken(name, case, HOST):
                for side in SIDES[kind]:
                    problem = biased(case, kind, side)
                    bias = whole_bias(case, problem.bias_c, np.random.default_rng(24))
                    got = compute(name, HOST, problem, kind, data, bias, "end")
                    expected = exactly(case, kind, side, data, bias)
                    for mine, exact in zip(got, expected, strict=True):
                        np.testing.assert_array_equal(
                            mine.astype(float), exact.astype(float), str((name, case, kind, side))
                        )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("turns", "seed"), few_and_more(3, 8, seed=12))
def test_rounding_stays_in_the_bound(name: str, turns: int, seed: int) -> None:
    rng = np.random.default_rng([seed, *name.encode()])
    for _ in range(turns):
        case, kinds = random_case_for(rng, name, HOST, largest=40, whole=False)
        data = normal(case, rng)
        for kind in kinds:
            for side in SIDES[kind]:
                problem = biased(case, kind, side)
                bias = rng.standard_normal(problem.bias_c).astype(problem.dtype.numpy)
                got = compute(name, HOST, problem, kind, data, bias)
                assert_close(case, kind, side, data, bias, got, name)


SHARED = [
    Case(True, 4, (40, 40), 24, 1, 1, (3, 3), (1, 1), (1, 1), "SAME"),
    Case(True, 3, (40, 30), 40, 1, 1, (7, 7), (1, 1), (1, 1), "SAME"),
    Case(True, 8, (60, 60), 3, 1, 1, (3, 3), (1, 1), (1, 1), "SAME"),
    Case(False, 4, (28, 28), 1, 32, 48, (3, 3), (1, 1), (1, 1), "SAME"),
    Case(False, 4, (28, 28), 1, 64, 80, (1, 1), (1, 1), (1, 1), "SAME"),
    Case(False, 8, (64, 64), 1, 3, 20, (4, 4), (4, 4), (1, 1), "VALID"),
    Case(False, 4, (28, 28), 16, 4, 4, (3, 3), (1, 1), (1, 1), "SAME"),
]
"""Layers that are shared among threads; each algorithm takes one of them, in one layout or the other."""


def shared_by(name: str) -> list[tuple[Case, str]]:
    """Return what of them an algorithm takes."""
    cases = [replace(case, data_format=layout) for case in SHARED for layout in ("NHWC", "NCHW")]
    return [(case, kind) for case in cases for kind in taken(name, case, HOST)]


@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", NAMES)
def test_threads_change_no_bit(name: str, part: int) -> None:
    """Every other layer, or the rest."""
    rng = np.random.default_rng([13, *name.encode()])
    found = shared_by(name)[part::2]
    assert found or part, "one takes a single layer"
    shares = 0
    for case, kind in found:
        data = normal(case, rng)
        for side in SIDES[kind]:
            problem = biased(case, kind, side)
            shares += not planner.choose_named(problem, HOST, name).serial
            bias = rng.standard_normal(problem.bias_c).astype(np.float32)
            bits = set()
            for count in (1, 2, 5):
                got = compute(name, HOST, problem, kind, data, bias, threads=count)
                bits.add((got[0].tobytes(), got[1].tobytes()))
            assert len(bits) == 1, (case, kind, side)
            assert_close(case, kind, side, data, bias, got, name)
    assert shares or not found, "none of these problems is shared"


@pytest.mark.parametrize("name", NAMES)
def test_infinities_and_nans_reach_their_channel_and_no_other(name: str) -> None:
    for case, kind in shared_by(name):
        data = normal(case, np.random.default_rng(14))
        if kind == "filter":
            continue
        (side,) = SIDES[kind]
        problem = biased(case, kind, side)
        plain = np.zeros(problem.bias_c, np.float32)
        odd = plain.copy()
        odd[[0, 1, -1]] = np.inf, -np.inf, np.nan
        (expected, _), (got, _) = (
            compute(name, HOST, problem, kind, data, bias) for bias in (plain, odd)
        )
        np.testing.assert_array_equal(got, expected + channels_last(case, odd))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("where", ["image", "filter"])
def test_the_long_way_past_infinities_adds_the_bias_too(name: str, where: str) -> None:
    """Kernels that transform or pad compute again what is not finite, and must not forget the bias there."""
    for case, kind in shared_by(name):
        if kind == "filter":
            continue
        data = whole_numbers(case, np.random.default_rng(21))
        image = data.x if kind == "forward" else data.g
        (image if where == "image" else data.f).reshape(-1)[7] = np.inf
        (side,) = SIDES[kind]
        problem = biased(case, kind, side)
        bias = whole_bias(case, problem.bias_c, np.random.default_rng(22))
        (plain, _), (got, _) = (
            compute(name, HOST, problem, kind, data, each) for each in (0 * bias, bias)
        )
        assert not np.isfinite(plain).all()
        expected = plain + channels_last(case, bias)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=2e-2, err_msg=str((case, kind)))


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_of_a_bias_is_infinite_where_its_channel_is(name: str) -> None:
    for case, kind in shared_by(name):
        if kind != "filter":
            continue
        data = whole_numbers(case, np.random.default_rng(15))
        for side, image in (("output", data.g), ("input", data.x)):
            pixel = image[-1, -1, -1] if case.data_format == "NHWC" else image[-1, :, -1, -1]
            kept = pixel.copy()
            pixel[:3] = np.inf, -np.inf, np.nan
            _, got = compute(name, HOST, biased(case, kind, side), kind, data, None)
            pixel[:] = kept
            exact = exactly(case, kind, side, data, None)[1].astype(np.float32)
            exact[:3] = np.inf, -np.inf, np.nan
            np.testing.assert_array_equal(got, exact)


def engine(problem: Problem, first: Any, second: Any, bias: Any) -> tuple[Any, Any]:
    """Run a problem as bridges do; the result starts full of rubbish, and so does a bias that is written."""
    result = np.full(problem.result_shape, 77, problem.dtype.numpy)
    beside = bias.copy() if problem.adds_bias else np.full(problem.bias_c, 77, problem.dtype.numpy)
    _engine.run(problem, *(each.ctypes.data for each in (first, second, result, beside)))
    return result, beside


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("dtype", ["half", "bfloat16", "float32", "float64", "int32"])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_the_engine_with_kernels_and_without(kernels: bool, dtype: str, layout: str) -> None:
    case = Case(False, 2, (6, 7), 2, 3, 5, (3, 2), (2, 1), (1, 1), "SAME", layout, dtype)
    data = whole_numbers(case, np.random.default_rng(16))
    for kind in KINDS:
        for side in SIDES[kind]:
            problem = biased(case, kind, side)
            bias = whole_bias(case, problem.bias_c, np.random.default_rng(17))
            with config.scope(kernels=kernels):
                got = engine(problem, *operands(kind, data), bias)
            for mine, exact in zip(got, exactly(case, kind, side, data, bias), strict=True):
                np.testing.assert_array_equal(mine.astype(float), exact.astype(float))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_an_empty_sum_is_the_bias(layout: str) -> None:
    no_rows = Case(
        *(False, 2, (0, 3), 1, 4, 5, (3, 3), (1, 1), (1, 1), ((2, 2), (1, 1))), data_format=layout
    )
    no_outputs = Case(
        *(False, 2, (4, 3), 1, 4, 0, (3, 3), (1, 1), (1, 1), "SAME"), data_format=layout
    )
    for case, kind, side in ((no_rows, "forward", "output"), (no_outputs, "input", "input")):
        problem = biased(case, kind, side)
        assert problem.is_empty and problem.result_bytes
        bias = np.arange(1, problem.bias_c + 1, dtype=np.float32)
        data = normal(case, np.random.default_rng(18))
        got, kept = engine(problem, *operands(kind, data), bias)
        wide = np.broadcast_to(channels_last(case, bias), problem.result_shape)
        np.testing.assert_array_equal(got, wide)
        np.testing.assert_array_equal(kept, bias)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_the_gradient_of_a_bias_where_there_is_nothing_to_multiply(layout: str) -> None:
    shape = (1, (3, 3), (1, 1), (1, 1), "SAME")
    cases = [
        Case(False, batch, (4, 3), shape[0], 4, outputs, *shape[1:], data_format=layout)
        for batch, outputs in ((0, 5), (2, 0))
    ]
    for case in cases:
        data = whole_numbers(case, np.random.default_rng(19))
        for side in SIDES["filter"]:
            problem = biased(case, "filter", side)
            assert problem.is_empty
            result, got = engine(problem, data.x, data.g, None)
            np.testing.assert_array_equal(got, exactly(case, "filter", side, data, None)[1])
            assert not result.any()
    assert got.any(), "the pixels of the last one are added up all the same"


def test_long_sums_stay_accurate() -> None:
    """A gradient of a bias over 25,000 pixels, all of one sign, where plain sums lose digits."""
    rng = np.random.default_rng(20)
    for depthwise, window, channels in ((True, 7, 24), (True, 3, 24), (True, 3, 4), (False, 1, 32)):
        for layout in ("NHWC", "NCHW"):
            outputs = 1 if depthwise else channels
            groups, inner = (channels, 1) if depthwise else (1, channels)
            taps = (window, window)
            case = Case(
                *(depthwise, 8, (56, 56), groups, inner, outputs, taps, (1, 1), (1, 1), "SAME"),
                data_format=layout,
            )
            data = normal(case, rng)
            ones = Data(*(np.abs(each) for each in (data.x, data.f, data.g)))
            for side in SIDES["filter"]:
                _, got = engine(biased(case, "filter", side), ones.x, ones.g, None)
                exact = pixels_of(case, side, ones).sum(0)
                units = np.abs(got - exact) / np.abs(exact) * 2**24
                assert units.max() < 4, (case, side, float(units.max()))


def test_what_is_no_bias_is_refused() -> None:
    case = SHARED[0]
    for kind, side in (("forward", "input"), ("input", "output"), ("filter", "filter")):
        with pytest.raises(InternalError, match=f"got '{side}'"):
            biased(case, kind, side)  # type: ignore[arg-type]
    problem = biased(case, "forward", "output")
    with pytest.raises(InternalError, match="run without one"):
        _engine.run(problem, 8, 8, 8)


@pytest.mark.parametrize("name", NAMES)
def test_a_bias_is_part_of_the_identity_and_its_absence_is_not(name: str) -> None:
    """Kernels without a bias keep the names they had: those of the files on disk, and of packs."""
    for case, kind in shared_by(name):
        plain = planner.choose_named(problem_of(case, kind), HOST, name)
        assert not any("bias" in spelled(step.kernel) for step in plain.steps)
        assert not any("bias" in step.operands for step in plain.steps)
        for side in SIDES[kind]:
            plan = planner.choose_named(biased(case, kind, side), HOST, name)
            using = [step for step in plan.steps if "bias" in step.operands]
            assert len(using) == 1
            if kind != "filter":
                assert "bias=True" in spelled(using[0].kernel)
