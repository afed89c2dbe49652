"""The innermost part of `dense_planes`: some output channels times some vectors of pixels.

::

    acc[o][v] += broadcast(packed[tap][k][o]) * staged[k][place of v + displacement of tap]
"""

from __future__ import annotations

from typing import Any

from ..._compiler.codegen import Int, Mask, Pointer, Variable, Vector
from ..shared.runs import ENOUGH, RUN
from .frame import Frame

_UNROLL = 4


class Tiles:
    """Writes tiles; methods go from the outside in."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.k, self.kernel, self.word = frame.k, frame.kernel, frame.word
        self.number, self.lanes = frame.number, frame.lanes

    def sums(
        self,
        height: int,
        places: list[Int],
        weights: Pointer,
        taps: tuple[Int, Int],
        masked: bool,
    ) -> list[Vector]:
        """Return the sums of a tile, channel by channel; with `masked`, cells beside the image add nothing at all."""
        totals = self.totals(height, self.frame.totals) if self.kernel.levels else []
        self.clear(totals)
        whole = (self.k.i64(0), self.word["depth"])
        acc = self._added(height, places, weights, taps, whole, totals, masked)
        if not totals:
            return acc
        sums = zip(acc, totals, strict=True)
        return [sum_ + total.load(self.lanes, aligned=True) for sum_, total in sums]

    def segment(
        self,
        height: int,
        places: list[Int],
        weights: Pointer,
        channels: tuple[Int, Int],
        totals: list[Pointer],
        masked: bool,
    ) -> None:
        """Add the products of some channels to totals."""
        taps = (self.k.i64(0), self.word["taps"])
        acc = self._added(height, places, weights, taps, channels, totals, masked)
        for sum_, total in zip(acc, totals, strict=True):
            total.store(total.load(self.lanes, aligned=True) + sum_, aligned=True)

    def totals(self, height: int, start: Pointer) -> list[Pointer]:
        """Return where the totals of a tile lie."""
        return [start.offset(i * self.lanes) for i in range(height * self.kernel.vectors)]

    def clear(self, totals: list[Pointer]) -> None:
        for total in totals:
            total.store(self.k.zeros(self.number, self.lanes), aligned=True)

    def _added(
        self,
        height: int,
        places: list[Int],
        weights: Pointer,
        taps: tuple[Int, Int],
        channels: tuple[Int, Int],
        totals: list[Pointer],
        masked: bool,
    ) -> list[Vector]:
        """Add products, long runs of them to the totals, and return the last run."""
        k, levels = self.k, self.kernel.levels
        zero = k.zeros(self.number, self.lanes)
        acc = [k.variable(zero) for _ in range(height * len(places))]
        done = k.variable(k.i64(0))
        carry: list[Variable[Any]] = [*acc, done] if levels else [*acc]
        depth, table = self.word["depth"], self.frame.table
        pixels = [self.frame.staged.offset(place) for place in places]
        first, last = taps
        if self.kernel.listed and not masked:
            listed = table.offset(self.word["products_at"])
            self._runs(acc, done, pixels, weights, totals, first * depth, last * depth, listed)
        else:
            with k.loop(first, last, carry=carry) as tap:
                moved = table.offset(self.word["taps_at"] + tap).load_int()
                here = [pixel.offset(moved) for pixel in pixels]
                row = weights.offset(tap * depth * height)
                masks = None
                if masked:
                    valid = [self.frame.valid.offset(place + moved) for place in places]
                    masks = [each.load(self.lanes).compare("une", "ne", 0) for each in valid]
                self._runs(acc, done, here, row, totals, *channels, None, masks)
        return [each.value for each in acc]

    def _runs(
        self,
        acc: list[Variable[Vector]],
        done: Variable[Int],
        pixels: list[Pointer],
        weights: Pointer,
        totals: list[Pointer],
        begin: Int,
        end: Int,
        listed: Pointer | None,
        masks: list[Mask] | None = None,
    ) -> None:
        """Add products in runs, and what has run long enough to the totals."""
        k = self.k
        if not self.kernel.levels:
            self._run(acc, pixels, weights, begin, end, listed, masks)
            return
        carry: list[Variable[Any]] = [*acc, done]
        with k.loop(begin, end, RUN, carry=carry) as start:
            stop = k.min(start + RUN, end)
            # Before more is added, not after: the last run needs no way through memory.
            with k.when(done.value >= ENOUGH):
                done.value = k.i64(0)
                for sum_, total in zip(acc, totals, strict=True):
                    before = total.load(self.lanes, aligned=True)
                    total.store(before + sum_.value, aligned=True)
                    sum_.value = k.zeros(self.number, self.lanes)
            self._run(acc, pixels, weights, start, stop, listed, masks)
            done.value = done.value + stop - start

    def _run(
        self,
        acc: list[Variable[Vector]],
        pixels: list[Pointer],
        weights: Pointer,
        start: Int,
        stop: Int,
        listed: Pointer | None,
        masks: list[Mask] | None,
    ) -> None:
        k, height, plane = self.k, len(acc) // len(pixels), self.word["staged_plane"]
        pitches = [plane * u for u in range(_UNROLL)]
        whole = start + ((stop - start) & -_UNROLL)
        ways = [(start, whole, _UNROLL), (whole, stop, 1)] if masks is None else [(start, stop, 1)]
        for first, last, step in ways:
            with k.loop(first, last, step, carry=acc) as depth:
                row = weights.offset(depth * height)
                at = None if listed is not None else depth * plane
                for u in range(step):
                    if at is None:
                        assert listed is not None
                        moved = listed.offset(depth).offset(u).load_int()
                    else:
                        moved = at + pitches[u]
                    values = [pixel.offset(moved).load(self.lanes) for pixel in pixels]
                    self._step(acc, values, row.offset(u * height), masks)

    def _step(
        self,
        acc: list[Variable[Vector]],
        values: list[Vector],
        weights: Pointer,
        masks: list[Mask] | None,
    ) -> None:
        """Multiply one channel of each pixel with one number of each output channel."""
        k = self.k
        for o in range(len(acc) // len(values)):
            weight = weights.offset(o).broadcast(self.lanes)
            for v, value in enumerate(values):
                place = acc[o * len(values) + v]
                sum_ = k.fma(weight, value, place.value)
                place.value = sum_ if masks is None else k.select(masks[v], sum_, place.value)
