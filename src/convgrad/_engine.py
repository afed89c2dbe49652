"""The corridor: a problem and its operands in, a filled result out."""

from __future__ import annotations

from . import _arrays, _planner
from ._algorithms import ALGORITHMS
from ._dtypes import AnyArray
from ._problem import Problem


def run(function: str, problem: Problem, first: AnyArray, second: AnyArray) -> AnyArray:
    """Compute a problem; `function` is whom an error should name."""
    result = _arrays.new_result(function, problem.result_shape, problem.dtype)
    if problem.is_empty:
        result[...] = 0
        return result
    plan = _planner.choose(problem)
    algorithm = ALGORITHMS[plan.algorithm]
    algorithm.run(
        plan,
        _arrays.contiguous(first, problem.dtype),
        _arrays.contiguous(second, problem.dtype),
        result,
    )
    return result
