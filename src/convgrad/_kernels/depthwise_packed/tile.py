"""The innermost bodies of `depthwise_packed`: one tile of columns at one vector of channels.

Both walk the list of kernel rows and, for each, the columns of the row in the ring from left to right: a column is
loaded once and meets every tap that reads it. With T columns and k taps, T sums (or T gradients) and at most
min(T, k) weights (or sums) are live, which 16 registers hold for T = 7, k = 7. Measured and dropped (Zen 3, 7x7
windows, which are bound by the latency of chains of fma): two sums per column (spills, 20% slower); kernel rows
written out (no gain); `out_backprop` copied to scratch where its pitch aliases (no gain).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.codegen import Element, Int, KernelBuilder, Pointer, Vector
from ..._problem.sums.gather import RUN
from ..shared.register_levels import RegisterLevels
from .columns import Columns, Phase
from .words import entry_words

_UNROLLED = 8
"""Taps of a kernel row that are written out; more are looped over in equal groups."""


@dataclass(frozen=True)
class Body:
    """One tile at one vector of channels."""

    phase: Phase
    width: int
    start: int | None
    """Its q where that is fixed."""
    source: Pointer
    """Column `columns.lowest` of its first window, in row 0 of the ring."""
    bank: Pointer
    entries: Int
    """How many the list has."""


class ColumnTiles:
    """Writes the bodies."""

    def __init__(
        self,
        k: KernelBuilder,
        number: Element,
        chunk: int,
        columns: Columns,
        image: int,
        entries: Pointer,
        levels: int,
    ) -> None:
        self.k = k
        self.number = number
        self.lanes = k.lanes(number)
        self.chunk = chunk
        self.columns = columns
        self.image = image
        """Source columns, where tiles are fixed."""
        self.list = entries
        self.levels = levels
        self.entry_words = entry_words(levels)

    def gather_products(self, body: Body) -> list[Vector]:
        """Forward and input gradient: all sums in registers."""
        k, phase = self.k, body.phase
        zero = k.zeros(self.number, self.lanes)
        cells = [(cell,) for cell in range(body.width)]
        sums = RegisterLevels(k, zero, {0: cells}, self.levels)

        def add(x: Pointer, w: Pointer, taps: range) -> None:
            weights: dict[int, Vector] = {}
            for column, uses in sorted(self._reads(body, taps).items()):
                value = x.offset(column * self.chunk).load(self.lanes)
                for cell, tap in uses:
                    if tap not in weights:
                        weights[tap] = w.offset(tap * self.lanes).load(self.lanes, aligned=True)
                    total = sums.now[cell,]
                    total.value = k.fma(value, weights[tap], total.value)

        with k.loop(0, body.entries, carry=sums.carry) as entry:
            x, w = self._entry(body, entry)
            row_run = self.run_of(entry)
            for first, count, repeats in self._runs(phase):
                with k.loop(0, repeats, carry=sums.carry, nonempty=True) as n:
                    here = self._shifted(phase, x, w, n * count + first)
                    sums.begin_run(0, row_run + n + (phase.place + first) // RUN)
                    size, groups = _groups(count)
                    with k.loop(0, groups, carry=sums.carry) as group:
                        add(*self._shifted(phase, *here, group * size), range(size))
                    rest = range(groups * size, count)
                    if rest:
                        add(*here, rest)
                    sums.end_run(0)
        return [*sums.finish(0).values()]

    def _runs(self, phase: Phase) -> list[tuple[int, int, int]]:
        """Cut the taps of a row into runs: first tap, taps, and how many such follow each other."""
        if not self.levels:
            return [(0, phase.count, 1)]
        head = min(-phase.place % RUN, phase.count)
        whole, rest = divmod(phase.count - head, RUN)
        runs = ((0, head, 1), (head, RUN, whole), (phase.count - rest, rest, 1))
        return [run for run in runs if run[1] and run[2]]

    def run_of(self, entry: Int) -> Int:
        """Return the number of the first run of an entry, which is asked for if there are grand totals."""
        if self.levels < 2:
            return self.k.i64(0)
        return self.list.offset(entry * self.entry_words + 2).load_int()

    def sum_products(self, body: Body, grads: list[Vector]) -> None:
        """Filter gradient: the tile of out_backprop in registers, sums loaded from and stored to the bank."""
        k = self.k

        def add(x: Pointer, w: Pointer, taps: range) -> None:
            reads = self._reads(body, taps)
            last = {tap: column for column in sorted(reads) for _, tap in reads[column]}
            live: dict[int, Vector] = {}
            for column, uses in sorted(reads.items()):
                value = x.offset(column * self.chunk).load(self.lanes)
                for cell, tap in uses:
                    if tap not in live:
                        live[tap] = w.offset(tap * self.lanes).load(self.lanes, aligned=True)
                    live[tap] = k.fma(value, grads[cell], live[tap])
                for tap in [tap for tap in live if last[tap] == column]:
                    w.offset(tap * self.lanes).store(live.pop(tap), aligned=True)

        with k.loop(0, body.entries) as entry:
            x, w = self._entry(body, entry)
            size, groups = _groups(body.phase.count)
            with k.loop(0, groups) as group:
                add(*self._shifted(body.phase, x, w, group * size), range(size))
            rest = range(groups * size, body.phase.count)
            if rest:
                add(x, w, rest)

    def _entry(self, body: Body, entry: Int) -> tuple[Pointer, Pointer]:
        """Return the row of the ring and the row of taps an entry of the list stands for."""
        place = self.list.offset(entry * self.entry_words)
        x, w = place.load_int(), place.offset(1).load_int()
        return body.source.offset(x), body.bank.offset(w)

    def _shifted(self, phase: Phase, x: Pointer, w: Pointer, tap: Int) -> tuple[Pointer, Pointer]:
        """Return both places as they are seen from a later tap of the phase."""
        x = x.offset(tap * (phase.offset_step * self.chunk))
        return x, w.offset(tap * (phase.tap_step * self.lanes))

    def _reads(self, body: Body, taps: range) -> dict[int, list[tuple[int, int]]]:
        """Map each column behind `body.source` to the (cell of the tile, number of the tap) pairs that read it."""
        phase, columns = body.phase, self.columns
        reads: dict[int, list[tuple[int, int]]] = {}
        for cell in range(body.width):
            for i in taps:
                offset = cell * columns.step + phase.offset + i * phase.offset_step
                if body.start is not None:
                    at = body.start * columns.step + offset
                    if not 0 <= at < self.image:
                        continue
                tap = phase.tap + i * phase.tap_step
                reads.setdefault(offset - columns.lowest, []).append((cell, tap))
        return reads


def _groups(count: int) -> tuple[int, int]:
    """Split the taps of a row into equal groups to loop over; what is left is written out behind them.

    >>> _groups(7), _groups(9), _groups(31)
    ((7, 1), (5, 1), (8, 3))
    """
    parts = -(-count // _UNROLLED)
    size = -(-count // parts)
    return size, count // size
