"""Right or wrong: a result against the oracle, and its error in units of u.

With t products in a sum, M the largest sum of absolute products, u the rounding unit of the result's dtype and a that
of float32 (float64 for float64), a sum kept in float32 and rounded once errs by at most ``u * |exact| + t * a * M``,
and on random numbers by no more than some ``sqrt(t)`` instead of t: 8 times that is allowed. Kernels that transform
their data (Winograd, FFT) err by a constant more, for which 64 is added. Whole numbers whose sums stay below 1/u leave
no room to err at all, whatever the order, and a misplaced cell is off by 1 or more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import reference
from ..._base.dtypes import AnyArray, round_once
from .implementation import Observation
from .problems import LONG, Case, Data

_TRANSFORMED = 64


@dataclass(frozen=True)
class Truth:
    """The right answer to one problem."""

    case: Case
    exact: AnyArray
    """In float64."""
    magnitude: AnyArray
    """Sums of the absolute products; 0 where one of them is not finite."""
    allowed: AnyArray
    """How far each number may be off."""

    @property
    def rounded(self) -> AnyArray:
        return round_once(self.exact, self.case.row)


@dataclass(frozen=True)
class Verdict:
    """What the judge says about one result."""

    wrong: str | None
    """In words, or None."""
    error: float = 0.0
    """The worst error of finite numbers, in u of the dtype, relative to the sum of absolute products."""


def truth(case: Case, data: Data, first: AnyArray, second: AnyArray) -> Truth:
    """Compute the right answer, in exact integers where the data allow it."""
    function: Any = getattr(reference, case.op)
    whole = data in ("whole", "ones")
    arguments = case.arguments(first, second)
    exact = function(*arguments, **case.settings, exact=whole).astype(np.float64)
    sizes = (
        np.abs(np.where(np.isfinite(each), each, 0).astype(np.float64)) for each in (first, second)
    )
    magnitude = function(*case.arguments(*sizes), **case.settings)
    largest = float(magnitude.max()) if magnitude.size else 0.0
    unit = case.row.unit
    strict = case.terms > LONG or largest < 1 / unit or data == "normal"
    keeps = (2.0**-53 if case.dtype == "float64" else 2.0**-24) if strict else unit
    allowed = (
        1.0001 * unit * np.abs(np.where(np.isfinite(exact), exact, 0))
        + (min(case.terms, 8 * case.terms**0.5) + _TRANSFORMED) * keeps * largest
        + case.row.underflow
    )
    return Truth(case, exact, magnitude, allowed)


def judge(right: Truth, observed: Observation) -> Verdict:
    """Compare a result with the truth."""
    got = observed.result
    assert got is not None
    case = right.case
    wrong = []
    if got.shape != right.exact.shape:
        wrong.append(f"shape {_text(got.shape)} instead of {_text(right.exact.shape)}")
    if got.dtype != case.row.numpy:
        wrong.append(f"dtype {got.dtype} instead of {case.row.numpy}")
    if wrong:
        return Verdict(", ".join(wrong))
    wide = got.astype(np.float64)
    if agrees(wide, right.exact, right.allowed):
        return Verdict(None, error(right, wide))
    lost = int((np.isfinite(wide) & ~np.isfinite(right.exact)).sum())
    if lost:
        return Verdict(f"NaN or infinity lost in {lost} of {wide.size} numbers")
    spread = int((~np.isfinite(wide) & np.isfinite(right.exact)).sum())
    if spread:
        return Verdict(f"NaN or infinity in {spread} of {wide.size} numbers where none belongs")
    with np.errstate(invalid="ignore"):  # infinity for NaN, or the other way round
        off = int((~(np.abs(wide - right.exact) <= right.allowed)).sum())
    return Verdict(f"{off} of {wide.size} numbers wrong", error(right, wide))


def agrees(got: AnyArray, exact: AnyArray, allowed: AnyArray) -> bool:
    """Whether every number is close enough, NaN for NaN and infinity for infinity."""
    with np.errstate(invalid="ignore", over="ignore"):
        close = np.abs(got - exact) <= allowed
    same = (got == exact) | (np.isnan(got) & np.isnan(exact))
    return bool((close | same).all())


def error(right: Truth, got: AnyArray) -> float:
    """Return the worst error in u, relative to the sum of absolute products of each number."""
    finite = np.isfinite(got) & np.isfinite(right.exact)
    if not finite.any():
        return 0.0
    unit = right.case.row.unit
    floor = unit * float(right.magnitude.max()) or 1.0
    sizes = np.maximum(right.magnitude, floor)[finite]
    return float((np.abs(got[finite] - right.exact[finite]) / sizes).max() / unit)


def _text(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(str(size) for size in shape) + "]"
