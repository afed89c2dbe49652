"""Convolution, batch norm, activation and a residual as one node of autograd.

The node keeps the convolution's image, filter and result, five numbers per channel, and what `norm_node` keeps; not the
activation's result, unless that is how its derivative is told. Backwards it runs batch norm's passes and then the
convolution's handler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor as AnyTensor

from . import again, functional
from .kernels import forward_with_statistics
from .norm import fits
from .norm_node import Running, backward, beside, composed_backward, forward, found_parameters
from .passes import How, Norm, as_lies, norm
from .plain import applied, arrives_plain


class Call(NamedTuple):
    """All of a call but its tensors that autograd sees."""

    convolution: tuple[Any, ...]
    """What `functional.settings` returned."""
    how: How
    running: Running
    momentum: Callable[[], float]
    """Counts a batch, and returns by how much its statistics count."""
    recompute: bool = False
    """Whether an image that a block before has made is computed anew and not kept; see `again`."""


class Unfit(Exception):
    """The convolution's result is nothing for our passes; whoever called runs the layers one by one."""


def convolve_and_normalize(
    image: AnyTensor,
    filter: AnyTensor,
    filter_bias: AnyTensor | None,
    weight: AnyTensor | None,
    bias: AnyTensor | None,
    residual: AnyTensor | None,
    call: Call,
) -> AnyTensor:
    """Return the result; raises `Unfit` before anything has changed, and whatever the convolution raises."""
    tensors = (image, filter, filter_bias, weight, bias, residual)
    if torch.is_grad_enabled() and (
        filter.requires_grad
        or image.requires_grad
        or any(each is not None and each.requires_grad for each in tensors)
    ):
        made: AnyTensor = _apply(*tensors, call)
        return made
    with torch.no_grad():
        return _forward(*tensors, call, in_place=True).y


class _Made(NamedTuple):
    z: AnyTensor
    y: AnyTensor
    saved: AnyTensor
    passes: Norm


def _forward(
    image: AnyTensor,
    filter: AnyTensor,
    filter_bias: AnyTensor | None,
    weight: AnyTensor | None,
    bias: AnyTensor | None,
    residual: AnyTensor | None,
    call: Call,
    in_place: bool = False,
) -> _Made:
    how = call.how
    counted = None
    if filter_bias is None and not how.frozen:
        counted = forward_with_statistics(image, filter, call.convolution)
    z = (
        functional.unrecorded(image, filter, filter_bias, call.convolution)
        if counted is None
        else counted.result
    )
    passes = norm(z, how)
    if (
        passes is None
        or (passes.values < 2 and not how.frozen)
        or not fits(z, weight, bias, call.running, how)
        or (residual is not None and (residual.shape != z.shape or residual.dtype != z.dtype))
    ):
        raise Unfit
    other = None if residual is None else as_lies(residual, passes.last)
    momentum = call.momentum()
    y, saved = forward(
        *(passes, z, weight, bias, other, call.running, momentum, how, in_place),
        counted,
    )
    return _Made(z, y, saved, passes)


class _Block(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        image: AnyTensor,
        filter: AnyTensor,
        filter_bias: AnyTensor | None,
        weight: AnyTensor | None,
        bias: AnyTensor | None,
        residual: AnyTensor | None,
        call: Call,
    ) -> AnyTensor:
        z, y, saved, passes = _forward(image, filter, filter_bias, weight, bias, residual, call)
        origin = again.origin(image) if call.recompute else None
        kept = (image, None, None) if origin is None else (None, origin.z, origin.saved)
        ctx.save_for_backward(filter, z, saved, beside(passes, y, residual), *kept)
        if call.recompute:
            ctx.origin = origin and (origin.passes, origin.how)
            again.mark(y, z, saved, passes, call.how)
        ctx.call, ctx.how, ctx.passes = call, call.how, passes
        ctx.filter_bias, ctx.parameters = filter_bias, found_parameters(weight, bias)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        filter, z, saved, beside, image, *source = ctx.saved_tensors
        needs, how, settings = ctx.needs_input_grad, ctx.how, ctx.call.convolution
        front: Any = (None, None, None)
        if arrives_plain(grad):
            mask = needs[:3]
            wants = (any(mask), *needs[3:6])
            dz, dweight, dbias, inner = backward(
                ctx.passes, z, grad, saved, beside, ctx.parameters, how, wants
            )
            if dz is not None:
                if image is None:
                    image = again.computed(ctx, *source)
                front = functional.gradients(dz, image, filter, settings, mask)
        elif image is None:
            raise RuntimeError(
                "second derivatives of a block whose image is computed anew are not there: "
                "accelerate(model, fuse=True) without recompute=True has them"
            )
        else:
            *front, dweight, dbias, inner = composed_backward(
                (image, filter, ctx.filter_bias),
                lambda image, filter, bias: functional.recorded(image, filter, bias, settings),
                *(grad, saved, beside, ctx, needs[:6]),
            )
        residual = grad if how.residual == "after" and needs[5] else inner
        return *front, dweight, dbias, residual, None


_apply = applied(_Block)
