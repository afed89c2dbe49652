"""Statistics of a result's channels, taken while its tiles are in registers: what a batch norm behind it wants to know.

A plan of a problem with `statistics` writes rows ``[share][3][channel]`` of float64: mean, sum of squared deviations
from it, and count of the pixels of each share. Which shares there are depends on the problem alone, and so do the bits.

Sums have three levels, and none of them cancels, however far a channel's values are from zero:

- A tile's values d_i = z_i - shift, where `shift` is the mean of the first tile of its run: near enough.
- A run of tiles: ``S = sum(d), Q = sum(d^2)`` in float32.
- A share, in float64. A run has the mean ``shift + S / n`` and the squares ``Q - S^2 / n``; two parts of n and m pixels
  have together, with ``delta = mean_m - mean_n`` (Chan, Golub and LeVeque 1983)

      mean = mean_n + delta m / (n + m),   squares = squares_n + squares_m + delta^2 n m / (n + m)

A result that is not finite makes its channel's statistics NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..._compiler.codegen import F32, F64, I64, Bool, Int, IntLike, KernelBuilder, Pointer, Vector
from ..._problem.convolution import Problem
from .pixel_sum import added_up

ROWS = 3
"""Of a share: mean, squares, count."""
RUN_NUMBERS = 3
"""float32 numbers of a channel: shift, S, Q."""
TOTAL_NUMBERS = 2
"""float64 numbers of a channel: mean, squares."""
_LEAST_PIXELS = 64
"""Of a share, on average: a share's row takes as much memory as 6 pixels, and is written, read and merged."""
CHANNEL_BYTES = RUN_NUMBERS * F32.size + TOTAL_NUMBERS * F64.size
"""Workspace of a channel."""


def why_not(problem: Problem) -> str | None:
    """Return why no kernel takes statistics of a problem's result, or None."""
    if problem.dtype.short != F32.short:
        return "only float32"
    if problem.data_format != "NHWC":
        return "only NHWC"
    return None


class Counted(NamedTuple):
    """Which pixels of a tile are to be counted: those a tile before it has had already are not."""

    fresh: Bool
    """Whether the tile is the first of its run."""
    whole: Bool
    """Whether all pixels are."""
    pixels: Callable[[], Sequence[Bool]]
    """Writes whether each is, where not all are: few tiles need to know."""


class _Parts(NamedTuple):
    """What a run's statistics and those before them are multiplied with when they meet."""

    per_pixel: Vector
    """1 / m"""
    share: Vector
    """m / (n + m)"""
    apart: Vector
    """n m / (n + m)"""


class ChannelStatistics:
    """The statistics of some channels in a workspace; a vector of channels is known by the number of its first."""

    def __init__(self, k: KernelBuilder, runs: Pointer, totals: Pointer, lanes: int) -> None:
        """`runs` has `RUN_NUMBERS` of float32 for each channel, `totals` has `TOTAL_NUMBERS` of float64."""
        assert runs.element is F32 and totals.element is F64
        self._k, self._runs, self._totals, self._lanes = k, runs, totals, lanes

    def clear(self, channel: IntLike) -> None:
        """Forget a vector of channels: before the first run of a share."""
        for place in self._wide(channel):
            place.store(self._k.zeros(F64, self._lanes))

    def add(self, tile: Sequence[tuple[IntLike, Sequence[Vector]]], counted: Counted) -> None:
        """Add a tile: the values of its pixels by vector of channels."""
        k = self._k
        if counted.fresh.value is not False:
            with k.when(counted.fresh):
                for channel, values in tile:
                    self._begin(channel, values)
        if counted.whole.value:
            self._add_all(tile, None)
            return
        with k.branch(counted.whole) as ways:
            with ways.then():
                self._add_all(tile, None)
            with ways.otherwise():
                self._add_all(tile, counted.pixels())

    def parts(self, before: Int, count: Int) -> _Parts:
        """Return the factors with which a run of some pixels joins those before it."""
        one = self._k.constant(F64, 1, 1.0)
        earlier, now = _as_number(before), _as_number(count)
        share = now / (earlier + now)
        factors = (one / now, share, earlier * share)
        return _Parts(*(each.broadcast(self._lanes) for each in factors))

    def end_run(self, channel: IntLike, parts: _Parts) -> None:
        """Let the run of a vector of channels join the runs before it."""
        shift, total, squares = (
            place.load(self._lanes).cast("fpext", F64) for place in self._narrow(channel)
        )
        mean_at, squares_at = self._wide(channel)
        mean, before = mean_at.load(self._lanes), squares_at.load(self._lanes)
        off = total * parts.per_pixel
        around = squares - total * off
        # Rounding may leave less than nothing of equal values; a NaN is kept.
        none = self._k.zeros(F64, self._lanes)
        around = self._k.select(around.less(none), none, around)
        delta = shift + off - mean
        mean_at.store(mean + delta * parts.share)
        squares_at.store(before + around + delta * delta * parts.apart)

    def write(self, channel: IntLike, row: Pointer, pitch: Int, count: Int) -> None:
        """Write a vector of channels of a share: `row` is where its first mean goes, rows are `pitch` apart."""
        for number, place in enumerate(self._wide(channel)):
            row.offset(pitch * number).store(place.load(self._lanes))
        row.offset(pitch * TOTAL_NUMBERS).store(_as_number(count).broadcast(self._lanes))

    def _begin(self, channel: IntLike, values: Sequence[Vector]) -> None:
        """Begin a run around the mean of its first tile."""
        zero = self._k.zeros(F32, self._lanes)
        shift = added_up(values) * (1 / len(values))
        for place, value in zip(self._narrow(channel), (shift, zero, zero), strict=True):
            place.store(value)

    def _add_all(
        self, tile: Sequence[tuple[IntLike, Sequence[Vector]]], wanted: Sequence[Bool] | None
    ) -> None:
        for channel, values in tile:
            self._add(channel, values, wanted)

    def _add(
        self, channel: IntLike, values: Sequence[Vector], wanted: Sequence[Bool] | None
    ) -> None:
        k = self._k
        shift_at, total_at, squares_at = self._narrow(channel)
        shift = shift_at.load(self._lanes)
        apart = [value - shift for value in values]
        if wanted is not None:
            zero = k.zeros(F32, self._lanes)
            apart = [k.select(here, each, zero) for here, each in zip(wanted, apart, strict=True)]
        squares = k.zeros(F32, self._lanes)
        for i, each in enumerate(apart):
            squares = k.fma(each, each, squares) if i else each * each
        total_at.store(total_at.load(self._lanes) + added_up(apart))
        squares_at.store(squares_at.load(self._lanes) + squares)

    def _narrow(self, channel: IntLike) -> list[Pointer]:
        """Return where shift, S and Q of a vector of channels are."""
        start = self._runs.offset(self._k.i64(channel) * RUN_NUMBERS)
        return [start.offset(i * self._lanes) for i in range(RUN_NUMBERS)]

    def _wide(self, channel: IntLike) -> list[Pointer]:
        """Return where mean and squares of a vector of channels are."""
        start = self._totals.offset(self._k.i64(channel) * TOTAL_NUMBERS)
        return [start.offset(i * self._lanes) for i in range(TOTAL_NUMBERS)]


def _as_number(value: Int) -> Vector:
    """Return an integer as a float64."""
    return Vector(value.emitter, value.text, I64, 1).cast("sitofp", F64)
