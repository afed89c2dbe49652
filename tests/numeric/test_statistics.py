"""Statistics of a result, taken by the kernels that compute it: against those of the result in float64."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

import convgrad
from biases import operands
from calling import some_targets
from cases import Case, Data, normal
from convgrad import _engine
from convgrad._base import config
from convgrad._base.errors import InternalError
from convgrad._compiler import jit
from convgrad._compiler.kernel import spelled
from convgrad._compiler.targets import Target
from convgrad._engine import planner, prepare
from convgrad._problem.convolution import Problem
from convgrad._problem.norm import PLACES, Task
from convgrad._runtime.run import run as run_program
from kernels import Place, guarded_state, placed, problem_of, random_case_for
from kernels import compute as compute_plain

HOST = jit.host_target()
NAMES = ("dense_direct", "depthwise_direct")


def wanted(case: Case, kind: str) -> Problem:
    """Return one of the problems a case stands for, with statistics."""
    return replace(problem_of(case, kind), statistics=True)


def compute(
    name: str,
    target: Target,
    case: Case,
    kind: str,
    data: Data,
    place: Place = "end",
    threads: int = 1,
) -> tuple[Any, Any] | None:
    """Run one algorithm as `kernels.compute` does; returns result and statistics, None where it takes none."""
    problem = wanted(case, kind)
    plan = planner.choose_named(problem, target, name)
    if not plan.shares:
        return None
    program = prepare.bind(plan, target, guarded_state())
    first, second = (placed(each, place) for each in operands(kind, data))
    result = placed(np.full(problem.result_shape, 77, np.float32), place)
    rows = placed(np.full((plan.shares, 3, problem.result_shape[-1]), np.nan), place)
    with convgrad.threads(threads):
        run_program(program, *(each.ctypes.data for each in (first, second, result, rows)))
    return result, rows


def merged(rows: Any) -> tuple[Any, Any, Any]:
    """Return mean, variance and count of all shares."""
    means, squares, counts = rows.swapaxes(0, 1)
    count = counts.sum(0)
    mean = (means * counts).sum(0) / count
    return mean, (squares.sum(0) + (counts * (means - mean) ** 2).sum(0)) / count, count


def assert_right(result: Any, rows: Any, what: object, most: float = 2e-6) -> None:
    """Compare with the statistics of the result; errors are relative to its deviation and to its variance."""
    values = result.astype(np.float64).reshape(-1, result.shape[-1])
    mean, variance, count = merged(rows)
    np.testing.assert_array_equal(count, len(values), str(what))
    exact = values.var(0)
    assert (np.abs(mean - values.mean(0)) <= 1e-6 * np.sqrt(exact)).all(), what
    assert (np.abs(variance - exact) <= most * exact).all(), what
    assert (rows[:, 1] >= 0).all(), what


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("target", some_targets(0))
def test_generated_problems(name: str, target: Target) -> None:
    """Strides, dilations, paddings, channels that fill no vector; the result has the bits it has without statistics."""
    rng = np.random.default_rng([31, *name.encode()])
    taken = 0
    for turn in range(10 if target.vector_bits == HOST.vector_bits else 4):
        case, kinds = random_case_for(
            *(rng, name, target, 40), dtype="float32", data_format="NHWC", whole=False
        )
        data = normal(case, rng)
        place: Place = ("end", "end", "start", "shifted")[turn % 4]
        for kind in {"forward", "input"} & set(kinds):
            found = compute(name, target, case, kind, data, place)
            if found is None:
                continue
            taken += 1
            plain = compute_plain(name, target, case, kind, data)
            np.testing.assert_array_equal(found[0].view(np.int32), plain.view(np.int32))
            assert_right(*found, (target.label, case, kind))
    assert taken


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("depthwise", [False, True])
def test_no_pixel_is_counted_twice_where_tiles_overlap(depthwise: bool, stride: int) -> None:
    """The last tiles of rows, columns and blocks begin earlier, and compute again what is there already."""
    rng = np.random.default_rng(32)
    name = NAMES[depthwise]
    groups, inner, outer = (40, 1, 1) if depthwise else (1, 3, 40)
    window = 3 if depthwise or stride > 1 else 1
    for height, width in ((1, 1), (2, 3), (3, 5), (4, 7), (5, 8), (9, 9), (11, 13), (33, 17)):
        case = Case(
            *(depthwise, 2, (height, width), groups, inner, outer, (window, window)),
            *((stride, stride), (1, 1), "SAME"),
        )
        if name not in _named(case, "forward"):
            continue
        found = compute(name, HOST, case, "forward", normal(case, rng))
        assert found is not None
        assert_right(*found, case)


def _named(case: Case, kind: str) -> list[str]:
    refused = planner.refusals(problem_of(case, kind), HOST)
    return [name for name, reason in refused.items() if reason is None]


SHARED = (
    (Case(False, 4, (40, 40), 1, 24, 144, (1, 1), (1, 1), (1, 1), "SAME"), "forward"),
    (Case(False, 4, (40, 40), 1, 72, 24, (1, 1), (1, 1), (1, 1), "SAME"), "input"),
    (Case(False, 4, (40, 40), 1, 3, 32, (3, 3), (2, 2), (1, 1), "SAME"), "forward"),
    (Case(True, 4, (40, 40), 72, 1, 1, (3, 3), (1, 1), (1, 1), "SAME"), "forward"),
    (Case(True, 4, (41, 39), 76, 1, 1, (5, 5), (2, 2), (1, 1), "SAME"), "forward"),
)
"""Layers that are shared among threads."""


def by(case: Case) -> str:
    return NAMES[case.depthwise]


@pytest.mark.parametrize(("case", "kind"), SHARED, ids=str)
def test_threads_change_no_bit(case: Case, kind: str) -> None:
    data = normal(case, np.random.default_rng(33))
    assert not planner.choose_named(wanted(case, kind), HOST, by(case)).serial
    bits = set()
    for threads in (1, 2, 5):
        found = compute(by(case), HOST, case, kind, data, threads=threads)
        assert found is not None
        bits.add(tuple(each.tobytes() for each in found))
    assert len(bits) == 1
    assert_right(*found, case)


def scaled(case: Case, mean: float, rng: np.random.Generator) -> Data:
    """Return operands whose result has deviations of about 1 around a mean, inside the image."""
    data = normal(case, rng)
    if case.depthwise:
        data.f[...] = 0
        data.f[case.window[0] // 2, case.window[1] // 2] = 1
        data.x[...] = data.x + np.float32(mean)
    else:
        data.x[..., 0] = 1
        data.f[..., 1:, :] /= np.float32(np.sqrt(case.group_in - 1))
        data.f[..., 0, :] = mean
    return data


@pytest.mark.parametrize("mean", [1000.0, -30000.0])
@pytest.mark.parametrize("number", [0, 3])
def test_far_from_zero_nothing_cancels(number: int, mean: float) -> None:
    """A plain sum of squares in float32 has no digit of the variance left: 1 of a billion."""
    case, kind = SHARED[number]
    found = compute(by(case), HOST, case, kind, scaled(case, mean, np.random.default_rng(34)))
    assert found is not None
    assert_right(*found, case)


@pytest.mark.parametrize("number", [0, 3])
def test_a_first_pixel_far_from_all_others(number: int) -> None:
    """Deviations are taken from what comes first; if that is an outlier, only its own run is less exact."""
    case, kind = SHARED[number]
    data = scaled(case, 0.0, np.random.default_rng(35))
    data.x[:, 0, :, :] += 100
    found = compute(by(case), HOST, case, kind, data)
    assert found is not None
    assert_right(*found, case, most=1e-5)


@pytest.mark.parametrize("number", [0, 3])
def test_equal_values_have_no_variance(number: int) -> None:
    case, kind = SHARED[number]
    data = normal(case, np.random.default_rng(36))
    data.x[...], data.f[...] = 0.1, 0.1
    if case.depthwise:  # at the borders there are fewer taps to add up
        data.f[...] = 0
        data.f[1, 1] = 0.3
    found = compute(by(case), HOST, case, kind, data)
    assert found is not None
    result, rows = found
    # The mean of six equal numbers may be off by a unit, and nothing else.
    assert (merged(rows)[1] <= (2.0**-22 * np.abs(result).max()) ** 2).all()
    np.testing.assert_allclose(merged(rows)[0], result.reshape(-1, result.shape[-1])[0], rtol=1e-6)


@pytest.mark.parametrize("number", [0, 3])
@pytest.mark.parametrize("odd", [np.inf, np.nan])
def test_what_is_not_finite_stays_in_its_channel(number: int, odd: float) -> None:
    case, kind = SHARED[number]
    data = normal(case, np.random.default_rng(37))
    channel = 5
    data.f[..., channel, 0] = odd if case.depthwise else data.f[..., channel, 0]
    if not case.depthwise:
        data.f[0, 0, 3, channel] = odd
    found = compute(by(case), HOST, case, kind, data)
    assert found is not None
    mean, variance, _ = merged(found[1])
    assert np.isnan(variance[channel]) and not np.isfinite(mean[channel])
    others = np.arange(len(mean)) != channel
    assert_right(found[0][..., others], found[1][..., others], case)


LARGE = Case(False, 8, (40, 40), 1, 24, 144, (1, 1), (1, 1), (1, 1), "SAME")


def test_the_engine_says_how_many_shares_there_are() -> None:
    problem = wanted(LARGE, "forward")
    shares = _engine.statistics_shares(problem)
    assert shares == planner.choose(problem, HOST).shares > 0
    assert _engine.statistics_shares(problem_of(LARGE, "forward")) == shares
    assert _engine.statistics_shares(replace(problem_of(LARGE, "forward"), bias="output")) == 0
    assert _engine.statistics_shares(problem_of(LARGE, "filter")) == 0
    data = normal(LARGE, np.random.default_rng(38))
    result = np.full(problem.result_shape, 77, np.float32)
    rows = np.full((shares, 3, 144), np.nan)
    places = [each.ctypes.data for each in (data.x, data.f, result, rows)]
    _engine.run(problem, *places)
    assert_right(result, rows, problem)


def none_taken() -> list[Problem]:
    """Return problems of which no statistics are taken, and why."""
    small = replace(LARGE, batch=1, size=(10, 10))
    few = Case(True, 16, (5, 5), 960, 1, 1, (3, 3), (1, 1), (1, 1), "SAME")
    others = [replace(LARGE, dtype=dtype) for dtype in ("float64", "bfloat16", "half", "int32")]
    narrow = replace(LARGE, group_out=3, batch=64)
    winograd = Case(False, 8, (40, 40), 1, 64, 64, (3, 3), (1, 1), (1, 1), "SAME")
    planes = replace(LARGE, data_format="NCHW")
    empty = replace(LARGE, batch=0)
    cases = [small, few, *others, narrow, winograd, planes, empty]
    depthwise = Case(True, 8, (80, 80), 96, 1, 1, (3, 3), (1, 1), (1, 1), "SAME")
    return [*(wanted(case, "forward") for case in cases), wanted(depthwise, "input")]


@pytest.mark.parametrize("problem", none_taken(), ids=lambda problem: str(problem.result_shape))
def test_of_others_none_are_taken(problem: Problem) -> None:
    assert _engine.statistics_shares(problem) == 0


def test_without_kernels_none_are_taken() -> None:
    with config.scope(kernels=False):
        assert _engine.statistics_shares(wanted(LARGE, "forward")) == 0
        with pytest.raises(InternalError, match="the reference writes no statistics"):
            _engine.program(wanted(LARGE, "forward"))


def test_what_cannot_have_statistics_is_refused() -> None:
    for kind, side in (("forward", "output"), ("filter", "")):
        with pytest.raises(InternalError, match="statistics are those of a forward pass"):
            replace(problem_of(LARGE, kind), bias=side, statistics=True)
    with pytest.raises(InternalError, match="without a place for them"):
        _engine.run(wanted(LARGE, "forward"), 8, 8, 8)
    with pytest.raises(InternalError, match="an empty problem has no statistics"):
        _engine.run(wanted(replace(LARGE, batch=0), "forward"), 8, 8, 8, 8)
    with pytest.raises(InternalError, match="writes no statistics"):
        _engine.program(wanted(replace(LARGE, dtype="float64"), "forward"))


@pytest.mark.parametrize(("case", "kind"), SHARED, ids=str)
def test_kernels_without_statistics_keep_their_names(case: Case, kind: str) -> None:
    plain, other = (
        planner.choose_named(problem, HOST, by(case))
        for problem in (problem_of(case, kind), wanted(case, kind))
    )
    assert not any("statistics" in spelled(step.kernel) for step in plain.steps)
    assert plain.shares == 0 and not any("bias" in step.operands for step in plain.steps)
    assert "statistics=True" in spelled(other.steps[-1].kernel)
    assert [step.operands for step in other.steps].count((*plain.steps[-1].operands,)) == 0


def test_a_batch_norm_takes_them_as_they_are() -> None:
    """Running statistics and result of the pass that reads the image are those of the one that is given shares."""
    problem = wanted(LARGE, "forward")
    data = normal(LARGE, np.random.default_rng(39))
    found = compute("dense_direct", HOST, LARGE, "forward", data)
    assert found is not None
    x, rows = found
    images, *pixels, channels = problem.result_shape
    results = []
    for given in (0, len(rows)):
        task = Task(
            *("forward", problem.dtype, "NHWC", images, prod(pixels), channels, "relu"), given=given
        )
        memory = {
            "x": x,
            "y": np.full_like(x, 77),
            "running_mean": np.zeros(channels, np.float32),
            "running_var": np.ones(channels, np.float32),
            "saved": np.zeros((5, channels), np.float32),
            "scalars": np.array([1e-5, 0.1, 0.0, 1.0]),
            "given": rows,
        }
        addresses = [
            memory[name].ctypes.data if name in memory else 0 for name in PLACES["forward"]
        ]
        _engine.run(task, *addresses)
        results.append([memory[name] for name in ("y", "running_mean", "running_var", "saved")])
    for read, taken in zip(*results, strict=True):
        np.testing.assert_allclose(taken, read, rtol=1e-5, atol=1e-6)
