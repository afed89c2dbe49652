"""Batch norm with activation as PyTorch's own operators: what is left to PyTorch, and derivatives of derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor as AnyTensor

from ..._problem import activations
from .passes import PARAMETERS, How

_OPERATIONS = activations.Operations(
    *(torch.where, torch.exp, torch.expm1, torch.tanh, torch.sigmoid, F.softplus, torch.erf)
)


def activated(activation: str, u: AnyTensor, slope: float) -> AnyTensor:
    """Return an activation's value: by PyTorch's own function where there is one, with its bits."""
    row = activations.find(activation)
    made: AnyTensor
    if not row.torch:
        made = row.value(_OPERATIONS, u, slope)
        return made
    settings: dict[str, Any] = dict(row.torch_settings)
    if row.has_slope:
        settings["negative_slope"] = slope
    made = getattr(F, row.torch)(u, **settings)
    return made


def natively(
    x: AnyTensor,
    weight: AnyTensor | None,
    bias: AnyTensor | None,
    residual: AnyTensor | None,
    running: tuple[AnyTensor | None, AnyTensor | None],
    training: bool,
    momentum: float,
    how: How,
) -> AnyTensor:
    """Compute everything by PyTorch's functions, with PyTorch's errors."""
    u = F.batch_norm(x, *running, weight, bias, training, momentum, how.epsilon)
    if residual is not None and how.residual == "before":
        u = u + residual
    y = activated(how.activation, u, how.slope)
    return y + residual if residual is not None and how.residual == "after" else y


def gradients(
    grad: AnyTensor,
    inputs: Sequence[AnyTensor | None],
    wanted: Sequence[bool],
    image: Callable[..., AnyTensor],
    statistics: tuple[AnyTensor, AnyTensor] | None,
    result: AnyTensor | None,
    how: How,
) -> list[AnyTensor | None]:
    """Return the gradients of batch norm with activation, recorded by autograd where it is asked to.

    The inputs end with weight, bias and a residual before the activation, of which those `wanted` are asked for;
    `image` makes what is normalized from the inputs in front of them. `statistics` are given where they are frozen.
    Where the activation's derivative was told from its `result`, so it is here: it does not depend on the residual.
    """
    recorded = torch.is_grad_enabled()
    with torch.enable_grad():
        # Views, so that an input that was computed from another one counts by itself.
        views = [None if each is None else each.view_as(each) for each in inputs]
        *front, weight, bias, residual = views
        u = _normalized(image(*front), weight, bias, statistics, how)
        inner = _inside(grad.to(u.dtype), u, residual, result, how, recorded)
        asked = [
            place
            for place, view in enumerate(views[:-1])
            if wanted[place] and view is not None and view.requires_grad
        ]
        found: list[AnyTensor | None] = [None] * len(views)
        if asked:
            made = torch.autograd.grad(
                *(u, [views[place] for place in asked], inner),
                create_graph=recorded,
                allow_unused=True,
            )
            for place, each in zip(asked, made, strict=True):
                found[place] = each
    if wanted[-1]:
        found[-1] = inner.to(grad.dtype)
    return found


def _inside(
    grad: AnyTensor,
    u: AnyTensor,
    residual: AnyTensor | None,
    result: AnyTensor | None,
    how: How,
    recorded: bool,
) -> AnyTensor:
    """Return the gradient of the activation's argument."""
    if how.activation == "none":
        return grad
    if result is not None:
        slope = activations.derivative(_OPERATIONS, how.activation, result.detach(), how.slope)
        return grad * slope.to(grad.dtype)
    argument = u if residual is None else u + residual.to(u.dtype)
    y = activated(how.activation, argument, how.slope)
    return torch.autograd.grad(y, argument, grad, create_graph=recorded, retain_graph=True)[0]


def _normalized(
    x: AnyTensor,
    weight: AnyTensor | None,
    bias: AnyTensor | None,
    statistics: tuple[AnyTensor, AnyTensor] | None,
    how: How,
) -> AnyTensor:
    wide = x.to(PARAMETERS[x.dtype])
    if statistics is None:
        mean = wide.mean((0, 2, 3), keepdim=True)
        variance = (wide - mean).square().mean((0, 2, 3), keepdim=True)
    else:
        mean, variance = (each.view(-1, 1, 1) for each in statistics)
    u = (wide - mean) * torch.rsqrt(variance + how.epsilon)
    if weight is not None:
        u = u * weight.to(u.dtype).view(-1, 1, 1)
    return u if bias is None else u + bias.to(u.dtype).view(-1, 1, 1)
