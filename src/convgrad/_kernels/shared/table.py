"""What a package of this folder hands to the table in `_kernels/__init__.py`: rows of two kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..._compiler.costs import Work
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..._problem.convolution import Problem
from ..plan import Plan


@dataclass(frozen=True)
class Candidate:
    """One way to compute a problem: what it would do, and how to plan it. Planning it takes longer than weighing it."""

    work: Work
    plan: Callable[[], Plan] = field(compare=False)
    label: str = ""
    """What tells it from the algorithm's other candidates, where there are others."""


class Algorithm(Protocol):
    """What the module of an algorithm offers.

    Two more are optional. `WINOGRAD` is the least value of that switch that allows the algorithm. `at_least(problem,
    target)` returns microseconds that none of its candidates beats, for one that takes long to list them.
    """

    @property
    def NAME(self) -> str: ...

    def why_not(self, problem: Problem, target: Target) -> str | None:
        """Return why this algorithm cannot compute the problem, or None if it can."""
        ...

    def candidates(self, problem: Problem, target: Target) -> Sequence[Candidate]:
        """Return the ways to compute a problem it does not refuse; at least one."""
        ...


Algorithms = Mapping[str, Algorithm]
"""By name, in the order in which equals are preferred."""
Emitters = Mapping[type, Callable[[Any, Target], KernelSource]]
"""What writes a kernel, by the type of its identity."""
