"""Which algorithm computes a problem, and why: algorithms say why not, the first that does not refuse is taken."""

from __future__ import annotations

from functools import lru_cache

from ._algorithms import ALGORITHMS
from ._errors import InternalError
from ._plan import Plan
from ._problem import Problem


@lru_cache(maxsize=4096)
def choose(problem: Problem) -> Plan:
    """Return the plan for a problem."""
    refusals = []
    for name, algorithm in ALGORITHMS.items():
        reason = algorithm.why_not(problem)
        if reason is None:
            return Plan(problem, name)
        refusals.append(f"{name}: {reason}")
    raise InternalError(f"no algorithm takes {problem} ({'; '.join(refusals)}); please report this")
