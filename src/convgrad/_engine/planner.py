"""Which algorithm computes a problem, and why: algorithms offer candidates, the cheapest by predicted time is taken.

Which numbers a result has is not theirs to choose: where the contract of sums says Winograd
(`_problem/sums/winograd.py`), the algorithm of that class alone is asked.

The prediction (`_compiler/costs`) is a function of the problem and the target; no clock is asked, so the choice is
always the same. Equals are taken in the order of the table. The reference is taken only where no kernel is.

An algorithm may stand behind a switch: its module then names, under the switch's name in capitals, the least value that
allows it. `choose` and `refusals` heed the switches of the caller's context; `choose_named` does not.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial

from .._base import config
from .._base.errors import ArgumentError
from .._base.fp_mode import default_mode
from .._compiler import costs
from .._compiler.targets import Target
from .._kernels import ALGORITHMS, reference
from .._kernels.plan import Plan
from .._kernels.shared.pixel_sum import complete
from .._kernels.shared.table import Candidate
from .._problem.convolution import Problem
from .._problem.sums.winograd import SUMS, numerical_class


def choose(problem: Problem, target: Target) -> Plan:
    """Return the plan for a problem."""
    return _choose(problem, target, config.get("winograd"))


@lru_cache(maxsize=64)
def _choose(problem: Problem, target: Target, winograd: str) -> Plan:
    with default_mode():
        return best(problem, target, winograd)[1].plan()


def best(problem: Problem, target: Target, winograd: str) -> tuple[str, Candidate]:
    """Return the algorithm whose candidate is the cheapest with the switch at a value, and that candidate."""
    taken: tuple[str, Candidate] | None = None
    least = float("inf")
    for name, algorithm in ALGORITHMS.items():
        if unasked(name, problem, winograd) or (name == reference.NAME and taken):
            continue
        # Some take long to list their candidates, and even to tell whether they have any.
        at_least = getattr(algorithm, "at_least", None)
        if taken and at_least is not None and at_least(problem, target) >= least:
            continue
        for rank, candidate in candidates(problem, target, name):
            if rank < least:
                taken, least = (name, candidate), rank
    assert taken is not None, "the reference refuses nothing"
    return taken


def choose_named(problem: Problem, target: Target, name: str) -> Plan:
    """Return the plan of one algorithm, or raise with its reason to refuse."""
    reason = why_not(name, problem, target)
    if reason is not None:
        raise ArgumentError(f"{name} does not take this problem: {reason}.")
    with default_mode():
        return candidates(problem, target, name)[0][1].plan()


def refusals(problem: Problem, target: Target) -> dict[str, str | None]:
    """Return, for every algorithm in order, why it refuses or is not asked, or None."""
    winograd = config.get("winograd")
    return {
        name: why_not(name, problem, target) or unasked(name, problem, winograd)
        for name in ALGORITHMS
    }


def candidates(problem: Problem, target: Target, name: str) -> list[tuple[float, Candidate]]:
    """Return what an algorithm offers, best first, each with what it is ranked by; nothing where it refuses."""
    if why_not(name, problem, target) is not None:
        return []
    offered = ALGORITHMS[name].candidates(problem, target)
    if problem.bias and not problem.adds_bias:
        offered = [replace(each, plan=partial(complete, each.plan)) for each in offered]
    ranked = [(costs.rank(each.work, target), each) for each in offered]
    return sorted(ranked, key=lambda pair: pair[0])


def why_not(name: str, problem: Problem, target: Target) -> str | None:
    """Return why an algorithm refuses, or None. None of them is asked about nothing: they divide by sizes."""
    if problem.is_empty and name != reference.NAME:
        return "nothing to add up"
    return ALGORITHMS[name].why_not(problem, target)


def unasked(name: str, problem: Problem, winograd: str) -> str | None:
    """Return why an algorithm is not asked with the switch at a value, or None: what it computes has other bits."""
    numbers = numerical_class(problem, winograd)
    off = switched_off(name, winograd)
    if off or numbers in (SUMS, name):
        return off
    return f"the numbers of this problem are those of {numbers}"


def switched_off(name: str, winograd: str) -> str | None:
    """Return why the switch keeps an algorithm from being asked, or None."""
    least = getattr(ALGORITHMS[name], "WINOGRAD", None)
    order = config.WINOGRAD
    if least is None or order.index(winograd) >= order.index(least):
        return None
    return f'opt-in: options(winograd="{least}")' if winograd == "auto" else "switched off"
