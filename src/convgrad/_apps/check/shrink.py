"""The smallest problem that still fails: sizes first, then the data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from ..._base.dtypes import AnyArray
from .problems import LONG, Case, Data, Operands, Trial, fill

Found = TypeVar("Found")
Step = TypeVar("Step")
Sized = TypeVar("Sized", bound=Any)
Attempt = Callable[[Case, Data, AnyArray, AnyArray], Found | None]
"""Calls the kernel; returns what was found if the problem still fails in the same way."""


@dataclass
class Budget:
    """How long to go on: calls and seconds. The caller may take away what is left of `calls`."""

    calls: int
    seconds: float
    bold: bool = False
    """Whether to try the plainest problem of all first, as where each step takes long."""
    until: float = 0.0

    def __post_init__(self) -> None:
        self.until = time.monotonic() + self.seconds

    def spend(self) -> bool:
        """Take one call; False if there is none left."""
        self.calls -= 1
        return self.calls >= 0 and time.monotonic() < self.until


def smallest(
    trial: Trial, operands: Operands, found: Found, attempt: Attempt[Found], budget: Budget
) -> tuple[Case, Data, Operands, Found]:
    """Return the smallest failing problem met on the way down, and what was found there."""
    case, data = trial.case, trial.data
    if data == "normal" and budget.spend():  # a sum of ones that gets stuck says more than digits
        drawn = fill(case, "ones", trial.seed)
        result = attempt(case, "ones", *drawn)
        if result is not None:
            data, operands, found = "ones", drawn, result
    plainest = _plainest(case)
    if budget.bold and plainest.legal and budget.spend():
        drawn = fill(plainest, data, trial.seed)
        result = attempt(plainest, data, *drawn)
        if result is not None:
            case, operands, found = plainest, drawn, result

    def again(smaller: Case) -> tuple[Operands, Found] | None:
        drawn = fill(smaller, data, trial.seed)
        result = attempt(smaller, data, *drawn)
        return None if result is None else (drawn, result)

    def tried(case: Case) -> Iterator[Case]:
        for each in smaller_cases(case):  # a problem with nothing in it shows little
            if each.legal and (case.problem.is_empty or not each.problem.is_empty):
                yield each

    case, (operands, found) = descend(case, (operands, found), tried, again, budget.spend)
    return _simpler_data(case, data, operands, found, attempt, budget)


def _plainest(case: Case) -> Case:
    """Return one pixel under one tap."""
    return Case(case.op, batch=1, size=(1, 1), groups=1, group_in=1, group_out=1, window=(1, 1))


def descend(
    start: Step,
    found: Found,
    smaller: Callable[[Step], Iterator[Step]],
    attempt: Callable[[Step], Found | None],
    may_try: Callable[[], bool],
) -> tuple[Step, Found]:
    """Go to the first smaller one that still fails, and on from there, until none does or no more may be tried."""
    going = True
    while going:
        going = False
        for each in smaller(start):
            if not may_try():
                return start, found
            result = attempt(each)
            if result is not None:
                start, found, going = each, result, True
                break
    return start, found


def smaller_cases(case: Sized) -> Iterator[Sized]:
    """Yield simpler cases, the boldest first; the tests' cases have the same fields. Some are not legal."""
    plain = (
        ("data_format", "NHWC"),
        ("dtype", "float32"),
        ("dilations", (1, 1)),
        ("strides", (1, 1)),
        ("padding", "VALID"),
        ("padding", "SAME"),
    )
    for name, simple in plain:
        worse = simple == "SAME" and case.padding == "VALID"
        if getattr(case, name) != simple and not worse:
            yield _changed(case, name, simple)
    for name in ("batch", "groups", "group_out", "group_in"):
        for value in below(getattr(case, name), 1):
            yield _changed(case, name, value)
    for name in ("size", "window", "strides", "dilations"):
        pair = getattr(case, name)
        for value in below(max(pair), 1):
            yield _changed(case, name, (min(pair[0], value), min(pair[1], value)))
        for at in (0, 1):
            for value in below(pair[at], 1):
                yield _changed(case, name, (value, pair[1]) if at == 0 else (pair[0], value))
    for size in range(
        1, min(case.size)
    ):  # image and filter together, where the one must hold the other
        if min(case.window) > size:
            yield replace(
                case,
                size=(case.size[0] - size, case.size[1] - size),
                window=(case.window[0] - size, case.window[1] - size),
            )
    if not isinstance(case.padding, str):
        (top, bottom), (left, right) = case.padding
        pads = [top, bottom, left, right]
        for at in range(4):
            for value in below(pads[at], 0):
                less = [*pads[:at], value, *pads[at + 1 :]]
                yield replace(case, padding=((less[0], less[1]), (less[2], less[3])))


def _changed(case: Sized, name: str, value: Any) -> Sized:
    changed: Sized = replace(case, **{name: value})
    return changed


def below(value: int, least: int) -> list[int]:
    """Return smaller values to try: the least, halves, then a little less."""
    tried = (least, value // 2, value * 3 // 4, value * 7 // 8, value - 1)
    return [each for each in dict.fromkeys(tried) if least <= each < value]


def _simpler_data(
    case: Case,
    data: Data,
    operands: Operands,
    found: Found,
    attempt: Attempt[Found],
    budget: Budget,
) -> tuple[Case, Data, Operands, Found]:
    """Try ones, then fewer and fewer numbers that are not zero."""
    if data == "ones" or not (operands[0].size and operands[1].size):
        return case, data, operands, found
    special = data in ("nan", "inf")
    plainer: Data = data if special else "whole"
    ones = tuple(
        np.where(np.isfinite(each), np.sign(np.abs(each)), each).astype(each.dtype)
        for each in operands
    )
    half_way = [(ones[0], operands[1]), (operands[0], ones[1])] if data != "normal" else []
    for changed in ((ones[0], ones[1]), *half_way):
        if not budget.spend():
            break
        result = attempt(case, plainer, *changed)
        if result is not None:
            operands, found, data = changed, result, plainer
            break
    if data == "normal" or case.terms > LONG or operands[0].size + operands[1].size > 4096:
        return case, data, operands, found
    for which in (0, 1):
        operands, found = _fewer(case, data, operands, found, which, attempt, budget)
    return case, data, operands, found


def _fewer(
    case: Case,
    data: Data,
    operands: Operands,
    found: Found,
    which: int,
    attempt: Attempt[Found],
    budget: Budget,
) -> tuple[Operands, Found]:
    """Set ever shorter stretches of one operand to zero."""
    stretch = operands[which].size
    while stretch:
        for start in range(0, operands[which].size, stretch):
            changed = operands[which].copy()
            part = changed.reshape(-1)[start : start + stretch]
            if not part.astype(bool).any() or not np.isfinite(part.astype(np.float64)).all():
                continue
            if not budget.spend():
                return operands, found
            part[...] = 0
            pair = (changed, operands[1]) if which == 0 else (operands[0], changed)
            result = attempt(case, data, *pair)
            if result is not None:
                operands, found = pair, result
        stretch //= 2
    return operands, found
