"""The algorithms, best first. A new one is a module with the functions of `Algorithm` and a row in `ALGORITHMS`."""

from __future__ import annotations

from typing import Protocol

from .._dtypes import AnyArray
from .._plan import Plan
from .._problem import Problem
from . import reference


class Algorithm(Protocol):
    """What a module of this folder offers."""

    def why_not(self, problem: Problem) -> str | None:
        """Return why this algorithm cannot compute the problem, or None if it can."""
        ...

    def run(self, plan: Plan, first: AnyArray, second: AnyArray, result: AnyArray) -> None:
        """Fill `result`. Operands are C-contiguous, native and aligned; shapes have been checked."""
        ...


ALGORITHMS: dict[str, Algorithm] = {"reference": reference}
