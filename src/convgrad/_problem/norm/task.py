r"""`Task`: one pass or a few over images, as a description: what, on which sizes; no data.

Batch norm with activation, for channel c of an image x with M values of that channel:

    mean = sum(x) / M,  variance = sum((x - mean)^2) / M,  inverse = 1 / sqrt(variance + epsilon)
    scale = weight * inverse,  shift = bias - mean * scale
    u = x * scale + shift  (+ residual, "before")
    y = act(u)             (+ residual, "after")

and backwards, from grad, the gradient of y:

    g = grad * act'(u)          act' is computed anew, from x or from what stands `beside` it
    dbias = sum(g),  dweight = sum(g * (x - mean)) * inverse
    dx = scale * (g - dbias / M - (x - mean) * inverse * dweight / M)
    dresidual = g  ("before"; "after" it is grad itself)

With frozen statistics, mean and variance are given, and dx = scale * g.

A task is run on addresses: those of `PLACES`, in this order. Which dtype each has is said there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..._base.dtypes import DType
from .. import activations

SAVED = ("mean", "variance", "inverse", "scale", "shift")
"""Rows of what a forward pass leaves for the backward one, one number per channel each."""
SCALARS = ("epsilon", "momentum", "slope", "unbiased")
"""Numbers that are given when a task runs, always as float64.

New running statistics are ``(1 - momentum) * old + momentum * batch``, where the batch's variance is multiplied by
`unbiased`, which is M / (M - 1) for those who want it. `slope` is that of `leaky_relu`.
"""

Name = Literal[
    "forward",
    "forward_frozen",
    "apply",
    "backward",
    "backward_frozen",
    "pool",
    "pool_gradient",
    "scale",
    "scale_gradient",
]

_FORWARD = (
    *("x", "y", "residual", "weight", "bias", "running_mean", "running_var", "saved", "scalars"),
)
_BACKWARD = (*("x", "grad", "beside", "saved", "dx", "dresidual", "dweight", "dbias", "scalars"),)
PLACES: dict[str, tuple[str, ...]] = {
    "forward": _FORWARD,
    "forward_frozen": _FORWARD,
    "apply": ("x", "y", "residual", "saved", "scalars"),
    "backward": _BACKWARD,
    "backward_frozen": _BACKWARD,
    "pool": ("x", "pooled"),
    "pool_gradient": ("grad", "dpooled", "dx"),
    "scale": ("x", "factor", "y"),
    "scale_gradient": ("x", "factor", "grad", "dx", "dfactor"),
}
"""What the addresses of a task are, in order.

`x`, `y`, `residual`, `grad`, `beside`, `dx` and `dresidual` are images of the task's dtype, contiguous in its layout.
`weight`, `bias`, `running_mean`, `running_var`, `dweight`, `dbias` have one number per channel, `saved` the rows of
`SAVED`, all of the task's `parameter` dtype. `pooled`, `factor` and their gradients are [images, channels] of its
dtype; `pool` is the mean over an image's pixels, and `pool_gradient` is ``dx = grad + dpooled / pixels``.

These may be 0: `weight` (ones), `bias` (zeros), both running statistics of `forward` (none are kept), `grad` of
`pool_gradient` (zeros), and whatever a task does not read or write: `residual` without one, `beside`, `dx`,
`dresidual`, `dweight` and `dbias` as the task's fields say. No result may overlap anything else, but `y` may be `x` in
`forward_frozen` and `apply`, and `dx` may be `grad` in `pool_gradient`.
"""


def kept_beside(activation: str, residual: str) -> Literal["", "y", "residual"]:
    """Return what tells an activation's derivative, besides x."""
    if residual != "before" or activation == "none":
        return ""
    return "y" if activations.find(activation).told_from_result else "residual"


@dataclass(frozen=True)
class Task:
    """What to do, and on what sizes. Sizes are at least 1."""

    name: Name
    dtype: DType
    data_format: Literal["NHWC", "NCHW"]
    images: int
    pixels: int
    """Of one image: height times width."""
    channels: int
    activation: str = "none"
    residual: Literal["", "before", "after"] = ""
    """Where a second image is added: to the argument of the activation, or to its result."""
    wants_x: bool = True
    """Whether a backward task writes `dx`."""
    wants_parameters: bool = True
    """Whether a backward task writes `dweight` and `dbias`."""
    wants_residual: bool = False
    """Whether a backward task writes `dresidual`: only for a residual before an activation, else it is `grad`."""

    @property
    def places(self) -> tuple[str, ...]:
        """Names of the places it runs on."""
        return PLACES[self.name]

    @property
    def parameter(self) -> str:
        """The short name of the parameters' and statistics' dtype: float32, and float64 for float64."""
        return self.dtype.accumulator

    @property
    def values(self) -> int:
        """How many numbers of each channel there are."""
        return self.images * self.pixels

    @property
    def beside(self) -> Literal["", "y", "residual"]:
        """What a backward task reads to tell the activation's derivative, besides x."""
        return kept_beside(self.activation, self.residual)

    @property
    def shape(self) -> tuple[int, int, int]:
        """The image's axes in memory, rows and columns as one."""
        if self.data_format == "NHWC":
            return (self.images, self.pixels, self.channels)
        return (self.images, self.channels, self.pixels)
