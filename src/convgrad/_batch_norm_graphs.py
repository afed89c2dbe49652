"""`batch_norm_act` of frameworks with graphs: arguments whose sizes may not be known yet, as a `Call` of `_norm`.

Settings are read as those of every other call (`_batch_norm`). JAX and TensorFlow share what is left: shapes of which
sizes may be None, and dtypes by the framework's names for them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from . import _batch_norm
from ._arguments import DataFormat
from ._dtypes import FLOATING, DType
from ._errors import ArgumentError, ArgumentTypeError, DTypeError
from ._norm import Task
from ._norm.call import Call, Residual

FUNCTION = "batch_norm_act"
ARGUMENTS = {
    "weight": "scale",
    "bias": "offset",
    "running_mean": "mean",
    "running_var": "variance",
}
"""What places of a task are called by who calls."""
Sizes = tuple[int | None, ...]


@dataclass(frozen=True)
class Asked:
    """Settings that were checked; nothing about arrays."""

    epsilon: float
    activation: str
    slope: float
    residual: Residual
    data_format: DataFormat

    @property
    def channel_axis(self) -> int:
        return 3 if self.data_format == "NHWC" else 1

    def call(
        self, dtype: DType, shape: tuple[int, ...], given: tuple[str, ...], frozen: bool
    ) -> Call:
        """Return the forward call on images of a shape, all of whose sizes are at least 1."""
        channels = shape[self.channel_axis]
        pixels = math.prod(shape[1:]) // channels
        name: Literal["forward", "forward_frozen"] = "forward_frozen" if frozen else "forward"
        task = Task(
            *(name, dtype, self.data_format, shape[0], pixels, channels),
            *(self.activation, self.residual),
        )
        return Call(task, given, self.epsilon, self.slope)


def settings(
    epsilon: Any,
    activation: Any,
    negative_slope: Any,
    has_residual: bool,
    residual_position: Any,
    data_format: Any,
) -> Asked:
    """Check settings; `ArgumentError` or `ArgumentTypeError` names what is wrong."""
    found = _batch_norm.settings(
        *(FUNCTION, epsilon, True, activation, negative_slope, residual_position, data_format)
    )
    if found.negative_slope < 0:
        raise ArgumentError(
            f"{FUNCTION}: `negative_slope` must be at least 0, got {found.negative_slope}."
        )
    leaky = found.activation == "leaky_relu"
    return Asked(
        found.epsilon,
        found.activation,
        found.negative_slope if leaky else 0.0,
        found.residual_position if has_residual else "",
        found.data_format,
    )


def check_image(shape: Sizes) -> None:
    """Check the shape of x; sizes that are not known yet are None."""
    if len(shape) != 4:
        raise ArgumentError(
            f"{FUNCTION}: `x` must have 4 dimensions, got {len(shape)} (shape {shape})."
        )


def check_residual(shape: Sizes, wanted: Sizes) -> None:
    """Check that a residual has the shape of x."""
    if not _agree(shape, wanted):
        raise ArgumentError(
            f"{FUNCTION}: `residual` must have the shape of `x`, {wanted}, got {shape}."
        )


def check_row(argument: str, shape: Sizes, channels: int | None) -> None:
    """Check that there is one number per channel."""
    if not _agree(shape, (channels,)):
        raise ArgumentError(
            f"{FUNCTION}: `{argument}` must have shape ({channels},), the channels of `x`, got {shape}."
        )


def check_statistics(mean: Any, variance: Any) -> bool:
    """Return whether statistics are given: both or none."""
    if (mean is None) != (variance is None):
        missing = "mean" if mean is None else "variance"
        raise ArgumentTypeError(
            f"{FUNCTION}: `mean` and `variance` must be given together, got no `{missing}`."
        )
    return mean is not None


def check_dtype(argument: str, row: DType | None, name: str) -> DType:
    """Return an array's dtype, which must be floating; `name` is what the caller's framework calls it."""
    if row is None or row not in FLOATING:
        allowed = ", ".join(each.name for each in FLOATING)
        raise DTypeError(f"{FUNCTION}: `{argument}` must be one of {allowed}, got {name}.")
    return row


def _agree(one: Sizes, other: Sizes) -> bool:
    return len(one) == len(other) and all(
        None in (size, wanted) or size == wanted for size, wanted in zip(one, other, strict=True)
    )


def differing_dtypes(argument: str, name: str, wanted: str) -> DTypeError:
    """Return the error of an image that is not of x's dtype."""
    return DTypeError(f"{FUNCTION}: `{argument}` must have the dtype of `x`, {wanted}, got {name}.")
