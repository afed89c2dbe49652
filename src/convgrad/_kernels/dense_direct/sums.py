"""The sums of a tile: in registers, and what has run long enough in totals in the workspace.

A plain sum of n products errs by about 0.29 sqrt(n) u: 7 u for the 576 of a 3x3 window on 64 channels. In runs of r
that are added to totals it is 0.29 sqrt(r + n / r). Where every g runs go to a grand total, it is
0.29 sqrt(r + g + n / r / g).
"""

from __future__ import annotations

from typing import Any

from ..._compiler.codegen import Bool, Int, Pointer, Variable, Vector
from ..._problem.sums.gather import GROUP
from .frame import Frame


class PanelSums:
    """Vectors of sums for each pair of a pixel and a vector of channels."""

    def __init__(self, frame: Frame) -> None:
        self._frame, k = frame, frame.k
        self._zero = k.zeros(frame.number, frame.lanes)
        self.now = [k.variable(self._zero) for _ in range(frame.sums)]
        """What is in registers."""
        self._run = k.variable(k.i64(-1))
        self._total, self._grand = (k.variable(k.i64(0)) for _ in range(2))

    @property
    def carry(self) -> list[Variable[Any]]:
        """What loops over products change."""
        if not self._frame.kernel.levels:
            return [*self.now]
        return [*self.now, self._run, self._total, self._grand]

    def begin(self, run: Int) -> None:
        """Before the products of a run are added: move those of another one to its total."""
        if not self._frame.kernel.levels:
            return
        k, before = self._frame.k, self._run.value
        with k.when(run.differs(before)):
            with k.when(before >= 0):
                self._move(
                    [each.value for each in self.now], self._frame.totals, self._total.value.equals(0)
                )
                for each in self.now:
                    each.value = self._zero
                self._total.value = k.i64(1)
                with k.when((run // GROUP).differs(before // GROUP)):
                    totals = self._load(self._frame.totals)
                    self._move(totals, self._frame.grand, self._grand.value.equals(0))
                    self._total.value = k.i64(0)
                    self._grand.value = k.i64(1)
            self._run.value = run

    def finish(self) -> list[Vector]:
        """Return the sums."""
        k, frame = self._frame.k, self._frame
        if frame.kernel.levels:
            for some, place in ((self._total, frame.totals), (self._grand, frame.grand)):
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
