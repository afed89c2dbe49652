"""Passes of batch norm on PyTorch's tensors, below autograd: which task, and the addresses it runs on.

What a call needs to know of an image, its layout and the programs for its sizes, is found out once and remembered by
the image's dtype, sizes and strides.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import replace
from typing import Any, Literal, NamedTuple, cast

import torch
from torch import Tensor as AnyTensor

from ... import _engine
from ..._base import config
from ..._base.dtypes import FLOATING, accumulator
from ..._engine.prepare import Executable
from ..._problem import activations
from ..._problem.norm import SAVED, SCALARS, Task, kept_beside
from .kernels import describe
from .tensors import DTYPES, layout

Place = Literal["", "before", "after"]

PARAMETERS: dict[torch.dtype, torch.dtype] = {
    getattr(torch, row.numpy.name): getattr(torch, accumulator(row).numpy.name) for row in FLOATING
}
"""The dtypes of images, and what parameters and statistics are computed in."""
_Scalars = ctypes.c_double * len(SCALARS)
_MOST_KNOWN = 8
"""Settings whose scalars are kept; a cumulative average has new ones for every batch."""


class How(NamedTuple):
    """What is done to an image, whatever its sizes."""

    activation: str
    residual: Place
    frozen: bool
    """Whether the statistics are given."""
    epsilon: float
    slope: float

    @property
    def beside(self) -> str:
        """What is kept besides the image: "y", "residual" or nothing."""
        return kept_beside(self.activation, self.residual)

    @property
    def is_told(self) -> bool:
        """Whether what is kept tells the derivative; a result behind a negative slope may have another sign."""
        crooked = activations.find(self.activation).has_slope and not self.slope >= 0
        return not (crooked and self.residual == "before")

    @property
    def computable(self) -> bool:
        """Whether our passes compute what PyTorch would, with these numbers."""
        return 0.0 < self.epsilon < math.inf and self.is_told


class Norm:
    """The passes of batch norm with activation on images of some sizes; programs are made when first asked for."""

    __slots__ = (
        *("_again", "_backward", "_forward", "_known", "_task"),
        *("last", "parameter", "settings", "values"),
    )

    def __init__(self, task: Task, dtype: torch.dtype) -> None:
        self._task = task
        self._forward: Executable | None = None
        self._again: Executable | None = None
        self._backward: dict[tuple[bool, bool, bool], Executable] = {}
        self._known: dict[tuple[float, float, float], Any] = {}
        self.values = task.values
        self.last = task.data_format == "NHWC"
        self.parameter = PARAMETERS[dtype]
        self.settings = config.deciding()

    def _numbers(self, x: AnyTensor, count: int) -> AnyTensor:
        if x.dtype is self.parameter:
            return x.new_empty(count)
        return torch.empty(count, dtype=self.parameter, device=x.device)

    def _scalars(self, epsilon: float, momentum: float, slope: float) -> Any:
        key = (epsilon, momentum, slope)
        found = self._known.get(key)
        if found is None:
            found = _Scalars(epsilon, momentum, slope, self.values / max(self.values - 1, 1))
            if len(self._known) < _MOST_KNOWN:
                self._known[key] = found
        return found

    def forward(
        self,
        x: AnyTensor,
        residual: AnyTensor | None,
        weight: AnyTensor | None,
        bias: AnyTensor | None,
        running: tuple[AnyTensor | None, AnyTensor | None],
        how: How,
        momentum: float,
        in_place: bool = False,
    ) -> tuple[AnyTensor, AnyTensor]:
        """Return the result and what the backward pass is to be given; running statistics change in place.

        Parameters and statistics are contiguous and of the dtype `parameter`; a residual lies as x.
        """
        if self._forward is None:
            self._forward = _engine.program(self._task)
        y = x if in_place and how.frozen else torch.empty_like(x)
        saved = self._numbers(x, len(SAVED) * self._task.channels)
        scalars = self._scalars(how.epsilon, momentum, how.slope)
        mean, variance = running
        _engine.execute(
            self._forward,
            *(x.data_ptr(), y.data_ptr(), _at(residual), _at(weight), _at(bias)),
            *(_at(mean), _at(variance), saved.data_ptr(), ctypes.addressof(scalars)),
        )
        return y, saved

    def again(self, x: AnyTensor, saved: AnyTensor, how: How) -> AnyTensor:
        """Return the result of `forward` once more, of one without a residual."""
        if self._again is None:
            self._again = _engine.program(replace(self._task, name="apply"))
        y = torch.empty_like(x)
        scalars = self._scalars(how.epsilon, 0.0, how.slope)
        _engine.execute(
            self._again,
            *(x.data_ptr(), y.data_ptr(), 0, saved.data_ptr(), ctypes.addressof(scalars)),
        )
        return y

    def backward(
        self,
        x: AnyTensor,
        grad: AnyTensor,
        beside: AnyTensor | None,
        saved: AnyTensor,
        how: How,
        wants: tuple[bool, bool, bool],
    ) -> tuple[AnyTensor | None, AnyTensor | None, AnyTensor | None, AnyTensor | None]:
        """Return the gradients of x, weight, bias and a residual, of which x, the next two and the last are wanted.

        The gradient and what stands `beside` lie as x.
        """
        program = self._backward.get(wants)
        if program is None:
            wants_x, wants_parameters, wants_residual = wants
            name: Any = "backward_frozen" if how.frozen else "backward"
            task = replace(
                self._task,
                name=name,
                wants_x=wants_x,
                wants_parameters=wants_parameters,
                wants_residual=wants_residual,
            )
            program = self._backward[wants] = _engine.program(task)
        dx = torch.empty_like(x) if wants[0] else None
        dweight = dbias = None
        if wants[1]:
            dweight = self._numbers(x, self._task.channels)
            dbias = self._numbers(x, self._task.channels)
        dresidual = torch.empty_like(x) if wants[2] else None
        scalars = self._scalars(how.epsilon, 0.0, how.slope)
        _engine.execute(
            program,
            *(x.data_ptr(), grad.data_ptr(), _at(beside), saved.data_ptr(), _at(dx)),
            *(_at(dresidual), _at(dweight), _at(dbias), ctypes.addressof(scalars)),
        )
        return dx, dweight, dbias, dresidual


def _at(tensor: AnyTensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def norm(x: AnyTensor, how: How) -> Norm | None:
    """Return the passes for an image, or None where it is not one of ours: of another dtype or rank, with other
    strides, without a pixel."""
    key = (
        *("torch norm", x.shape, x.stride(), x.dtype),
        *(how.activation, how.residual, how.frozen, config.deciding()),
    )
    found: Norm | None = _engine.memory.get(key)
    if found is None:
        name: Any = "forward_frozen" if how.frozen else "forward"
        task = _task(name, x)
        if task is not None:
            found = Norm(replace(task, activation=how.activation, residual=how.residual), x.dtype)
            _engine.remember(key, found)
    return found


class Scaling(NamedTuple):
    """The passes of squeeze-and-excitation on images of some sizes."""

    last: bool
    tasks: dict[str, Task]

    def run(self, name: str, *tensors: AnyTensor | None) -> None:
        """Carry out a pass on tensors in the order of `_problem.norm.PLACES`; images lie as the first one did."""
        _engine.run(self.tasks[name], *(_at(each) for each in tensors))


def scaling(x: AnyTensor) -> Scaling | None:
    """Return the passes for an image, or None where it is not one of ours."""
    key = ("torch scaling", x.shape, x.stride(), x.dtype)
    found: Scaling | None = _engine.memory.get(key)
    if found is None:
        task = _task("pool", x)
        if task is not None:
            names: Any = ("pool", "pool_gradient", "scale", "scale_gradient")
            tasks = {name: replace(task, name=name) for name in names}
            found = Scaling(task.data_format == "NHWC", tasks)
            _engine.remember(key, found)
    return found


def _task(name: Any, x: AnyTensor) -> Task | None:
    if x.dim() != 4 or x.dtype not in PARAMETERS or 0 in x.shape:
        return None
    found = describe(x)
    data_format = layout(found)
    if data_format is None:
        return None
    n, c, h, w = found.sizes
    return Task(name, DTYPES[found.dtype], cast(Any, data_format), n, h * w, c)


def readable(image: AnyTensor) -> AnyTensor:
    """Return an image of four dimensions that lies as passes can read it; recorded by autograd where it is copied."""
    if image.is_contiguous() or image.is_contiguous(memory_format=torch.channels_last):
        return image if not image.data_ptr() % image.element_size() else image.clone()
    wanted = torch._prims_common.suggest_memory_format(image)
    return image.contiguous(memory_format=wanted)


def as_lies(image: AnyTensor, last: bool) -> AnyTensor:
    """Return an image of four dimensions in one of the two orders."""
    found = image.contiguous(memory_format=torch.channels_last) if last else image.contiguous()
    return found if not found.data_ptr() % found.element_size() else found.clone()


def parameter(tensor: AnyTensor | None, dtype: torch.dtype) -> AnyTensor | None:
    """Return numbers per channel as passes read them."""
    if tensor is None or (tensor.dtype is dtype and tensor.is_contiguous()):
        return tensor
    return tensor.detach().to(dtype).contiguous()
