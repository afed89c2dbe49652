"""Winograd's algorithm on grouped problems: in NHWC an item takes several groups, whose channels are neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import convgrad
from calling import some_targets
from cases import Case, normal, whole_numbers
from convgrad._compiler import jit
from convgrad._compiler.targets import Target
from convgrad._engine import planner, prepare
from convgrad._kernels.winograd import schedule as winograd
from convgrad._kernels.winograd.words import WinogradKernel
from convgrad._problem import oracle
from convgrad._runtime.run import run as run_program
from kernels import Place, compute, expected_exactly, problem_of

HOST = jit.host_target()
KINDS = ("forward", "input")


def grouped(groups: int, group_in: int, group_out: int, **fixed: Any) -> Case:
    """Return a small problem of some groups."""
    usual: dict[str, Any] = {
        "batch": 2,
        "size": (9, 13),
        "dilations": (1, 1),
        "padding": "SAME",
        "dtype": "float32",
        "data_format": "NHWC",
    }
    return Case(
        depthwise=False,
        groups=groups,
        group_in=group_in,
        group_out=group_out,
        window=(3, 3),
        strides=(1, 1),
        **{**usual, **fixed},
    )


@pytest.mark.parametrize("target", some_targets(4))
def test_whole_numbers_come_out_exact(target: Target, checked: Any) -> None:
    """Bundles that are full, that are not, and of groups whose channels fill no vector."""
    rng = np.random.default_rng(31)
    cases = (
        grouped(7, 33, 48, padding=((3, 1), (0, 4))),
        grouped(5, 40, 32, size=(10, 13), dtype="bfloat16", padding="VALID"),
        grouped(11, 37, 35, size=(17, 25), dilations=(2, 3)),
        grouped(3, 64, 34, data_format="NCHW"),
        grouped(2, 200, 33, size=(8, 9)),
    )
    for turn, case in enumerate(cases):
        data = whole_numbers(case, rng, 3)
        for kind in KINDS:
            place: Place = ("start", "end", "shifted")[turn % 3]
            got = compute(winograd.NAME, target, case, kind, data, place)
            expected = expected_exactly(case, kind, data)
            np.testing.assert_array_equal(
                got.astype(np.float64), expected.astype(np.float64), str((case, kind, place))
            )
            checked["winograd problems on guarded memory, exact integers"] += 1


def test_neighbouring_groups_share_an_item_in_nhwc_only() -> None:
    for data_format, bundled in (("NHWC", True), ("NCHW", False)):
        for groups in (1, 12):
            problem = problem_of(grouped(groups, 32, 32, data_format=data_format), "forward")
            kernel = winograd.candidates(problem, HOST)[0].plan().steps[1].kernel
            assert isinstance(kernel, WinogradKernel)
            assert kernel.bundled == (bundled and groups > 1)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_change_no_bit(kind: str) -> None:
    rng = np.random.default_rng(32)
    least = max(32, 2 * HOST.lanes(4))  # whole panels of every width, and some channels more
    case = grouped(11, least + 8, least + 24, size=(25, 19))
    problem = problem_of(case, kind)
    bound = prepare.bind(planner.choose_named(problem, HOST, winograd.NAME), HOST)
    data = normal(case, rng)
    first, second = (data.x, data.f) if kind == "forward" else (data.f, data.g)
    results = set()
    for count in (1, 2, 3, 8):
        result = np.full(problem.result_shape, np.nan, np.float32)
        with convgrad.threads(count):
            run_program(bound, *(each.ctypes.data for each in (first, second, result)))
        results.add(result.tobytes())
    assert len(results) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_finite_stays_in_its_group(kind: str) -> None:
    rng = np.random.default_rng(33)
    case = grouped(6, 32, 33)
    data = whole_numbers(case, rng)
    data.x[0, 4, 5, 70], data.g[1, 8, 12, 70] = np.inf, np.nan
    got = compute(winograd.NAME, HOST, case, kind, data).astype(np.float64)
    operands = (data.x, data.f) if kind == "forward" else (data.f, data.g)
    with np.errstate(invalid="ignore"):
        wide = (each.astype(np.float64) for each in operands)
        expected = oracle.compute(problem_of(case, kind), *wide)
    assert 0 < np.isfinite(expected).sum() < expected.size
    np.testing.assert_array_equal(got, expected)
