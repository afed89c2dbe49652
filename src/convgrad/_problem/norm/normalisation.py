"""`Normalisation`: batch norm with activation as it is asked for: a task, its arrays, its numbers, its line of text.

What a `Problem` is to convolutions. It says which places of a task are operands and which are results; the rest is
constant. All bridges compute from it. JAX and TensorFlow keep it beside a node of a graph, as a line of text that is
read back where a graph from another process is run; packs have the same lines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from ..._base.dtypes import FLOATING, DType, accumulator
from ..._base.errors import ArgumentError, shown
from ..activations import ACTIVATIONS
from .task import PLACES, SAVED, SCALARS, Name, Task

DataFormat = Literal["NHWC", "NCHW"]
Residual = Literal["", "before", "after"]

IMAGES = ("x", "y", "residual", "grad", "beside", "dx", "dresidual")
"""Places of the task's dtype; the others are rows of its parameters' dtype."""
_NAMES: dict[str, Name] = {
    "forward": "forward",
    "forward_frozen": "forward_frozen",
    "backward": "backward",
    "backward_frozen": "backward_frozen",
}
_FORMATS: dict[str, DataFormat] = {"NHWC": "NHWC", "NCHW": "NCHW"}
_RESIDUALS: dict[str, Residual] = {"": "", "before": "before", "after": "after"}
_OPTIONAL = ("weight", "bias")
_WANTED = ("dx", "parameters", "dresidual")
"""What a backward call may write."""
_DTYPES = {row.numpy.name: row for row in FLOATING}


@dataclass(frozen=True)
class Normalisation:
    """A task, which of its optional parameters are given, and its numbers."""

    task: Task
    given: tuple[str, ...] | None = _OPTIONAL
    """Those of weight and bias that there are, for a forward pass; None for a backward one that does not note them."""
    epsilon: float = 1e-3
    slope: float = 0.0

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """The places of arrays that are read, in order."""
        task = self.task
        if not task.name.startswith("forward"):
            return ("x", "grad", *(("beside",) if task.beside else ()), "saved")
        residual = ("residual",) if task.residual else ()
        return ("x", *residual, *self.rows)

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """The places of parameters and statistics that a forward call is given, in order."""
        frozen = self.task.name in ("forward_frozen", "backward_frozen")
        statistics = ("running_mean", "running_var") if frozen else ()
        return (*(name for name in _OPTIONAL if name in (self.given or ())), *statistics)

    @cached_property
    def results(self) -> tuple[str, ...]:
        """The places of arrays that are written, in order."""
        task = self.task
        if task.name.startswith("forward"):
            return ("y", "saved")
        return (
            *(("dx",) if task.wants_x else ()),
            *(("dresidual",) if task.wants_residual else ()),
            *(("dweight", "dbias") if task.wants_parameters else ()),
        )

    def dtype(self, place: str) -> DType:
        """Return what an array consists of."""
        return self.task.dtype if place in IMAGES else accumulator(self.task.dtype)

    def shape(self, place: str) -> tuple[int, ...]:
        """Return an array's shape, an image's with rows and columns as one."""
        if place in IMAGES:
            return self.task.shape
        return (len(SAVED), self.task.channels) if place == "saved" else (self.task.channels,)

    def elements(self, place: str) -> int:
        """Return how many numbers an array has."""
        return math.prod(self.shape(place))

    @property
    def places(self) -> tuple[str, ...]:
        """All places of the task, in the order a program wants their addresses."""
        return PLACES[self.task.name]

    @property
    def scalars(self) -> tuple[float, ...]:
        """The numbers a program is given; running statistics are the framework's own affair."""
        numbers = {"epsilon": self.epsilon, "slope": self.slope, "momentum": 0.0, "unbiased": 1.0}
        return tuple(numbers[name] for name in SCALARS)

    @property
    def is_told(self) -> bool:
        """Whether what is kept tells the derivative; a result behind a negative slope may have another sign."""
        return self.task.beside != "y" or self.slope >= 0

    def sized(self, images: int, pixels: int, channels: int) -> Normalisation:
        """Return the same call on other sizes."""
        return replace(
            self, task=replace(self.task, images=images, pixels=pixels, channels=channels)
        )

    def backward(self, *, x: bool, parameters: bool, residual: bool) -> Normalisation:
        """Return the call that computes gradients of a forward one: those that are wanted."""
        task = self.task
        return replace(
            self,
            given=None,
            task=replace(
                task,
                name="backward_frozen" if task.name == "forward_frozen" else "backward",
                wants_x=x,
                wants_parameters=parameters,
                wants_residual=residual and task.residual == "before" and task.activation != "none",
            ),
        )


def write(call: Normalisation) -> str:
    """Return a call as one line, numbers to the last bit.

    >>> from convgrad._base.dtypes import FLOAT
    >>> write(Normalisation(Task("forward", FLOAT, "NHWC", 8, 196, 32, "relu", "before")))
    'batch_norm_act.forward 8x196x32 NHWC float32 relu residual=before given=weight,bias epsilon=0.001'
    """
    task = call.task
    wanted = (task.wants_x, task.wants_parameters, task.wants_residual)
    words = [
        f"{_PREFIX}{task.name}",
        f"{task.images}x{task.pixels}x{task.channels}",
        *(task.data_format, task.dtype.numpy.name, task.activation),
    ]
    if task.residual:
        words.append(f"residual={task.residual}")
    if not task.name.startswith("forward"):
        names = (name for name, is_wanted in zip(_WANTED, wanted, strict=True) if is_wanted)
        words.append(f"wanted={','.join(names)}")
    if call.given is not None:
        words.append(f"given={','.join(call.given)}")
    words.append(f"epsilon={call.epsilon!r}")
    if call.slope:
        words.append(f"slope={call.slope!r}")
    return " ".join(words)


_PREFIX = "batch_norm_act."


def is_text(line: str) -> bool:
    """Tell whether a line is a call, and not a problem of convolution."""
    return line.startswith(_PREFIX)


def read(line: str) -> Normalisation:
    """Return the call of a line.

    >>> text = "batch_norm_act.backward 8x196x32 NCHW bfloat16 leaky_relu wanted=dx epsilon=1e-05 slope=0.1"
    >>> write(read(text)) == text
    True
    """
    try:
        return _read(line)
    except (ValueError, KeyError) as error:
        raise ArgumentError(f"{shown(line)} is not a line that describes batch norm.") from error


def _read(line: str) -> Normalisation:
    name, sizes, layout, dtype, activation, *rest = line.removeprefix(_PREFIX).split(" ")
    images, pixels, channels = (int(size) for size in sizes.split("x"))
    values = dict(word.split("=") for word in rest)
    notes = "given" in values or name.startswith("forward")
    given = [each for each in values.pop("given", "").split(",") if each]
    wanted = [each for each in values.pop("wanted", "").split(",") if each]
    task = Task(
        *(_NAMES[name], _DTYPES[dtype], _FORMATS[layout], images, pixels, channels),
        ACTIVATIONS[ACTIVATIONS.index(activation)],
        _RESIDUALS[values.pop("residual", "")],
    )
    if not name.startswith("forward"):
        task = replace(
            task,
            wants_x="dx" in wanted,
            wants_parameters="parameters" in wanted,
            wants_residual="dresidual" in wanted,
        )
    epsilon, slope = float(values.pop("epsilon")), float(values.pop("slope", 0))
    if (
        values
        or min(images, pixels, channels) < 1
        or not (math.isfinite(epsilon) and math.isfinite(slope))
        or not set(given) <= set(_OPTIONAL)
        or not set(wanted) <= set(_WANTED)
    ):
        raise ValueError(line)
    return Normalisation(task, tuple(given) if notes else None, epsilon, slope)
