"""`batch_norm_act` of frameworks with graphs: arguments whose sizes may not be known yet, as a `Call` of `_norm`.

Settings are read as those of every other call (`_batch_norm`). JAX and TensorFlow share what is left: operands whose
sizes may be None, and whose dtypes have names. How an array is made, asked and converted is said by the framework
(`Arrays`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ..._base.dtypes import FLOATING, DType, accumulator
from ..._base.errors import ArgumentError, ArgumentTypeError, DTypeError
from ..arguments import DataFormat
from . import Task
from . import call as _batch_norm
from .rules import Call, Residual

FUNCTION = "batch_norm_act"
ARGUMENTS = {
    "weight": "scale",
    "bias": "offset",
    "running_mean": "mean",
    "running_var": "variance",
}
"""What places of a task are called by who calls."""
Sizes = tuple[int | None, ...]
_ROWS = {row.numpy.name: row for row in FLOATING}


class Arrays(NamedTuple):
    """What a framework does with its arrays, whose dtypes have the names of NumPy's."""

    made: Callable[[Any], Any]
    """Make an array of an argument."""
    shape: Callable[[Any], Sizes | None]
    """Return what is known of a shape; None where not even the rank is."""
    cast: Callable[[Any, str], Any]
    """Convert an array to a dtype by its name."""


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


def check_statistics(mean: Any, variance: Any) -> bool:
    """Return whether statistics are given: both or none."""
    if (mean is None) != (variance is None):
        missing = "mean" if mean is None else "variance"
        raise ArgumentTypeError(
            f"{FUNCTION}: `mean` and `variance` must be given together, got no `{missing}`."
        )
    return mean is not None


def operands(
    how: Asked, arrays: Arrays, x: Any, rows: tuple[Any, ...], residual: Any
) -> tuple[DType, dict[str, Any]]:
    """Return x's dtype, and all that is given by its place in a task, checked.

    `rows` are in the order of `ARGUMENTS`, None where they are left out; they are cast to the type of sums.
    """
    x = arrays.made(x)
    dtype, shape = _checked_dtype("x", x), arrays.shape(x)
    if shape is not None:
        check_image(shape)
    channels = None if shape is None else shape[how.channel_axis]
    given = {"x": x}
    for (place, argument), value in zip(ARGUMENTS.items(), rows, strict=True):
        if value is not None:
            row = arrays.made(value)
            _checked_dtype(argument, row)
            sizes = arrays.shape(row)
            if not _agree(sizes, (channels,)):
                raise ArgumentError(
                    f"{FUNCTION}: `{argument}` must have shape ({channels},), the channels of `x`, got {sizes}."
                )
            given[place] = arrays.cast(row, accumulator(dtype).numpy.name)
    if residual is not None:
        given["residual"] = image = arrays.made(residual)
        sizes = arrays.shape(image)
        if not _agree(sizes, shape):
            raise ArgumentError(
                f"{FUNCTION}: `residual` must have the shape of `x`, {shape}, got {sizes}."
            )
        if image.dtype != x.dtype:
            raise DTypeError(
                f"{FUNCTION}: `residual` must have the dtype of `x`, {x.dtype.name}, got {image.dtype.name}."
            )
    return dtype, given


def check_image(shape: Sizes) -> None:
    """Check the shape of x; sizes that are not known yet are None."""
    if len(shape) != 4:
        raise ArgumentError(
            f"{FUNCTION}: `x` must have 4 dimensions, got {len(shape)} (shape {shape})."
        )


def _checked_dtype(argument: str, array: Any) -> DType:
    """Return an array's dtype, which must be floating."""
    row = _ROWS.get(array.dtype.name)
    if row is None:
        allowed = ", ".join(each.name for each in FLOATING)
        raise DTypeError(
            f"{FUNCTION}: `{argument}` must be one of {allowed}, got {array.dtype.name}."
        )
    return row


def _agree(one: Sizes | None, other: Sizes | None) -> bool:
    """Tell whether two shapes may be the same, for all that is known."""
    if one is None or other is None:
        return True
    return len(one) == len(other) and all(
        None in (size, wanted) or size == wanted for size, wanted in zip(one, other, strict=True)
    )
