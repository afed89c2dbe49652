"""The sums of a tile in levels: a run in registers, totals and grand totals in the workspace.

The runs are those of `_problem/sums/gather.py`. A plain sum of n products errs by about 0.29 sqrt(n) u: 7 u for the 576
of a 3x3 window on 64 channels. In runs of r that are added to totals it is 0.29 sqrt(r + n / r). Where every g runs go
to a grand total, it is 0.29 sqrt(r + g + n / r / g).
"""

from __future__ import annotations

from typing import Any

from ..._compiler.codegen import Bool, Element, Int, KernelBuilder, Pointer, Variable, Vector
from ..._problem.sums.gather import GROUP, GatherContract


def in_blocks(contract: GatherContract, taps: int) -> bool:
    """Tell whether a kernel must go through blocks of channels one by one: one tap is one chain without them."""
    return contract.blocks > 1 and (contract.levels or taps > 1)


class Levels:
    """Vectors of sums; `totals` and `grand` have room for as many, and nobody clears them."""

    def __init__(
        self,
        k: KernelBuilder,
        number: Element,
        count: int,
        totals: Pointer | None,
        grand: Pointer | None,
    ) -> None:
        """Without room for totals, all products are one chain."""
        self._k, self._lanes = k, k.lanes(number)
        self._totals, self._grand = totals, grand
        self._zero = k.zeros(number, self._lanes)
        self.now = [k.variable(self._zero) for _ in range(count)]
        """What is in registers."""
        self._run = k.variable(k.i64(-1))
        """Whose products these are; -1 if there are none."""
        self._some, self._more = (k.variable(k.i64(0)) for _ in range(2))
        """Whether there are totals, and grand ones."""

    @property
    def carry(self) -> list[Variable[Any]]:
        """What loops over products change."""
        return [*self.now, self._run, self._some, self._more] if self._totals else [*self.now]

    def begin(self, run: Int) -> None:
        """Before the products of a run are added: move those of another one to its total.

        Moving them afterwards would send the last run through memory too; often there are no totals at all.
        """
        if not self._totals or not self._grand:
            return
        k, before = self._k, self._run.value
        with k.when(run.differs(before)):
            with k.when(before >= 0):
                self.put_down()
                for each in self.now:
                    each.value = self._zero
                self._some.value = k.i64(1)
                with k.when((run // GROUP).differs(before // GROUP)):
                    self._end_group()
            self._run.value = run

    def put_down(self) -> None:
        """Add what is in registers to the totals."""
        assert self._totals
        self._move([each.value for each in self.now], self._totals, self._some.value.equals(0))

    def take_up(self, runs: Int) -> None:
        """Go on where others were at the end of `runs` runs, which all had products, and put them down."""
        k = self._k
        self._some.value, self._more.value = k.i64(1), k.select(runs > GROUP, k.i64(1), k.i64(0))
        with k.when(runs.equals(0)):
            self._some.value = k.i64(0)
        with k.when((runs > 0) & (runs % GROUP).equals(0)):
            self._end_group()

    def finish(self) -> list[Vector]:
        """Return the sums."""
        k = self._k
        for some, place in ((self._some, self._totals), (self._more, self._grand)):
            if place:
                with k.when(some.value.differs(0)):
                    for each, more in zip(self.now, self._load(place), strict=True):
                        each.value = each.value + more
        return [each.value for each in self.now]

    def _end_group(self) -> None:
        """Add the totals to the grand ones."""
        assert self._totals and self._grand
        self._move(self._load(self._totals), self._grand, self._more.value.equals(0))
        self._some.value, self._more.value = self._k.i64(0), self._k.i64(1)

    def _load(self, place: Pointer) -> list[Vector]:
        lanes = self._lanes
        return [place.offset(i * lanes).load(lanes, aligned=True) for i in range(len(self.now))]

    def _move(self, sums: list[Vector], place: Pointer, first: Bool) -> None:
        """Add sums to those at a place, or put them there if they are the first."""
        k, lanes = self._k, self._lanes
        with k.branch(first) as ways:
            with ways.then():
                for i, each in enumerate(sums):
                    place.offset(i * lanes).store(each, aligned=True)
            with ways.otherwise():
                for i, (each, before) in enumerate(zip(sums, self._load(place), strict=True)):
                    place.offset(i * lanes).store(before + each, aligned=True)
