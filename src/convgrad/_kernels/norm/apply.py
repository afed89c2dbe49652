"""The second pass forwards: ``y = act(x * scale + shift)``, with a residual before or after the activation."""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.codegen import KernelBuilder, arithmetic, element, symbol
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..._problem.norm.task import SAVED, SCALARS
from . import activation, walk

WORDS = (*("at_x", "at_y", "at_residual", "at_saved", "at_scalars"), *walk.BLOCKS)
TAKEN = 4


@dataclass(frozen=True)
class ApplyKernel:
    """Normalises an image; items are blocks of it."""

    dtype: str
    planes: bool
    activation: str
    residual: str


def emit(kernel: ApplyKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    name = symbol("norm_apply", kernel.dtype, kernel.activation, target, kernel)
    k = KernelBuilder(name, target)
    frame = walk.Frame(k, WORDS, kernel.planes, kernel.dtype)
    number = arithmetic(element(kernel.dtype))
    x, y, residual = (frame.image(name) for name in ("x", "y", "residual"))
    saved = frame.place("saved", number.short)
    scales, shifts = (frame.row(saved, SAVED.index(name)) for name in ("scale", "shift"))
    slope = walk.scalar(frame, SCALARS.index("slope"))

    def body(column: walk.Column, spots: list[walk.Spot]) -> None:
        for spot in spots:
            u = k.fma(spot.load(x), column.load(scales), column.load(shifts))
            if kernel.residual == "before":
                u = u + spot.load(residual)
            value = activation.activated(k, kernel.activation, u, slope)
            if kernel.residual == "after":
                value = value + spot.load(residual)
            spot.store(y, value)

    walk.descending(frame, TAKEN, body)
    return k.finish()
