"""Problems with a bias: driving one algorithm on them, and what comes out exactly."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from cases import ACCUMULATOR_UNITS, NUMPY, UNITS, Case, Data, run
from convgrad._base import dtypes
from convgrad._compiler.targets import Target
from convgrad._engine import planner, prepare
from convgrad._problem.convolution import Problem, Side
from convgrad._runtime.run import run as run_program
from kernels import Place, guarded_state, placed, problem_of, shared_among
from tolerance import bound

SIDES: dict[str, tuple[Side, ...]] = {
    "forward": ("output",),
    "input": ("input",),
    "filter": ("output", "input"),
}
"""Whose channels a bias may belong to, by operation."""


def biased(case: Case, kind: str, side: Side) -> Problem:
    """Return one of the problems a case stands for, with a bias."""
    return replace(problem_of(case, kind), bias=side)


def operands(kind: str, data: Data) -> tuple[Any, Any]:
    """Return the operands of an operation in its order."""
    return {"forward": (data.x, data.f), "input": (data.f, data.g), "filter": (data.x, data.g)}[
        kind
    ]


def compute(
    name: str,
    target: Target,
    problem: Problem,
    kind: str,
    data: Data,
    bias: Any,
    place: Place = "end",
    threads: int = 1,
) -> tuple[Any, Any]:
    """Run one algorithm on copies of its operands; returns result and bias, which a filter gradient has written.

    As `kernels.compute` does: all that is written starts full of rubbish, and all memory ends at a forbidden page.
    """
    plan = planner.choose_named(problem, target, name)
    program = prepare.bind(plan, target, guarded_state())
    first, second = (placed(each, place) for each in operands(kind, data))
    result = placed(np.full(problem.result_shape, 77, problem.dtype.numpy), place)
    if not problem.adds_bias:
        bias = np.full(problem.bias_c, 77, problem.dtype.numpy)
    beside = placed(bias, place)
    with shared_among(threads):
        run_program(program, *(each.ctypes.data for each in (first, second, result, beside)))
    return result, beside


def channels_last(case: Case, bias: Any) -> Any:
    """Return a bias as it is added to an image of the case's layout."""
    return bias if case.data_format == "NHWC" else bias[:, None, None]


def pixels_of(case: Case, side: Side, data: Data) -> Any:
    """Return the image whose pixels a bias's gradient adds up, as [pixel, channel] in the widest type."""
    image = data.x if side == "input" else data.g
    if case.data_format == "NCHW":
        image = image.transpose(0, 2, 3, 1)
    wide: Any = np.int64 if case.dtype == "int32" else np.longdouble
    return image.reshape(prod(image.shape[:3]), image.shape[3]).astype(wide)


def exactly(case: Case, kind: str, side: Side, data: Data, bias: Any) -> tuple[Any, Any]:
    """Return result and bias, or its gradient, on whole numbers, rounded once to the case's dtype; int32 wraps."""
    exact = run(case, kind, data, "reference", exact=True)
    if kind == "filter":
        return rounded(case, exact), rounded(case, pixels_of(case, side, data).sum(0))
    return rounded(case, exact + channels_last(case, bias.astype(np.int64))), bias


def rounded(case: Case, exact: Any) -> Any:
    """Return whole numbers in the case's dtype."""
    if case.dtype == "int32":
        return ((exact + 2**31) % 2**32 - 2**31).astype(np.int32)
    row = dtypes.find(NUMPY[case.dtype])
    assert row is not None
    return dtypes.round_once(exact.astype(np.float64), row)


def assert_close(
    case: Case,
    kind: str,
    side: Side,
    data: Data,
    bias: Any,
    got: tuple[Any, Any],
    algorithm: str = "",
) -> None:
    """Hold a result against the float64 one: one rounding, and the summation error of the accumulator."""
    exact, allowed = bound(case, kind, data, algorithm)
    unit, accumulator = UNITS[case.dtype], ACCUMULATOR_UNITS[case.dtype]
    if kind == "filter":
        pixels = pixels_of(case, side, data)
        total = pixels.sum(0)
        # Runs, their sums and the shares are all short: an eighth of the pixels in a row is far more than any.
        terms = 4 + len(pixels) / 8
        room = unit * np.abs(total) + terms * accumulator * np.abs(pixels).sum(0) + 2.0**-133
        error = np.abs(got[1].astype(np.longdouble) - total)
        assert (error <= room).all(), (case, side, float((error / room).max()))
    else:
        added = channels_last(case, bias.astype(np.float64))
        exact = exact + added
        allowed = allowed + (unit * 1.0001 + 2 * accumulator) * np.abs(added)
    error = np.abs(got[0].astype(np.float64) - exact)
    assert (error <= allowed).all(), (case, kind, float((error / allowed).max()))
