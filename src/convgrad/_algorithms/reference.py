"""The algorithm of last resort: the oracle's sums in float64 (or integers), rounded once to the result's dtype.

It takes every problem, is right before it is quick, and keeps no state.
"""

from __future__ import annotations

import numpy as np

from .. import _dtypes, _oracle
from .._dtypes import AnyArray
from .._plan import Plan
from .._problem import Problem


def why_not(problem: Problem) -> str | None:
    """Refuse nothing."""
    return None


def run(plan: Plan, first: AnyArray, second: AnyArray, result: AnyArray) -> None:
    """Fill `result` with the exact sums, each rounded once.

    int32 adds in int64: products of two int32 fit, and what wraps modulo 2**64 wraps to the same int32.
    """
    dtype = plan.problem.dtype
    wide = np.int64 if dtype.is_integer else np.float64
    with np.errstate(invalid="ignore"):  # signalling NaNs
        operands = first.astype(wide, copy=False), second.astype(wide, copy=False)
    total = _oracle.compute(plan.problem, *operands)
    result[...] = total.astype(np.int32) if dtype.is_integer else _dtypes.round_once(total, dtype)
