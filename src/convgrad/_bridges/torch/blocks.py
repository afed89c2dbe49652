"""Convolution, batch norm, activation and a residual as one node of autograd.

The node keeps the convolution's image, filter and result, five numbers per channel, and what `norm_node` keeps; not the
activation's result, unless that is how its derivative is told. Each way it calls one compiled function
(`fused_handler`). Where that has no recipe, because a tensor must be copied first or a derivative of the derivative is
asked for, and where there are no compiled functions, the convolution and batch norm's passes are called one by one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor as AnyTensor

from ..._base import config
from . import again, functional, install
from .counting import count, uncount
from .norm import fits
from .norm_node import (
    Running,
    alike,
    as_parameter,
    backward,
    beside,
    composed_backward,
    forward,
    found_parameters,
)
from .passes import How, as_lies, norm
from .plain import applied, arrives_plain, plain, there

_compiled = install.handlers() is not None
_fused: Any = torch.ops.convgrad.fused.default._op if _compiled else None
_fused_backward: Any = torch.ops.convgrad.fused_backward.default._op if _compiled else None


class BlockCall(NamedTuple):
    """All of a call but its tensors that autograd sees."""

    convolution: tuple[Any, ...]
    """What `functional.settings` returned."""
    how: How
    running: Running
    norm: Any
    """The layer, which counts batches."""
    recompute: bool = False
    """Whether an image that a block before has made is computed anew and not kept; see `again`."""


class Unfit(Exception):
    """The convolution's result does not suit our passes; the caller runs the layers one by one."""


def convolve_and_normalize(
    image: AnyTensor,
    filter: AnyTensor,
    filter_bias: AnyTensor | None,
    weight: AnyTensor | None,
    bias: AnyTensor | None,
    residual: AnyTensor | None,
    call: BlockCall,
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
        return _forward(*tensors, call, keeps=False).y


class _Made(NamedTuple):
    y: AnyTensor
    z: AnyTensor | None
    saved: AnyTensor | None
    """None where they are not kept."""


def _forward(
    image: AnyTensor,
    filter: AnyTensor,
    filter_bias: AnyTensor | None,
    weight: AnyTensor | None,
    bias: AnyTensor | None,
    residual: AnyTensor | None,
    call: BlockCall,
    keeps: bool,
) -> _Made:
    """Compute a block; z and `saved` are there if they are to be kept."""
    momentum = count(call.norm)
    mean, variance = call.running
    number = install.fused_row(call.convolution, call.how)
    if number is not None and _readable(weight, bias, mean, variance):
        install.heed()
        y, z, saved = _fused(
            *(image, filter, filter_bias, residual, weight, bias, mean, variance),
            *(number, int(keeps), hash(config.deciding()), momentum),
        )
        if y is not None:
            return _Made(y, z, saved)
    try:
        tensors = (image, filter, filter_bias, weight, bias, residual)
        return _step_by_step(*tensors, call, momentum, keeps)
    except BaseException:
        uncount(call.norm)
        raise


def _readable(
    weight: AnyTensor | None,
    bias: AnyTensor | None,
    mean: AnyTensor | None,
    variance: AnyTensor | None,
) -> bool:
    """Tell whether numbers per channel are ordinary tensors, of which autograd does not watch the statistics."""
    return (
        (weight is None or plain(weight))
        and (bias is None or plain(bias))
        and (mean is None or (plain(mean) and not mean.requires_grad))
        and (variance is None or (plain(variance) and not variance.requires_grad))
    )


def _step_by_step(
    image: AnyTensor,
    filter: AnyTensor,
    filter_bias: AnyTensor | None,
    weight: AnyTensor | None,
    bias: AnyTensor | None,
    residual: AnyTensor | None,
    call: BlockCall,
    momentum: float,
    keeps: bool,
) -> _Made:
    how = call.how
    z = functional.unrecorded(image, filter, filter_bias, call.convolution)
    passes = norm(z, how)
    if (
        passes is None
        or (passes.values < 2 and not how.frozen)
        or not fits(z, weight, bias, call.running, how)
        or not (residual is None or _adds_to(residual, z))
    ):
        raise Unfit
    other = None if residual is None else as_lies(residual, passes.last)
    y, saved = forward(passes, z, weight, bias, other, call.running, momentum, how, not keeps)
    return _Made(y, z, saved)


def _adds_to(residual: AnyTensor, z: AnyTensor) -> bool:
    return residual.shape == z.shape and residual.dtype is z.dtype and there(residual)


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
        call: BlockCall,
    ) -> AnyTensor:
        y, z, saved = _forward(image, filter, filter_bias, weight, bias, residual, call, keeps=True)
        how = call.how
        origin = again.origin(image) if call.recompute else None
        kept = (image, None, None) if origin is None else (None, origin.z, origin.saved)
        ctx.save_for_backward(filter, z, saved, beside(how, y, residual), *kept)
        if call.recompute:
            ctx.origin = origin and origin.how
            again.mark(y, z, saved, how)
        ctx.call, ctx.how = call, how
        ctx.filter_bias, ctx.parameters = filter_bias, found_parameters(weight, bias)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        filter, z, saved, beside, image, *source = ctx.saved_tensors
        needs, how = ctx.needs_input_grad, ctx.how
        if arrives_plain(grad):
            if image is None:
                image = again.computed(ctx.origin, *source)
            *front, dweight, dbias, inner = _backward(
                grad, image, filter, z, saved, beside, ctx, needs
            )
        elif image is None:
            raise RuntimeError(
                "a block whose image is computed anew has no second derivatives: "
                "accelerate(model, fuse=True) without recompute=True has them"
            )
        else:
            settings = ctx.call.convolution
            *front, dweight, dbias, inner = composed_backward(
                (image, filter, ctx.filter_bias),
                lambda image, filter, bias: functional.recorded(image, filter, bias, settings),
                *(grad, saved, beside, ctx, needs[:6]),
            )
        residual = grad if how.residual == "after" and needs[5] else inner
        return *front, dweight, dbias, residual, None


def _backward(
    grad: AnyTensor,
    image: AnyTensor,
    filter: AnyTensor,
    z: AnyTensor,
    saved: AnyTensor,
    beside: AnyTensor | None,
    ctx: Any,
    needs: tuple[bool, ...],
) -> tuple[AnyTensor | None, ...]:
    """Return the gradients of image, filter, its bias, weight, bias and a residual before the activation."""
    how, parameters = ctx.how, ctx.parameters
    inner = needs[5] and how.residual == "before"
    wanted = needs[0] | needs[1] << 1 | needs[2] << 2 | needs[3] << 3 | needs[4] << 4 | inner << 5
    if not wanted:
        return (None,) * 6
    settings = ctx.call.convolution
    number = install.fused_row(settings, how)
    made = _compiled_backward(image, filter, z, saved, grad, beside, number, wanted)
    if made is None:
        found = alike(z, saved, grad, beside, how)
        # A gradient often comes in another order than z: on a copy the compiled function may do.
        if found.copied:
            made = _compiled_backward(image, filter, *found[:4], number, wanted)
    if made is not None:
        *front, dweight, dbias, dresidual = made
        dweight = as_parameter(dweight, parameters.weight)
        return *front, dweight, as_parameter(dbias, parameters.bias), dresidual
    mask = (needs[0], needs[1], needs[2])
    z, saved, grad, beside, passes, _ = found
    dz, *others = backward(
        *(passes, z, grad, saved, beside, parameters, how),
        (any(mask), needs[3], needs[4], needs[5]),
    )
    if dz is None:
        return None, None, None, *others
    return *functional.layer_gradients(dz, image, filter, settings, mask), *others


def _compiled_backward(
    image: AnyTensor,
    filter: AnyTensor,
    z: AnyTensor,
    saved: AnyTensor,
    grad: AnyTensor,
    beside: AnyTensor | None,
    number: int | None,
    wanted: int,
) -> tuple[AnyTensor | None, ...] | None:
    if number is None:
        return None
    install.heed()
    switches = hash(config.deciding())
    made: tuple[AnyTensor | None, ...] = _fused_backward(
        image, filter, z, saved, grad, beside, None, None, number, wanted, switches, 0.0
    )
    return made if any(each is not None for each in made) else None


_apply = applied(_Block)
