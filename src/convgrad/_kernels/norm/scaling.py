"""Scaling an image by a factor per image and channel, and the gradient of pooling: passes without sums.

scale          y = x * factor
pool_gradient  dx = grad + dpooled / pixels
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.codegen import KernelBuilder, arithmetic, symbol
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from . import walk

WORDS = (*("at_image", "at_factor", "at_out"), *walk.BLOCKS)
TAKEN = 4


@dataclass(frozen=True)
class ScalingKernel:
    """One of the two; items are blocks of the image."""

    job: str
    dtype: str
    planes: bool


def emit(kernel: ScalingKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    k = KernelBuilder(symbol(f"norm_{kernel.job}", kernel.dtype, "", target, kernel), target)
    frame = walk.Frame(k, WORDS, kernel.planes, kernel.dtype)
    image, factors, out = (frame.image(name) for name in ("image", "factor", "out"))
    number = arithmetic(frame.storage)
    pixels = k.number(frame.word["pixels"], number)
    share = (k.constant(number, 1, 1) / pixels).broadcast(k.lanes(number))

    def scale(column: walk.Column, spots: list[walk.Spot]) -> None:
        for spot in spots:
            spot.store(out, spot.load(image) * column.load(factors, per_image=True))

    def add(column: walk.Column, spots: list[walk.Spot]) -> None:
        for spot in spots:
            factor = column.load(factors, per_image=True)
            spot.store(out, k.fma(factor, share, spot.load(image)))

    def spread(column: walk.Column, spots: list[walk.Spot]) -> None:
        for spot in spots:
            spot.store(out, column.load(factors, per_image=True) * share)

    if kernel.job == "scale":
        walk.descending(frame, TAKEN, scale)
        return k.finish()
    with k.branch(frame.present("image")) as given:
        with given.then():
            walk.descending(frame, TAKEN, add)
        with given.otherwise():
            walk.descending(frame, TAKEN, spread)
    return k.finish()
