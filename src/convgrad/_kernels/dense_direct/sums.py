"""The sums of a tile: in registers, and what has run long enough in totals in the workspace.

A plain sum of n products errs by about 0.29 sqrt(n) u: 7 u for the 576 of a 3x3 window on 64 channels. In runs of r
that are added to totals it is 0.29 sqrt(r + n / r). Where every g runs go to a grand total, it is
0.29 sqrt(r + g + n / r / g).
"""

from __future__ import annotations

from typing import Any

from ..._compiler.codegen import Bool, Int, Pointer, Variable, Vector
from ..shared.runs import ENOUGH, RUN
from .frame import Frame

_RUNS = 16
"""Runs after which the totals go to the grand ones."""


class PanelSums:
    """One vector of sums for each pair of a pixel and a vector of channels."""

    def __init__(self, frame: Frame) -> None:
        self._frame, k = frame, frame.k
        kernel = frame.kernel
        self._zero = k.zeros(frame.number, frame.lanes)
        self.now = [k.variable(self._zero) for _ in range(kernel.height * kernel.vectors)]
        """What is in registers."""
        self._done, self._runs, self._groups = (k.variable(k.i64(0)) for _ in range(3))
        longer = frame.lanes if kernel.dot else 1
        self.run, self._enough = RUN * longer, ENOUGH * longer

    @property
    def carry(self) -> list[Variable[Any]]:
        """What loops over products change."""
        if not self._frame.kernel.levels:
            return [*self.now]
        return [*self.now, self._done, self._runs, self._groups]

    def flush(self) -> None:
        """Before more products are added: move what has run long enough to the totals.

        Not after they are: the last run then needs no way through memory, and often there are no totals at all.
        """
        k = self._frame.k
        with k.when(self._done.value >= self._enough):
            self._done.value = k.i64(0)
            self._move(
                [each.value for each in self.now], self._frame.totals, self._runs.value.equals(0)
            )
            for each in self.now:
                each.value = self._zero
            self._runs.value = self._runs.value + 1
            with k.when(self._runs.value.equals(_RUNS)):
                self._runs.value = k.i64(0)
                totals = self._load(self._frame.totals)
                self._move(totals, self._frame.grand, self._groups.value.equals(0))
                self._groups.value = k.i64(1)

    def added(self, products: Int) -> None:
        """Take note that so many products have been added."""
        self._done.value = self._done.value + products

    def finish(self) -> list[Vector]:
        """Return the sums."""
        k, frame = self._frame.k, self._frame
        if frame.kernel.levels:
            for some, place in ((self._runs, frame.totals), (self._groups, frame.grand)):
                with k.when(some.value.differs(0)):
                    for each, more in zip(self.now, self._load(place), strict=True):
                        each.value = each.value + more
        return [each.value for each in self.now]

    def _load(self, place: Pointer) -> list[Vector]:
        lanes = self._frame.lanes
        return [place.offset(i * lanes).load(lanes, aligned=True) for i in range(len(self.now))]

    def _move(self, sums: list[Vector], place: Pointer, first: Bool) -> None:
        """Add sums to those at a place, or put them there if they are the first: nobody clears it beforehand."""
        k, lanes = self._frame.k, self._frame.lanes
        with k.branch(first) as ways:
            with ways.then():
                for i, each in enumerate(sums):
                    place.offset(i * lanes).store(each, aligned=True)
            with ways.otherwise():
                for i, (each, before) in enumerate(zip(sums, self._load(place), strict=True)):
                    place.offset(i * lanes).store(before + each, aligned=True)
