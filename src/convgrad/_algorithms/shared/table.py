"""What a package of this folder hands to the table in `_algorithms/__init__.py`: rows of two kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ..._kernel import KernelSource
from ..._plan import Plan
from ..._problem import Problem
from ..._targets import Target


class Algorithm(Protocol):
    """What the module of an algorithm offers."""

    def why_not(self, problem: Problem, target: Target) -> str | None:
        """Return why this algorithm cannot compute the problem, or None if it can."""
        ...

    def plan(self, problem: Problem, target: Target) -> Plan:
        """Return how it would compute a problem it does not refuse."""
        ...


Algorithms = Mapping[str, Algorithm]
"""By name, best first."""
Emitters = Mapping[type, Callable[[Any, Target], KernelSource]]
"""What writes a kernel, by the type of its identity."""
