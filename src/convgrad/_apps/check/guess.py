"""The likely cause of wrong results: which mistake reproduces them, number for number.

First come the mistakes of `mistakes.py`: each says what a kernel with it would return, and that is compared with what
was returned. What none of them explains is looked at for signs: how large the error is, where NaN stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np

from ..._base.dtypes import AnyArray, round_once
from ..._problem.convolution import Kind
from .implementation import FILL
from .judge import Truth, agrees
from .mistakes import MISTAKES, Mistake
from .problems import LONG, Trial

_SAMPLE = 16
_ENOUGH = 0.2
"""The share of a sample a mistake must reproduce to be called a cause."""
_MOST = 5
Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)
class Failure:
    """One problem the kernel answered wrongly."""

    trial: Trial
    first: AnyArray
    second: AnyArray
    right: Truth
    got: AnyArray
    wrong: str


@dataclass(frozen=True, eq=False)
class Passed:
    """One problem the kernel answered rightly, kept to try the mistakes on."""

    trial: Trial
    first: AnyArray
    second: AnyArray
    right: Truth


@dataclass
class Cause:
    """A guess and the failures it explains; without a text, those nothing explains."""

    text: str | None
    explained: list[Failure] = field(default_factory=list)
    explains: Callable[[Failure], bool] = lambda failure: True
    """Asked of smaller failures, so that shrinking does not slide into another mistake."""
    beside: bool = False
    """Whether other causes explain most of its failures too: it is said after them."""


def causes(failures: Sequence[Failure], passed: Sequence[Passed]) -> list[Cause]:
    """Divide the failures among the likeliest causes, most failures first; the unexplained come last."""
    short = [each for each in failures if each.right.case.terms <= LONG]
    rest = [each for each in failures if each.right.case.terms > LONG]
    found: list[Cause] = []
    while short and len(found) < _MOST:
        best = _best(short, passed)
        if best is None:
            break
        cause = _cause(best, (*short, *rest))
        found.append(cause)
        short, rest = _without(short, cause), _without(rest, cause)
    left = [*short, *rest]
    weak: list[Cause] = []
    for sign in SIGNS:
        pool = failures if sign is _dtype else left  # another mistake does not hide that one
        for text in dict.fromkeys(filter(None, (sign(each) for each in pool))):
            explained = [each for each in pool if sign(each) == text]
            cause = Cause(text, explained, partial(_shows, sign, text))
            others = _without(left, cause)
            cause.beside = len(left) - len(others) < len(explained) / 2
            left = others
            (weak if sign in WEAK else found).append(cause)
    plain = [each for each in left if not _is_special(each)]
    for cause in weak:
        if len(plain) > len(cause.explained):  # ordinary problems fail as well: that is not why
            left = [*left, *cause.explained]
        else:
            found.append(cause)
    long_left = [each for each in left if each.right.case.terms > LONG]
    if long_left and (best := _best(long_left[:4], passed)):
        cause = _cause(best, left)
        found.append(cause)
        left = _without(left, cause)
    found.sort(key=lambda cause: (cause.beside, -len(cause.explained)))
    return [*found, Cause(None, left)] if left else found


def _is_special(failure: Failure) -> bool:
    """Whether a problem is one of those weak signs are about: empty, or with long sums."""
    return failure.right.case.problem.is_empty or failure.right.case.terms > LONG


def _shows(sign: Callable[[Failure], str | None], text: str, failure: Failure) -> bool:
    return sign(failure) == text


def reproduces(mistake: Mistake, failure: Failure) -> bool:
    """Whether a kernel with this mistake returns what was returned, and would be wrong where this one is."""
    case = failure.right.case
    allowed = np.asarray(failure.right.allowed.max() if failure.right.allowed.size else 0.0)
    got = failure.got.astype(np.float64)
    for predicted in mistake.predict(case, failure.first, failure.second):
        if predicted.shape == got.shape:
            rounded = round_once(predicted, case.row).astype(np.float64)
            right = predicted.shape == failure.right.exact.shape and agrees(
                rounded, failure.right.exact, failure.right.allowed
            )
            if not right and agrees(got, rounded, allowed):
                return True
    return False


def _cause(mistake: Mistake, failures: Sequence[Failure]) -> Cause:
    explained = [each for each in failures if reproduces(mistake, each)]
    return Cause(mistake.text, explained, lambda failure: reproduces(mistake, failure))


def _without(failures: list[Failure], cause: Cause) -> list[Failure]:
    gone = {id(each) for each in cause.explained}
    return [each for each in failures if id(each) not in gone]


def _best(failures: Sequence[Failure], passed: Sequence[Passed]) -> Mistake | None:
    """Return the mistake that reproduces most of a sample; of equals the one passing problems contradict least."""
    sample = spread(failures, _SAMPLE)
    counts = {each: sum(reproduces(each, one) for one in sample) for each in MISTAKES}
    most = max(counts.values())
    if most < max(1, _ENOUGH * len(sample)):
        return None
    equals = [each for each, count in counts.items() if count == most]
    if len(equals) == 1:
        return equals[0]
    fine = [each for each in spread(passed, _SAMPLE) if each.right.case.terms <= LONG]
    return min(equals, key=lambda mistake: sum(_contradicts(mistake, each) for each in fine))


def _contradicts(mistake: Mistake, right: Passed) -> bool:
    """Whether a kernel with this mistake would have failed a problem that passed."""
    predictions = list(mistake.predict(right.right.case, right.first, right.second))
    allowed = np.asarray(right.right.allowed.max() if right.right.allowed.size else 0.0)
    return bool(predictions) and not any(
        each.shape == right.right.exact.shape and agrees(each, right.right.exact, allowed)
        for each in predictions
    )


def spread(items: Sequence[Item], count: int) -> list[Item]:
    """Return at most `count` of the items, evenly spaced."""
    step = max(1, -(-len(items) // count))
    return list(items[::step])


def _narrow(failure: Failure) -> str | None:
    """An error too large for sums in float32 and small enough for sums in the operands' own dtype."""
    case = failure.right.case
    if failure.got.shape != failure.right.exact.shape or case.terms <= LONG:
        return None
    if not np.isfinite(failure.got.astype(np.float64)).all():
        return None
    worst = np.abs(failure.got.astype(np.float64) - failure.right.exact).max()
    largest = failure.right.magnitude.max()
    if case.row.itemsize == 2 and worst <= (case.terms + 64) * case.row.unit * largest:
        return f"narrow accumulation: sums, or parts of them, are kept in {case.dtype}"
    if case.dtype == "float64" and worst <= (case.terms + 64) * 2.0**-24 * largest:
        return "float64 computed in float32"
    return None


def _empty(failure: Failure) -> str | None:
    if not failure.got.size or not failure.right.case.problem.is_empty:
        return None
    return "the result of an empty problem is left unwritten"


def _unwritten(failure: Failure) -> str | None:
    got = np.ascontiguousarray(failure.got)
    if not got.size:
        return None
    bytes_ = got.reshape(-1).view(np.uint8).reshape(got.size, -1)
    return "part of the result is never written" if (bytes_ == FILL).all(1).any() else None


def _spreads(failure: Failure) -> str | None:
    if failure.got.shape != failure.right.exact.shape:
        return None
    if np.isfinite(failure.first).all() and np.isfinite(failure.second).all():
        return None
    extra = ~np.isfinite(failure.got.astype(np.float64)) & np.isfinite(failure.right.exact)
    return (
        "NaN or infinity spreads to windows that do not read it (0 * NaN)" if extra.any() else None
    )


def _shape(failure: Failure) -> str | None:
    """A wrong shape, whatever else is wrong: which sizes, in words that do not depend on the problem."""
    case = failure.right.case
    got, wanted = failure.got.shape, case.problem.result_shape
    if got == wanted:
        return None
    if len(got) != len(wanted):
        return f"the result has the wrong shape: {len(got)} dimensions instead of 4"
    if sorted(got) == sorted(wanted):
        return "the result has the wrong shape: its dimensions are in another order"
    names = ("batch", "rows or columns", "rows or columns", "channels")
    if case.call.kind is Kind.FILTER_GRADIENT:
        names = ("rows or columns", "rows or columns", "channels", "channels")
    elif case.data_format == "NCHW":
        names = ("batch", "channels", "rows or columns", "rows or columns")
    wrong = dict.fromkeys(
        name for name, one, other in zip(names, got, wanted, strict=True) if one != other
    )
    return f"the result has the wrong shape: its {', '.join(wrong)}"


def _dtype(failure: Failure) -> str | None:
    if failure.got.dtype == failure.right.case.row.numpy:
        return None
    return f"the result is {failure.got.dtype} where the operands are not"


SIGNS = (_shape, _dtype, _empty, _unwritten, _spreads, _narrow)
"""Each names a cause, or None; the first that does counts, but a wrong dtype is seen beside everything else."""
WEAK = (_empty, _narrow)
"""Those that any other mistake may look like: they count only where ordinary problems do not fail too."""
