"""Squeeze-and-excitation: the mean over an image's pixels, and the image times a number per channel, in a pass each.

An image that is pooled and then scaled is read three times backwards if every operator has its own pass. Here `fork`
hands out the image and its means, and is given both gradients at once; `scale` has one pass for both of its.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor as AnyTensor

from .passes import Scaling, as_lies, readable, scaling
from .plain import arrives_plain, plain


def fork(x: AnyTensor) -> tuple[AnyTensor, AnyTensor]:
    """Return an image and its means, [n, c, 1, 1]."""
    found = None
    if plain(x) and x.dim() == 4:
        x = readable(x)
        found = scaling(x)
    if found is None:
        return x, x.mean((2, 3), keepdim=True)
    if torch.is_grad_enabled() and x.requires_grad:
        image, pooled = _Fork.apply(x, found)
        return image, pooled
    return x, _pooled(x, found)


def scale(x: AnyTensor, factor: AnyTensor) -> AnyTensor:
    """Return the product of an image and one number per image and channel; whatever else is multiplied by PyTorch."""
    if not (
        plain(x)
        and plain(factor)
        and x.dim() == 4
        and factor.dtype is x.dtype
        and factor.shape == (*x.shape[:2], 1, 1)
    ):
        return x * factor
    x = readable(x)
    found = scaling(x)
    if found is None:
        return x * factor
    factor = factor.contiguous()
    if torch.is_grad_enabled() and (x.requires_grad or factor.requires_grad):
        made: AnyTensor = _Scale.apply(x, factor, found)
        return made
    return _scaled(x, factor, found)


def _pooled(x: AnyTensor, passes: Scaling) -> AnyTensor:
    pooled = torch.empty((*x.shape[:2], 1, 1), dtype=x.dtype, device=x.device)
    passes.run("pool", x, pooled)
    if passes.last:
        # One pixel lies in both formats; the strides say which the image has, as PyTorch's own means would.
        return pooled.contiguous(memory_format=torch.channels_last)
    return pooled


def _scaled(x: AnyTensor, factor: AnyTensor, passes: Scaling) -> AnyTensor:
    y = torch.empty_like(x)
    passes.run("scale", x, factor, y)
    return y


class _Fork(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: AnyTensor, passes: Scaling) -> tuple[AnyTensor, AnyTensor]:
        ctx.set_materialize_grads(False)
        ctx.passes, ctx.pixels = passes, x.shape[2] * x.shape[3]
        ctx.shape, ctx.stride = x.shape, x.stride()
        return x.view_as(x), _pooled(x, passes)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        grad, means = grads
        if means is None:
            return grad, None
        if not (arrives_plain(means) and (grad is None or arrives_plain(grad))):
            spread = (means / ctx.pixels).expand(ctx.shape)
            return spread if grad is None else grad + spread, None
        dx = torch.empty_strided(ctx.shape, ctx.stride, dtype=means.dtype, device=means.device)
        if grad is not None:
            grad = as_lies(grad, ctx.passes.last)
        ctx.passes.run("pool_gradient", grad, means.contiguous(), dx)
        return dx, None


class _Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: AnyTensor, factor: AnyTensor, passes: Scaling) -> AnyTensor:
        ctx.save_for_backward(x, factor)
        ctx.passes = passes
        return _scaled(x, factor, passes)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        x, factor = ctx.saved_tensors
        if not arrives_plain(grad):
            needs = ctx.needs_input_grad
            dx = grad * factor if needs[0] else None
            return dx, (grad * x).sum((2, 3), keepdim=True) if needs[1] else None, None
        # Hooks of saved tensors may have given them back in another order.
        x, grad = as_lies(x, ctx.passes.last), as_lies(grad, ctx.passes.last)
        factor = factor.contiguous()
        dx, dfactor = torch.empty_like(x), torch.empty_like(factor)
        ctx.passes.run("scale_gradient", x, factor, grad, dx, dfactor)
        return dx, dfactor, None
