"""The second pass backwards: ``dx = scale * (g - offset + (x - mean) * slope)``.

Offset and slope are 0 for frozen statistics; `totals` has them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.codegen import KernelBuilder, Vector, arithmetic, element, symbol
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..._problem.norm.task import SAVED, SCALARS
from . import activation, totals, walk
from .sums import argument

WORDS = (
    *("at_x", "at_grad", "at_beside", "at_saved", "at_dx", "at_scalars"),
    *walk.BLOCKS,
)


@dataclass(frozen=True)
class NormGradientKernel:
    """The gradient of x; items are blocks of it. With activation "none", `grad` is g."""

    dtype: str
    planes: bool
    activation: str
    beside: str
    frozen: bool


def emit(kernel: NormGradientKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    name = symbol("norm_gradient", kernel.dtype, kernel.activation, target, kernel)
    k = KernelBuilder(name, target)
    frame = walk.Frame(k, WORDS, kernel.planes, kernel.dtype)
    number = arithmetic(element(kernel.dtype))
    x, grad, dx = (frame.image(name) for name in ("x", "grad", "dx"))
    beside = frame.image("beside") if kernel.beside else None
    saved = frame.place("saved", number.short)
    rows = {name: frame.row(saved, i) for i, name in enumerate(SAVED)}
    packed = k.arg_pointer(2, number)
    slopes, offsets = (frame.row(packed, i) for i in range(len(totals.COEFFICIENTS)))
    slope = walk.scalar(frame, SCALARS.index("slope"))

    def one(column: walk.Column, spot: walk.Spot) -> Vector:
        g = spot.load(grad)
        reads = kernel.activation != "none" and kernel.beside != "y"
        value = None if kernel.frozen and not reads else spot.load(x)
        if kernel.activation != "none":
            place = g if value is None else value
            u = argument(k, column, spot, place, rows, kernel.beside, beside)
            g = activation.gradient(k, kernel.activation, u, g, slope)
        scale = column.load(rows["scale"])
        if kernel.frozen:
            return g * scale
        assert value is not None
        away = value - column.load(rows["mean"])
        return scale * k.fma(away, column.load(slopes), g - column.load(offsets))

    def body(column: walk.Column, spots: list[walk.Spot]) -> None:
        for spot in spots:
            spot.store(dx, one(column, spot))

    walk.descending(frame, 2, body)
    return k.finish()
