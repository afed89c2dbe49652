"""How Winograd's algorithm divides its work: fused, or the input apart, and evenly among many threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import convgrad
from calling import some_targets
from cases import Case, Data, normal, whole_numbers
from convgrad._compiler import jit
from convgrad._compiler.targets import Target
from convgrad._engine import planner, prepare
from convgrad._kernels.shared.table import Candidate
from convgrad._kernels.winograd import fast as winograd_fast
from convgrad._kernels.winograd import schedule as winograd
from convgrad._runtime.run import run as run_program
from kernels import expected_exactly, guarded_state, placed, problem_of

HOST = jit.host_target()
KINDS = ("forward", "input")


def dense(batch: int, size: tuple[int, int], channels: tuple[int, int], **more: Any) -> Case:
    """Return a 3x3 problem of stride 1."""
    usual: dict[str, Any] = {"groups": 1, "dilations": (1, 1), "padding": "SAME"}
    return Case(
        depthwise=False,
        batch=batch,
        size=size,
        group_in=channels[0],
        group_out=channels[1],
        window=(3, 3),
        strides=(1, 1),
        **{**usual, **more},
    )


def apart(case: Case, kind: str, target: Target) -> Candidate:
    """Return the candidate that transforms the input by a launch of its own."""
    found = winograd.candidates(problem_of(case, kind), target)
    return next(each for each in found if each.label)


def operands(kind: str, data: Data) -> tuple[Any, Any]:
    return (data.x, data.f) if kind == "forward" else (data.f, data.g)


@pytest.mark.parametrize("target", some_targets(0))
def test_whole_numbers_come_out_exact_with_the_input_apart(target: Target, checked: Any) -> None:
    rng = np.random.default_rng(41)
    for turn, case in enumerate(
        (
            dense(1, (14, 13), (70, 97)),
            dense(1, (14, 15), (64, 80), data_format="NCHW", padding=((3, 1), (0, 4))),
            dense(2, (9, 9), (40, 33), groups=5, dtype="half"),
            dense(1, (17, 11), (48, 64), dilations=(2, 3), data_format="NCHW"),
        )
    ):
        data = whole_numbers(case, rng, 3)
        for kind in KINDS:
            problem = problem_of(case, kind)
            plan = apart(case, kind, target).plan()
            bound = prepare.bind(plan, target, guarded_state())
            place = ("end", "start", "shifted")[turn % 3]
            first, second = (placed(each, place) for each in operands(kind, data))
            result = placed(np.full(problem.result_shape, 77, problem.dtype.numpy), place)
            with convgrad.threads(1):
                run_program(bound, *(each.ctypes.data for each in (first, second, result)))
            expected = expected_exactly(case, kind, data)
            np.testing.assert_array_equal(
                result.astype(np.float64), expected.astype(np.float64), str((case, kind))
            )
            checked["winograd problems on guarded memory, exact integers"] += 1


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("kind", KINDS)
def test_neither_the_way_nor_the_threads_change_a_bit(kind: str, data_format: str) -> None:
    rng = np.random.default_rng(42)
    case = dense(1, (28, 28), (100, 128), data_format=data_format)
    problem = problem_of(case, kind)
    first, second = operands(kind, normal(case, rng))
    results = set()
    for candidate in winograd.candidates(problem, HOST):
        bound = prepare.bind(candidate.plan(), HOST)
        for count in (1, 2, 3, 8):
            result = np.full(problem.result_shape, np.nan, np.float32)
            with convgrad.threads(count):
                run_program(bound, *(each.ctypes.data for each in (first, second, result)))
            results.add(result.tobytes())
    assert len(results) == 1


def test_what_is_taken_divides_well_among_many_threads(machine: Target) -> None:
    """Products above 100 million operations: 16 threads could be 12 times as quick as one."""
    for batch, size, channels in (
        (1, 56, 64), (1, 28, 128), (1, 14, 256), (8, 14, 256), (2, 33, 256), (8, 56, 64), (1, 16, 512),
    ):  # fmt: skip
        for data_format in ("NHWC", "NCHW"):
            for kind in KINDS:
                case = dense(batch, (size, size), (channels, channels), data_format=data_format)
                plan = planner.choose(problem_of(case, kind), machine)
                if plan.algorithm != winograd.NAME:
                    continue
                items = plan.steps[-1].items
                assert items / -(-items // 16) >= 12, (case, kind)


def test_the_input_is_apart_only_where_tiles_are_few() -> None:
    for module in (winograd, winograd_fast):
        for batch, size, labels in ((1, 14, ["", "input apart"]), (8, 112, [""])):
            problem = problem_of(dense(batch, (size, size), (64, 64)), "forward")
            found = module.candidates(problem, HOST)
            assert [each.label for each in found] == labels
            for each in found:
                plan = each.plan()
                assert plan.partial_bytes <= 8 << 20
                assert (plan.partial_bytes > 0) == bool(each.label)
                assert len(plan.steps) == each.work.launches
