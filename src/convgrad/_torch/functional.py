"""`conv2d` and `conv_transpose2d` with PyTorch's own signatures, and the way a call takes through PyTorch.

A call on ordinary tensors is one operator, `aten::convolution_overrideable`, whose derivative PyTorch has in C++ and
whose kernels on a CPU are ours (`install`). Where `torch.func` or forward-mode differentiation is at work, and for
padding that differs between two sides, it is made of the three sums instead (`sums`), which have every derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor as AnyTensor
from torch.overrides import handle_torch_function, has_torch_function

from .._errors import ArgumentError
from . import install, sums

Ints = int | Sequence[int]

install.install()  # a layer that was unpickled needs it without anybody having asked for `convgrad.torch`
_operator = torch.ops.aten.convolution_overrideable.default
_NONE = (0, 0)


def conv2d(
    input: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> AnyTensor:
    """Convolve images: `torch.nn.functional.conv2d`, computed by convgrad on CPUs.

    Parameters
    ----------
    input : tensor, [n, c, h, w] or [c, h, w]
        half, bfloat16, float32 or float64, in any memory format; the result has the same one. Other tensors, such as
        those of other devices, are left to PyTorch.
    weight : tensor, [o, c / groups, kh, kw]
    bias : tensor, [o], optional
    stride, dilation : int or pair
    padding : int, pair, "valid" or "same"
    groups : int

    Examples
    --------
    >>> import torch, convgrad.torch
    >>> x = torch.arange(9.0).reshape(1, 1, 3, 3)
    >>> w = torch.ones(1, 1, 2, 2, requires_grad=True)
    >>> y = convgrad.torch.conv2d(x, w)
    >>> y.flatten().tolist()
    [8.0, 12.0, 20.0, 24.0]
    >>> y.sum().backward()
    >>> w.grad.flatten().tolist()
    [8.0, 12.0, 20.0, 24.0]
    """
    tensors = (input, weight) if bias is None else (input, weight, bias)
    if has_torch_function(tensors):
        return handle_torch_function(
            conv2d, tensors, input, weight, bias, stride, padding, dilation, groups
        )
    stride, dilation = _pair("conv2d", "stride", stride), _pair("conv2d", "dilation", dilation)
    if isinstance(padding, str):
        pads = _pads(padding, weight, stride, dilation)
        padding = (pads[0], pads[2])
        if pads[:1] + pads[2:3] != pads[1:2] + pads[3:]:
            return _by_sums(input, weight, bias, stride, pads, dilation, groups)
    else:
        padding = _pair("conv2d", "padding", padding)
    if input.dim() == 3:
        image = input.unsqueeze(0)
        return _call(image, weight, bias, stride, padding, dilation, False, _NONE, groups).squeeze(
            0
        )
    return _call(input, weight, bias, stride, padding, dilation, False, _NONE, groups)


def conv_transpose2d(
    input: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> AnyTensor:
    """Apply a transposed convolution: `torch.nn.functional.conv_transpose2d`, computed by convgrad on CPUs.

    It is the gradient of `conv2d` with respect to its input; `weight` is [c, o / groups, kh, kw].

    Examples
    --------
    >>> import torch, convgrad.torch
    >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).reshape(1, 1, 2, 2)
    >>> convgrad.torch.conv_transpose2d(x, torch.ones(1, 1, 2, 2)).reshape(3, 3).tolist()
    [[1.0, 3.0, 2.0], [4.0, 10.0, 6.0], [3.0, 7.0, 4.0]]
    """
    tensors = (input, weight) if bias is None else (input, weight, bias)
    if has_torch_function(tensors):
        return handle_torch_function(
            *(conv_transpose2d, tensors, input, weight, bias, stride, padding),
            *(output_padding, groups, dilation),
        )
    name = "conv_transpose2d"
    how = (
        *(_pair(name, "stride", stride), _pair(name, "padding", padding)),
        *(_pair(name, "dilation", dilation), True, _pair(name, "output_padding", output_padding)),
    )
    if input.dim() == 3:
        return _call(input.unsqueeze(0), weight, bias, *how, groups).squeeze(0)
    return _call(input, weight, bias, *how, groups)


def _call(
    image: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> AnyTensor:
    how = (stride, padding, dilation, transposed, output_padding, groups)
    if not image.is_cpu and image.device.type != "meta":
        return torch.convolution(image, weight, bias, *how)
    if torch.is_autocast_enabled("cpu"):
        image, weight, bias = autocast(image, weight, bias)
    if not torch.compiler.is_compiling():
        if sums.transformed():
            return _transformed(image, weight, bias, *how)
        install.heed()
    result: AnyTensor = _operator(image, weight, bias, *how)
    return result


def autocast(*tensors: Any) -> Any:
    """Return floating tensors in the dtype of the autocast block around the call, as PyTorch does for its own."""
    wanted = torch.get_autocast_dtype("cpu")
    narrow = (torch.float32, torch.float16, torch.bfloat16)
    return tuple(
        each.to(wanted) if each is not None and each.dtype in narrow else each for each in tensors
    )


def _transformed(
    image: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> AnyTensor:
    """Compute by sums under `torch.func`; leave to PyTorch what they do not have, and what is wrong."""
    pads = (padding[0], padding[0], padding[1], padding[1])
    if transposed:
        reach = [dilation[axis] * (weight.shape[2 + axis] - 1) + 1 for axis in (0, 1)]
        size = [
            (image.shape[2 + axis] - 1) * stride[axis]
            - 2 * padding[axis]
            + reach[axis]
            + output_padding[axis]
            for axis in (0, 1)
        ]
        fits = all(more < step for more, step in zip(output_padding, stride, strict=True))
        if not fits or min(size) < 1 or image.shape[1] != weight.shape[0]:
            how = (stride, padding, dilation, transposed, output_padding, groups)
            return torch.convolution(image, weight, bias, *how)
        result = sums.input_gradient(weight, image, size, stride, pads, dilation, groups)
        return result if bias is None else result + bias.view(-1, 1, 1)
    return _by_sums(image, weight, bias, stride, pads, dilation, groups)


def _by_sums(
    image: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None,
    stride: Any,
    pads: Any,
    dilation: Any,
    groups: int,
) -> AnyTensor:
    if torch.is_autocast_enabled("cpu"):
        image, weight, bias = autocast(image, weight, bias)
    single = image.dim() == 3
    result = sums.forward(
        image.unsqueeze(0) if single else image, weight, stride, pads, dilation, groups
    )
    if bias is not None:
        result = result + bias.view(-1, 1, 1)
    return result.squeeze(0) if single else result


def _pair(function: str, argument: str, value: Any) -> Any:
    """Return one number for both axes, or two; what else PyTorch's operator would take it refuses itself."""
    if isinstance(value, int | torch.SymInt):
        return (value, value)
    if type(value) is tuple and len(value) == 2:
        return value
    pair = tuple(value)
    if len(pair) == 1:
        return pair * 2
    if len(pair) != 2:
        raise ArgumentError(
            f"{function}: `{argument}` must be an int or a pair of ints, got {value!r}."
        )
    return pair


def _pads(word: str, weight: AnyTensor, stride: Any, dilation: Any) -> tuple[int, int, int, int]:
    if word == "valid":
        return (0, 0, 0, 0)
    if word != "same":
        raise ArgumentError(f"conv2d: `padding` must be ints, 'valid' or 'same', got {word!r}.")
    if any(step != 1 for step in stride):
        raise ArgumentError("conv2d: padding='same' is not supported for strided convolutions.")
    total = [dilation[axis] * (weight.shape[2 + axis] - 1) for axis in (0, 1)]
    (top, left) = (each // 2 for each in total)
    return (top, total[0] - top, left, total[1] - left)
