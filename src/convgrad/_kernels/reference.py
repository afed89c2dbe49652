"""The algorithm of last resort: it takes every problem, is right before it is quick, and has no kernels.

Small problems are added as the contract of sums says, by its specification: the same bits as from kernels, on CPUs
without a fused multiply-add too. That takes 10 to 100 times as long as the oracle's sums in float64 (or integers),
rounded once to the result's dtype, which all others get.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._base import dtypes
from .._base.dtypes import AnyArray
from .._base.fp_mode import default_mode
from .._compiler.costs import Work
from .._compiler.targets import Target
from .._problem import oracle
from .._problem.convolution import Problem
from .._problem.sums import specification
from .plan import Plan
from .shared.amounts import kind_of_work
from .shared.table import Candidate

NAME = "reference"


def why_not(problem: Problem, target: Target) -> str | None:
    """Refuse nothing."""
    return None


def candidates(problem: Problem, target: Target) -> Sequence[Candidate]:
    """Offer one plan: the sums are computed one tap at a time, whatever the problem."""
    taps = problem.rows.window * problem.cols.window
    amounts = {"products": problem.flops / 2, "taps": taps}
    done = Work(kind_of_work(NAME, problem), amounts, items=1, serial=True)
    story = (("sums", "the contract's where that is quick, else float64"),)
    return (Candidate(done, lambda: Plan(problem, NAME, serial=True, story=story)),)


def follows_contract(problem: Problem, numbers: str) -> bool:
    """Tell whether a problem of a class gets the contract's bits."""
    return not specification.why_not(problem, numbers) and specification.is_quick(problem, numbers)


def fill(
    problem: Problem,
    numbers: str,
    first: AnyArray,
    second: AnyArray,
    result: AnyArray,
    bias: AnyArray | None = None,
) -> None:
    """Fill `result`, the bias included; a filter gradient fills `bias` too. `numbers` is the problem's class."""
    if follows_contract(problem, numbers):
        given = bias if problem.adds_bias else None
        result[...], beside = specification.compute(problem, first, second, given, numbers)
        if beside is not None and bias is not None:
            bias[...] = beside
        return
    with default_mode():
        _fill_exactly(problem, first, second, result, bias)


def _fill_exactly(
    problem: Problem, first: AnyArray, second: AnyArray, result: AnyArray, bias: AnyArray | None
) -> None:
    """Fill both with exact sums, each rounded once.

    int32 adds in int64: products of two int32 fit, and what wraps modulo 2**64 wraps to the same int32.
    """
    wide = np.int64 if problem.dtype.is_integer else np.float64
    with np.errstate(invalid="ignore"):  # signalling NaNs
        operands = first.astype(wide, copy=False), second.astype(wide, copy=False)
        total = oracle.compute(problem, *operands)
        if bias is not None and problem.adds_bias:
            total = oracle.add_bias(problem, total, bias.astype(wide))
    if bias is not None and not problem.adds_bias:
        image = operands[0 if problem.bias == "input" else 1]
        bias[...] = _rounded(problem, oracle.sum_pixels(problem, image))
    result[...] = _rounded(problem, total)


def _rounded(problem: Problem, total: AnyArray) -> AnyArray:
    dtype = problem.dtype
    return total.astype(np.int32) if dtype.is_integer else dtypes.round_once(total, dtype)
