"""The first pass forwards: mean and squares of deviations of shares of the values.

    mean[c] = sum(x) / n,  squares[c] = sum((x - mean)^2),  count[c] = n     of each share

The values of a share are added up in runs of some 64 rows. A run is added in the compute type as differences from the
mean of the run before, the first as differences from that of its first few values, and joins the share in float64 by

    mean += (m - mean) * r / n,  squares += s + (m - mean)^2 * (n - r) * r / n

where m, s, r are the run's and n counts both. Where a run's mean is far from the one before, its squares lose digits,
but the distance between the two is then the larger part of the variance. So mean 1000 and deviation 1 come out right,
and so does a jump in the middle.

Which shares and runs there are depends on the sizes alone, so that the bits do not depend on who adds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._compiler.codegen import (
    F64,
    Int,
    KernelBuilder,
    Pointer,
    Variable,
    Vector,
    arithmetic,
    symbol,
)
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from . import walk

WORDS = ("at_x", "channels", "images", "pixels", "shares", "padded")
"""`padded` channels are a whole number of vectors."""
ROWS = ("mean", "squares", "count")
"""Of a share: one float64 per channel each."""
TAKEN = 4
_FIRST = 8
"""Pixels, or values of each chain of a plane, whose mean the first run is added around."""


@dataclass(frozen=True)
class StatisticsKernel:
    """Statistics of shares of the values; items are shares, times channels for NCHW."""

    dtype: str
    planes: bool
    """Whether the image is NCHW."""


def emit(kernel: StatisticsKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    k = KernelBuilder(symbol("norm_statistics", kernel.dtype, "", target, kernel), target)
    frame = walk.Frame(k, WORDS, kernel.planes, kernel.dtype)
    with k.loop(k.begin, k.end) as item:
        if kernel.planes:
            _planes(frame, item)
        else:
            _pixels(frame, item)
    return k.finish()


@dataclass
class _Joined:
    """How a run joins what was before it: the same for all channels."""

    run: Vector
    """1 / r."""
    weight: Vector
    """r / n."""
    apart: Vector
    """(n - r) * r / n."""


def _joined(k: KernelBuilder, before: Int, count: Int) -> _Joined:
    old, new = k.number(before, F64), k.number(count, F64)
    one = k.constant(F64, 1, 1)
    weight = new / (old + new)
    return _Joined(one / new, weight, old * weight)


def _join(
    k: KernelBuilder, how: _Joined, total: Vector, squares: Vector, mean: Vector, more: Vector
) -> tuple[Vector, Vector]:
    """Return mean and squares with those of a run added."""
    apart = mean - total
    spread = apart * apart * how.apart.broadcast(mean.lanes)
    return k.fma(apart, how.weight.broadcast(mean.lanes), total), squares + (more + spread)


def _narrow(value: Vector, like: Vector) -> Vector:
    return value if like.element is F64 else value.cast("fptrunc", like.element)


def _adding(k: KernelBuilder, x: Pointer, shift: Pointer | Vector) -> walk.Adding:
    def add(column: walk.Column, spots: list[walk.Spot], sums: list[Vector]) -> list[Vector]:
        middle = (
            shift if isinstance(shift, Vector) else shift.offset(column.channel).load(column.lanes)
        )
        total, squares = sums
        away = []
        for spot in spots:
            value = spot.load(x) - middle
            if column.planes and spot.mask is not None:
                value = k.select(spot.mask, value, k.zeros(value.element, value.lanes))
            away.append(value)
        square = away[0] * away[0]
        for value in away[1:]:
            square = k.fma(value, value, square)
        while len(away) > 1:
            away = [a + b for a, b in zip(away[::2], away[1::2], strict=True)]
        return [total + away[0], squares + square]

    return add


def _pixels(frame: walk.Frame, share: Int) -> None:
    k, word = frame.k, frame.word
    channels, shares = word["channels"], word["shares"]
    values = word["pixels"] * word["images"]
    begin, end = share * values // shares, (share + 1) * values // shares
    x = frame.image("x")
    number = arithmetic(frame.storage)
    middle = k.scratch(number, 0)
    total, squares = middle.offset(word["padded"]), middle.offset(word["padded"] * 2)
    share_rows = k.arg_pointer(1, F64).offset(share * channels * len(ROWS))
    rows = [frame.row(share_rows, row) for row in range(len(ROWS))]
    lanes = k.lanes(number)
    narrow = k.lanes(F64)
    with k.loop(0, channels, lanes, nonempty=True) as channel:
        mask = k.first_lanes(lanes, channels - channel)
        middle.offset(channel).store(
            x.offset(begin * channels).offset(channel).load(lanes, mask=mask)
        )

    def add(start: Int, stop: Int, first: bool) -> None:
        walk.add_pixels(
            frame, [total, squares], k.i64(0), start, stop, TAKEN, [x], _adding(k, x, middle)
        )
        how = _joined(k, start - begin, stop - start)
        with k.loop(0, channels, narrow, nonempty=True) as channel:
            mask = k.first_lanes(narrow, channels - channel)
            shift = middle.offset(channel).load(narrow)
            added = walk.wide(total.offset(channel).load(narrow))
            away = added * how.run.broadcast(narrow)
            mean = walk.wide(shift) + away
            if not first:
                more = walk.wide(squares.offset(channel).load(narrow)) - added * away
                places = [row.offset(channel) for row in rows]
                so_far = [place.load(narrow, mask=mask) for place in places[:2]]
                found = _join(k, how, so_far[0], so_far[1], mean, more)
                for place, value in zip(places, found, strict=False):
                    place.store(value, mask=mask)
            middle.offset(channel).store(_narrow(mean, shift))

    with k.loop(0, channels, narrow, nonempty=True) as channel:
        mask = k.first_lanes(narrow, channels - channel)
        count = k.number(end - begin, F64).broadcast(narrow)
        for row, value in zip(
            rows, (k.zeros(F64, narrow), k.zeros(F64, narrow), count), strict=True
        ):
            row.offset(channel).store(value, mask=mask)
    add(begin, k.min(begin + _FIRST, end), first=True)
    with walk.runs(k, begin, end) as (start, stop):
        add(start, stop, first=False)


def _planes(frame: walk.Frame, item: Int) -> None:
    k, word = frame.k, frame.word
    channels, shares, pixels = word["channels"], word["shares"], word["pixels"]
    share, channel = item // channels, item % channels
    begin, end = share * word["images"] // shares, (share + 1) * word["images"] // shares
    x = frame.image("x")
    number = arithmetic(frame.storage)
    lanes = k.lanes(number)
    chains = walk.chains(number)
    run = walk.RUN * chains
    first = begin * channels + channel
    middle = k.variable(x.offset(first * pixels).load())
    zero = k.zeros(F64, 1)
    mean, squares, before = k.variable(zero), k.variable(zero), k.variable(begin - begin)

    def add(plane: Int, start: Int, stop: Int, keep: bool) -> None:
        shift = middle.value
        total, square = walk.add_plane(
            frame, 2, plane, start, stop, TAKEN, _adding(k, x, shift.broadcast(lanes))
        )
        count = stop - start
        how = _joined(k, before.value, count)
        added = walk.wide(total)
        away = added * how.run
        here = walk.wide(shift) + away
        if keep:
            more = walk.wide(square) - added * away
            mean.value, squares.value = _join(k, how, mean.value, squares.value, here, more)
            before.value = before.value + count
        middle.value = _narrow(here, shift)

    add(first, k.i64(0), k.min(_FIRST * chains, pixels), keep=False)
    carry: list[Variable[Any]] = [middle, mean, squares, before]
    with k.loop(begin, end, carry=carry, nonempty=True) as image:
        plane = image * channels + channel
        with k.loop(0, pixels, run, carry=carry, nonempty=True) as start:
            add(plane, start, k.min(start + run, pixels), keep=True)
    rows = k.arg_pointer(1, F64).offset(share * channels * len(ROWS)).offset(channel)
    found = (mean.value, squares.value, k.number(before.value, F64))
    for row, value in enumerate(found):
        frame.row(rows, row).store(value)
