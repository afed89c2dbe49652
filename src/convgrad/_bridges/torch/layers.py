"""A block of a plan on layers as they are at the moment: one node of autograd, if they can be one."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor as AnyTensor
from torch import nn

from . import blocks, functional, modules
from .activations import LAYERS
from .counting import count
from .norm import fits, placed
from .norm_node import Running, normalize
from .passes import How, Place, readable
from .plain import plain
from .steps import Activation, FusedBlock, Path
from .tracing import hooked


def find_module(module: Any, path: Path) -> Any:
    """Return a module inside another one, or None."""
    for name in path:
        module = module._modules.get(name)
        if module is None:
            return None
    return module


def as_it_comes(layer: Any) -> bool:
    """Tell whether a call of a layer is what its class says, and nothing else."""
    return not hooked(layer) and "forward" not in layer.__dict__


def run_block(module: Any, step: FusedBlock, values: list[Any], recompute: bool = False) -> int:
    """Carry out a block, and return how many of its calls are done by that: all, none, or the convolution alone."""
    norm = find_module(module, step.norm)
    if type(norm) is not nn.BatchNorm2d or not as_it_comes(norm):
        return 0
    activation = _activation(module, step.activation)
    if activation is None:
        return 0
    for path in step.identities:
        identity = find_module(module, path)
        if type(identity) is not nn.Identity or not as_it_comes(identity):
            return 0
    image = values[step.image]
    residual = None if step.residual is None else values[step.residual]
    if not plain(image) or image.dim() != 4 or not (residual is None or plain(residual)):
        return 0
    name, slope = activation
    place: Place = "" if residual is None else placed(name, step.position)
    running, frozen = _statistics(norm)
    how = How(name, place, frozen, norm.eps, slope)
    done = 0
    if step.convolution is not None:
        convolution = find_module(module, step.convolution)
        made = _whole(convolution, norm, image, residual, running, how, recompute)
        if made is not None:
            values[step.made] = made
            return len(step.calls)
        image = values[step.calls[0].made] = convolution(image)
        done = 1
        if not plain(image) or image.dim() != 4:
            return done
    made = _normalized(norm, image, residual, running, how)
    if made is None:
        return done
    values[step.made] = made
    return len(step.calls)


def _activation(module: Any, activation: Activation) -> tuple[str, float] | None:
    if activation.path is None:
        return activation.name, activation.slope
    layer = find_module(module, activation.path)
    known = LAYERS.get(type(layer))
    return known(layer) if known is not None and as_it_comes(layer) else None


def _statistics(norm: Any) -> tuple[Running, bool]:
    """Return the statistics a batch norm is called with, and whether it normalizes by them."""
    buffers = norm._buffers
    mean, variance = buffers.get("running_mean"), buffers.get("running_var")
    if norm.training:
        return ((mean, variance) if norm.track_running_stats else (None, None)), False
    return (mean, variance), mean is not None or variance is not None


def _whole(
    convolution: Any,
    norm: Any,
    image: AnyTensor,
    residual: AnyTensor | None,
    running: Running,
    how: How,
    recompute: bool,
) -> AnyTensor | None:
    if type(convolution) is not modules.Conv2d or not as_it_comes(convolution):
        return None
    weight = convolution._parameters.get("weight")
    bias = convolution._parameters.get("bias")
    if (
        convolution.padding_mode != "zeros"
        or not plain(weight)
        or not (bias is None or plain(bias))
        or weight.dtype is not image.dtype
    ):
        return None
    settings = functional.settings(
        *(weight, convolution.stride, convolution.padding, convolution.dilation),
        convolution.groups,
    )
    if settings is None:
        return None
    if convolution.__dict__.get("_channels_last"):
        image = modules.as_filter(image)
    parameters = norm._parameters
    call = blocks.BlockCall(settings, how, running, norm, recompute)
    try:
        return blocks.convolve_and_normalize(
            *(image, weight, bias, parameters.get("weight"), parameters.get("bias"), residual),
            call,
        )
    except blocks.Unfit:
        return None
    except Exception as error:
        theirs = functional.as_pytorch(
            *(error, F.conv2d, image, weight, bias, convolution.stride),
            *(convolution.padding, convolution.dilation, convolution.groups),
        )
        raise modules.with_layer_name(convolution, theirs) from None


def _normalized(
    norm: Any, image: AnyTensor, residual: AnyTensor | None, running: Running, how: How
) -> AnyTensor | None:
    parameters = norm._parameters
    weight, bias = parameters.get("weight"), parameters.get("bias")
    if (
        not fits(image, weight, bias, running, how)
        or (residual is not None and (residual.shape, residual.dtype) != (image.shape, image.dtype))
        or 0 in image.shape
        or (not how.frozen and image.numel() == image.shape[1])
    ):
        return None
    return normalize(readable(image), weight, bias, residual, running, partial(count, norm), how)
