"""What is peculiar to the dense filter gradient: tiles, lists of pixels, folded windows, merged groups, infinities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import convgrad
from calling import some_targets
from cases import DENSE, Case, Data, normal, run, whole_numbers
from convgrad._apps.check.draws import Each, problem
from convgrad._compiler import jit
from convgrad._compiler.targets import Target
from convgrad._engine import planner, prepare
from convgrad._kernels import ALGORITHMS
from convgrad._kernels.dense_filter import choice, schedule
from convgrad._kernels.dense_filter.words import DenseFilterKernel
from convgrad._kernels.dense_filter.work import speed_up
from convgrad._problem import text as _problem_text
from convgrad._problem.sums.pixels import along_rows
from convgrad._runtime.run import run as run_program
from kernels import Place, compute, expected_exactly, problem_of
from tolerance import assert_close

NAME = "dense_filter"
HOST = jit.host_target()


WIDE_AND_NARROW = [
    (
        0.7,
        DENSE
        | {
            "groups": (1, 1, 2, 3, 4, 8),
            "group_in": (1, 2, 3, 4, 5, 8, 12, 17, 20, 33),
            "group_out": (1, 2, 3, 4, 7, 8, 16, 17, 24, 33, 40),
            "size": Each(range(1, 28)),
        },
    ),
    (0.3, DENSE),
]
"""Channels on both sides of tiles, vectors and groups."""


def drawn(rng: np.random.Generator) -> Case:
    return problem(rng, WIDE_AND_NARROW, Case, is_taken)


def is_taken(case: Case) -> bool:
    """Groups of one channel may be added along rows, by others."""
    return not case.is_empty and not along_rows(problem_of(case, "filter"))


def check_exactly(target: Target, case: Case, rng: np.random.Generator, place: Place) -> None:
    data = whole_numbers(case, rng)
    got = compute(NAME, target, case, "filter", data, place)
    expected = expected_exactly(case, "filter", data)
    np.testing.assert_array_equal(
        got.astype(np.float64), expected.astype(np.float64), str((case, place))
    )


@pytest.mark.parametrize("target", some_targets(1))
def test_whole_numbers_come_out_exact(target: Target) -> None:
    rng = np.random.default_rng(1)
    for turn in range(12):
        place: Place = ("start", "end", "shifted")[turn % 3]
        check_exactly(target, drawn(rng), rng, place)


FOLDED = [
    Case(False, 2, (23, 31), 1, 3, 20, (7, 7), (2, 2), (1, 1), "SAME", form)
    for form in ("NHWC", "NCHW")
]
WIDE = Case(False, 1, (1, 5000), 1, 5, 9, (1, 3), (1, 3), (1, 7), ((0, 0), (5, 40)))
FAR = Case(False, 2, (40, 3), 1, 9, 16, (3, 3), (1, 1), (30, 1), ((50, 3), (0, 9)))
SPARSE = Case(False, 3, (30, 31), 2, 6, 10, (2, 2), (9, 7), (2, 3), "VALID", "NCHW")


@pytest.mark.parametrize("case", [*FOLDED, WIDE, FAR, SPARSE], ids=repr)
def test_odd_geometries(case: Case) -> None:
    rng = np.random.default_rng(2)
    for place in ("start", "end", "shifted"):
        check_exactly(HOST, case, rng, place)


POINTWISE = [
    Case(False, 3, (13, 11), 1, 27, 35, (1, 1), (1, 1), (1, 1), "SAME"),
    Case(False, 3, (13, 11), 1, 27, 35, (1, 1), (1, 1), (1, 1), "SAME", "NCHW"),
    Case(False, 2, (61, 23), 1, 96, 24, (1, 1), (1, 1), (1, 1), "SAME"),
    Case(False, 2, (61, 23), 1, 7, 24, (1, 1), (1, 1), (1, 1), "SAME", "NCHW"),
    Case(False, 2, (30, 31), 1, 20, 17, (1, 1), (2, 3), (1, 1), "SAME"),
    Case(False, 2, (30, 31), 1, 20, 17, (1, 1), (2, 3), (1, 1), "SAME", "NCHW"),
    Case(False, 2, (9, 40), 1, 12, 8, (1, 1), (1, 1), (1, 1), ((1, 2), (0, 3))),
    Case(False, 5, (1, 1), 1, 40, 33, (1, 1), (1, 1), (1, 1), "SAME"),
    Case(False, 2, (17, 19), 4, 5, 6, (1, 1), (1, 1), (1, 1), "SAME"),
    Case(False, 2, (17, 40), 8, 4, 2, (1, 1), (1, 1), (1, 1), "SAME", "NCHW"),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "half", "bfloat16"])
@pytest.mark.parametrize("case", POINTWISE, ids=repr)
def test_windows_of_one_tap(case: Case, dtype: str) -> None:
    rng = np.random.default_rng(6)
    for place in ("start", "end", "shifted"):
        check_exactly(HOST, replace(case, dtype=dtype), rng, place)


def test_windows_of_one_tap_need_lists_only_where_they_miss_pixels() -> None:
    for case in POINTWISE:
        plan = planner.choose_named(problem_of(case, "filter"), HOST, NAME)
        kernel = plan.steps[0].kernel
        assert isinstance(kernel, DenseFilterKernel)
        assert kernel.straight is not isinstance(case.padding, tuple), case
        assert len(plan.steps[0].table) < 4096, case


SMALL = [
    Case(False, 1, (8, 8), 1, 8, 8, (3, 3), (1, 1), (1, 1), "SAME"),
    Case(False, 1, (7, 7), 1, 32, 32, (1, 1), (1, 1), (1, 1), "SAME"),
    Case(False, 1, (5, 6), 1, 3, 7, (3, 3), (1, 1), (1, 1), "SAME", "NCHW"),
    Case(False, 2, (5, 6), 1, 9, 20, (3, 3), (2, 2), (1, 1), "SAME", "NCHW", "half"),
    Case(False, 2, (5, 6), 1, 9, 21, (3, 3), (2, 2), (1, 1), "SAME"),
    Case(False, 1, (40, 40), 1, 4, 5, (3, 3), (1, 1), (1, 1), "SAME"),
]


@pytest.mark.parametrize("target", some_targets(1))
@pytest.mark.parametrize("case", SMALL, ids=repr)
def test_small_problems_take_one_launch(case: Case, target: Target) -> None:
    """Two more launches, of edges and to add up, took as long as the work."""
    plan = planner.choose_named(problem_of(case, "filter"), target, NAME)
    assert len(plan.steps) == 1, plan.story
    rng = np.random.default_rng(7)
    for place in ("start", "end", "shifted"):
        check_exactly(target, case, rng, place)


@pytest.mark.parametrize("form", ["NHWC", "NCHW"])
def test_large_problems_have_items_for_sixteen_threads(form: str, machine: Target) -> None:
    sizes = [
        (56, 64, 64, 3),
        (56, 64, 256, 1),
        (14, 1024, 512, 1),
        (7, 512, 2048, 1),
        (28, 128, 512, 1),
    ]
    for size, channels, outputs, window in sizes:
        geometry = (window, window), (1, 1), (1, 1)
        case = Case(False, 8, (size, size), 1, channels, outputs, *geometry, "SAME", form)
        for it in choice.schedules(problem_of(case, "filter"), machine):
            assert speed_up(it, 16) >= 12, (case, it)


def test_rounding_stays_in_the_bound_and_threads_change_no_bit() -> None:
    rng = np.random.default_rng(3)
    for _ in range(12):
        case = drawn(rng)
        data = normal(case, rng)
        results = [compute(NAME, HOST, case, "filter", data, threads=count) for count in (1, 2, 3)]
        assert_close(case, "filter", data, results[0])
        assert all(other.tobytes() == results[0].tobytes() for other in results[1:]), case


@pytest.mark.parametrize("case", [*FOLDED, FAR, SPARSE], ids=repr)
@pytest.mark.parametrize("place", ["x", "g"])
def test_infinities_stay_where_they_meet_a_tap(case: Case, place: str) -> None:
    rng = np.random.default_rng(4)
    data = normal(case, rng)
    arrays = {"x": data.x, "f": data.f, "g": data.g}
    flat = arrays[place].reshape(-1)
    flat[0] = flat[-1] = flat[flat.size // 2] = np.inf
    data = Data(**arrays)
    got = compute(NAME, HOST, case, "filter", data)
    expected = run(case, "filter", data, "reference")
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(expected))


TREES = [
    Case(False, 11, (14, 14), 1, 12, 20, (3, 3), (1, 1), (1, 1), "SAME"),
    Case(False, 7, (20, 21), 1, 9, 17, (1, 1), (1, 1), (1, 1), "SAME", "NCHW", "half"),
    Case(False, 5, (30, 23), 4, 4, 4, (3, 3), (1, 1), (1, 1), "SAME", dtype="float64"),
]


@pytest.mark.parametrize("case", TREES, ids=repr)
def test_slices_and_blocks_change_no_bit(case: Case) -> None:
    """Slices of any power of two of units are nodes of one tree; blocks of channels have nothing in common."""
    asked = problem_of(case, "filter")
    base = choice.schedules(asked, HOST)[0]
    data = normal(case, np.random.default_rng(9))
    found = set()
    for level in range(base.chunks.bit_length() + 1):
        for parts in (1, base.tiles):
            it = replace(base, units=1 << level, tile_parts=parts, panel_parts=1, group_parts=1)
            bound = prepare.bind(schedule._plan(asked, it), HOST)
            result = np.full(asked.result_shape, 77, asked.dtype.numpy)
            run_program(bound, *(each.ctypes.data for each in (data.x, data.g, result)))
            found.add(result.tobytes())
    assert base.chunks > 4
    assert len(found) == 1


@pytest.mark.parametrize("case", FOLDED, ids=repr)
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_at_an_edge_changes_no_bit_elsewhere(case: Case, value: float) -> None:
    """Zeros beside the image are left out then, and the order stays."""
    data = normal(case, np.random.default_rng(10))
    col = 0 if case.data_format == "NHWC" else case.output_shape[-1] - 1
    at = (0, 5, col) if case.data_format == "NHWC" else (0, slice(None), 5, col)
    data.g[at] = 0
    without = compute(NAME, HOST, case, "filter", data)
    data.g[at] = value
    got = compute(NAME, HOST, case, "filter", data)
    finite = np.isfinite(got)
    assert 0 < finite.sum() < got.size
    np.testing.assert_array_equal(got[finite], without[finite])


def test_float32_sums_are_short() -> None:
    case = Case(False, 8, (28, 28), 1, 64, 64, (3, 3), (1, 1), (1, 1), "SAME")
    data = normal(case, np.random.default_rng(5))
    got = compute(NAME, HOST, case, "filter", data).astype(np.float64)
    wide = Data(*(each.astype(np.float64) for each in (data.x, data.f, data.g)))
    exact = run(case, "filter", wide, "reference")
    assert np.linalg.norm(got - exact) / np.linalg.norm(exact) <= 2.5 * 2.0**-24


def test_no_plan_depends_on_the_threads() -> None:
    problem = problem_of(FOLDED[0], "filter")
    plans = []
    for count in (1, 2, 8):
        with convgrad.threads(count):
            plans.append(planner.choose_named(problem, HOST, NAME))
    assert plans[0] == plans[1] == plans[2]


def test_tables_hold_no_lists_of_pixels() -> None:
    """Lists took 84 KB for this problem; those of a window of 31x127 had more entries than were allowed."""
    case = Case(False, 1, (56, 56), 1, 64, 64, (3, 3), (1, 1), (1, 1), "SAME")
    plan = planner.choose_named(problem_of(case, "filter"), HOST, NAME)
    assert sum(len(step.table) for step in plan.steps) < 1 << 10
    large = Case(False, 1, (40, 140), 1, 2, 3, (31, 127), (1, 1), (1, 1), "SAME")
    check_exactly(HOST, large, np.random.default_rng(8), "end")


@pytest.mark.parametrize("form", ["NHWC", "NCHW"])
def test_tables_grow_neither_with_the_batch_nor_with_the_image(form: str) -> None:
    """Each row of a chunk, each chunk and each item had words of its own: 23 KB for ResNet's first layer."""
    sizes = set()
    for batch, size in ((1, 112), (8, 112), (8, 448)):
        case = Case(False, batch, (size, size), 1, 3, 64, (7, 7), (2, 2), (1, 1), "SAME", form)
        plan = planner.choose_named(problem_of(case, "filter"), HOST, NAME)
        sizes.add(sum(len(step.table) for step in plan.steps))
    assert max(sizes) < 3 << 10


def test_axes_too_long_for_the_table_are_refused() -> None:
    for size, why in (
        (2**31 - 1, None),
        (2**31, "the table holds places along an axis up to 2147483647"),
    ):
        # No Case: it counts its windows one by one.
        line = f"conv2d_backprop_filter 1x1x{size}x1 1x2x1x1 padding=VALID"
        assert ALGORITHMS[NAME].why_not(_problem_text.read(line), HOST) == why
