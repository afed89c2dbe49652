"""Which algorithm computes a problem, and why: algorithms say why not, the first that does not refuse is taken."""

from __future__ import annotations

from functools import lru_cache

from ._algorithms import ALGORITHMS
from ._errors import ArgumentError, InternalError
from ._plan import Plan
from ._problem import Problem
from ._targets import Target


@lru_cache(maxsize=4096)
def choose(problem: Problem, target: Target) -> Plan:
    """Return the plan for a problem."""
    for algorithm in ALGORITHMS.values():
        if algorithm.why_not(problem, target) is None:
            return algorithm.plan(problem, target)
    raise InternalError(f"no algorithm takes {problem}; please report this")


def choose_named(problem: Problem, target: Target, name: str) -> Plan:
    """Return the plan of one algorithm, or raise with its reason to refuse."""
    algorithm = ALGORITHMS[name]
    reason = algorithm.why_not(problem, target)
    if reason is not None:
        raise ArgumentError(f"{name} does not take this problem: {reason}.")
    return algorithm.plan(problem, target)


def refusals(problem: Problem, target: Target) -> dict[str, str | None]:
    """Return, for every algorithm in order, why it refuses, or None."""
    return {name: algorithm.why_not(problem, target) for name, algorithm in ALGORITHMS.items()}
