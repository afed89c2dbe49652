"""`batch_norm_act` of JAX's and TensorFlow's own: what these two functions ask for otherwise than `convgrad`'s.

They call the images `x`, take mean and variance as a sign that these are used, and cast rows to the dtype of sums. All
else is read as in every other call (`call`). How an array is made, asked and converted is said by the framework
(`Arrays`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from ..._base.dtypes import FLOATING, DType, accumulator
from ..._base.errors import ArgumentError, ArgumentTypeError, DTypeError
from . import call
from .call import ARGUMENTS, FORWARD, Partial, Settings, agree

ROWS = ("weight", "bias", "running_mean", "running_var")
_DTYPES = {row.numpy.name: row for row in FLOATING}


class Arrays(NamedTuple):
    """What a framework does with its arrays, whose dtypes have the names of NumPy's."""

    made: Callable[[Any], Any]
    """Make an array of an argument."""
    shape: Callable[[Any], Partial | None]
    """Return what is known of a shape; None where not even the rank is."""
    cast: Callable[[Any, str], Any]
    """Convert an array to a dtype by its name."""


def settings(
    epsilon: Any,
    activation: Any,
    negative_slope: Any,
    residual_position: Any,
    data_format: Any,
    mean: Any,
    variance: Any,
) -> Settings:
    """Check settings; `ArgumentError` or `ArgumentTypeError` names what is wrong."""
    found = call.settings(
        *(FORWARD, epsilon, True, activation, negative_slope, residual_position, data_format)
    )
    if found.negative_slope < 0:
        raise ArgumentError(
            f"{FORWARD}: `negative_slope` must be at least 0, got {found.negative_slope}."
        )
    if (mean is None) != (variance is None):
        missing = "mean" if mean is None else "variance"
        raise ArgumentTypeError(
            f"{FORWARD}: `mean` and `variance` must be given together, got no `{missing}`."
        )
    return replace(found, is_training=mean is None)


def operands(
    how: Settings, arrays: Arrays, x: Any, rows: tuple[Any, ...], residual: Any
) -> tuple[DType, dict[str, Any]]:
    """Return x's dtype, and all that is given by its place in a task, checked.

    `rows` are in the order of `ROWS`, None where they are left out; they are cast to the type of sums.
    """
    x = arrays.made(x)
    dtype, shape = _checked_dtype("x", x), arrays.shape(x)
    if shape is not None:
        check_image(shape)
    channels = None if shape is None else shape[how.channel_axis]
    given = {"x": x}
    for place, value in zip(ROWS, rows, strict=True):
        argument = ARGUMENTS[place]
        if value is not None:
            row = arrays.made(value)
            _checked_dtype(argument, row)
            sizes = arrays.shape(row)
            if not agree(sizes, (channels,)):
                raise ArgumentError(
                    f"{FORWARD}: `{argument}` must have shape ({channels},), the channels of `x`, got {sizes}."
                )
            given[place] = arrays.cast(row, accumulator(dtype).numpy.name)
    if residual is not None:
        given["residual"] = image = arrays.made(residual)
        sizes = arrays.shape(image)
        if not agree(sizes, shape):
            raise ArgumentError(
                f"{FORWARD}: `residual` must have the shape of `x`, {shape}, got {sizes}."
            )
        if image.dtype != x.dtype:
            raise DTypeError(
                f"{FORWARD}: `residual` must have the dtype of `x`, {x.dtype.name}, got {image.dtype.name}."
            )
    return dtype, given


def check_image(shape: Partial) -> None:
    """Check the shape of x; sizes that are not known yet are None."""
    if len(shape) != 4:
        raise ArgumentError(
            f"{FORWARD}: `x` must have 4 dimensions, got {len(shape)} (shape {shape})."
        )


def _checked_dtype(argument: str, array: Any) -> DType:
    """Return an array's dtype, which must be floating."""
    row = _DTYPES.get(array.dtype.name)
    if row is None:
        allowed = ", ".join(each.name for each in FLOATING)
        raise DTypeError(
            f"{FORWARD}: `{argument}` must be one of {allowed}, got {array.dtype.name}."
        )
    return row
