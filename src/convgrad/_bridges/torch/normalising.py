"""`convgrad.batch_norm_act` and its gradients on tensors: TensorFlow's order of dimensions, seen as PyTorch's.

Unlike `norm`, which has the manners of PyTorch's own batch norm, this returns the statistics, keeps none, and computes
whatever NumPy's arrays would be computed for: a single value per channel, an epsilon of 0, slopes of either sign.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor as AnyTensor

from ..._problem.norm import SAVED
from ..._problem.norm.call import Settings
from . import composed
from .norm import placed
from .norm_node import Normalize, alike, beside, forward, found_parameters
from .passes import PARAMETERS, How, Norm, as_lies, norm, readable
from .plain import applied, plain, there, undisturbed

Given = dict[str, AnyTensor]
"""Tensors by their places in a task, after all checks."""


def normalise(settings: Settings, given: Given) -> tuple[AnyTensor, AnyTensor, AnyTensor]:
    """Return y, mean and variance. No gradient flows from the batch's own statistics."""
    x, residual = _image(settings, given["x"]), _image(settings, given.get("residual"))
    assert x is not None
    weight, bias = given.get("weight"), given.get("bias")
    how = _how(settings, residual)
    passes = _passes(x, how, given)
    fixed = None
    if not settings.is_training:
        fixed = (given["running_mean"], given["running_var"])
    if passes is None or (fixed is not None and _recorded(*fixed)):
        y, found = _composed(x, weight, bias, residual, fixed, how)
    else:
        image = readable(x)
        laid = None if residual is None else as_lies(residual, passes.last)
        operands = (image, weight, bias, laid, fixed or (None, None), how, passes)
        # Recorded or not, so that hooks and errors of autograd are those of one node.
        y, *found = (
            _apply(*operands) if _recorded(x, weight, bias, residual) else _run(*operands)[:3]
        )
    mean, variance = (each.clone() for each in fixed) if fixed is not None else found
    back = _back(settings, y)
    return back, mean, variance


def normalise_back(
    settings: Settings, given: Given
) -> tuple[AnyTensor, AnyTensor, AnyTensor, AnyTensor | None]:
    """Return the gradients of input, scale, offset and a residual.

    Where they are differentiated again and statistics are the batch's, these are found anew from the input.
    """
    x, grad = _image(settings, given["x"]), _image(settings, given["grad"])
    residual = _image(settings, given.get("residual"))
    assert x is not None and grad is not None
    weight, bias = given.get("weight"), given.get("bias")
    how = _how(settings, residual)
    before = residual if how.residual == "before" else None
    passes = _passes(x, how, given)
    fixed = (given["running_mean"], given["running_var"])
    if passes is None or _recorded(*given.values()):
        statistics = None if settings.is_training else fixed
        dx, dweight, dbias, inner = composed.every_gradient(
            x, grad, weight, bias, before, statistics, how
        )
    else:
        kept = before
        if how.beside == "y":
            # The derivative is told from the result; the argument itself tells it as well.
            u = composed.normalized(x, weight, bias, fixed, how)
            kept = (u if before is None else u + before.to(u.dtype)).to(x.dtype)
        saved = _saved(fixed, weight, bias, how)
        found = alike(x, saved, grad, kept if how.beside else None, how)
        wants = (True, True, before is not None)
        dx, dweight, dbias, inner = found.passes.backward(
            found.z, found.grad, found.beside, found.saved, how, wants
        )
    if residual is None:
        return _back(settings, dx), dweight, dbias, None
    return (
        _back(settings, dx),
        dweight,
        dbias,
        _back(settings, grad.clone() if before is None else inner),
    )


def _how(settings: Settings, residual: AnyTensor | None) -> How:
    place: Any = "" if residual is None else placed(settings.activation, settings.residual_position)
    return How(
        *(settings.activation, place, not settings.is_training),
        *(settings.epsilon, settings.negative_slope),
    )


def _passes(x: AnyTensor, how: How, given: Given) -> Norm | None:
    """Return our passes, or None where formulas compute a call: without memory or numbers, traced, transformed."""
    every = given.values()
    if not (undisturbed() and how.is_told and all(map(plain, every)) and all(map(there, every))):
        return None
    return norm(readable(x), how)


def _recorded(*tensors: AnyTensor | None) -> bool:
    return torch.is_grad_enabled() and any(
        each is not None and each.requires_grad for each in tensors
    )


def _image(settings: Settings, tensor: AnyTensor | None) -> AnyTensor | None:
    if tensor is None or settings.data_format == "NCHW":
        return tensor
    return tensor.permute(0, 3, 1, 2)


def _back(settings: Settings, tensor: AnyTensor) -> AnyTensor:
    return tensor if settings.data_format == "NCHW" else tensor.permute(0, 2, 3, 1)


def _composed(
    x: AnyTensor,
    weight: AnyTensor | None,
    bias: AnyTensor | None,
    residual: AnyTensor | None,
    fixed: tuple[AnyTensor, AnyTensor] | None,
    how: How,
) -> tuple[AnyTensor, list[AnyTensor]]:
    """Return y and the statistics, as PyTorch's operators."""
    statistics = composed.moments(x.to(PARAMETERS[x.dtype])) if fixed is None else fixed
    u = composed.normalized(x, weight, bias, statistics, how)
    if residual is not None and how.residual == "before":
        u = u + residual.to(u.dtype)
    y = composed.activated(how.activation, u, how.slope)
    if residual is not None and how.residual == "after":
        y = y + residual.to(u.dtype)
    return y.to(x.dtype), [each.detach() for each in statistics]


def _saved(
    statistics: tuple[AnyTensor, AnyTensor],
    weight: AnyTensor | None,
    bias: AnyTensor | None,
    how: How,
) -> AnyTensor:
    """Return what a forward pass would have left: a few numbers per channel, rounded once."""
    mean, variance = (each.double() for each in statistics)
    inverse = torch.rsqrt(variance + how.epsilon)
    scale = inverse if weight is None else inverse * weight.double()
    shift = -mean * scale if bias is None else bias.double() - mean * scale
    rows = torch.stack([mean, variance, inverse, scale, shift])
    return rows.to(statistics[0].dtype).flatten()


def _run(
    x: AnyTensor,
    weight: AnyTensor | None,
    bias: AnyTensor | None,
    residual: AnyTensor | None,
    fixed: Any,
    how: How,
    passes: Norm,
) -> tuple[AnyTensor, AnyTensor, AnyTensor, AnyTensor]:
    y, saved = forward(passes, x, weight, bias, residual, fixed, 0.0, how)
    mean, variance = (each.clone() for each in saved.view(len(SAVED), -1)[:2])
    return y, mean, variance, saved


class _WithStatistics(torch.autograd.Function):
    """The node of `norm_node`, with the statistics among its results."""

    @staticmethod
    def forward(ctx: Any, *operands: Any) -> tuple[AnyTensor, AnyTensor, AnyTensor]:
        x, weight, bias, residual, _, how, _ = operands
        y, mean, variance, saved = _run(*operands)
        ctx.save_for_backward(x, saved, beside(how, y, residual))
        ctx.how, ctx.parameters = how, found_parameters(weight, bias)
        ctx.mark_non_differentiable(mean, variance)
        return y, mean, variance

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (*Normalize.backward(ctx, grads[0])[:4], None, None, None)


_apply = applied(_WithStatistics)
