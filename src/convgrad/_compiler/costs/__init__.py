"""What work costs: nanoseconds per unit, one table per row of `targets`. Knows neither convolution nor the clock.

An algorithm counts what a plan does in units that have a price (`Work`); its predicted time is the sum of amounts times
prices. The prices of a row were fitted to times measured on one machine of that kind, by ``tools/fit.py``: the table
and the measurements lie side by side in this folder. Nothing is measured at run time, so that the same problem on the
same row always gets the same plan, and with it the same bits.

Amounts are counted in vectors of the row where that makes sense, so a row without a machine borrows the prices of
another one: a guess, and marked as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .. import targets
from ..targets import Target
from . import avx2

Prices = Mapping[str, float]
"""Nanoseconds by the name of a unit."""

RANKED = 2
"""Threads for which plans are ranked, whatever a call may use: the number of threads must not change the bits."""
LAUNCH = "launch"
WAKE = "wake"
"""What a launch costs by itself, and what sharing it with other threads adds."""

TABLES: Mapping[str, Mapping[str, Prices]] = MappingProxyType(
    dict.fromkeys((row.name for row in targets.ALL), avx2.NANOSECONDS)
)
"""By the row's name: the prices of each kind of work. Until others are measured, all rows borrow those of one."""
FITTED = frozenset({"avx2"})
"""Rows whose prices were measured; those of the others are guesses."""


@dataclass(frozen=True)
class Work:
    """What a plan does."""

    kind: str
    """Whose prices apply: the algorithm and what else makes its code another one."""
    amounts: Mapping[str, float]
    """How much of each unit; threads share it."""
    items: int
    """Pieces that threads can claim."""
    launches: int = 1
    serial: bool = False
    """Whether one thread does it all."""
    handicap: float = 1.0
    """By how much it is ranked behind its time: for what no measurement here shows, such as items too few for many
    threads."""

    def share(self, threads: int) -> float:
        """Return the part of the work the busiest of some threads does."""
        if self.serial or threads == 1:
            return 1.0
        return -(-self.items // threads) / self.items

    def counted(self, threads: int) -> dict[str, float]:
        """Return what is to be paid for on some threads, by unit."""
        share = self.share(threads)
        found = {name: amount * share for name, amount in self.amounts.items()}
        found[LAUNCH] = self.launches
        found[WAKE] = 0 if self.serial or threads == 1 else self.launches
        return found


def prices(kind: str, target: Target) -> Prices:
    """Return what the units of a kind of work cost on a row: if it was not measured, as all of its algorithm did."""
    table = TABLES[target.name]
    return table.get(kind) or table[kind.partition(" ")[0]]


def microseconds(work: Work, target: Target, threads: int = RANKED) -> float:
    """Return the time a plan should take."""
    known = prices(work.kind, target)
    return sum(known[name] * amount for name, amount in work.counted(threads).items()) / 1e3


def rank(work: Work, target: Target) -> float:
    """Return what plans are compared by: the least is taken."""
    return microseconds(work, target) * work.handicap
