"""Passes that add up and may write on the way: the first one backwards, pooling, and the gradient of scaling.

    backward         g = grad * act'(u)    sums of g and g * (x - mean)    dresidual = g
    pool                                   sums of x
    scale_gradient                         sums of grad * x                dx = grad * factor

Sums have three levels: runs of some 64 pixels, or of 64 values of each of a plane's chains, in the compute type, the
runs of a share in float64, and the shares (`totals`). Which there are depends on the sizes alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.codegen import (
    F64,
    Int,
    KernelBuilder,
    Pointer,
    Vector,
    arithmetic,
    element,
    symbol,
)
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..._problem.norm.task import SAVED, SCALARS
from . import activation, walk

WORDS = (
    *("at_x", "at_grad", "at_beside", "at_saved", "at_factor", "at_out", "at_scalars"),
    *("channels", "images", "pixels", "groups", "values", "shares", "padded"),
)
"""`groups` of images are added up apart, each in `shares`; a group has `images`, and `values` pixels in all."""
COUNT = {"backward": 2, "pool": 1, "scale_gradient": 1}


@dataclass(frozen=True)
class SumsKernel:
    """Adds up shares of an image; items are shares, times channels for NCHW."""

    job: str
    dtype: str
    planes: bool
    activation: str = "none"
    beside: str = ""
    writes: bool = False

    @property
    def taken(self) -> int:
        """Pixels at a time."""
        return 4 if self.job == "pool" else 2


def emit(kernel: SumsKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    name = symbol(f"norm_{kernel.job}", kernel.dtype, kernel.activation, target, kernel)
    k = KernelBuilder(name, target)
    frame = walk.Frame(k, WORDS, kernel.planes, kernel.dtype)
    streams, adding = _adding(frame, kernel)
    count = COUNT[kernel.job]
    with k.loop(k.begin, k.end) as item:
        if kernel.planes:
            _planes(frame, kernel, item, count, adding)
        else:
            _pixels(frame, kernel, item, count, streams, adding)
    return k.finish()


def _adding(frame: walk.Frame, kernel: SumsKernel) -> tuple[list[Pointer], walk.Adding]:
    """Return the images that are read, and what adds some of their values."""
    k = frame.k
    x = frame.image("x")
    if kernel.job == "pool":

        def add(column: walk.Column, spots: list[walk.Spot], sums: list[Vector]) -> list[Vector]:
            return [_sum([sums[0], *(spot.load(x) for spot in spots)])]

        return [x], add
    grad = frame.image("grad")
    if kernel.job == "scale_gradient":
        factors, out = frame.image("factor"), frame.image("out")

        def scaled(column: walk.Column, spots: list[walk.Spot], sums: list[Vector]) -> list[Vector]:
            (total,) = sums
            for spot in spots:
                g = spot.load(grad)
                spot.store(out, g * column.load(factors, per_image=True))
                total = k.fma(g, spot.load(x), total)
            return [total]

        return [x, grad], scaled
    saved = frame.place("saved", arithmetic(element(kernel.dtype)).short)
    rows = {name: frame.row(saved, i) for i, name in enumerate(SAVED)}
    beside = frame.image("beside") if kernel.beside else None
    dresidual = frame.image("out") if kernel.writes else None
    slope = walk.scalar(frame, SCALARS.index("slope"))

    def backward(column: walk.Column, spots: list[walk.Spot], sums: list[Vector]) -> list[Vector]:
        total, product = sums
        inner = []
        for spot in spots:
            value = spot.load(x)
            g = spot.load(grad)
            if kernel.activation != "none":
                u = argument(k, column, spot, value, rows, kernel.beside, beside)
                g = activation.gradient(k, kernel.activation, u, g, slope)
            if dresidual is not None:
                spot.store(dresidual, g)
            inner.append(g)
            product = k.fma(g, value - column.load(rows["mean"]), product)
        return [total + _sum(inner), product]

    return [each for each in (x, grad, beside) if each is not None], backward


def argument(
    k: KernelBuilder,
    column: walk.Column,
    spot: walk.Spot,
    value: Vector,
    rows: dict[str, Pointer],
    kind: str,
    beside: Pointer | None,
) -> Vector:
    """Return where the activation's derivative is wanted: u, computed anew, or y where that tells it."""
    if kind == "y":
        assert beside is not None
        return spot.load(beside)
    u = k.fma(value, column.load(rows["scale"]), column.load(rows["shift"]))
    return u if beside is None else u + spot.load(beside)


def _sum(values: list[Vector]) -> Vector:
    total = values[0]
    for each in values[1:]:
        total = total + each
    return total


def _pixels(
    frame: walk.Frame,
    kernel: SumsKernel,
    item: Int,
    count: int,
    streams: list[Pointer],
    adding: walk.Adding,
) -> None:
    k, word = frame.k, frame.word
    channels, shares, values = word["channels"], word["shares"], word["values"]
    group, share = item // shares, item % shares
    first = group * values
    begin, end = first + share * values // shares, first + (share + 1) * values // shares
    base = k.scratch(arithmetic(frame.storage), 0)
    sums = [base.offset(word["padded"] * i) for i in range(count)]
    there = k.arg_pointer(1, F64).offset(item * channels * count)
    rows = [frame.row(there, i) for i in range(count)]
    lanes = k.lanes(F64)
    with walk.runs(k, begin, end) as (start, stop):
        walk.add_pixels(frame, sums, group, start, stop, kernel.taken, streams, adding)
        new = start.equals(begin)
        with k.loop(0, channels, lanes, nonempty=True) as channel:
            mask = k.first_lanes(lanes, channels - channel)
            for row, added in zip(rows, sums, strict=True):
                place, more = row.offset(channel), walk.wide(added.offset(channel).load(lanes))
                so_far = place.load(lanes, mask=mask)
                place.store(k.select(new, more, so_far + more), mask=mask)


def _planes(
    frame: walk.Frame, kernel: SumsKernel, item: Int, count: int, adding: walk.Adding
) -> None:
    k, word = frame.k, frame.word
    channels, shares, images, pixels = (
        word[name] for name in ("channels", "shares", "images", "pixels")
    )
    number, channel = item // channels, item % channels
    group, share = number // shares, number % shares
    first = group * images
    begin, end = first + share * images // shares, first + (share + 1) * images // shares
    run = walk.RUN * walk.chains(arithmetic(frame.storage))
    totals = [k.variable(k.zeros(F64, 1)) for _ in range(count)]
    with k.loop(begin, end, carry=totals, nonempty=True) as image:
        plane = image * channels + channel
        with k.loop(0, pixels, run, carry=totals, nonempty=True) as start:
            stop = k.min(start + run, pixels)
            found = walk.add_plane(frame, count, plane, start, stop, kernel.taken, adding)
            for total, value in zip(totals, found, strict=True):
                total.value = total.value + walk.wide(value)
    there = k.arg_pointer(1, F64).offset(number * channels * count).offset(channel)
    for i, total in enumerate(totals):
        frame.row(there, i).store(total.value)
