"""Conduct a check of batch norm: draw problems, call the kernel, judge, look for causes, shrink, report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ...._base.dtypes import PLAIN_FIRST, AnyArray
from ...._base.errors import ArgumentError
from ..implementation import Observation
from ..problems import LAYOUTS
from ..properties import OBSERVED
from ..report import Finding, Report, Row
from ..shrink import Budget, below, descend
from ..snippet import imported, numbers, spelled
from .case import BACKWARD, DTYPES, RESULTS, Arrays, NormCase
from .mistakes import MISTAKES
from .properties import NormTrial, Property, applicable, trial
from .truth import Right, adds_up, judge, truth

_CALLS, _SECONDS = 300, 10.0
_DEATHS, _HANGS = 3, 3
"""As for convolutions: each death costs a process, each hang the whole time limit."""


class NormCaller(Protocol):
    """Something that calls the kernel under test and lives to tell."""

    @property
    def version(self) -> str: ...
    def observe_norm(self, case: NormCase, arrays: Arrays, twice: bool) -> Observation: ...


@dataclass(frozen=True)
class _Failure:
    trial: NormTrial
    arrays: Arrays
    results: list[AnyArray]
    wrong: str


class NormCheck:
    """One run, with its accounts."""

    def __init__(
        self,
        caller: NormCaller,
        name: str,
        op: str,
        chosen: tuple[str, ...],
        dtypes: tuple[str, ...],
        layouts: tuple[str, ...],
        seed: int,
        advance: Callable[[int, str], None],
    ) -> None:
        self._caller, self._name, self._seed, self._advance = caller, name, seed, advance
        self._hangs = 0
        self._plain = self._accepted(op, dtypes, layouts)
        self._properties = applicable(self._plain, chosen, dtypes, layouts)
        if not self._properties:
            self._properties = applicable(self._plain, ("basic",), dtypes, layouts)
        self._rows = {row.name: Row(row.name, row.meaning) for row in self._properties}
        self._rows |= {n: Row(n, meaning) for n, meaning in OBSERVED.items() if n in chosen}
        self._failures: list[_Failure] = []
        self._worst: dict[str, float] = {}

    def _accepted(self, op: str, dtypes: tuple[str, ...], layouts: tuple[str, ...]) -> NormCase:
        """Find the layout and dtype of the plain problems: the first the kernel does not refuse."""
        reason = ""
        basic = Property("basic", "", {})
        for layout in (each for each in LAYOUTS if each in layouts):
            for dtype in (row.name for row in PLAIN_FIRST):
                if dtype not in dtypes:
                    continue
                plain = NormCase(op, 1, (1, 1), 1, data_format=layout, dtype=dtype)
                each = trial(basic, plain, self._seed, 0)
                seen = self._caller.observe_norm(each.case, each.arrays(), False)
                self._hangs += seen.late
                if seen.refused is None:
                    return plain
                reason = reason or seen.refused
        raise ArgumentError(
            f"check: {self._name} refused every plain problem of {op}; the first time it said: {reason}"
        )

    def run(self, count: int, seconds: float | None) -> Report:
        start = time.monotonic()
        for number in range(count):
            row = self._properties[number % len(self._properties)]
            late = seconds is not None and time.monotonic() - start > seconds
            if late or self._hangs >= _HANGS:
                break
            self._advance(1, row.name)
            if self._rows[row.name].died < _DEATHS:
                self._try(trial(row, self._plain, self._seed, number // len(self._properties)))
        return Report(
            implementation=self._name,
            version=self._caller.version,
            op=self._plain.op,
            seed=self._seed,
            dtype=self._plain.dtype,
            layout=self._plain.data_format,
            rows=tuple(self._rows.values()),
            worst={name: self._worst[name] for name in DTYPES if name in self._worst},
            findings=tuple(self._findings()),
            seconds=time.monotonic() - start,
            settings={"problems": count, "seconds": seconds, "lines": None},
            stopped=f"given up after {self._hangs} calls without an answer"
            if self._hangs >= _HANGS
            else "",
            measure="limits",
        )

    def _try(self, each: NormTrial) -> None:
        account, arrays = self._rows[each.property.name], each.arrays()
        seen, wrong, worst = self._judged(each, arrays)
        if seen.refused is not None:
            account.refused += 1
            account.reason = account.reason or seen.refused
            return
        if seen.died is not None:
            account.died += 1
            self._hangs += seen.late
        else:
            for name, bad in (("operands-kept", seen.written), ("fresh-result", seen.shared)):
                row = self._rows.get(name)
                if row is not None and bad:
                    row.failed += 1
                    words = "an operand was written to"
                    if name == "fresh-result":
                        words = f"a result shares memory with {bad}"
                    own = replace(each, property=Property(name, "", each.property.change))
                    self._failures.append(_Failure(own, arrays, seen.results or [], words))
                elif row is not None:
                    row.passed += 1
            account.failed += wrong is not None
            account.passed += wrong is None
        if wrong is None:
            self._worst[each.case.dtype] = max(self._worst.get(each.case.dtype, 0.0), worst)
        else:
            self._failures.append(_Failure(each, arrays, seen.results or [], wrong))

    def _judged(self, each: NormTrial, arrays: Arrays) -> tuple[Observation, str | None, float]:
        """Call the kernel; return what was seen, what is wrong in words, and the worst error."""
        case, row = each.case, each.property
        seen = self._caller.observe_norm(case, arrays, row.twice)
        if seen.refused is not None:
            return seen, None, 0.0
        if seen.died is not None:
            return seen, seen.died, 0.0
        assert seen.results is not None
        wrong, worst = judge(truth(case, arrays), seen.results)
        if wrong is None and not seen.repeated:
            wrong = "two calls gave different bits"
        if wrong is None and row.doubled:
            wrong = self._not_doubled(case, arrays, seen.results)
        if wrong is None and row.adds_up:
            wrong = adds_up(case, arrays, seen.results[0])
        return seen, wrong, worst

    def _not_doubled(self, case: NormCase, arrays: Arrays, results: list[AnyArray]) -> str | None:
        twice = arrays | {"out_backprop": arrays["out_backprop"] + arrays["out_backprop"]}
        seen = self._caller.observe_norm(case, twice, False)
        if seen.results is None:
            return seen.died or seen.refused
        for name, one, two in zip(RESULTS[case.op], results, seen.results, strict=False):
            if one.shape != two.shape or not np.array_equal(one + one, two):
                return f"{name}: not twice as large for twice `out_backprop`"
        return None

    def _findings(self) -> Iterator[Finding]:
        """Yield one finding per cause, those with a guess first."""
        causes: dict[tuple[str | None, str], list[_Failure]] = {}
        guesses = [(_guess(each), each) for each in self._failures]
        for guess, each in sorted(guesses, key=lambda pair: pair[0] is None):
            kind = "" if guess else each.wrong.partition(" of ")[0].rstrip("0123456789 ")
            causes.setdefault((guess, kind), []).append(each)
        for (guess, _), group in causes.items():
            yield self._finding(guess, group)

    def _finding(self, guess: str | None, group: list[_Failure]) -> Finding:
        start = min(group, key=lambda each: (each.trial.case.values == 0, _size(each.trial.case)))
        found = self._smallest(start, guess)
        where = tuple(dict.fromkeys(each.trial.property.name for each in group))
        total = sum(each.trial.property.name in where for each in self._failures)
        case = found.trial.case
        evidence = f"matches {len(group)} of {total} failing problems"
        if guess is None:
            evidence = f"no known mistake reproduces these {len(group)} of {total} failing problems"
        rights = truth(case, found.arrays)
        shown = next(
            (
                (right, got)
                for right, got in zip(rights, found.results, strict=False)
                if right.name == found.wrong.partition(":")[0]
            ),
            None,
        )
        return Finding(
            what=f"{found.wrong} in the smallest failing problem",
            guess=guess,
            evidence=evidence,
            properties=where,
            program=_program(self._name, case, found.arrays),
            got=numbers(shown[1], shown[0].exact) if shown else found.wrong,
            expected=numbers(shown[0].exact, shown[1])
            if shown
            else f"{case.row.name} {list(case.shape)}",
        )

    def _smallest(self, start: _Failure, guess: str | None) -> _Failure:
        """Lower sizes and settings as long as the failure stays the same."""
        if start.trial.property.name in OBSERVED:
            return start
        kind = _kind(start.wrong)

        def again(case: NormCase) -> _Failure | None:
            each = replace(start.trial, case=case)
            arrays = each.arrays()
            seen, wrong, _ = self._judged(each, arrays)
            self._hangs += seen.late
            if wrong is None or _kind(wrong) != kind:
                return None
            failure = _Failure(each, arrays, seen.results or [], wrong)
            return failure if guess is None or guess == _guess(failure) else None

        spend = Budget(_CALLS, _SECONDS).spend
        return descend(start.trial.case, start, _smaller, again, spend)[1]


def _kind(wrong: str) -> str:
    """Tell wrong numbers of one result from those of another, and from wrong shapes and deaths."""
    name, _, words = wrong.partition(": ")
    return f"{name}: {words.lstrip('0123456789 of').partition(' ')[0]}"


def _guess(failure: _Failure) -> str | None:
    """Return the mistake that gives just these numbers."""
    case, arrays = failure.trial.case, failure.arrays
    if not failure.results or not _size(case) or failure.trial.property.name in OBSERVED:
        return None
    rights = truth(case, arrays)
    if any(g.shape != r.exact.shape for g, r in zip(failure.results, rights, strict=True)):
        return None
    for mistake in MISTAKES:
        if case.op not in mistake.ops:
            continue
        with np.errstate(all="ignore"):
            made = mistake.compute(case, arrays)
        if made is not None and _matches(rights, failure.results, made):
            return mistake.text
    return None


def _matches(rights: list[Right], results: list[AnyArray], made: list[AnyArray]) -> bool:
    """Tell whether results are those of a mistake, which may make the first ones only, and not the right ones."""
    pairs = list(zip(rights, results, made, strict=False))
    with np.errstate(all="ignore"):
        differs = any(bool((np.abs(m - r.exact) > r.allowed).any()) for r, _, m in pairs)
        alike = (
            (np.abs(g.astype(np.float64) - m) <= r.allowed + 2.0**-20 * np.abs(m)).all()
            for r, g, m in pairs
        )
        return differs and all(alike)


def _size(case: NormCase) -> int:
    return case.values * case.channels


def _smaller(case: NormCase) -> Iterator[NormCase]:
    """Yield simpler cases, the boldest first."""
    simpler = (
        *(replace(case, data_format="NHWC"), replace(case, dtype="float32")),
        *(replace(case, residual=""), replace(case, activation="none"), replace(case, scale=False)),
        *(replace(case, offset=False), replace(case, is_training=True)),
        replace(case, epsilon=1e-3),
        *(replace(case, channels=value) for value in below(case.channels, 1)),
        *(replace(case, images=value) for value in below(case.images, 1)),
    )
    yield from (each for each in simpler if each != case)
    for at in (0, 1):
        for value in below(case.size[at], 1):
            yield replace(case, size=(value, case.size[1]) if at == 0 else (case.size[0], value))


def _program(kernel: str, case: NormCase, arrays: Arrays) -> str:
    """Return a program that builds the arrays, calls the kernel and compares with the oracle."""
    order = ["out_backprop"] if case.op == BACKWARD else []
    order += ["input", "scale", "offset", "mean", "variance"]
    positional = ", ".join(name if name in arrays else "None" for name in order)
    settings = ", ".join(f"{key}={value!r}" for key, value in case.settings.items())
    residual = ", residual=residual" if case.residual else ""
    bfloat16 = case.dtype == "bfloat16"
    lines = [
        "import numpy as np",
        *(["from ml_dtypes import bfloat16"] if bfloat16 else []),
        "from convgrad import reference",
        *imported(kernel, case.op),
        "",
        *(line for name, each in arrays.items() for line in spelled(name, each)),
        f"settings = dict({settings})",
        f"got = kernel({positional}{residual}, **settings)",
        f"want = reference.{case.op}({positional}{residual}, **settings)",
        "for name, one, other in zip(want._fields, got, want):",
        "    if other is not None:",
        "        print(name, np.asarray(one).tolist(), other.tolist(), sep='\\n')",
    ]
    return "\n".join(lines) + "\n"
