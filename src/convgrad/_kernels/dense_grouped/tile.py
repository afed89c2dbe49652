"""The innermost part of `dense_grouped`: some pixels times some channels of as many groups as there are lanes.

A product reads a number of each group's pixel and a weight of each group: nothing is broadcast. A tile of 3 pixels and
4 channels loads 7 vectors for 12 products.
"""

from __future__ import annotations

from typing import Any

from ..._compiler.codegen import Int, KernelBuilder, Pointer, Variable, Vector, arithmetic, element
from ..shared.runs import ENOUGH, RUN
from .words import GroupedKernel


class LaneTiles:
    """Writes tiles; `totals` is memory for the sums of one."""

    def __init__(
        self, k: KernelBuilder, kernel: GroupedKernel, table: Pointer, totals: Pointer
    ) -> None:
        self.k, self.kernel, self.table = k, kernel, table
        self.number = arithmetic(element(kernel.dtype))
        self.lanes = k.lanes(self.number)
        self.pixel = kernel.depth * self.lanes
        """Numbers of a staged pixel."""
        self.unroll = next(step for step in (4, 2, 1) if kernel.depth % step == 0)
        self.totals = [totals.offset(i * self.lanes) for i in range(kernel.pixels * kernel.outputs)]

    def write(
        self,
        pixels: list[Pointer],
        targets: list[Pointer],
        weights: Pointer,
        rows: tuple[Int, Int],
        cols: tuple[Int, Int],
        bias: Pointer | None,
    ) -> None:
        """Compute one tile; `rows` and `cols` are the ranges of its class's entries in the table."""
        k, kernel = self.k, self.kernel
        zero = k.zeros(self.number, self.lanes)
        acc = [k.variable(zero) for _ in range(kernel.pixels * kernel.outputs)]
        done = k.variable(k.i64(0))
        carry: list[Variable[Any]] = [*acc, done] if kernel.levels else [*acc]
        if kernel.levels:
            for total in self.totals:
                total.store(zero, aligned=True)
        with k.loop(*rows, 2, carry=carry) as row:
            entry = self.table.offset(row)
            above, down = weights.offset(entry.load_int()), entry.offset(1).load_int()
            with k.loop(*cols, 3, carry=carry, nonempty=True) as col:
                entry = self.table.offset(col)
                here = above.offset(entry.load_int())
                moved = (down + entry.offset(1).load_int()) * self.pixel
                self._add(acc, done, pixels, moved, here, entry.offset(2).load_int())
        for i, there in enumerate(targets):
            for j in range(kernel.outputs):
                at = i * kernel.outputs + j
                value = acc[at].value
                if kernel.levels:
                    value = value + self.totals[at].load(self.lanes, aligned=True)
                if bias:
                    value = value + bias.offset(j * self.lanes).load(self.lanes, aligned=True)
                there.offset(j * self.lanes).store(value, aligned=True)

    def _add(
        self,
        acc: list[Variable[Vector]],
        done: Variable[Int],
        pixels: list[Pointer],
        moved: Int,
        weights: Pointer,
        length: Int,
    ) -> None:
        """Add the products of an entry, in runs if sums are long."""
        k = self.k
        if not self.kernel.levels:
            self._run(acc, pixels, moved, weights, k.i64(0), length)
            return
        carry: list[Variable[Any]] = [*acc, done]
        with k.loop(0, length, RUN, carry=carry, nonempty=True) as start:
            stop = k.min(start + RUN, length)
            self._run(acc, pixels, moved, weights, start, stop)
            done.value = done.value + stop - start
            with k.when(done.value >= ENOUGH):
                done.value = k.i64(0)
                for sum_, total in zip(acc, self.totals, strict=True):
                    before = total.load(self.lanes, aligned=True)
                    total.store(before + sum_.value, aligned=True)
                    sum_.value = k.zeros(self.number, self.lanes)

    def _run(
        self,
        acc: list[Variable[Vector]],
        pixels: list[Pointer],
        moved: Int,
        weights: Pointer,
        start: Int,
        stop: Int,
    ) -> None:
        """Add the products from `start` to `stop` of an entry."""
        k, kernel, lanes = self.k, self.kernel, self.lanes
        with k.loop(start, stop, self.unroll, carry=acc, nonempty=True) as depth:
            row = weights.offset(depth * (kernel.outputs * lanes))
            at = moved + depth * lanes
            for u in range(self.unroll):
                values = [
                    pixel.offset(at).offset(u * lanes).load(lanes, aligned=True) for pixel in pixels
                ]
                for j in range(kernel.outputs):
                    place = row.offset((u * kernel.outputs + j) * lanes)
                    weight = place.load(lanes, aligned=True)
                    for i, value in enumerate(values):
                        sum_ = acc[i * kernel.outputs + j]
                        sum_.value = k.fma(value, weight, sum_.value)
