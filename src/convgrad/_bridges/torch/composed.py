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


def derivative(activation: str, u: AnyTensor, slope: float) -> AnyTensor:
    """Return an activation's derivative, by its formula."""

    def number(value: Any) -> AnyTensor:
        # Of two numbers, PyTorch would choose the default dtype.
        return value if isinstance(value, AnyTensor) else torch.as_tensor(value, dtype=u.dtype)

    def where(mask: AnyTensor, one: Any, other: Any) -> AnyTensor:
        return torch.where(mask, number(one), number(other))

    made: AnyTensor = activations.derivative(
        _OPERATIONS._replace(where=where), activation, u, slope
    )
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
        u = normalized(image(*front), weight, bias, statistics, how)
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
        return grad * derivative(how.activation, result.detach().to(grad.dtype), how.slope)
    argument = u if residual is None else u + residual.to(u.dtype)
    y = activated(how.activation, argument, how.slope)
    return torch.autograd.grad(y, argument, grad, create_graph=recorded, retain_graph=True)[0]


def moments(wide: AnyTensor) -> tuple[AnyTensor, AnyTensor]:
    """Return mean and variance of each channel."""
    mean = wide.mean((0, 2, 3), keepdim=True)
    variance = (wide - mean).square().mean((0, 2, 3))
    return mean.flatten(), variance


def normalized(
    x: AnyTensor,
    weight: AnyTensor | None,
    bias: AnyTensor | None,
    statistics: tuple[AnyTensor, AnyTensor] | None,
    how: How,
) -> AnyTensor:
    """Return what a residual is added to and an activation applied to, in the dtype of parameters."""
    wide = x.to(PARAMETERS[x.dtype])
    mean, variance = (
        each.view(-1, 1, 1) for each in (moments(wide) if statistics is None else statistics)
    )
    u = (wide - mean) * torch.rsqrt(variance + how.epsilon)
    if weight is not None:
        u = u * weight.to(u.dtype).view(-1, 1, 1)
    return u if bias is None else u + bias.to(u.dtype).view(-1, 1, 1)


def every_gradient(
    x: AnyTensor,
    grad: AnyTensor,
    weight: AnyTensor | None,
    bias: AnyTensor | None,
    residual: AnyTensor | None,
    statistics: tuple[AnyTensor, AnyTensor] | None,
    how: How,
) -> tuple[AnyTensor, AnyTensor, AnyTensor, AnyTensor]:
    """Return the gradients of image, weight, bias and a residual before the activation, as formulas.

    Without statistics they are found anew, so that derivatives of all this go through them too.
    """
    wide = x.to(PARAMETERS[x.dtype])
    away = normalized(x, None, None, statistics, how)
    u = away if weight is None else away * weight.view(-1, 1, 1)
    u = u if bias is None else u + bias.view(-1, 1, 1)
    u = u if residual is None else u + residual.to(u.dtype)
    inner = grad.to(u.dtype) * derivative(how.activation, u, how.slope)
    dbias, dweight = inner.sum((0, 2, 3)), (inner * away).sum((0, 2, 3))
    dx = inner
    if statistics is None and x.numel():
        values = x.numel() // x.shape[1]
        dx = inner - (dbias.view(-1, 1, 1) + away * dweight.view(-1, 1, 1)) / values
    _, variance = moments(wide) if statistics is None else statistics
    scale = torch.rsqrt(variance + how.epsilon)
    scale = scale if weight is None else scale * weight
    return (dx * scale.view(-1, 1, 1)).to(x.dtype), dweight, dbias, inner.to(grad.dtype)
