"""Batch norm, activation and a residual as one node of autograd.

The node keeps its image and five numbers per channel; where the activation's derivative cannot be told from these, its
result or the residual too. PyTorch's own operators keep the image, batch norm's result and often the activation's.
Derivatives of higher order are made of PyTorch's operators (`composed`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor as AnyTensor

from ..._problem.norm import SAVED
from . import composed
from .passes import How, Norm, as_lies, norm, parameter, readable
from .plain import applied, arrives_plain, there

Running = tuple[AnyTensor | None, AnyTensor | None]
"""Mean and variance."""
Gradients = tuple[AnyTensor | None, AnyTensor | None, AnyTensor | None, AnyTensor | None]
"""Of an image, weight, bias and a residual before the activation."""


class Parameters(NamedTuple):
    """Weight and bias as a forward pass found them: second derivatives depend on them, first ones do not."""

    weight: AnyTensor | None
    bias: AnyTensor | None
    versions: tuple[int, int]

    def unchanged(self) -> tuple[AnyTensor | None, AnyTensor | None]:
        """Return both; raises where one was written to since."""
        weight, bias, versions = self
        if versions != (_version(weight), _version(bias)):
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                "the weight or the bias of a batch norm whose gradient is differentiated"
            )
        return weight, bias


def found_parameters(weight: AnyTensor | None, bias: AnyTensor | None) -> Parameters:
    """Return parameters and their versions."""
    return Parameters(weight, bias, (_version(weight), _version(bias)))


def _version(tensor: AnyTensor | None) -> int:
    return -1 if tensor is None or tensor.is_inference() else tensor._version


def normalize(
    x: AnyTensor,
    weight: AnyTensor | None,
    bias: AnyTensor | None,
    residual: AnyTensor | None,
    running: Running,
    momentum: Callable[[], float],
    how: How,
) -> AnyTensor | None:
    """Return the result on images of ours (`norm.ours`) that can be read where they lie, or None where there is no
    value, or one per channel in training: PyTorch knows what then."""
    found = norm(x, how)
    if found is None or (not how.frozen and found.values < 2):
        return None
    if residual is not None:
        residual = as_lies(residual, found.last)
    if torch.is_grad_enabled() and (
        x.requires_grad
        or (weight is not None and weight.requires_grad)
        or (bias is not None and bias.requires_grad)
        or (residual is not None and residual.requires_grad)
    ):
        made: AnyTensor = _apply(x, weight, bias, residual, running, momentum(), how, found)
        return made
    return forward(found, x, weight, bias, residual, running, momentum(), how)[0]


class Normalize(torch.autograd.Function):
    """The node: what it keeps, and its derivatives."""

    @staticmethod
    def forward(
        ctx: Any,
        x: AnyTensor,
        weight: AnyTensor | None,
        bias: AnyTensor | None,
        residual: AnyTensor | None,
        running: Running,
        momentum: float,
        how: How,
        passes: Norm,
    ) -> AnyTensor:
        y, saved = forward(passes, x, weight, bias, residual, running, momentum, how)
        ctx.save_for_backward(x, saved, beside(how, y, residual))
        ctx.how, ctx.parameters = how, found_parameters(weight, bias)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        x, saved, beside = ctx.saved_tensors
        how = ctx.how
        wants = ctx.needs_input_grad[:4]
        if arrives_plain(grad):
            x, saved, grad, beside, passes, _ = alike(x, saved, grad, beside, how)
            *others, inner = backward(passes, x, grad, saved, beside, ctx.parameters, how, wants)
        else:
            *others, inner = composed_backward((x,), _itself, grad, saved, beside, ctx, wants)
        residual = grad if how.residual == "after" and wants[3] else inner
        return *others, residual, None, None, None, None


_apply = applied(Normalize)


def _itself(x: AnyTensor) -> AnyTensor:
    return x


def forward(
    passes: Norm,
    x: AnyTensor,
    weight: AnyTensor | None,
    bias: AnyTensor | None,
    residual: AnyTensor | None,
    running: Running,
    momentum: float,
    how: How,
    in_place: bool = False,
) -> tuple[AnyTensor, AnyTensor]:
    """Run the passes forwards; returns the result and what the backward ones need. Nothing is recorded.

    With frozen statistics the result may take the place of the image.
    """
    dtype = passes.parameter
    weight, bias = parameter(weight, dtype), parameter(bias, dtype)
    mean, variance = parameter(running[0], dtype), parameter(running[1], dtype)
    result = passes.forward(x, residual, weight, bias, (mean, variance), how, momentum, in_place)
    if not how.frozen:
        # As natively, autograd is told nothing of the change: `data` has no version.
        for theirs, ours in zip(running, (mean, variance), strict=True):
            if theirs is not None and ours is not None and theirs is not ours:
                theirs.data.copy_(ours)
    return result


def beside(how: How, y: AnyTensor, residual: AnyTensor | None) -> AnyTensor | None:
    """Return what is kept besides the image."""
    what = how.beside
    return None if not what else y if what == "y" else residual


class Alike(NamedTuple):
    """What a backward pass reads, as it can read it."""

    z: AnyTensor
    saved: AnyTensor
    grad: AnyTensor
    beside: AnyTensor | None
    passes: Norm
    copied: bool
    """Whether one of them is a copy."""


def alike(
    z: AnyTensor, saved: AnyTensor, grad: AnyTensor, beside: AnyTensor | None, how: How
) -> Alike:
    """Return tensors in z's order, or the one it is nearest to; raises where they cannot be what a forward pass left.

    Hooks of saved tensors may give back anything, and gradients come in any order.
    """
    image = readable(z)
    passes = norm(image, how)
    if passes is None:
        raise _given_back("an image", z)
    images = [grad] if beside is None else [grad, beside]
    for each in images:
        if each.shape != z.shape or each.dtype is not z.dtype or not there(each):
            raise _given_back("a tensor beside an image", each)
    if saved.dtype is not passes.parameter or saved.numel() != len(SAVED) * z.shape[1]:
        raise _given_back("statistics", saved)
    if not (there(image) and there(saved)):
        raise _given_back("a tensor without memory", image)
    laid = [as_lies(each, passes.last) for each in images]
    numbers = saved.contiguous()
    copied = image is not z or numbers is not saved or any(map(_differs, laid, images))
    return Alike(image, numbers, laid[0], laid[1] if beside is not None else None, passes, copied)


def _differs(a: AnyTensor, b: AnyTensor) -> bool:
    return a is not b


def _given_back(what: str, tensor: AnyTensor) -> RuntimeError:
    return RuntimeError(
        f"the backward pass of a batch norm found {what} that its forward pass cannot have left: "
        f"{tuple(tensor.shape)} of {tensor.dtype}; do saved tensors' hooks give back something else?"
    )


def backward(
    passes: Norm,
    x: AnyTensor,
    grad: AnyTensor,
    saved: AnyTensor,
    beside: AnyTensor | None,
    parameters: Parameters,
    how: How,
    wants: tuple[bool, bool, bool, bool],
) -> Gradients:
    """Run the passes backwards on what `alike` returned."""
    wants_x, wants_weight, wants_bias, wants_residual = wants
    asked = (wants_x, wants_weight or wants_bias, wants_residual and how.residual == "before")
    if not any(asked):
        return (None, None, None, None)
    dx, dweight, dbias, dresidual = passes.backward(x, grad, beside, saved, how, asked)
    dweight = as_parameter(dweight, parameters.weight)
    return dx, dweight, as_parameter(dbias, parameters.bias), dresidual


def as_parameter(gradient: AnyTensor | None, parameter: AnyTensor | None) -> AnyTensor | None:
    """Return a gradient in the dtype of what it is the gradient of."""
    if gradient is None or parameter is None:
        return None
    return gradient if gradient.dtype is parameter.dtype else gradient.to(parameter.dtype)


def composed_backward(
    front: tuple[AnyTensor | None, ...],
    image: Any,
    grad: AnyTensor,
    saved: AnyTensor,
    beside: AnyTensor | None,
    ctx: Any,
    wants: tuple[bool, ...],
) -> list[AnyTensor | None]:
    """Return the gradients of what `image` makes an image from, and of weight, bias and residual, by PyTorch."""
    how: How = ctx.how
    weight, bias = ctx.parameters.unchanged()
    rows = saved.view(len(SAVED), -1)
    statistics = (rows[0], rows[1]) if how.frozen else None
    kind = how.beside
    return composed.gradients(
        grad,
        (*front, weight, bias, beside if kind == "residual" else None),
        (*wants[:-1], wants[-1] and how.residual == "before"),
        image,
        statistics,
        beside if kind == "y" else None,
        how,
    )
