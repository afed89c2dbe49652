"""The innermost part of `dense_planes`: some output channels times some vectors of pixels.

::

    acc[o][v] += broadcast(packed[tap][k][o]) * staged[k][place of v + displacement of tap]
"""

from __future__ import annotations

from typing import Any

from ..._compiler.codegen import Int, Mask, Pointer, Variable, Vector
from ..._problem.sums.gather import GROUP
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
        k, kernel = self.k, self.kernel
        state = _State(self, height, places)
        if kernel.levels:
            state.totals = self.totals(height, self.frame.totals)
            state.grand = self.totals(height, self.frame.grand)
            self.clear(state.totals)
            self.clear(state.grand)
        depth = self.word["depth"]
        if kernel.blocked:
            size = self.word["contract_block"]
            with k.loop(0, self.word["contract_blocks"], carry=state.carry, nonempty=True) as block:
                channels = (block * size, k.min((block + 1) * size, depth))
                self._added(state, weights, taps, block, channels, masked)
        else:
            self._added(state, weights, taps, k.i64(0), (k.i64(0), depth), masked)
        sums = [each.value for each in state.acc]
        for some in (state.totals, state.grand):
            if some:
                sums = [
                    sum_ + more.load(self.lanes, aligned=True)
                    for sum_, more in zip(sums, some, strict=True)
                ]
        return sums

    def segment(
        self,
        height: int,
        places: list[Int],
        weights: Pointer,
        block: Int,
        channels: tuple[Int, Int],
        totals: list[Pointer],
        grand: list[Pointer],
        masked: bool,
    ) -> None:
        """Add the products of a block of channels to totals."""
        taps = (self.k.i64(0), self.word["taps"])
        state = _State(self, height, places)
        state.totals, state.grand = totals, grand
        state.run.value = block * self.word["block_runs"] - 1
        self._added(state, weights, taps, block, channels, masked)
        for sum_, total in zip(state.acc, totals, strict=True):
            total.store(total.load(self.lanes, aligned=True) + sum_.value, aligned=True)

    def totals(self, height: int, start: Pointer) -> list[Pointer]:
        """Return where the totals of a tile lie."""
        return [start.offset(i * self.lanes) for i in range(height * self.kernel.vectors)]

    def clear(self, totals: list[Pointer]) -> None:
        for total in totals:
            total.store(self.k.zeros(self.number, self.lanes), aligned=True)

    def _added(
        self,
        state: _State,
        weights: Pointer,
        taps: tuple[Int, Int],
        block: Int,
        channels: tuple[Int, Int],
        masked: bool,
    ) -> None:
        """Add the products of a block of channels, run by run; the last run stays in registers."""
        k = self.k
        depth, table, height = self.word["depth"], self.frame.table, state.height
        pixels = [self.frame.staged.offset(place) for place in state.places]
        first, last = taps
        if self.kernel.listed and not masked:
            listed = table.offset(self.word["products_at"])
            self._run(state.acc, pixels, weights, first * depth, last * depth, listed, None)
            return
        with k.loop(first, last, carry=state.carry) as tap:
            moved = table.offset(self.word["taps_at"] + tap).load_int()
            here = [pixel.offset(moved) for pixel in pixels]
            row = weights.offset(tap * depth * height)
            masks = None
            if masked:
                valid = [self.frame.valid.offset(place + moved) for place in state.places]
                masks = [each.load(self.lanes).compare("une", "ne", 0) for each in valid]
            if self.kernel.levels:
                run = table.offset(self.word["runs_at"] + tap).load_int()
                state.begin(block * self.word["block_runs"] + run)
            self._run(state.acc, here, row, *channels, None, masks)

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


class _State:
    """What is added up while a tile is computed."""

    def __init__(self, tiles: Tiles, height: int, places: list[Int]) -> None:
        self.k, self.lanes = tiles.k, tiles.lanes
        self.levels = tiles.kernel.levels
        self.height, self.places = height, places
        self._zero = self.k.zeros(tiles.number, tiles.lanes)
        self.acc = [self.k.variable(self._zero) for _ in range(height * len(places))]
        self.run, self._full = self.k.variable(self.k.i64(-1)), self.k.variable(self.k.i64(0))
        self.totals: list[Pointer] = []
        self.grand: list[Pointer] = []

    @property
    def carry(self) -> list[Variable[Any]]:
        return [*self.acc, self.run, self._full] if self.levels else [*self.acc]

    def begin(self, run: Int) -> None:
        """Before the products of a run are added: move those of another one to its total."""
        k, before = self.k, self.run.value
        with k.when(run.differs(before)):
            with k.when(self._full.value.differs(0)):
                for sum_, total in zip(self.acc, self.totals, strict=True):
                    value = total.load(self.lanes, aligned=True) + sum_.value
                    total.store(value, aligned=True)
                    sum_.value = self._zero
            with k.when((before >= 0) & (run // GROUP).differs(before // GROUP)):
                for total, most in zip(self.totals, self.grand, strict=True):
                    value = most.load(self.lanes, aligned=True) + total.load(self.lanes, aligned=True)
                    most.store(value, aligned=True)
                    total.store(self._zero, aligned=True)
            self.run.value = run
        self._full.value = k.i64(1)
