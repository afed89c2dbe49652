"""Winograd's algorithms: exact on whole numbers, confined like the plain sum, within the promised errors.

What `test_kernels` does for the depthwise family is done here on 3x3 problems with enough channels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import convgrad
from calling import some_targets
from cases import UNITS, Case, Data, normal, whole_numbers
from convgrad._base.errors import ArgumentError
from convgrad._compiler import jit
from convgrad._compiler.targets import Target
from convgrad._engine import planner, prepare
from convgrad._kernels.winograd import fast as winograd_fast
from convgrad._kernels.winograd import schedule as winograd
from convgrad._kernels.winograd_gradient import schedule as winograd_gradient
from convgrad._problem import oracle
from convgrad._problem.sums.winograd import is_winograd
from convgrad._runtime.run import run as run_program
from kernels import Place, compute, expected_exactly, problem_of
from machines import MACHINES
from tolerance import assert_close

HOST = jit.host_target()
KINDS = ("forward", "input")
PADS = ("SAME", "VALID", ((0, 2), (1, 0)), ((3, 1), (0, 4)))


def case_of(rng: np.random.Generator, **fixed: Any) -> Case:
    """Draw a problem the algorithms take, both ways."""
    while True:
        groups = int(rng.choice([1, 1, 1, 2]))
        draw: dict[str, Any] = {
            "depthwise": False,
            "batch": int(rng.integers(1, 4)),
            "size": tuple(int(n) for n in rng.integers(8, 24, 2)),
            "groups": groups,
            "group_in": int(rng.integers(32, 70)),
            "group_out": int(rng.integers(32, 70)),
            "window": (3, 3),
            "strides": (1, 1),
            "dilations": (1, 1),
            "padding": PADS[int(rng.integers(len(PADS)))],
            "data_format": str(rng.choice(["NHWC", "NCHW"])),
            "dtype": str(rng.choice(["float32", "float32", "half", "bfloat16"])),
        }
        case = Case(**{**draw, **fixed})
        if not case.legal or 0 in (*case.input_shape, *case.output_shape):
            continue
        if not any(winograd_fast.why_not(problem_of(case, kind), HOST) for kind in KINDS):
            return case


@pytest.mark.parametrize("target", some_targets(2))
def test_whole_numbers_come_out_exact(target: Target, checked: Any) -> None:
    rng = np.random.default_rng(1)
    for turn in range(5):
        case = case_of(rng)
        data = whole_numbers(case, rng, 3)
        for kind in KINDS:
            place: Place = ("start", "end", "shifted")[turn % 3]
            got = compute(winograd.NAME, target, case, kind, data, place)
            expected = expected_exactly(case, kind, data)
            np.testing.assert_array_equal(
                got.astype(np.float64), expected.astype(np.float64), str((case, kind, place))
            )
            checked["winograd problems on guarded memory, exact integers"] += 1


def on_threads(name: str, case: Case, kind: str, data: Data, count: int) -> Any:
    """Run one algorithm on some threads, on memory as it comes."""
    problem = problem_of(case, kind)
    bound = prepare.bind(planner.choose_named(problem, HOST, name), HOST)
    operands = {"forward": (data.x, data.f), "input": (data.f, data.g), "filter": (data.x, data.g)}
    result = np.full(problem.result_shape, 77, problem.dtype.numpy)
    with convgrad.threads(count):
        run_program(bound, *(each.ctypes.data for each in (*operands[kind], result)))
    return result


@pytest.mark.parametrize("name", [winograd.NAME, winograd_fast.NAME])
def test_threads_change_no_bit(name: str) -> None:
    rng = np.random.default_rng(2)
    for _ in range(3):
        case = case_of(rng, size=(25, 19), dtype="float32")
        data = normal(case, rng)
        for kind in KINDS:
            results = [on_threads(name, case, kind, data, count) for count in (1, 2, 3, 8)]
            for other in results[1:]:
                assert other.tobytes() == results[0].tobytes(), (case, kind)
            if name == winograd.NAME:
                assert_close(case, kind, data, results[0])


def exactly(case: Case, kind: str, data: Data) -> Any:
    """Return the result in a wider type."""
    operands = {"forward": (data.x, data.f), "input": (data.f, data.g), "filter": (data.x, data.g)}
    wide = np.longdouble if case.dtype == "float64" else np.float64
    return oracle.compute(problem_of(case, kind), *(each.astype(wide) for each in operands[kind]))


def error(name: str, case: Case, kind: str, data: Data, exact: Any = None) -> float:
    """Return the relative Frobenius error in units of the dtype."""
    exact = exactly(case, kind, data) if exact is None else exact
    difference = compute(name, HOST, case, kind, data).astype(exact.dtype) - exact
    return float(np.sqrt((difference**2).sum() / (exact**2).sum())) / UNITS[case.dtype]


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("kind", KINDS)
def test_errors_stay_small(kind: str, data_format: str) -> None:
    """The promise for all algorithms is 2.5; F(4,3) is opt-in because it is not kept."""
    for dtype, limits in (
        ("float32", (2.5, 20)),
        ("half", (0.45, 0.45)),
        ("bfloat16", (0.45, 0.45)),
    ):
        case = Case(
            *(False, 8, (28, 28), 1, 64, 64, (3, 3), (1, 1), (1, 1), "SAME"),
            data_format=data_format,
            dtype=dtype,
        )
        data = normal(case, np.random.default_rng(0))
        exact = exactly(case, kind, data)
        for name, limit in zip((winograd.NAME, winograd_fast.NAME), limits, strict=True):
            assert 0 < error(name, case, kind, data, exact) <= limit, (name, dtype)


def scaled(case: Case, rng: np.random.Generator, how: str) -> Data:
    """Return data whose pixels differ by orders of magnitude."""
    data = normal(case, rng)

    def scale(image: Any) -> Any:
        shape = (
            (*image.shape[:3], 1)
            if case.data_format == "NHWC"
            else (image.shape[0], 1, *image.shape[2:])
        )
        factors = np.exp(3 * rng.standard_normal(shape))
        if how == "spikes":
            factors = np.where(rng.random(shape) < 0.03, 1e4, 1.0)
        return (image * factors).astype(image.dtype)

    return Data(scale(data.x), data.f, scale(data.g))


@pytest.mark.parametrize("how", ["log-normal", "spikes"])
@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_relative_to_the_own_window(kind: str, how: str) -> None:
    """A large pixel must not spoil results whose window it is not in: F(2,3) never mixes it in."""
    case = Case(False, 2, (28, 28), 1, 64, 64, (3, 3), (1, 1), (1, 1), "SAME")
    data = scaled(case, np.random.default_rng(3), how)
    operands = {"forward": (data.x, data.f), "input": (data.f, data.g)}[kind]
    wide = [each.astype(np.longdouble) for each in operands]
    exact = oracle.compute(problem_of(case, kind), *wide)
    scale = oracle.compute(problem_of(case, kind), *(np.abs(each) for each in wide))
    got = compute(winograd.NAME, HOST, case, kind, data).astype(np.longdouble)
    assert float((np.abs(got - exact) / scale).max()) / UNITS["float32"] <= 12


def same_class(got: Any, expected: Any) -> None:
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    np.testing.assert_array_equal(np.isposinf(got), np.isposinf(expected))
    np.testing.assert_array_equal(np.isneginf(got), np.isneginf(expected))


@pytest.mark.parametrize("name", [winograd.NAME, winograd_fast.NAME])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", ["float32", "half", "bfloat16"])
@pytest.mark.parametrize("where", ["image", "filter"])
def test_infinities_and_nans_stay_where_the_plain_sum_puts_them(
    where: str, dtype: str, data_format: str, name: str
) -> None:
    rng = np.random.default_rng(4)
    case = Case(
        *(False, 2, (25, 21), 1, 33, 40, (3, 3), (1, 1), (1, 1), "SAME"),
        data_format=data_format,
        dtype=dtype,
    )
    data = whole_numbers(case, rng)
    for array in (data.f,) if where == "filter" else (data.x, data.g):
        places = rng.choice(array.size, 4, replace=False)
        array.ravel()[places] = [np.inf, -np.inf, np.nan, np.inf]
    for kind in KINDS:
        got = compute(name, HOST, case, kind, data).astype(np.float64)
        with np.errstate(invalid="ignore"):
            operands = {"forward": (data.x, data.f), "input": (data.f, data.g)}[kind]
            expected = oracle.compute(
                problem_of(case, kind), *(each.astype(np.float64) for each in operands)
            )
        same_class(got, expected)
        finite = np.isfinite(expected)
        assert 0 < finite.sum() < finite.size
        if name == winograd.NAME:
            unit = 1e-2 if dtype != "float32" else 0.0
            np.testing.assert_allclose(got[finite], expected[finite], rtol=unit)


@pytest.mark.parametrize("name", [winograd.NAME, winograd_fast.NAME])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_no_overflow_where_the_plain_sum_has_none(name: str, data_format: str) -> None:
    """Sums of two and four such numbers are too large for float32, and so would be their transforms."""
    case = Case(
        *(False, 1, (24, 24), 1, 32, 32, (3, 3), (1, 1), (1, 1), "SAME"), data_format=data_format
    )
    rng = np.random.default_rng(5)
    data = normal(case, rng)
    signs = [np.sign(each) for each in (data.x, data.g)]
    big = Data(
        *(s.astype(np.float32) * np.float32(3e38) for s in signs[:1]),
        data.f,
        signs[1] * np.float32(3e38),
    )
    weights = np.zeros_like(data.f)
    weights[1, 1] = np.eye(32)
    weights[0, 2] = np.eye(32) * 0.0625
    data = Data(big.x.astype(np.float32), weights, big.g.astype(np.float32))
    for kind in KINDS:
        operands = {"forward": (data.x, data.f), "input": (data.f, data.g)}[kind]
        exact = oracle.compute(problem_of(case, kind), *(e.astype(np.float64) for e in operands))
        with np.errstate(over="ignore"):
            expected = exact.astype(np.float32)
        got = compute(name, HOST, case, kind, data)
        assert np.isfinite(expected).mean() > 0.99
        np.testing.assert_array_equal(got, expected)


def test_refusals_name_their_reason() -> None:
    good: dict[str, Any] = {
        "depthwise": False, "batch": 1, "size": (16, 16), "groups": 1, "group_in": 32, "group_out": 32,
        "window": (3, 3), "strides": (1, 1), "dilations": (1, 1), "padding": "SAME",
    }  # fmt: skip
    for change, reason in (
        ({"dtype": "float64"}, "not exact enough for float64"),
        ({"window": (3, 1)}, "only 3x3"),
        ({"strides": (1, 2)}, "only stride 1"),
        ({"group_in": 31}, "fewer than 32 channels in a group"),
        ({"size": (7, 16)}, "fewer than 8 rows or columns"),
        ({"dilations": (1, 3)}, "fewer than 8 rows or columns"),
        ({"group_in": 8200}, "more than 8192 channels"),
    ):
        problem = problem_of(Case(**{**good, **change}), "forward")
        with pytest.raises(ArgumentError, match=f"winograd does not take this problem: {reason}"):
            planner.choose_named(problem, HOST, winograd.NAME)
    assert "filter gradients" in (winograd.why_not(problem_of(Case(**good), "filter"), HOST) or "")


def test_workspace_stays_small(machine: Target) -> None:
    """The images may be huge and the channels many: only the transformed filter grows, with the filter."""
    for channels, size in ((64, 100_000), (2048, 14), (8192, 14)):
        case = Case(False, 4, (size, size), 1, channels, channels, (3, 3), (1, 1), (1, 1), "SAME")
        plan = winograd.candidates(problem_of(case, "forward"), machine)[0].plan()
        most = 2 << 20 if channels <= 2048 else 4 << 20
        assert all(step.scratch_bytes <= most and not step.table for step in plan.steps)
        assert plan.packed_bytes <= 8 * channels * channels * 16


def test_the_problem_alone_chooses(machine: Target) -> None:
    """Where the transforms take what the products save it is not chosen; elsewhere it is, on every machine."""
    for batch, size, channels, others, name in (
        *((1, (1, 1), 64, 64, None), (8, (7, 7), 512, 512, None), (9, (40, 7), 64, 64, None)),
        *((8, (56, 56), 31, 64, None), (8, (56, 56), 64, 31, None)),
        *((1, (8, 8), 32, 32, winograd.NAME), (32, (8, 9), 33, 32, winograd.NAME)),
        *((1, (8, 8), 2048, 32, winograd.NAME), (2, (9, 8), 32, 8192, winograd.NAME)),
    ):
        for data_format in ("NHWC", "NCHW"):
            for groups in (1, 2):
                case = Case(
                    *(False, batch, size, groups, channels, others, (3, 3), (1, 1), (1, 1), "SAME"),
                    data_format=data_format,
                )
                for kind in KINDS:
                    problem = problem_of(case, kind)
                    plan = planner.choose(problem, machine)
                    taken = plan.algorithm == winograd.NAME
                    assert taken == (name is not None) == is_winograd(problem), case


@pytest.mark.parametrize("kind", ["forward", "input", "filter"])
def test_every_width_and_cache_gives_the_same_bits(kind: str) -> None:
    """Also where a panel is as wide as the group, and where channels are too many for a large block."""
    rng = np.random.default_rng(6)
    names = (winograd.NAME, winograd_fast.NAME) if kind != "filter" else (winograd_gradient.NAME,)
    for group_in, group_out, size in ((32, 33, (8, 9)), (71, 70, (29, 21)), (2100, 32, (8, 8))):
        for dtype in ("float32", "bfloat16"):
            case = Case(
                *(False, 2, size, 1, group_in, group_out, (3, 3), (1, 1), (1, 1), "SAME"),
                dtype=dtype,
            )
            data = normal(case, rng)
            for name in names:
                results = {
                    compute(name, row.with_vector_bits(bits), case, kind, data).tobytes()
                    for row in (HOST, HOST.with_caches(16 << 10, 64 << 10, 1 << 20))
                    for bits in (128, 256, 512)
                }
                assert len(results) == 1, (name, case)


# The filter gradient, F(3,2)

GRADIENT = winograd_gradient.NAME


def gradient_case(rng: np.random.Generator, **fixed: Any) -> Case:
    """Draw a problem the filter gradient takes."""
    while True:
        case = case_of(rng, **{"data_format": "NHWC", "groups": 1, **fixed})
        if winograd_gradient.why_not(problem_of(case, "filter"), HOST) is None:
            return case


@pytest.mark.parametrize("target", some_targets(2))
def test_gradient_of_whole_numbers_is_exact(target: Target, checked: Any) -> None:
    rng = np.random.default_rng(11)
    for turn in range(5):
        channels = {} if turn % 3 else {"group_in": 133, "group_out": 67 + 16 * turn}
        case = gradient_case(rng, **channels)
        data = whole_numbers(case, rng, 3)
        place: Place = ("start", "end", "shifted")[turn % 3]
        got = compute(GRADIENT, target, case, "filter", data, place)
        expected = expected_exactly(case, "filter", data)
        np.testing.assert_array_equal(
            got.astype(np.float64), expected.astype(np.float64), str((case, place))
        )
        checked["winograd problems on guarded memory, exact integers"] += 1


def test_threads_change_no_bit_of_the_gradient() -> None:
    rng = np.random.default_rng(12)
    for channels in (64, 100):
        case = gradient_case(
            rng, size=(25, 19), batch=3, group_in=channels, dtype="float32", padding="SAME"
        )
        data = normal(case, rng)
        results = {
            on_threads(GRADIENT, case, "filter", data, count).tobytes() for count in (1, 2, 3, 8)
        }
        assert len(results) == 1, case


def test_errors_of_the_gradient_stay_as_stated() -> None:
    """Near those of the plain sum on normal data, so the promise of 2.5 is not kept: it is opt-in."""
    for dtype, limit in (("float32", 5), ("half", 0.45), ("bfloat16", 0.45)):
        case = Case(*(False, 8, (28, 28), 1, 64, 64, (3, 3), (1, 1), (1, 1), "SAME"), dtype=dtype)
        data = normal(case, np.random.default_rng(0))
        assert 0 < error(GRADIENT, case, "filter", data) <= limit, dtype


@pytest.mark.parametrize("how", ["log-normal", "spikes"])
def test_errors_of_the_gradient_are_relative_to_the_largest_tap(how: str) -> None:
    case = Case(False, 2, (28, 28), 1, 64, 64, (3, 3), (1, 1), (1, 1), "SAME")
    data = scaled(case, np.random.default_rng(3), how)
    wide = [each.astype(np.longdouble) for each in (data.x, data.g)]
    problem = problem_of(case, "filter")
    scale = oracle.compute(problem, *(np.abs(each) for each in wide)).max((0, 1))
    got = compute(GRADIENT, HOST, case, "filter", data).astype(np.longdouble)
    difference = np.abs(got - oracle.compute(problem, *wide))
    assert float((difference / scale).max()) / UNITS["float32"] <= 20


@pytest.mark.parametrize("dtype", ["float32", "half", "bfloat16"])
def test_infinities_and_nans_stay_in_their_taps(dtype: str) -> None:
    """One at a corner misses some taps, one of `out_backprop` beside the odd edge shares a tile with nothing."""
    rng = np.random.default_rng(13)
    case = Case(*(False, 2, (25, 21), 1, 33, 40, (3, 3), (1, 1), (1, 1), "SAME"), dtype=dtype)
    data = whole_numbers(case, rng)
    data.x[0, 0, 0, 3], data.x[1, 24, 20, 7], data.x[1, 5, 6, 9] = np.inf, np.nan, -np.inf
    data.x[..., 12] = np.nan
    data.g[0, 24, 0, 5], data.g[1, 0, 20, 11] = np.inf, np.nan
    got = compute(GRADIENT, HOST, case, "filter", data).astype(np.float64)
    with np.errstate(invalid="ignore"):
        operands = (each.astype(np.float64) for each in (data.x, data.g))
        expected = oracle.compute(problem_of(case, "filter"), *operands)
    same_class(got, expected)
    finite = np.isfinite(expected)
    assert 0 < finite.sum() < finite.size
    unit = 1e-2 if dtype != "float32" else 0.0
    np.testing.assert_allclose(got[finite], expected[finite], rtol=unit)


def test_no_overflow_of_the_gradient_where_the_plain_sum_has_none() -> None:
    case = Case(False, 1, (24, 24), 1, 32, 32, (3, 3), (1, 1), (1, 1), "SAME")
    rng = np.random.default_rng(14)
    data = normal(case, rng)
    x = (np.sign(data.x) * np.float32(3e38)).astype(np.float32)
    g = np.zeros_like(data.g)
    g[0, 10, 11, :] = 1
    got = compute(GRADIENT, HOST, case, "filter", Data(x, data.f, g))
    operands = (each.astype(np.float64) for each in (x, g))
    np.testing.assert_array_equal(got, oracle.compute(problem_of(case, "filter"), *operands))


def test_the_gradient_is_opt_in() -> None:
    shapes: Any = ([8, 28, 28, 64], [3, 3, 64, 64])
    for switch, name in (("off", "dense_filter"), ("auto", "dense_filter"), ("fast", GRADIENT)):
        with convgrad.options(winograd=switch):
            story = convgrad.explain(
                *("conv2d_backprop_filter", *shapes), target="avx2", caches=MACHINES["zen3"].caches
            )
            assert story.algorithm == name


def test_the_gradient_names_its_reason_to_refuse() -> None:
    good: dict[str, Any] = {
        "depthwise": False, "batch": 1, "size": (32, 32), "groups": 1, "group_in": 64, "group_out": 64,
        "window": (3, 3), "strides": (1, 1), "dilations": (1, 1), "padding": "SAME",
    }  # fmt: skip
    assert winograd_gradient.why_not(problem_of(Case(**good), "filter"), HOST) is None
    for change, reason in (
        ({"dtype": "float64"}, "not exact enough for float64"),
        ({"data_format": "NCHW"}, "only NHWC"),
        ({"groups": 2}, "only dense problems of one group"),
        ({"window": (3, 1)}, "only 3x3"),
        ({"strides": (1, 2)}, "only stride 1"),
        ({"group_in": 31}, "fewer than 32 channels"),
        ({"group_in": 1024, "group_out": 512}, "the transformed filter needs .* MB"),
        ({"batch": 0}, "nothing to add up"),
    ):
        problem = problem_of(Case(**{**good, **change}), "filter")
        with pytest.raises(ArgumentError, match=f"{GRADIENT} does not take this problem: {reason}"):
            planner.choose_named(problem, HOST, GRADIENT)
    assert winograd_gradient.why_not(problem_of(Case(**good), "input"), HOST) == (
        "only filter gradients"
    )


def test_workspace_of_the_gradient_stays_small() -> None:
    for channels, size in ((64, 100_000), (512, 28)):
        case = Case(False, 4, (size, size), 1, channels, channels, (3, 3), (1, 1), (1, 1), "SAME")
        plan = winograd_gradient.candidates(problem_of(case, "filter"), HOST)[0].plan()
        assert not any(step.table for step in plan.steps)
        kernel = plan.steps[0].kernel
        assert isinstance(kernel, winograd_gradient.GradientKernel)
        assert kernel.scratch_bytes <= 1 << 20
        assert plan.partial_bytes <= 18 * 10**6
