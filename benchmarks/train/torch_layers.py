"""Each distinct convolution of a PyTorch model: native and ours in turns, forward and backward.

Both sides go through autograd, and a backward pass asks for all gradients at once. Asking the native one for dX and dW
separately and adding the times flatters us: for ResNet-50 that sum exceeds a whole native step.
"""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

ORDER = torch.channels_last
WARM_UP = 2
"""Calls before the first that is timed: kernels are compiled in the first."""


class Convolution(NamedTuple):
    """What tells two convolutions of a model apart."""

    input: tuple[int, ...]
    filter: tuple[int, ...]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int
    bias: bool
    input_gradient: bool
    """The first layer of a model is not asked for it."""


Call = Callable[[Any], Any]


class Side:
    """One of the two that are compared: its call, its operands, and the times so far."""

    def __init__(self, call: Call, image: Any, parameters: list[Any]) -> None:
        self.forward: list[float] = []
        self.backward: list[float] = []
        self.results: list[Any] = []
        """Of the last call: output, and the gradients in the order of the operands."""
        self._call = call
        self._image = image
        self._operands = [*([image] if image.requires_grad else []), *parameters]

    def once(self, gradient: Any, *, timed: bool) -> None:
        clock = time.perf_counter
        began = clock()
        output = self._call(self._image)
        forward = clock()
        output.backward(gradient)
        end = clock()
        if timed:
            self.forward.append(forward - began)
            self.backward.append(end - forward)
            self.results = []
        else:
            self.results = [output.detach(), *(each.grad for each in self._operands)]
        for each in self._operands:
            each.grad = None


def compare(model: nn.Module, images: Sequence[int], repeats: int) -> list[dict[str, Any]]:
    """Return a row per distinct convolution, in the order in which the model runs them."""
    return [
        {**each._asdict(), "count": count, **_compared(each, repeats)}
        for each, count in _distinct(model, images).items()
    ]


def _distinct(model: nn.Module, images: Sequence[int]) -> dict[Convolution, int]:
    """Run the model once and count its convolutions."""
    found: dict[Convolution, int] = {}

    def count(module: Any, arguments: tuple[Any, ...]) -> None:
        key = Convolution(
            tuple(arguments[0].shape),
            tuple(module.weight.shape),
            module.stride,
            module.padding,
            module.dilation,
            module.groups,
            module.bias is not None,
            arguments[0].requires_grad,
        )
        found[key] = found.get(key, 0) + 1

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_pre_hook(count)
    model(torch.randn(*images))
    return found


def _compared(convolution: Convolution, repeats: int) -> dict[str, Any]:
    native, ours = _sides(convolution)
    gradient = torch.randn(_output_shape(convolution)).contiguous(memory_format=ORDER)
    for side in (native, ours) * WARM_UP:
        side.once(gradient, timed=False)
    error = max(
        float((one - other).norm() / one.norm())
        for one, other in zip(native.results, ours.results, strict=True)
    )
    for number in range(repeats):
        for side in (native, ours) if number % 2 else (ours, native):
            side.once(gradient, timed=True)
    times = {
        part: {
            "native_ms": statistics.median(getattr(native, part)) * 1e3,
            "ours_ms": statistics.median(getattr(ours, part)) * 1e3,
        }
        for part in ("forward", "backward")
    }
    return {**times, "error": error}


def _sides(convolution: Convolution) -> tuple[Side, Side]:
    """Return native and ours on equal numbers, each with its weights as they lie in its models."""
    bridge = import_module("convgrad.torch")
    outputs, inputs, *window = convolution.filter
    settings = (
        convolution.stride,
        convolution.padding,
        convolution.dilation,
        convolution.groups,
    )
    channels = inputs * convolution.groups
    native = nn.Sequential(
        nn.Conv2d(channels, outputs, tuple(window), *settings, bias=convolution.bias)
    ).to(memory_format=ORDER)
    ours = copy.deepcopy(native)
    bridge.accelerate(ours)
    images = torch.randn(convolution.input).contiguous(memory_format=ORDER)

    def side(function: Callable[..., Any], module: Any) -> Side:
        own = images.clone(memory_format=torch.preserve_format)
        own.requires_grad_(convolution.input_gradient)
        weight, bias = module.weight, module.bias
        parameters = [weight] if bias is None else [weight, bias]
        return Side(lambda x: function(x, weight, bias, *settings), own, parameters)

    return side(functional.conv2d, native[0]), side(bridge.conv2d, ours[0])


def _output_shape(convolution: Convolution) -> tuple[int, ...]:
    batch, _, *image = convolution.input
    outputs, _, *window = convolution.filter
    sizes = (
        (size + 2 * pad - dilation * (taps - 1) - 1) // stride + 1
        for size, taps, stride, pad, dilation in zip(
            image,
            window,
            convolution.stride,
            convolution.padding,
            convolution.dilation,
            strict=True,
        )
    )
    return (batch, outputs, *sizes)
