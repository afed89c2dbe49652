"""`batch_norm_act`: batch norm, activation and a residual, with the manners of `torch.nn.functional.batch_norm`."""

from __future__ import annotations

from typing import Any

from torch import Tensor as AnyTensor
from torch.overrides import handle_torch_function, has_torch_function

from ..._base.errors import ArgumentError, nearest, shown
from ..._problem.norm import ACTIVATIONS
from . import composed
from .norm_node import Running, normalize
from .passes import PARAMETERS, How, readable
from .plain import plain, there, undisturbed


def batch_norm_act(
    input: AnyTensor,
    weight: AnyTensor | None = None,
    bias: AnyTensor | None = None,
    running_mean: AnyTensor | None = None,
    running_var: AnyTensor | None = None,
    *,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    activation: str = "none",
    negative_slope: float = 0.01,
    residual: AnyTensor | None = None,
    residual_position: str = "before",
) -> AnyTensor:
    """Normalize a batch, add a residual and apply an activation, in as few passes over memory as there can be.

    It is `torch.nn.functional.batch_norm` followed by the activation: with the mean and the variance of each channel
    (of the batch when `training`, else the running ones),

    - ``u = (input - mean) / sqrt(variance + eps) * weight + bias``
    - ``act(u + residual)`` where `residual_position` is "before", ``act(u) + residual`` where it is "after".

    When `training`, running statistics become ``(1 - momentum) * running + momentum * batch``, with the unbiased
    variance of the batch.

    Parameters
    ----------
    input : tensor, [n, c, h, w], or [n, c] and [n, c, ...] of any number of dimensions
        half, bfloat16, float32 or float64 on a CPU; other tensors are left to PyTorch. Contiguous or channels_last, and
        so is the result.
    weight, bias : tensor, [c], optional
    running_mean, running_var : tensor, [c], optional when `training`
    training : bool
        Whether to normalize by the batch's own statistics, and to update the running ones.
    momentum, eps : float
    activation : str
        "none", "relu", "relu6", "leaky_relu", "silu", "hardswish", "gelu" or "gelu_tanh".
    negative_slope : float
        Of "leaky_relu".
    residual : tensor, optional
        Of the input's shape and dtype.
    residual_position : str
        "before" or "after" the activation.

    Examples
    --------
    >>> import torch, convgrad.torch
    >>> x = torch.tensor([1.0, 3.0, -1.0, 5.0]).reshape(4, 1, 1, 1).requires_grad_()
    >>> y = convgrad.torch.batch_norm_act(x, training=True, eps=1.0, activation="relu")
    >>> [round(each, 4) for each in y.flatten().tolist()]
    [0.0, 0.4082, 0.0, 1.2247]
    >>> y.square().sum().backward()
    >>> [round(each, 4) for each in x.grad.flatten().tolist()]
    [-0.1944, -0.1389, 0.0833, 0.25]
    """
    tensors = tuple(
        each
        for each in (input, weight, bias, running_mean, running_var, residual)
        if each is not None
    )
    if has_torch_function(tensors):
        return handle_torch_function(
            *(batch_norm_act, tensors, input, weight, bias, running_mean, running_var),
            training=training,
            momentum=momentum,
            eps=eps,
            activation=activation,
            negative_slope=negative_slope,
            residual=residual,
            residual_position=residual_position,
        )
    how = _checked(activation, residual, residual_position, training, eps, negative_slope, input)
    running = (running_mean, running_var)
    if ours(input, weight, bias, residual, running, how):
        whole = None if input.dim() == 4 else input.shape
        image = readable(_as_images(input))
        beside = None if residual is None else _as_images(residual)
        made = normalize(image, weight, bias, beside, running, lambda: float(momentum), how)
        if made is not None:
            return made if whole is None else made.reshape(whole)
    return composed.natively(input, weight, bias, residual, running, training, momentum, how)


def _checked(
    activation: str,
    residual: AnyTensor | None,
    position: str,
    training: bool,
    eps: float,
    slope: float,
    x: AnyTensor,
) -> How:
    if activation not in ACTIVATIONS:
        hint = nearest(activation, ACTIVATIONS) if isinstance(activation, str) else None
        raise ArgumentError(
            f"batch_norm_act: `activation` must be one of {', '.join(ACTIVATIONS)}, "
            f"got {shown(activation)}{hint or '.'}"
        )
    if position not in ("before", "after"):
        raise ArgumentError(
            f"batch_norm_act: `residual_position` must be 'before' or 'after', got {shown(position)}."
        )
    place: Any = ""
    if residual is not None:
        if residual.shape != x.shape or residual.dtype != x.dtype:
            raise ArgumentError(
                f"batch_norm_act: `residual` must have the input's shape {tuple(x.shape)} and dtype {x.dtype}, "
                f"got {tuple(residual.shape)} and {residual.dtype}."
            )
        place = placed(activation, position)
    return How(activation, place, not training, float(eps), float(slope))


def placed(activation: str, position: str) -> Any:
    """Return where a residual is added: without an activation it is the same, and after it nothing more is kept."""
    return "after" if activation == "none" else position


def ours(
    x: AnyTensor,
    weight: AnyTensor | None,
    bias: AnyTensor | None,
    residual: AnyTensor | None,
    running: Running,
    how: How,
) -> bool:
    """Tell whether our passes compute a call as PyTorch would; all else, with its errors, is PyTorch's."""
    return (
        undisturbed()
        and plain(x)
        and x.dim() >= 2
        and x.dtype in PARAMETERS
        and fits(x, weight, bias, running, how)
        and (residual is None or (plain(residual) and there(residual)))
        and there(x)
    )


def fits(
    x: AnyTensor, weight: AnyTensor | None, bias: AnyTensor | None, running: Running, how: How
) -> bool:
    """Tell whether parameters and statistics are what a call on an image of ours takes."""
    mean, variance = running
    if (mean is None) is not (variance is None) or (mean is None and how.frozen):
        return False
    if not how.computable:
        return False
    if (mean is not None and mean.requires_grad) or (
        variance is not None and variance.requires_grad
    ):
        return False
    channels, dtype = x.shape[1], x.dtype
    kind = None
    for each in (weight, bias, mean, variance):
        if each is None:
            continue
        if kind is None:
            kind = each.dtype
            if kind is not dtype and kind is not PARAMETERS[dtype]:
                return False
        if each.dtype is not kind or each.shape != (channels,) or not plain(each):
            return False
        if not there(each):
            return False
    return True


def _as_images(x: AnyTensor) -> AnyTensor:
    """Return what has any number of dimensions, from two on, as images."""
    if x.dim() == 2:
        return x[:, :, None, None]
    if x.dim() == 3:
        return x[:, :, :, None]
    return x if x.dim() == 4 else x.flatten(2, -2)
