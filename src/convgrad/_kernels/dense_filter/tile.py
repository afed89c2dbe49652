"""The sums of one tile: outer products of the pixels of a chunk, in registers.

Pixels come in one of two ways. With a list, each pair of them has a word that says where its two halves lie: taps of
windows, whatever the padding. Without one, pixels follow each other at a fixed distance in both operands: windows of
one tap. Then a pixel costs two loads less of ten (6 x 16 tile).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._compiler.codegen import I32, Bool, Element, Int, KernelBuilder, Pointer, Variable, Vector
from .words import LISTED, UNROLL, DenseFilterKernel


@dataclass(frozen=True)
class Ahead:
    """Lines that are asked for as the pixels run by, because the next chunk will read them."""

    lines: tuple[Pointer, ...]
    step: Int


class TileSums:
    """Writes the innermost loops of a kernel."""

    def __init__(self, k: KernelBuilder, kernel: DenseFilterKernel, number: Element) -> None:
        self.k, self.kernel, self.number = k, kernel, number
        self.lanes = k.lanes(number)
        self.totals = k.scratch(number, kernel.rows * kernel.vectors * self.lanes)
        """The tile's sums of runs."""
        # Few sums wait for each other, so the contract has two chains for narrow groups, and pixels take turns.
        self.sets = kernel.sets

    def fresh(self, rows: int) -> list[Variable[Vector]]:
        """Return variables for the sums of a tile."""
        zero = self.k.zeros(self.number, self.lanes)
        return [self.k.variable(zero) for _ in range(self.sets * rows * self.kernel.vectors)]

    def listed(
        self,
        sums: list[Variable[Vector]],
        x: Pointer,
        y: Pointer,
        lists: Pointer,
        index: Pointer,
        runs: Int,
    ) -> None:
        """Sum the products of the lists of some runs; lists have whole turns of the innermost loop."""
        k = self.k
        with k.loop(0, runs, carry=sums, nonempty=True) as number:
            run, stop = (index.offset(number).offset(i).load_int() for i in range(2))
            self._clear(sums)
            with k.loop(run, stop, LISTED, carry=sums) as entry:
                pairs = lists.offset(entry).as_element(I32)
                for turn in range(LISTED):
                    a = x.offset(pairs.offset(2 * turn).load_int())
                    b = y.offset(pairs.offset(2 * turn + 1).load_int())
                    self._pixel(a, b, sums, turn)
            self._flush(sums, number, number + 1 < runs)

    def straight(
        self,
        sums: list[Variable[Vector]],
        x: Pointer,
        y: Pointer,
        ends: Pointer,
        runs: Int,
        ahead: Ahead | None,
    ) -> None:
        """Sum the products of pixels that follow each other; `ends` has where each run ends."""
        k = self.k
        steps = self.kernel.x_width, self.kernel.vectors * self.lanes
        places = [k.variable(x), k.variable(y)]
        lines = [k.variable(line) for line in ahead.lines] if ahead else []
        start = k.variable(k.i64(0))
        carried: list[Variable[Any]] = [*sums, *places, *lines]

        def follow(some: int, first: int = 0) -> None:
            a, b = (place.value for place in places)
            for turn in range(some):
                self._pixel(
                    a.offset(turn * steps[0]), b.offset(turn * steps[1]), sums, first + turn
                )
            for place, step in zip(places, steps, strict=True):
                place.value = place.value.offset(some * step)

        with k.loop(0, runs, carry=[*carried, start], nonempty=True) as number:
            run = start.value
            stop = ends.offset(number).load_int()
            whole = stop - (stop - run) % UNROLL
            self._clear(sums)
            with k.loop(run, whole, UNROLL, carry=carried):
                for line in lines:
                    assert ahead is not None
                    line.value.prefetch(locality=2)
                    line.value = line.value.offset(ahead.step)
                follow(UNROLL)
            if self.sets == 1:
                with k.loop(whole, stop, carry=[*sums, *places]):
                    follow(1)
            else:
                for turn in range(UNROLL - 1):
                    with k.when(whole + turn < stop):
                        follow(1, turn)
            start.value = stop
            self._flush(sums, number, number + 1 < runs)

    def _clear(self, sums: list[Variable[Vector]]) -> None:
        zero = self.k.zeros(self.number, self.lanes)
        for each in sums:
            each.value = zero

    def _flush(self, sums: list[Variable[Vector]], number: Int, more: Bool) -> None:
        """Add a run's sums to those of the runs before it."""
        k, lanes = self.k, self.lanes
        some = len(sums) // self.sets
        for other in range(1, self.sets):
            for i in range(some):
                sums[i].value = sums[i].value + sums[other * some + i].value
        totals = [self.totals.offset(i * lanes) for i in range(some)]
        with k.when(number > 0):
            for each, total in zip(sums, totals, strict=False):
                each.value = each.value + total.load(lanes)
        with k.when(more):
            for each, total in zip(sums, totals, strict=False):
                total.store(each.value)

    def _pixel(self, x: Pointer, y: Pointer, sums: list[Variable[Vector]], turn: int) -> None:
        """Add the products of one pixel to one set of sums."""
        some = len(sums) // self.sets
        mine = sums[turn % self.sets * some :][:some]
        if self.kernel.diagonal > 1:
            self._diagonal(x, y, mine)
        else:
            self._outer(x, y, mine)

    def _outer(self, x: Pointer, y: Pointer, sums: list[Variable[Vector]]) -> None:
        """Add the products of every channel of x with every one of dy."""
        k, lanes, vectors = self.k, self.lanes, self.kernel.vectors
        right = [y.offset(v * lanes).load(lanes) for v in range(vectors)]
        for i in range(len(sums) // vectors):
            left = x.offset(i).broadcast(lanes)
            for v in range(vectors):
                each = sums[i * vectors + v]
                each.value = k.fma(left, right[v], each.value)

    def _diagonal(self, x: Pointer, y: Pointer, sums: list[Variable[Vector]]) -> None:
        """Add the products of every channel of a group of x with those of the same group of dy."""
        k, lanes, rows = self.k, self.lanes, self.kernel.rows
        right = y.load(lanes)
        left = x.load(self.kernel.x_width)
        each_group = lanes // self.kernel.diagonal
        for i, each in enumerate(sums):
            spread = k.shuffle(left, None, [lane // each_group * rows + i for lane in range(lanes)])
            each.value = k.fma(spread, right, each.value)
