"""The innermost part of `dense_planes`: some output channels times some vectors of pixels.

::

    acc[o][v] += broadcast(packed[tap][k][o]) * staged[k][place of v + displacement of tap]
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..._compiler.codegen import Int, Mask, Pointer, Variable, Vector
from ..shared.levels import Levels
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
        places: list[Int],
        height: int,
        weights: Pointer,
        taps: tuple[Int, Int],
        masked: bool,
    ) -> list[Vector]:
        """Return the sums of a tile, channel by channel; with `masked`, cells beside the image add nothing at all."""
        levels = self.levels(height, self.frame.totals, self.frame.grand)
        blocks = self.k.i64(0), self.word["contract_blocks"]
        self._add(levels, places, weights, taps, blocks, masked)
        return levels.finish()

    def segment(
        self,
        places: list[Int],
        height: int,
        weights: Pointer,
        blocks: tuple[Int, Int],
        rooms: tuple[Pointer, Pointer],
        masked: bool,
    ) -> None:
        """Add the products of some of the contract's blocks to totals."""
        levels = self.levels(height, *rooms)
        levels.take_up(blocks[0] * self.word["block_runs"])
        taps = (self.k.i64(0), self.word["taps"])
        self._add(levels, places, weights, taps, blocks, masked)
        levels.put_down()

    def end_segments(self, height: int, rooms: tuple[Pointer, Pointer]) -> list[Vector]:
        """Return the sums of a tile when all of its segments have been added."""
        levels = self.levels(height, *rooms)
        levels.take_up(self.word["contract_blocks"] * self.word["block_runs"])
        return levels.finish()

    def levels(self, height: int, totals: Pointer | None, grand: Pointer | None) -> Levels:
        """Begin the sums of a tile."""
        return Levels(self.k, self.number, height * self.kernel.vectors, totals, grand)

    def _add(
        self,
        levels: Levels,
        places: list[Int],
        weights: Pointer,
        taps: tuple[Int, Int],
        blocks: tuple[Int, Int],
        masked: bool,
    ) -> None:
        """Add the products of some taps and blocks of channels; the last run stays in registers."""
        k, word = self.k, self.word
        depth, table, height = word["depth"], self.frame.table, len(levels.now) // len(places)
        pixels = [self.frame.staged.offset(place) for place in places]
        if self.kernel.listed and not masked:
            listed = table.offset(word["products_at"])
            first, last = (tap * depth for tap in taps)
            self._run(levels.now, pixels, weights, first, last, listed, None)
            return
        with (
            self._blocks(levels, blocks) as (number, start, stop),
            k.loop(*taps, carry=levels.carry) as tap,
        ):
            moved = table.offset(word["taps_at"] + tap).load_int()
            here = [pixel.offset(moved) for pixel in pixels]
            row = weights.offset(tap * depth * height)
            masks = None
            if masked:
                valid = [self.frame.valid.offset(place + moved) for place in places]
                masks = [each.load(self.lanes).compare("une", "ne", 0) for each in valid]
            if self.kernel.levels:
                run = table.offset(word["runs_at"] + tap).load_int()
                levels.begin(number * word["block_runs"] + run)
            self._run(levels.now, here, row, start, stop, None, masks)

    @contextmanager
    def _blocks(self, levels: Levels, blocks: tuple[Int, Int]) -> Iterator[tuple[Int, Int, Int]]:
        """Go through some of the contract's blocks: gives the number, the first channel, the one behind the last."""
        k, depth = self.k, self.word["depth"]
        if not self.kernel.blocked:
            yield k.i64(0), k.i64(0), depth
            return
        with k.loop(*blocks, carry=levels.carry, nonempty=True) as number:
            start = number * self.word["contract_block"]
            yield number, start, k.min(start + self.word["contract_block"], depth)

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
