"""`conv2d` and `conv_transpose2d` with PyTorch's own signatures, and the way a call takes through PyTorch.

A call on ordinary tensors is one operator, `aten::convolution_overrideable`, whose derivative PyTorch has in C++ and
whose kernels on a CPU are ours (`install`). Where `torch.func` or forward-mode differentiation is at work, and for
padding that differs between two sides, it is made of the three sums instead (`sums`), which have every derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor as AnyTensor
from torch.overrides import handle_torch_function, has_torch_function

from ..._base.dtypes import FLOATING
from ..._base.errors import ArgumentError
from . import graphs, install, sums
from .plain import plain, there

Ints = int | Sequence[int]

install.install()  # a layer that was unpickled needs it without anybody having asked for `convgrad.torch`
_operator = torch.ops.aten.convolution_overrideable.default
_backward = torch.ops.aten.convolution_backward_overrideable.default._op
_layer: Any = (
    torch.ops.convgrad.numbered_layer.default._op if install.handlers() is not None else None
)
_NONE = (0, 0)
_POINTWISE = ((1, 1), _NONE, (1, 1), False, _NONE, 1)
"""What `aten::convolution` takes behind its tensors for a layer of windows of one pixel."""
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_tracing = torch._C._get_tracing_state
_DTYPES = frozenset(getattr(torch, row.numpy.name) for row in FLOATING)


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
    given = (input, weight, bias, stride, padding, dilation, groups)
    if _tracing() is not None or torch.compiler.is_compiling():
        return graphs.call("conv2d", *given) if graphs.is_recorded() else _conv2d(*given)
    try:
        return _conv2d(*given)
    except Exception as error:
        return _refused(error, F.conv2d, given)


def _conv2d(
    input: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> AnyTensor:
    if not _computed(input, groups):
        return F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    how = settings(weight, stride, padding, dilation, groups)
    if how is None:
        if torch.is_autocast_enabled("cpu"):
            input, weight, bias = autocast(input, weight, bias)
        if 0 in (*input.shape, *weight.shape) or not _summable(
            input, weight, bias, weight.shape[0]
        ):
            return F.conv2d(input, weight, bias, stride, padding, dilation, groups)
        pads = _all_pads(weight, stride, padding, dilation)
        stride, dilation = _pair("conv2d", "stride", stride), _pair("conv2d", "dilation", dilation)
        return _by_sums(input, weight, bias, stride, pads, dilation, groups)
    if input.dim() == 3:
        return _call(input.unsqueeze(0), weight, bias, how).squeeze(0)
    return _call(input, weight, bias, how)


def _refused(
    error: Exception, native: Callable[..., AnyTensor], given: tuple[Any, ...]
) -> AnyTensor:
    """Answer a call that we could not: what we cannot read is PyTorch's, and so are the words of all errors."""
    if isinstance(error, ArgumentError):
        return native(*given)
    raise as_pytorch(error, native, *given) from None


def as_pytorch(error: Exception, call: Callable[..., Any], *arguments: Any) -> Exception:
    """Return the error PyTorch's own call raises, in its words, or ours where it raises none."""
    if not sums.transformed() and not all(there(each) for each in arguments if plain(each)):
        return error  # PyTorch might read memory that is not there
    try:
        with torch.no_grad():
            call(*arguments)
    except Exception as theirs:
        return theirs.with_traceback(None)
    return error


def _computed(image: AnyTensor, groups: Any = 1) -> bool:
    """Tell whether images of this kind are ever ours; all others are PyTorch's from the start."""
    return (
        image.dtype in _DTYPES
        and image.layout is torch.strided
        and (type(groups) is int or isinstance(groups, torch.SymInt))
    )


def _summable(image: AnyTensor, weight: AnyTensor, bias: AnyTensor | None, made: int) -> bool:
    """Tell whether a call made of sums and an addition is one PyTorch would take: adding casts and repeats a bias."""
    return (
        weight.dim() == 4
        and weight.dtype is image.dtype
        and weight.device == image.device
        and (
            bias is None
            or (
                bias.dtype is image.dtype
                and bias.device == image.device
                and tuple(bias.shape) == (made,)
            )
        )
    )


def settings(
    weight: AnyTensor, stride: Any, padding: Any, dilation: Any, groups: int
) -> tuple[Any, ...] | None:
    """Return what `aten::convolution` takes behind its tensors, or None where two sides are padded differently."""
    how: tuple[Any, ...] | None = _remembered(stride, padding, dilation, groups)
    if how is None:
        pads = _all_pads(weight, stride, padding, dilation)
        if pads[0] != pads[1] or pads[2] != pads[3]:
            return None
        strides, dilations = (
            _pair("conv2d", name, value)
            for name, value in (("stride", stride), ("dilation", dilation))
        )
        how = (strides, (pads[0], pads[2]), dilations, False, _NONE, groups)
        _remember(how)
    return how


def unrecorded(
    image: AnyTensor, weight: AnyTensor, bias: AnyTensor | None, how: tuple[Any, ...]
) -> AnyTensor:
    """Compute a layer of a batch of ordinary images where autograd is off; `how` is what `settings` returned."""
    install.heed()
    number = install.layer_number(how)
    if number is not None:
        return _layer(image, weight, bias, number)
    return _operator(image, weight, bias, *how)


def recorded(
    image: AnyTensor, weight: AnyTensor, bias: AnyTensor | None, how: tuple[Any, ...]
) -> AnyTensor:
    """Compute a layer of a batch of images by an operator that autograd can differentiate any number of times."""
    return torch.convolution(image, weight, bias, *how)


def layer_gradients(
    grad: AnyTensor,
    image: AnyTensor,
    weight: AnyTensor,
    how: tuple[Any, ...],
    mask: tuple[bool, bool, bool],
) -> tuple[AnyTensor | None, AnyTensor | None, AnyTensor | None]:
    """Return the gradients of a layer's image, weight and bias, those of the mask, where autograd is off."""
    install.heed()
    return _backward(grad, image, weight, *how, mask)


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
    given = (input, weight, bias, stride, padding, output_padding, groups, dilation)
    if _tracing() is not None or torch.compiler.is_compiling():
        return (
            graphs.call("conv_transpose2d", *given)
            if graphs.is_recorded()
            else _conv_transpose2d(*given)
        )
    try:
        return _conv_transpose2d(*given)
    except Exception as error:
        return _refused(error, F.conv_transpose2d, given)


def _conv_transpose2d(
    input: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> AnyTensor:
    if not _computed(input, groups):
        return F.conv_transpose2d(
            input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    name = "conv_transpose2d"
    how = (
        *(_pair(name, "stride", stride), _pair(name, "padding", padding)),
        *(_pair(name, "dilation", dilation), True, _pair(name, "output_padding", output_padding)),
        groups,
    )
    if input.dim() == 3:
        return _call(input.unsqueeze(0), weight, bias, how).squeeze(0)
    return _call(input, weight, bias, how)


def conv2d_between(
    image: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None,
    stride: tuple[int, int],
    pads: tuple[int, int, int, int],
    dilation: tuple[int, int],
    groups: int,
) -> AnyTensor:
    """Convolve a batch of images with other padding on each side: top, bottom, left, right."""
    if pads[0] == pads[1] and pads[2] == pads[3]:
        return conv2d(image, weight, bias, stride, (pads[0], pads[2]), dilation, groups)
    return _by_sums(image, weight, bias, stride, pads, dilation, groups)


def conv_transpose2d_between(
    image: AnyTensor,
    weight: AnyTensor,
    bias: AnyTensor | None,
    stride: tuple[int, int],
    crops: tuple[int, int, int, int],
    dilation: tuple[int, int],
) -> AnyTensor:
    """Apply a transposed convolution and cut its result: top, bottom, left, right.

    A negative number at the bottom or at the right, above minus the stride, adds rows or columns: of zeros, and of the
    bias.
    """
    top, bottom, left, right = crops
    if 0 <= top - bottom < stride[0] and 0 <= left - right < stride[1]:
        more = (top - bottom, left - right)
        return conv_transpose2d(image, weight, bias, stride, (top, left), more, 1, dilation)
    if torch.is_autocast_enabled("cpu"):
        image, weight, bias = autocast(image, weight, bias)
    size = [
        (image.shape[2 + axis] - 1) * stride[axis]
        + dilation[axis] * (weight.shape[2 + axis] - 1)
        + 1
        - crops[2 * axis]
        - crops[2 * axis + 1]
        for axis in (0, 1)
    ]
    pads = (top, max(bottom, 0), left, max(right, 0))
    result = sums.input_gradient(weight, image, size, stride, pads, dilation, 1)
    return result if bias is None else result + bias.view(-1, 1, 1)


_known: dict[Any, Any] = {}
"""Settings of layers as PyTorch's operator takes them, by the pairs a layer has: reading them anew takes 1 us."""
_MOST_KNOWN = 4096


def _remembered(stride: Any, padding: Any, dilation: Any, groups: Any) -> Any:
    if type(stride) is not tuple or type(padding) is not tuple or torch.compiler.is_compiling():
        return None
    try:
        return _known.get((stride, padding, dilation, groups))
    except TypeError:  # a list in a tuple
        return None


def _remember(how: tuple[Any, ...]) -> None:
    stride, padding, dilation, _, _, groups = how
    if not torch.compiler.is_compiling() and len(_known) < _MOST_KNOWN:
        _known[stride, padding, dilation, groups] = how


def _call(
    image: AnyTensor, weight: AnyTensor, bias: AnyTensor | None, how: tuple[Any, ...]
) -> AnyTensor:
    """Compute a layer of a batch of images; `how` is what `aten::convolution` takes behind its tensors."""
    if not image.is_cpu and image.device.type != "meta":
        return torch.convolution(image, weight, bias, *how)
    if torch.is_autocast_enabled("cpu"):
        image, weight, bias = autocast(image, weight, bias)
    if not torch.compiler.is_compiling():
        if sums.transformed():
            return _transformed(image, weight, bias, *how)
        install.heed()
        if not _recorded(image, weight, bias):
            number = install.layer_number(how)
            if number is not None:
                return _layer(image, weight, bias, number)
    return _operator(image, weight, bias, *how)


def _recorded(image: AnyTensor, weight: AnyTensor, bias: AnyTensor | None) -> bool:
    """Tell whether a call must be seen by autograd, or by somebody who looks on and knows PyTorch's operators only."""
    if torch.is_grad_enabled() and (
        image.requires_grad or weight.requires_grad or (bias is not None and bias.requires_grad)
    ):
        return True
    if type(image) is not torch.Tensor or type(weight) not in _PLAIN or not image.is_cpu:
        return True
    if not weight.is_cpu or not (bias is None or bias.is_cpu):
        return True
    return bool(torch._C._len_torch_dispatch_stack())


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
    how = (stride, padding, dilation, transposed, output_padding, groups)
    made = weight.shape[1] * groups if transposed else weight.shape[0]
    if not _summable(image, weight, bias, made):
        return torch.convolution(image, weight, bias, *how)
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
    """Return one number for both axes, or two; raises where it is neither."""
    if _is_int(value):
        return (value, value)
    if type(value) is tuple and len(value) == 2:
        return value
    pair = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else ()
    if len(pair) == 1:
        return pair * 2
    if len(pair) != 2:
        raise ArgumentError(
            f"{function}: `{argument}` must be an int or a pair of ints, got {value!r}."
        )
    return pair


def _is_int(value: Any) -> bool:
    return type(value) is int or isinstance(value, torch.SymInt)


def _all_pads(
    weight: AnyTensor, stride: Any, padding: Any, dilation: Any
) -> tuple[int, int, int, int]:
    """Return the padding of all four sides: top, bottom, left, right."""
    if not isinstance(padding, str):
        rows, columns = _pair("conv2d", "padding", padding)
        return (rows, rows, columns, columns)
    if padding == "valid":
        return (0, 0, 0, 0)
    if padding != "same":
        raise ArgumentError(f"conv2d: `padding` must be ints, 'valid' or 'same', got {padding!r}.")
    if any(step != 1 for step in _pair("conv2d", "stride", stride)):
        raise ArgumentError("conv2d: padding='same' is not supported for strided convolutions.")
    dilation = _pair("conv2d", "dilation", dilation)
    rows, columns = (dilation[axis] * (weight.shape[2 + axis] - 1) for axis in (0, 1))
    top, left = rows // 2, columns // 2
    return (top, rows - top, left, columns - left)


def linear(input: AnyTensor, weight: AnyTensor, bias: AnyTensor | None = None) -> AnyTensor:
    """Apply `torch.nn.functional.linear`; on images [n, h, w, c], where it is a 1x1 convolution, by convgrad."""
    given = (input, weight, bias)
    if _tracing() is not None or torch.compiler.is_compiling():
        return graphs.call("linear", *given) if graphs.is_recorded() else _linear(*given)
    try:
        return _linear(*given)
    except Exception as error:
        return _refused(error, F.linear, given)


def _linear(input: AnyTensor, weight: AnyTensor, bias: AnyTensor | None) -> AnyTensor:
    if (
        input.dim() != 4
        or not input.is_cpu
        or not _computed(input)
        or weight.dim() != 2
        or 0 in (*input.shape, *weight.shape)
    ):
        return F.linear(input, weight, bias)
    if torch.is_autocast_enabled("cpu"):
        input, weight, bias = autocast(input, weight, bias)
    if input.shape[3] != weight.shape[1] or not _summable(
        input, weight[:, :, None, None], bias, weight.shape[0]
    ):
        return F.linear(input, weight, bias)
    image = input.permute(0, 3, 1, 2)
    return _call(image, weight[:, :, None, None], bias, _POINTWISE).permute(0, 2, 3, 1)


def _answering(compute: Callable[..., AnyTensor], native: Callable[..., AnyTensor]) -> Any:
    """Return the kernel of an operator of `graphs`."""

    def kernel(*given: Any) -> AnyTensor:
        if torch.compiler.is_compiling():
            return compute(*given)
        try:
            return compute(*given)
        except Exception as error:
            return _refused(error, native, given)

    return kernel


graphs.define(
    conv2d=_answering(_conv2d, F.conv2d),
    conv_transpose2d=_answering(_conv_transpose2d, F.conv_transpose2d),
    linear=_answering(_linear, F.linear),
)
