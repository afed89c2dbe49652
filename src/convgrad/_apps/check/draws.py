"""Random problems: the one generator of `check`, of the tests, of campaigns and of soaks.

What is drawn is data. A family says for every field of a problem which values it may take, so a new kind of problem is
a new table and no code. Drawn are plain fields and not a problem: whoever asks says how one is made of them and when it
is legal, because the tests' geometry is written apart from ours, so that a wrong formula cannot agree with itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any, Protocol, TypeVar

from numpy.random import Generator


class Drawn(Protocol):
    """What a problem that is made of fields can say."""

    @property
    def legal(self) -> bool: ...


Case = TypeVar("Case", bound=Drawn)

Draw = Any
"""A range or a tuple: one of its values, which may be draws themselves; else one of the classes below, or the value
itself. A value that stands there twice is drawn twice as often."""


@dataclass(frozen=True)
class Each:
    """A pair, rows and columns drawn apart."""

    of: Draw


@dataclass(frozen=True)
class Pair:
    """A pair, each from a draw of its own."""

    rows: Draw
    cols: Draw


@dataclass(frozen=True)
class Alike:
    """A pair of one draw."""

    of: Draw


@dataclass(frozen=True)
class Value:
    """A tuple that is a value, such as a pair, and no choice."""

    of: Any


@dataclass(frozen=True)
class Spread:
    """A number from all orders of magnitude alike."""

    least: int
    most: int
    multiple: int = 1
    """Of this, where the number is at least half of it."""


class Mix:
    """One of several draws, each with its share."""

    def __init__(self, *rows: tuple[float, Draw]) -> None:
        whole = sum(share for share, _ in rows)
        self.rows = tuple((share / whole, draw) for share, draw in rows)


ONE, TWO = Value((1, 1)), Value((2, 2))
WORDS = ("SAME", "VALID")


def pads(most: Draw) -> Each:
    """Pads of four sides."""
    return Each(Each(most))


def pick(random: Generator, draw: Draw) -> Any:
    """Draw one value.

    >>> import numpy
    >>> pick(numpy.random.default_rng(3), Mix((0.9, Each(range(1, 4))), (0.1, Value((7, 7)))))
    (1, 1)
    """
    if isinstance(draw, range | tuple):
        return pick(random, draw[int(random.integers(len(draw)))])
    if isinstance(draw, Each):
        return pick(random, draw.of), pick(random, draw.of)
    if isinstance(draw, Pair):
        return pick(random, draw.rows), pick(random, draw.cols)
    if isinstance(draw, Alike):
        one = pick(random, draw.of)
        return one, one
    if isinstance(draw, Value):
        return draw.of
    if isinstance(draw, Spread):
        found = int(exp(random.uniform(log(draw.least), log(draw.most + 1))))
        return (
            max(1, round(found / draw.multiple)) * draw.multiple if _is_near(draw, found) else found
        )
    if isinstance(draw, Mix):
        left = random.random()
        for share, each in draw.rows:
            left -= share
            if left < 0:
                return pick(random, each)
        return pick(random, draw.rows[-1][1])
    return draw


def _is_near(draw: Spread, found: int) -> bool:
    return draw.multiple > 1 and 2 * found >= draw.multiple


Family = Mapping[str, Draw]
Families = Sequence[tuple[float, Family]]
"""Families with their shares."""


def varied(families: Families, **draws: Draw) -> Families:
    """Return families of which some fields are drawn in another way."""
    return [(share, {**family, **draws}) for share, family in families]


def over(plain: Family, changes: Family | Sequence[Family]) -> Families:
    """Return a plain family with changed fields; of several changes, each as often as the others."""
    some = [changes] if isinstance(changes, Mapping) else changes
    return [(1.0, {**plain, **each}) for each in some]


def fields(random: Generator, families: Families, **fixed: Any) -> dict[str, Any]:
    """Draw the fields of a problem but for the `fixed` ones; a fixed `depthwise` leaves the families that have it."""
    wanted = fixed.get("depthwise")
    fitting = [row for row in families if wanted in (None, row[1].get("depthwise"))]
    family = pick(random, Mix(*((share, Value(each)) for share, each in fitting or families)))
    return {name: pick(random, draw) for name, draw in family.items() if name not in fixed} | fixed


def problem(
    random: Generator,
    families: Families,
    make: Callable[..., Case],
    fits: Callable[[Case], bool] = lambda case: True,
    empty: float = 0.0,
    **fixed: Any,
) -> Case:
    """Draw until a problem is legal and fits; `empty` is the share of draws that lose an axis, unless it is fixed."""
    while True:
        case = make(**emptied(random, fields(random, families, **fixed), empty, fixed))
        if case.legal and fits(case):
            return case


def emptied(
    random: Generator, drawn: dict[str, Any], share: float, fixed: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Take an axis of some draws to zero."""
    if not share or random.random() >= share:
        return drawn
    name = pick(random, ("batch", "group_out", "size"))
    return {**drawn, name: (0, drawn["size"][1]) if name == "size" else 0, **(fixed or {})}
