"""Conduct a check: draw problems, call the kernel, judge, count, look for causes, shrink, report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from operator import index
from typing import Any

from ..._base.dtypes import PLAIN_FIRST, AnyArray
from ..._base.errors import ArgumentError, shown
from ..._problem.text import Line, write
from . import given
from .batch_norm.case import OPS as BATCH_NORM
from .batch_norm.case import Arrays, NormCase
from .batch_norm.case import observe as observe_norm
from .batch_norm.properties import NAMES as NORM_NAMES
from .batch_norm.run import NormCheck
from .child import Isolated
from .findings import Caller, Finder, Trouble
from .guess import Failure, Passed
from .implementation import Kernel, Observation, load, observe, version
from .judge import judge, truth
from .problems import DTYPES, LAYOUTS, OPS, Case, Trial
from .properties import NAMES as PROPERTY_NAMES
from .properties import OBSERVED, PROPERTIES, Base, Property, applicable, trial, trials
from .report import Report, Row

PROBLEMS = 2000
_DEATHS = 3
"""After so many deaths a property is not tried further: each costs a new process."""
_HANGS = 3
"""After so many calls without an answer nothing is tried further: each takes the whole time limit, a minute as a rule,
so that a kernel that never answers would take an hour. Two more may go by while the problem is made smaller."""
_KEPT = 400
"""Right answers kept for telling likely causes apart."""

Advance = Callable[[int, str], None]


@dataclass
class Here:
    """A kernel called in this process."""

    kernel: Kernel
    version: str = ""

    def observe(self, case: Case, first: AnyArray, second: AnyArray, twice: bool) -> Observation:
        return observe(self.kernel, case, first, second, twice)

    def observe_norm(self, case: NormCase, arrays: Arrays, twice: bool) -> Observation:
        return observe_norm(self.kernel, case, arrays, twice)


def names_for(op: str) -> tuple[str, ...]:
    """Return the properties of an operation."""
    return (*NORM_NAMES, *OBSERVED) if op in BATCH_NORM else PROPERTY_NAMES


def check_op(
    function: Kernel | str,
    op: str,
    *,
    problems: int | Sequence[str | Line] = PROBLEMS,
    seconds: float | None = None,
    seed: int = 0,
    properties: Sequence[str] | None = None,
    dtypes: Sequence[str] | None = None,
    layouts: Sequence[str] | None = None,
    isolate: bool = False,
    timeout: float = 60.0,
    advance: Advance | None = None,
) -> Report:
    """Test a kernel for one operation over many problems and say what is wrong with it.

    Parameters
    ----------
    function : callable or str
        Takes what ``convgrad.<op>`` takes: the arrays, and by keyword `strides` and `dilations` as pairs, `padding` as
        "SAME", "VALID" or ((top, bottom), (left, right)), and `data_format`. It raises where it does not take a
        problem, which counts as refused. Or text, as on the command line: "module:function", "./library.so:symbol",
        "tensorflow", "torch", "jax".
    op : str
        One of the six operations, such as "depthwise_conv2d_backprop_filter", or "batch_norm_act" or
        "batch_norm_act_grad": such a function returns a tuple of arrays, as ours does.
    problems : int, or sequence of str
        How many problems to try, spread over the properties. Or lines of text, such as
        "conv2d 8x28x28x64 3x3x64x64 strides=2": exactly these are tried, with all data that makes sense for them,
        under the properties they can show.
    seconds : float, optional
        Stop drawing problems after so long.
    seed : int
        The same seed draws the same problems.
    properties, dtypes, layouts : sequence of str, optional
        Try these only. Lines of text say their own dtype and layout.
    isolate : bool
        Call the kernel in a child process, which may crash or hang; it must then be given as text.
    timeout : float
        Seconds an isolated call may take. After three calls that took longer nothing is tried further.
    advance : callable, optional
        Told after each problem: how many were done, and the property.

    Returns
    -------
    Report
        `ok`, `raise_if_failed()`, and everything else as text and as data.

    Examples
    --------
    >>> from convgrad import reference
    >>> from convgrad.testing import check_op
    >>> def always_stride_one(*arrays, strides, **settings):
    ...     return reference.conv2d(*arrays, strides=1, **settings).astype(arrays[0].dtype)
    >>> report = check_op(always_stride_one, "conv2d", problems=60)
    >>> report.ok, report.row("stride").status, report.findings[0].guess
    (False, 'FAIL', 'stride ignored')
    """
    base = Base(op, _named("dtypes", dtypes, tuple(DTYPES)), _named("layouts", layouts, LAYOUTS))
    if op not in OPS and op not in BATCH_NORM:
        known = ", ".join((*OPS, *BATCH_NORM))
        raise ArgumentError(f"check_op: `op` must be one of {known}, got {op!r}.")
    chosen = _named("properties", properties, names_for(op))
    if hasattr(problems, "__index__"):
        problems = index(problems)
    if op in BATCH_NORM and not isinstance(problems, int):
        raise ArgumentError(
            f"check_op: `problems` must be a number for {op}, whose problems have no lines, got {shown(problems)}."
        )
    named = _named_problems(problems, base, chosen, seed, dtypes, layouts)
    if isinstance(problems, int) and problems < 1:
        raise ArgumentError(f"check_op: `problems` must be at least 1, got {problems}.")
    if isolate and not isinstance(function, str):
        raise ArgumentError(
            "check_op: with isolate=True, `function` must be text, such as 'module:function'."
        )
    with ExitStack() as stack:
        caller: Here | Isolated
        if not isinstance(function, str):
            caller, name = Here(function), _name(function)
        elif isolate:
            caller, name = stack.enter_context(Isolated(function, op, timeout)), function
        else:
            kernel = load(function, op)
            caller, name = Here(kernel, version(function)), function
        if isinstance(problems, int) and op in BATCH_NORM:
            return NormCheck(
                *(caller, name, op, chosen, base.dtypes, base.layouts, seed, advance or _silent)
            ).run(problems, seconds)
        if isinstance(problems, int):
            return _Check(caller, name, base, chosen, seed, advance or _silent).run(
                problems, seconds
            )
        check = _Check(caller, name, base, chosen, seed, advance or _silent, named)
        return check.run(len(named), seconds)


def _named_problems(
    problems: int | Sequence[str | Line],
    base: Base,
    chosen: tuple[str, ...],
    seed: int,
    dtypes: Sequence[str] | None,
    layouts: Sequence[str] | None,
) -> list[Trial]:
    """Return the trials of problems that were named, none where they are to be drawn."""
    if isinstance(problems, int):
        return []
    for name, value in (("dtypes", dtypes), ("layouts", layouts)):
        if value is not None:
            raise ArgumentError(
                f"check_op: `{name}` must be left out where `problems` are lines that say theirs, got {shown(value)}."
            )
    if not isinstance(problems, Sequence):
        raise ArgumentError(
            f"check_op: `problems` must be a number or lines of text, got {shown(problems)}."
        )
    lines = [problems] if isinstance(problems, str) else problems
    return given.trials(given.cases(lines, base.op), chosen, seed)


def _named(what: str, given: Sequence[str] | None, known: tuple[str, ...]) -> tuple[str, ...]:
    if given is None:
        return known
    words = (given,) if isinstance(given, str) else tuple(given)
    wrong = [word for word in words if word not in known]
    if wrong or not words:
        raise ArgumentError(
            f"check_op: `{what}` must be of {', '.join(known)}, got {', '.join(wrong) or 'none'}."
        )
    return words


def _name(function: Any) -> str:
    name = getattr(function, "__qualname__", type(function).__name__)
    return f"{getattr(function, '__module__', '') or ''}:{name}"


def _silent(done: int, what: str) -> None:
    """Tell nobody."""


class _Check:
    """One run, with its accounts."""

    def __init__(
        self,
        caller: Caller,
        name: str,
        base: Base,
        chosen: tuple[str, ...],
        seed: int,
        advance: Advance,
        named: Sequence[Trial] = (),
    ) -> None:
        self._caller, self._name, self._seed, self._advance = caller, name, seed, advance
        self._hangs = 0
        self._named = named
        if named:
            first = named[0].case
            self._base = replace(base, dtype=first.dtype, layout=first.data_format)
            shows = {each.property for each in named}
            self._properties = [row for row in PROPERTIES if row.name in shows]
        else:
            self._base = self._accepted(base)
            self._properties = [row for row in applicable(self._base) if row.name in chosen]
        if not self._properties:  # a property of every call alone: any problem shows it
            self._properties = [
                row for row in applicable(self._base) if row.name in ("basic", "determinism")
            ]
        self._rows = {row.name: Row(row.name, row.meaning) for row in self._properties}
        self._rows |= {n: Row(n, meaning) for n, meaning in OBSERVED.items() if n in chosen}
        self._failures: list[Failure] = []
        self._passed: list[Passed] = []
        self._troubles: list[Trouble] = []
        self._worst: dict[str, float] = {}

    def run(self, count: int, seconds: float | None) -> Report:
        start = time.monotonic()
        by_name = {row.name: row for row in self._properties}
        drawn = trials(self._properties, self._base, self._seed, count)
        for each in self._named or drawn:
            if seconds is not None and time.monotonic() - start > seconds:
                break
            if self._hangs >= _HANGS:
                break
            self._advance(1, each.property)
            if self._rows[each.property].died < _DEATHS:
                self._try(each, by_name[each.property])
        finder = Finder(self._caller, self._name)
        findings = finder.findings(self._failures, self._passed, self._troubles)
        return Report(
            implementation=self._name,
            version=self._caller.version,
            op=self._base.op,
            seed=self._seed,
            dtype=self._base.dtype,
            layout=self._base.layout,
            rows=tuple(self._rows.values()),
            worst={name: self._worst[name] for name in DTYPES if name in self._worst},
            findings=findings,
            seconds=time.monotonic() - start,
            settings={"problems": count, "seconds": seconds, "lines": self._lines()},
            stopped=f"given up after {self._hangs} calls without an answer"
            if self._hangs >= _HANGS
            else "",
        )

    def _lines(self) -> list[str] | None:
        """Return the problems that were named, as text."""
        if not self._named:
            return None
        return list(dict.fromkeys(write(each.case.problem) for each in self._named))

    def _accepted(self, base: Base) -> Base:
        """Find the layout and dtype of the plain problems: the first the kernel does not refuse."""
        order = [row.name for row in PLAIN_FIRST if row.name in base.dtypes]
        basic, reason = PROPERTIES[0], ""
        for layout in base.layouts:
            for dtype in order:
                plain = replace(base, dtype=dtype, layout=layout)
                for number in range(3):
                    each = trial(basic, plain, self._seed, number)
                    seen = self._caller.observe(each.case, *each.operands(), False)
                    self._hangs += seen.late
                    if seen.refused is None:
                        return plain
                    reason = reason or seen.refused
        raise ArgumentError(
            f"check: {self._name} refused every plain problem of {base.op}; the first time it said: {reason}"
        )

    def _try(self, each: Trial, row: Property) -> None:
        account = self._rows[each.property]
        first, second = each.operands()
        seen = self._caller.observe(each.case, first, second, row.twice)
        if seen.refused is not None:
            account.refused += 1
            account.reason = account.reason or seen.refused
            return
        if seen.died is not None:
            account.died += 1
            self._hangs += seen.late
            self._troubles.append(Trouble("died", seen.died, each, first, second, seen.late))
            return
        assert seen.result is not None
        right = truth(each.case, each.data, first, second)
        verdict = judge(right, seen)
        self._observed(each, seen, first, second)
        if verdict.wrong is not None:
            account.failed += 1
            self._failures.append(Failure(each, first, second, right, seen.result, verdict.wrong))
            return
        if not seen.repeated:
            account.failed += 1
            self._troubles.append(
                Trouble("repeated", "two calls gave different bits", each, first, second)
            )
            return
        account.passed += 1
        worst = self._worst.get(each.case.dtype, 0.0)
        self._worst[each.case.dtype] = max(worst, verdict.error)
        if len(self._passed) < _KEPT:
            self._passed.append(Passed(each, first, second, right))

    def _observed(self, each: Trial, seen: Observation, first: AnyArray, second: AnyArray) -> None:
        """Keep account of what is looked at in every call."""
        for name, bad, kind, words in (
            ("operands-kept", seen.written, "written", "an operand was written to"),
            (
                "fresh-result",
                bool(seen.shared),
                "shared",
                f"the result shares memory with {seen.shared}",
            ),
        ):
            row = self._rows.get(name)
            if row is None:
                continue
            if bad:
                row.failed += 1
                self._troubles.append(Trouble(kind, words, each, first, second))
            else:
                row.passed += 1
