"""Which algorithm computes a problem, and why: algorithms say why not, the first that does not refuse is taken.

An algorithm may stand behind a switch: its module then names, under the switch's name in capitals, the least value that
allows it. `choose` and `refusals` heed the switches of the caller's context; `choose_named` does not.
"""

from __future__ import annotations

from functools import lru_cache

from . import _config
from ._algorithms import ALGORITHMS, reference
from ._errors import ArgumentError, InternalError
from ._plan import Plan
from ._problem import Problem
from ._targets import Target


def choose(problem: Problem, target: Target) -> Plan:
    """Return the plan for a problem."""
    return _choose(problem, target, _config.get("winograd"))


@lru_cache(maxsize=64)
def _choose(problem: Problem, target: Target, winograd: str) -> Plan:
    for name, algorithm in ALGORITHMS.items():
        if not _switched_off(name, winograd) and _why_not(name, problem, target) is None:
            return algorithm.plan(problem, target)
    raise InternalError(f"no algorithm takes {problem}; please report this")


def choose_named(problem: Problem, target: Target, name: str) -> Plan:
    """Return the plan of one algorithm, or raise with its reason to refuse."""
    reason = _why_not(name, problem, target)
    if reason is not None:
        raise ArgumentError(f"{name} does not take this problem: {reason}.")
    return ALGORITHMS[name].plan(problem, target)


def refusals(problem: Problem, target: Target) -> dict[str, str | None]:
    """Return, for every algorithm in order, why it refuses or is not asked, or None."""
    winograd = _config.get("winograd")
    return {
        name: _why_not(name, problem, target) or _switched_off(name, winograd)
        for name in ALGORITHMS
    }


def _why_not(name: str, problem: Problem, target: Target) -> str | None:
    """Return why an algorithm refuses, or None. None of them is asked about nothing: they divide by sizes."""
    if problem.is_empty and name != reference.NAME:
        return "nothing to add up"
    return ALGORITHMS[name].why_not(problem, target)


def _switched_off(name: str, winograd: str) -> str | None:
    """Return why the switch keeps an algorithm from being asked, or None."""
    least = getattr(ALGORITHMS[name], "WINOGRAD", None)
    order = _config.WINOGRAD
    if least is None or order.index(winograd) >= order.index(least):
        return None
    return f'opt-in: options(winograd="{least}")' if winograd == "auto" else "switched off"
