"""From many failures to few findings: one per cause, each with the smallest problem that shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..._base.dtypes import AnyArray
from .guess import Cause, Failure, Passed, causes
from .implementation import Observation
from .judge import judge, truth
from .problems import Case, Data, Trial
from .report import Finding
from .shrink import Budget, smallest
from .snippet import numbers, program

_CALLS, _SECONDS = 600, 15.0
_DEADLY_CALLS, _DEADLY_SECONDS = 60, 90.0
"""Each call of a kernel that dies may cost a new process, and the import of a framework."""
_LATE_CALLS = 2
"""Calls without an answer while a problem is made smaller: each takes the whole time limit."""


class Caller(Protocol):
    """Something that calls the kernel under test and lives to tell."""

    @property
    def version(self) -> str: ...
    def observe(
        self, case: Case, first: AnyArray, second: AnyArray, twice: bool
    ) -> Observation: ...


@dataclass(frozen=True)
class Trouble:
    """Something wrong other than the numbers."""

    kind: str
    """died, written, shared or repeated."""
    words: str
    trial: Trial
    first: AnyArray
    second: AnyArray
    late: bool = False
    """Whether it died of not answering in time."""


class Finder:
    """Turns failures and troubles of one kernel into findings."""

    def __init__(self, caller: Caller, name: str) -> None:
        self._caller, self._name = caller, name

    def findings(
        self, failures: Sequence[Failure], passed: Sequence[Passed], troubles: Sequence[Trouble]
    ) -> tuple[Finding, ...]:
        """Return what is wrong: wrong numbers by cause, then deaths, then the rest."""
        numbers_wrong = [self._wrong(cause, failures) for cause in causes(failures, passed)]
        groups: dict[tuple[str, str], list[Trouble]] = {}
        for each in troubles:
            groups.setdefault((each.kind, each.words.partition(":")[0]), []).append(each)
        return (*numbers_wrong, *(self._trouble(group) for group in groups.values()))

    def _wrong(self, cause: Cause, failures: Sequence[Failure]) -> Finding:
        start = min(
            cause.explained,
            key=lambda each: (_is_empty(each.trial), each.trial.data != "ones", _work(each)),
        )

        def attempt(case: Case, data: Data, first: AnyArray, second: AnyArray) -> Failure | None:
            seen = self._caller.observe(case, first, second, False)
            if seen.result is None:
                return None
            right = truth(case, data, first, second)
            verdict = judge(right, seen)
            if verdict.wrong is None:
                return None
            trial = Trial(start.trial.property, case, data, start.trial.seed)
            failure = Failure(trial, first, second, right, seen.result, verdict.wrong)
            same = cause.text is not None or _kind(failure) == _kind(start)
            return failure if same and cause.explains(failure) else None

        case, data, operands, last = smallest(
            start.trial, (start.first, start.second), start, attempt, Budget(_CALLS, _SECONDS)
        )
        count = len(cause.explained)
        where = _properties([each.trial for each in cause.explained])
        total = sum(each.trial.property in where for each in failures)
        return Finding(
            what=f"{last.wrong} in the smallest failing problem",
            guess=cause.text,
            evidence=f"matches {count} of {total} failing problems"
            if cause.text
            else f"no known mistake reproduces these {count} of {total} failing problems",
            properties=where,
            program=program(self._name, case, data, start.trial.seed, *operands),
            got=numbers(last.got, last.right.exact),
            expected=numbers(last.right.exact, last.got),
        )

    def _trouble(self, group: list[Trouble]) -> Finding:
        start = min(group, key=lambda each: (_is_empty(each.trial), _size(each.trial.case)))
        twice = start.kind in ("repeated", "shared")
        budget = Budget(_CALLS, _SECONDS)
        if start.kind == "died":
            budget = Budget(_DEADLY_CALLS, _DEADLY_SECONDS, bold=start.late)
        late = 0

        def attempt(case: Case, data: Data, first: AnyArray, second: AnyArray) -> str | None:
            nonlocal late
            seen = self._caller.observe(case, first, second, twice)
            late += seen.late
            if late >= _LATE_CALLS:
                budget.calls = 0
            words = {
                "died": seen.died,
                "written": start.words if seen.written else None,
                "shared": start.words if seen.shared else None,
                "repeated": None if seen.repeated else start.words,
            }[start.kind]
            same = words is not None and words.partition(":")[0] == start.words.partition(":")[0]
            return words if same else None

        case, data, operands, words = smallest(
            start.trial, (start.first, start.second), start.words, attempt, budget
        )
        return Finding(
            what=words,
            guess=None,
            evidence=f"{len(group)} problem{'s' if len(group) > 1 else ''}",
            properties=_properties([each.trial for each in group]),
            program=program(self._name, case, data, start.trial.seed, *operands),
            got=words,
            expected=f"{case.row.name} {list(case.problem.result_shape)}",
        )


def _properties(trials: Sequence[Trial]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.property for each in trials))


def _kind(failure: Failure) -> str:
    """Tell wrong numbers from wrong shapes and lost NaNs."""
    return failure.wrong.partition(" ")[0] if failure.wrong[0].isalpha() else "numbers"


def _is_empty(trial: Trial) -> bool:
    """Whether there is nothing to add up; such a problem is shown only where no other fails alike."""
    return trial.case.problem.is_empty


def _size(case: Case) -> int:
    return int(np.prod(case.shapes[0])) + int(np.prod(case.shapes[1]))


def _work(failure: Failure) -> int:
    return _size(failure.trial.case)
