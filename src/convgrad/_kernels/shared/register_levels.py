"""The sums of a tile in levels that all fit registers: chains, runs, totals and grand totals.

The order is told in `_problem/sums/gather.py`. Runs are numbered by position, so it does not matter how a kernel walks
the window as long as each result meets its own products in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..._compiler.codegen import Int, Variable, Vector
from ..._compiler.codegen.builder import Writer
from ..._problem.sums.gather import GROUP, GatherContract

Key = tuple[int, ...]
"""Which sum of a tile."""


def levels_of(contract: GatherContract) -> int:
    """Return how many levels stand above the chains: none, totals, or grand totals too."""
    if not contract.levels:
        return 0
    return 1 if contract.blocks * contract.block_runs <= GROUP else 2


class RegisterLevels:
    """One sum for each key. Keys of one turn go through the window together."""

    def __init__(
        self, k: Writer, zero: Vector, turns: Mapping[int, Iterable[Key]], levels: int
    ) -> None:
        self._k, self._zero = k, zero
        self.turns = {turn: [*keys] for turn, keys in turns.items()}
        self.now = {key: k.variable(zero) for keys in self.turns.values() for key in keys}
        """What the products are added to."""
        self._totals = {key: k.variable(zero) for key in self.now} if levels else {}
        self._grand = {key: k.variable(zero) for key in self.now} if levels > 1 else {}
        self._group = {turn: k.variable(k.i64(0)) for turn in turns} if levels > 1 else {}
        """Number of the total that the last run belonged to."""

    @property
    def carry(self) -> list[Variable[Any]]:
        """What loops over products change."""
        levels = (self.now, self._totals, self._grand)
        return [*(each for level in levels for each in level.values()), *self._group.values()]

    def begin_run(self, turn: int, run: Int) -> None:
        """Before the products of a run: if it belongs to another total, end the one before."""
        if not self._grand:
            return
        group, before = run // GROUP, self._group[turn]
        with self._k.when(group.differs(before.value)):
            for key in self.turns[turn]:
                self._grand[key].value = self._grand[key].value + self._totals[key].value
                self._totals[key].value = self._zero
        before.value = group

    def end_run(self, turn: int) -> None:
        """After the products of a run: add it to its total."""
        for key in self.turns[turn] if self._totals else ():
            self._totals[key].value = self._totals[key].value + self.now[key].value
            self.now[key].value = self._zero

    def finish(self, turn: int) -> dict[Key, Vector]:
        """Return the sums of a turn; those that are zero are +0."""
        found = {}
        for key in self.turns[turn]:
            if self._grand:
                found[key] = self._grand[key].value + self._totals[key].value
            elif self._totals:
                found[key] = self._totals[key].value
            else:
                # A chain that underflows may end with -0. A total began with +0.
                found[key] = self.now[key].value + self._zero
        return found
