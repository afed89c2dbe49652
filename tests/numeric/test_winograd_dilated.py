"""Winograd's algorithms with dilated windows: every phase of the image is one of its own, none wastes a tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import convgrad
from calling import some_targets
from cases import UNITS, Case, Data, normal, whole_numbers
from convgrad._compiler import costs, jit
from convgrad._compiler.targets import Target
from convgrad._engine import planner, prepare
from convgrad._kernels.shared.winograd_tiles import tiles_along
from convgrad._kernels.winograd import fast as winograd_fast
from convgrad._kernels.winograd import schedule as winograd
from convgrad._kernels.winograd_gradient import schedule as winograd_gradient
from convgrad._problem import oracle
from convgrad._runtime.run import run as run_program
from kernels import Place, compute, expected_exactly, problem_of
from machines import MACHINES

HOST = jit.host_target()
NAMES = {
    "forward": winograd.NAME,
    "input": winograd.NAME,
    "filter": winograd_gradient.NAME,
}
RATES = ((2, 2), (1, 3), (4, 1), (3, 5), (2, 12), (17, 2), (1, 31))
PADS = ("SAME", "VALID", ((0, 2), (1, 0)), ((3, 1), (0, 4)), ((9, 7), (5, 40)))


def case_of(rng: np.random.Generator, **fixed: Any) -> Case:
    """Draw a dilated problem, mostly one that `winograd` takes: each phase has 8 cells or a few more."""
    while True:
        rates = fixed.get("dilations") or RATES[int(rng.integers(len(RATES)))]
        draw: dict[str, Any] = {
            "depthwise": False,
            "batch": int(rng.integers(1, 4)),
            "size": tuple(8 * rate + int(rng.integers(12)) for rate in rates),
            "groups": int(rng.choice([1, 1, 2])),
            "group_in": int(rng.integers(32, 52)),
            "group_out": int(rng.integers(32, 52)),
            "window": (3, 3),
            "strides": (1, 1),
            "dilations": rates,
            "padding": PADS[int(rng.integers(len(PADS)))],
            "data_format": str(rng.choice(["NHWC", "NCHW"])),
            "dtype": str(rng.choice(["float32", "float32", "half", "bfloat16"])),
        }
        case = Case(**{**draw, **fixed})
        if case.legal and 0 not in (*case.input_shape, *case.output_shape):
            return case


def operands(case: Case, kind: str, data: Data) -> tuple[Any, Any]:
    """Return the two operands of an operation."""
    return {"forward": (data.x, data.f), "input": (data.f, data.g), "filter": (data.x, data.g)}[
        kind
    ]


def takes(case: Case, kind: str, target: Target = HOST) -> bool:
    """Return whether the algorithm of an operation takes the case."""
    module = winograd_gradient if kind == "filter" else winograd
    return module.why_not(problem_of(case, kind), target) is None


def test_no_tile_is_empty() -> None:
    """Tiles of an axis are those of its phases, and the number of a tile says where it starts."""
    for outputs in (2, 4):
        for cells in range(1, 40):
            for rate in range(1, 45):
                phases = [len(range(start, cells, rate)) for start in range(rate)]
                count = tiles_along(cells, outputs, rate)
                assert count == sum(-(-length // outputs) for length in phases)
                starts = [n + n // rate * rate * (outputs - 1) for n in range(count)]
                assert all(start < cells for start in starts)
                covered = {s + i * rate for s in starts for i in range(outputs)}
                assert covered.issuperset(range(cells)) and len(covered) == count * outputs


@pytest.mark.parametrize("target", some_targets(3))
def test_whole_numbers_come_out_exact(target: Target, checked: Any) -> None:
    rng = np.random.default_rng(21)
    for turn in range(6):
        case = case_of(rng)
        data = whole_numbers(case, rng, 3)
        for kind, name in NAMES.items():
            if not takes(case, kind, target):
                continue
            place: Place = ("start", "end", "shifted")[turn % 3]
            got = compute(name, target, case, kind, data, place)
            expected = expected_exactly(case, kind, data)
            np.testing.assert_array_equal(
                got.astype(np.float64), expected.astype(np.float64), str((case, kind, place))
            )
            checked["winograd problems on guarded memory, exact integers"] += 1


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("rates", RATES)
def test_every_rate_in_both_layouts(rates: tuple[int, int], data_format: str, checked: Any) -> None:
    rng = np.random.default_rng(22)
    for more in ((0, 0), (1, 3 * rates[1] - 1), (rates[0] + 1, 2)):
        size = (8 * rates[0] + more[0], 8 * rates[1] + more[1])
        case = case_of(
            rng,
            size=size,
            dilations=rates,
            data_format=data_format,
            dtype="float32",
            padding="SAME",
        )
        data = whole_numbers(case, rng, 3)
        for kind, name in NAMES.items():
            if takes(case, kind):
                got = compute(name, HOST, case, kind, data)
                np.testing.assert_array_equal(got, expected_exactly(case, kind, data), str(case))
                checked["winograd problems on guarded memory, exact integers"] += 1


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("kind", list(NAMES))
def test_threads_change_no_bit(kind: str, data_format: str) -> None:
    """Blocks end amid a period of columns; what lies between theirs belongs to other threads."""
    rng = np.random.default_rng(23)
    for rates in ((2, 3), (4, 1), (3, 4)):
        case = case_of(
            rng,
            size=(37, 35),
            dilations=rates,
            dtype="float32",
            padding="SAME",
            data_format=data_format,
            groups=1,
            batch=3,
        )
        if not takes(case, kind):
            assert kind == "filter" and data_format == "NCHW"
            continue
        problem = problem_of(case, kind)
        bound = prepare.bind(planner.choose_named(problem, HOST, NAMES[kind]), HOST)
        first, second = operands(case, kind, normal(case, rng))
        results = []
        for count in (1, 2, 3, 8):
            result = np.full(problem.result_shape, np.nan, np.float32)
            with convgrad.threads(count):
                run_program(bound, *(each.ctypes.data for each in (first, second, result)))
            results.append(result.tobytes())
        assert len(set(results)) == 1, case


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("kind", ["forward", "input"])
def test_errors_stay_small(kind: str, data_format: str) -> None:
    for dtype, limits in (("float32", (2.5, 20)), ("bfloat16", (0.45, 0.45))):
        case = Case(
            *(False, 4, (33, 33), 1, 64, 64, (3, 3), (1, 1), (2, 2), "SAME"),
            data_format=data_format,
            dtype=dtype,
        )
        data = normal(case, np.random.default_rng(0))
        wide = (each.astype(np.float64) for each in operands(case, kind, data))
        exact = oracle.compute(problem_of(case, kind), *wide)
        for name, limit in zip((winograd.NAME, winograd_fast.NAME), limits, strict=True):
            difference = compute(name, HOST, case, kind, data).astype(np.float64) - exact
            error = float(np.sqrt((difference**2).sum() / (exact**2).sum())) / UNITS[dtype]
            assert 0 < error <= limit, (name, dtype)


@pytest.mark.parametrize("kind", list(NAMES))
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", ["float32", "half"])
def test_infinities_and_nans_stay_where_the_plain_sum_puts_them(
    dtype: str, data_format: str, kind: str
) -> None:
    rng = np.random.default_rng(24)
    case = Case(
        *(False, 2, (25, 21), 1, 33, 40, (3, 3), (1, 1), (3, 2), "SAME"),
        data_format=data_format,
        dtype=dtype,
    )
    if not takes(case, kind):
        assert kind == "filter" and data_format == "NCHW"
        return
    data = whole_numbers(case, rng)
    if kind == "filter":
        data.x[0, 0, 0, 3], data.x[1, 24, 20, 7], data.g[1, 0, 20, 11] = np.inf, np.nan, -np.inf
    else:
        for array in (data.x, data.g):
            array.ravel()[rng.choice(array.size, 4, replace=False)] = [np.inf, -np.inf, np.nan, 1]
    got = compute(NAMES[kind], HOST, case, kind, data).astype(np.float64)
    with np.errstate(invalid="ignore"):
        wide = (each.astype(np.float64) for each in operands(case, kind, data))
        expected = oracle.compute(problem_of(case, kind), *wide)
    for test in (np.isnan, np.isposinf, np.isneginf):
        np.testing.assert_array_equal(test(got), test(expected))
    finite = np.isfinite(expected)
    assert 0 < finite.sum() < finite.size
    np.testing.assert_allclose(
        got[finite], expected[finite], rtol=0 if dtype == "float32" else 1e-2
    )


def test_tiles_that_phases_fill_badly_are_counted() -> None:
    """Where phases are of a cell or two, most of a tile is waste: the plain sum, which skips taps, is taken.

    On the machine that prices were measured on.
    """
    for size, rate, name in ((33, 2, "winograd"), (33, 4, "winograd"), (16, 15, "dense_direct")):
        case = Case(False, 2, (size, size), 1, 256, 256, (3, 3), (1, 1), (rate, rate), "SAME")
        for kind in ("forward", "input"):
            chosen = planner.choose(problem_of(case, kind), MACHINES["zen3"].target).algorithm
            assert chosen == name, (size, rate)
    few, many = (
        winograd.candidates(
            problem_of(
                Case(False, 2, (32, 32), 1, 64, 64, (3, 3), (1, 1), (rate, rate), "SAME"), "forward"
            ),
            HOST,
        )[0].work
        for rate in (2, 31)
    )
    # Phases of 16 cells are filled by tiles of two; phases of one cell fill a quarter of theirs.
    assert many.amounts["products"] >= 3.5 * few.amounts["products"]
    assert costs.microseconds(many, HOST) > costs.microseconds(few, HOST)


def test_workspace_stays_small_whatever_the_rate() -> None:
    for rate in (2, 12, 1000, 40_000):
        for data_format in ("NHWC", "NCHW"):
            case = Case(
                *(False, 1, (100_000, 100_000), 1, 64, 64, (3, 3), (1, 1), (rate, rate), "SAME"),
                data_format=data_format,
            )
            problem = problem_of(case, "forward")
            if winograd.why_not(problem, HOST) is not None:
                assert rate >= 1000
                continue
            plan = winograd.candidates(problem, HOST)[0].plan()
            assert all(step.scratch_bytes <= 2 << 20 and not step.table for step in plan.steps)
