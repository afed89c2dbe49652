"""The innermost part of `dense_grouped`: some pixels times some channels of as many groups as there are lanes.

A product reads a number of each group's pixel and a weight of each group: nothing is broadcast. A tile of 3 pixels and
4 channels loads 7 vectors for 12 products.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..._compiler.codegen import Int, KernelBuilder, Pointer, Variable, Vector, arithmetic, element
from ..shared.levels import Levels
from .geometry import COL_ENTRY, ROW_ENTRY
from .words import GroupedKernel


class LaneTiles:
    """Writes tiles."""

    def __init__(
        self, k: KernelBuilder, kernel: GroupedKernel, table: Pointer, block_runs: Int
    ) -> None:
        """`block_runs` are the numbers of runs of a block of channels."""
        self.k, self.kernel, self.table, self.block_runs = k, kernel, table, block_runs
        self.number = arithmetic(element(kernel.dtype))
        self.lanes = k.lanes(self.number)
        self.pixel = kernel.depth * self.lanes
        """Numbers of a staged pixel."""
        self.unroll = next(step for step in (4, 2, 1) if kernel.depth % step == 0)
        room = kernel.pixels * kernel.outputs * self.lanes
        self.rooms = [k.scratch(self.number, room) if kernel.levels else None for _ in range(2)]

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
        k, kernel, lanes = self.k, self.kernel, self.lanes
        sums = Levels(k, self.number, kernel.pixels * kernel.outputs, *self.rooms)
        with (
            self._blocks(sums) as (block, start, stop),
            k.loop(*rows, ROW_ENTRY, carry=sums.carry) as row,
        ):
            entry = self.table.offset(row)
            above, down = weights.offset(entry.load_int()), entry.offset(1).load_int()
            row_run = block * self.block_runs + entry.offset(2).load_int()
            with k.loop(*cols, COL_ENTRY, carry=sums.carry, nonempty=True) as col:
                entry = self.table.offset(col)
                here = above.offset(entry.load_int())
                moved = (down + entry.offset(1).load_int()) * self.pixel
                sums.begin(row_run + entry.offset(3).load_int())
                end = entry.offset(2).load_int() if stop is None else stop
                self._run(sums.now, pixels, moved, here, start, end)
        finished, zero = sums.finish(), k.zeros(self.number, lanes)
        for j in range(kernel.outputs):
            # A sum that is zero may be -0, a result not.
            last = bias.offset(j * lanes).load(lanes, aligned=True) + zero if bias else zero
            for i, there in enumerate(targets):
                value = finished[i * kernel.outputs + j] + last
                there.offset(j * lanes).store(value, aligned=True)

    @contextmanager
    def _blocks(self, sums: Levels) -> Iterator[tuple[Int, Int, Int | None]]:
        """Go through the contract's blocks of channels: gives number, first channel, and the one behind the last.

        Where all channels are one block, an entry of several taps ends where it says.
        """
        k, depth, size = self.k, self.kernel.depth, self.kernel.block
        if size == depth:
            yield k.i64(0), k.i64(0), None
            return
        with k.loop(0, -(-depth // size), carry=sums.carry, nonempty=True) as block:
            yield block, block * size, k.min((block + 1) * size, depth)

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
