"""A call of `batch_norm_act` as integers, words and numbers: its settings and sizes, checked, and the types it returns.

What `arguments` is to convolutions. The functions on every kind of array and the oracle read their arguments here, so
that they refuse the same calls in the same words. Nothing here knows data, or how anything is computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np

from ..._base.dtypes import AnyArray, DType
from ..._base.errors import ArgumentError, ArgumentTypeError, nearest, shown
from .. import activations
from ..activations import ACTIVATIONS
from ..arguments import DataFormat, read_data_format
from .normalisation import Normalisation
from .task import Task

Position = Literal["before", "after"]
POSITIONS: tuple[Position, ...] = ("before", "after")
Shape = tuple[int, ...]
Partial = tuple[int | None, ...]
"""A shape of which some sizes are not known before a graph is run."""
FORWARD, BACKWARD = "batch_norm_act", "batch_norm_act_grad"
ARGUMENTS = {
    "x": "input",
    "grad": "out_backprop",
    "residual": "residual",
    "weight": "scale",
    "bias": "offset",
    "running_mean": "mean",
    "running_var": "variance",
}
"""What callers call the places of a task."""


class BatchNormResult(NamedTuple):
    """What `batch_norm_act` returns."""

    y: AnyArray
    """The images."""
    mean: AnyArray
    """Of each channel: the batch's when training, else the one that was given."""
    variance: AnyArray
    """The same; that of a batch is divided by the number of values, not by one less."""


class BatchNormGradients(NamedTuple):
    """What `batch_norm_act_grad` returns, under the names of the arguments."""

    input: AnyArray
    scale: AnyArray
    """There also where no scale was given: then it was 1."""
    offset: AnyArray
    """There also where no offset was given: then it was 0."""
    residual: AnyArray | None
    """None where there was no residual."""


@dataclass(frozen=True)
class Settings:
    """All of a call but its arrays."""

    epsilon: float
    is_training: bool
    activation: str
    negative_slope: float
    residual_position: Position
    data_format: DataFormat

    @property
    def channel_axis(self) -> int:
        return self.data_format.index("C")

    def sizes(self, shape: Shape) -> Sizes:
        """Return the sizes of images of a shape that was checked."""
        axes = dict(zip(self.data_format, shape, strict=True))
        return Sizes(axes["N"], axes["H"] * axes["W"], axes["C"])

    def normalisation(
        self, dtype: DType, sizes: Sizes, given: Iterable[str], has_residual: bool
    ) -> Normalisation:
        """Return the forward call on images of sizes of at least 1; `given` are places of rows."""
        task = Task(
            name="forward" if self.is_training else "forward_frozen",
            dtype=dtype,
            data_format=self.data_format,
            images=sizes.images,
            pixels=sizes.pixels,
            channels=sizes.channels,
            activation=self.activation,
            residual=self.residual_position if has_residual else "",
        )
        slope = self.negative_slope if activations.find(self.activation).has_slope else 0.0
        rows = tuple(name for name in ("weight", "bias") if name in given)
        return Normalisation(task, rows, self.epsilon, slope)


@dataclass(frozen=True)
class Sizes:
    """Of the images, whichever order their axes have in memory."""

    images: int
    pixels: int
    """Of one image."""
    channels: int

    @property
    def values(self) -> int:
        """How many numbers of each channel there are."""
        return self.images * self.pixels

    @property
    def is_empty(self) -> bool:
        return self.values * self.channels == 0


ONE = Sizes(1, 1, 1)
"""Those of a call whose own are not known yet."""


def settings(
    function: str,
    epsilon: Any,
    is_training: Any,
    activation: Any,
    negative_slope: Any,
    residual_position: Any,
    data_format: Any,
) -> Settings:
    """Return the settings of a call, or raise an error for the first that is wrong."""
    number = _number(function, "epsilon", epsilon)
    if number < 0:
        raise ArgumentError(f"{function}: `epsilon` must be at least 0, got {shown(epsilon)}.")
    if not isinstance(is_training, bool | np.bool_):
        raise ArgumentTypeError(
            f"{function}: `is_training` must be True or False, got {shown(is_training)}."
        )
    word = _word(function, "activation", "none" if activation is None else activation, ACTIVATIONS)
    slope = _number(function, "negative_slope", negative_slope)
    position = _word(function, "residual_position", residual_position, POSITIONS)
    return Settings(
        number,
        bool(is_training),
        word,
        slope,
        "before" if position == "before" else "after",
        read_data_format(function, "friendly", data_format),
    )


def _word(function: str, argument: str, value: Any, words: tuple[str, ...]) -> str:
    word = str.__str__(value).lower() if isinstance(value, str) else ""
    if word in words:
        return word
    rule = (
        f"{function}: `{argument}` must be one of {', '.join(map(repr, words))}, got {shown(value)}"
    )
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{rule}.")
    raise ArgumentError(f"{rule}{nearest(word, words) or '.'}")


def _number(function: str, argument: str, value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise ArgumentTypeError(f"{function}: `{argument}` must be a number, got {shown(value)}.")
    try:
        number = float.__float__(float(value))
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ArgumentError(f"{function}: `{argument}` must be finite, got {shown(value)}.")
    return number


def check_statistics(function: str, is_training: bool, mean: Any, variance: Any) -> None:
    """Check that mean and variance are given where they are used, and nowhere else, as TensorFlow does."""
    for name, value in (("mean", mean), ("variance", variance)):
        if is_training and value is not None:
            raise ArgumentError(
                f"{function}: `{name}` must be None when `is_training` is True, because the batch's own is used; "
                f"got {type(value).__name__}."
            )
        if not is_training and value is None:
            raise ArgumentError(
                f"{function}: `{name}` must be given when `is_training` is False, got None."
            )


def check_given(function: str, argument: str, value: Any) -> None:
    """Check that the gradient is told a statistic."""
    if value is None:
        raise ArgumentError(
            f"{function}: `{argument}` must be the one that {function.removesuffix('_grad')} returned, got None."
        )


def check_shapes(
    function: str,
    data_format: DataFormat,
    image: Partial | None,
    alike: Mapping[str, Partial | None],
    rows: Mapping[str, Partial | None],
) -> None:
    """Check shapes against each other, as far as they are known."""
    if image is not None and len(image) != 4:
        raise ArgumentError(
            f"{function}: `input` must have 4 dimensions ({data_format}), got {len(image)}: shape {list(image)}."
        )
    for name, shape in alike.items():
        if not agree(shape, image):
            raise ArgumentError(
                f"{function}: `{name}` must have the shape of `input`, {list(image or ())}, got {list(shape or ())}."
            )
    channels = None if image is None else image[data_format.index("C")]
    for name, shape in rows.items():
        if not agree(shape, (channels,)):
            raise ArgumentError(
                f"{function}: `{name}` must have one number per channel of `input`, [{channels}] ({data_format}), "
                f"got shape {list(shape or ())}."
            )


def agree(one: Partial | None, other: Partial | None) -> bool:
    """Tell whether two shapes may be the same, for all that is known."""
    if one is None or other is None:
        return True
    return len(one) == len(other) and all(
        None in (size, wanted) or size == wanted for size, wanted in zip(one, other, strict=True)
    )
