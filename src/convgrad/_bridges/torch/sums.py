"""The three sums on tensors, differentiable to any order, under every transform of PyTorch.

::

    forward(x, f)         -> y         y = x * f, the convolution
    input_gradient(f, g)  -> like x    what moves x so that y moves along g
    filter_gradient(x, g) -> like f    the same for f

Images are [n, c, h, w] and filters [o, c / groups, kh, kw], in any order of memory. Each sum is linear in each of its
two operands, and the derivative by one operand is another of the three with the other operand kept:

    <y', x * f>: by x input_gradient(f, y'), by f filter_gradient(x, y'), and so on around the triangle,

so derivatives of any order are made of these three. They are operators of the library `convgrad`, which is what
`torch.compile`, `torch.export` and `make_fx` see, and `autograd.Function`s, which `torch.func` transforms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor as AnyTensor
from torch.autograd import forward_ad

from ..._base.errors import ArgumentError
from . import kernels
from .recipes import Settings, hwio_strides
from .tensors import Four, Tensor, nchw_strides, nhwc_strides, prefers_channels_last
from .vmap import fold_filter_gradient, fold_forward, fold_input_gradient

How = tuple[Sequence[int], Sequence[int], Sequence[int], int]
"""stride, pads (top, bottom, left, right), dilation, groups."""

_HOW = "int[] stride, int[] pads, int[] dilation, int groups"
SCHEMAS = {
    "forward": f"(Tensor input, Tensor filter, {_HOW}) -> Tensor",
    "input_gradient": f"(Tensor filter, Tensor grad, SymInt[] size, {_HOW}) -> Tensor",
    "filter_gradient": f"(Tensor input, Tensor grad, SymInt[] window, {_HOW}, bool by_output) -> Tensor",
}
_library = torch.library.Library("convgrad", "FRAGMENT")


def forward(x: AnyTensor, f: AnyTensor, *how: Any) -> AnyTensor:
    """Convolve."""
    if traced(x, f):
        return torch.ops.convgrad.forward.default(x, f, *how)
    if differentiated(x, f):
        return _Forward.apply(x, f, *how)
    return _forward(x, f, *how)


def input_gradient(f: AnyTensor, g: AnyTensor, size: Sequence[int], *how: Any) -> AnyTensor:
    """Return the gradient of an image of `size` rows and columns."""
    if traced(f, g):
        return torch.ops.convgrad.input_gradient.default(f, g, size, *how)
    if differentiated(f, g):
        return _InputGradient.apply(f, g, size, *how)
    return _input_gradient(f, g, size, *how)


def filter_gradient(
    x: AnyTensor, g: AnyTensor, window: Sequence[int], *how: Any, by_output: bool = False
) -> AnyTensor:
    """Return the gradient of a filter with a window of some rows and columns.

    Its memory is in the order kernels want a filter in; `by_output` asks for that of PyTorch's Linear, which only a
    1x1 window has.
    """
    if traced(x, g):
        return torch.ops.convgrad.filter_gradient.default(x, g, window, *how, by_output)
    if differentiated(x, g):
        return _FilterGradient.apply(x, g, window, *how, by_output)
    return _filter_gradient(x, g, window, *how, by_output)


def traced(*tensors: AnyTensor) -> bool:
    """Tell whether a call must go through PyTorch's dispatcher: somebody looks on, or a tensor has no memory."""
    if (
        torch.compiler.is_compiling()
        or torch._C._len_torch_dispatch_stack()
        or torch._C._get_tracing_state() is not None
    ):
        return True
    if any(map(_is_batched, tensors)):
        return True
    return not transformed() and any(
        type(each) not in _PLAIN or each.device.type != "cpu" for each in tensors
    )


_PLAIN = (torch.Tensor, torch.nn.Parameter)
_VMAP = torch._C._functorch.TransformType.Vmap
_is_batched = torch._C._functorch.is_legacy_batchedtensor
"""What `torch.autograd.grad(..., is_grads_batched=True)` maps a backward pass over."""


def transformed() -> bool:
    """Tell whether `torch.func` or forward-mode differentiation is at work here."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def mapped() -> bool:
    """Tell whether `torch.vmap` is at work here: a tensor is several then, and cannot tell how it lies in memory."""
    stack = torch._C._functorch.get_interpreter_stack() if transformed() else None
    return stack is not None and any(each.key() == _VMAP for each in stack)


def differentiated(*tensors: AnyTensor) -> bool:
    """Tell whether derivatives of a call may be asked for."""
    if transformed():
        return True
    return torch.is_grad_enabled() and any(each.requires_grad for each in tensors)


# The kernels. ---------------------------------------------------------------------------------------------------------


def settings(stride: Any, pads: Any, dilation: Any, groups: int) -> Settings:
    """Return the settings of a sum as recipes have them."""
    top, bottom, left, right = pads
    return Settings(
        tuple(stride), ((top, bottom), (left, right)), tuple(dilation), False, (0, 0), groups
    )


def _forward(x: AnyTensor, f: AnyTensor, *how: Any) -> AnyTensor:
    sizes = forward_sizes("forward", x.shape, f.shape, *how)
    if 0 in (*x.shape, *f.shape, *sizes):
        return _image(sizes, x, f).zero_()
    result = kernels.forward(_resolved(x), _resolved(f), None, settings(*how))
    return _done("forward", result, x, f)


def _input_gradient(f: AnyTensor, g: AnyTensor, size: Sequence[int], *how: Any) -> AnyTensor:
    sizes: Four = (g.shape[0], f.shape[1] * how[3], size[0], size[1])
    _check_grad("input_gradient", sizes, f.shape, g.shape, how)
    made = _image(sizes, g)
    if 0 in (*f.shape, *g.shape, *sizes):
        return made.zero_()
    given = kernels.describe(made)._replace(dtype=kernels.describe(g).dtype)
    result = kernels.gradient(_resolved(g), given, _resolved(f), settings(*how), 0)
    return _done("input_gradient", result, f, g)


def _filter_gradient(x: AnyTensor, g: AnyTensor, window: Sequence[int], *how: Any) -> AnyTensor:
    *given, by_output = how
    sizes: Four = (g.shape[1], x.shape[1] // given[3], window[0], window[1])
    _check_grad("filter_gradient", x.shape, sizes, g.shape, given)
    strides = nchw_strides(sizes) if by_output else hwio_strides(sizes)
    if 0 in (*x.shape, *g.shape, *sizes):
        return torch.empty_strided(sizes, strides, dtype=x.dtype, device=x.device).zero_()
    weight = Tensor(kernels.describe(x).dtype, sizes, strides)
    result = kernels.gradient(_resolved(g), _resolved(x), weight, settings(*given), 1)
    return _done("filter_gradient", result, x, g)


def _resolved(tensor: AnyTensor) -> AnyTensor:
    """Return a tensor whose memory holds its numbers: one may be marked as negated without having been touched."""
    return tensor.detach().resolve_neg() if tensor.is_neg() else tensor


def _image(sizes: Four, like: AnyTensor, other: AnyTensor | None = None) -> AnyTensor:
    """Return an image in the memory format of another one."""
    last = prefers_channels_last(kernels.describe(like)) or (
        other is not None and prefers_channels_last(kernels.describe(other))
    )
    strides = nhwc_strides(sizes) if last else nchw_strides(sizes)
    return torch.empty_strided(sizes, strides, dtype=like.dtype, device=like.device)


def _done(function: str, result: AnyTensor | None, *operands: AnyTensor) -> AnyTensor:
    if result is None:
        dtypes = " and ".join(str(each.dtype) for each in operands)
        raise ArgumentError(
            f"{function}: operands must have one dtype that we compute, got {dtypes}."
        )
    return result


def forward_sizes(function: str, image: Any, weight: Any, *how: Any) -> Four:
    """Return the sizes of a convolution's result; raises where shapes do not fit."""
    stride, pads, dilation, groups = how
    if image[1] != weight[1] * groups or weight[0] % groups:
        raise ArgumentError(
            f"{function}: an image of {image[1]} channels does not fit a filter of shape {tuple(weight)} "
            f"in {groups} group{'' if groups == 1 else 's'}."
        )
    rows, columns = (
        (
            image[2 + axis]
            + pads[2 * axis]
            + pads[2 * axis + 1]
            - dilation[axis] * (weight[2 + axis] - 1)
            - 1
        )
        // stride[axis]
        + 1
        for axis in (0, 1)
    )
    if rows < 0 or columns < 0:
        raise ArgumentError(
            f"{function}: the result would have {rows} rows and {columns} columns: an image of shape {tuple(image)} "
            f"is too small for a filter of shape {tuple(weight)}."
        )
    return (image[0], weight[0], rows, columns)


def _check_grad(function: str, image: Any, weight: Any, grad: Any, how: Any) -> None:
    wanted = forward_sizes(function, image, weight, *how)
    if tuple(grad) != wanted:
        raise ArgumentError(f"{function}: `grad` must have shape {wanted}, got {tuple(grad)}.")


# What tracing sees. ---------------------------------------------------------------------------------------------------


def _fake_image(sizes: Any, like: AnyTensor, other: AnyTensor | None = None) -> AnyTensor:
    last = any(
        each is not None and torch._prims_common.suggest_memory_format(each) is torch.channels_last
        for each in (like, other)
    )
    wanted = torch.channels_last if last else torch.contiguous_format
    return torch.empty(sizes, dtype=like.dtype, device=like.device, memory_format=wanted)


def _fake_forward(x: AnyTensor, f: AnyTensor, *how: Any) -> AnyTensor:
    return _fake_image(forward_sizes("forward", x.shape, f.shape, *how), x, f)


def _fake_input_gradient(f: AnyTensor, g: AnyTensor, size: Any, *how: Any) -> AnyTensor:
    return _fake_image((g.shape[0], f.shape[1] * how[3], *size), g)


def _fake_filter_gradient(x: AnyTensor, g: AnyTensor, window: Any, *how: Any) -> AnyTensor:
    *given, by_output = how
    sizes = (g.shape[1], x.shape[1] // given[3], *window)
    strides = nchw_strides(sizes) if by_output else hwio_strides(sizes)
    return torch.empty_strided(sizes, strides, dtype=x.dtype, device=x.device)


# Derivatives: shared by the operators and the functions. --------------------------------------------------------------


def _by_output(f: AnyTensor) -> bool:
    """Tell in which order the gradient of a filter had best lie: in that of the filter."""
    return bool(f.shape[2] == 1 and f.shape[3] == 1 and f.stride(1) <= f.stride(0))


def _forward_backward(ctx: Any, v: AnyTensor) -> tuple[Any, ...]:
    x, f = ctx.saved_tensors
    dx = df = None
    if ctx.needs_input_grad[0]:
        dx = input_gradient(f, v, x.shape[2:], *ctx.how)
    if ctx.needs_input_grad[1]:
        df = filter_gradient(x, v, f.shape[2:], *ctx.how, by_output=_by_output(f))
    return dx, df, *[None] * 4


def _input_gradient_backward(ctx: Any, v: AnyTensor) -> tuple[Any, ...]:
    f, g = ctx.saved_tensors
    df = dg = None
    if ctx.needs_input_grad[0]:
        df = filter_gradient(v, g, f.shape[2:], *ctx.how, by_output=_by_output(f))
    if ctx.needs_input_grad[1]:
        dg = forward(v, f, *ctx.how)
    return df, dg, *[None] * 5


def _filter_gradient_backward(ctx: Any, v: AnyTensor) -> tuple[Any, ...]:
    x, g = ctx.saved_tensors
    dx = dg = None
    if ctx.needs_input_grad[0]:
        dx = input_gradient(v, g, x.shape[2:], *ctx.how)
    if ctx.needs_input_grad[1]:
        dg = forward(x, v, *ctx.how)
    return dx, dg, *[None] * 6


def _remember_forward(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:2])
    ctx.how = inputs[2:]


def _remember_input_gradient(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:2])
    ctx.size, ctx.how = inputs[2], inputs[3:]


def _remember_filter_gradient(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:2])
    ctx.window, ctx.how, ctx.by_output = inputs[2], inputs[3:7], inputs[7]


def _both(first: Any, second: Any) -> Any:
    """Add two parts of a derivative, of which one may be missing."""
    return second if first is None else first if second is None else first + second


class _Forward(torch.autograd.Function):
    """`forward`, for autograd and `torch.func`."""

    @staticmethod
    def forward(x: AnyTensor, f: AnyTensor, *how: Any) -> AnyTensor:
        return _forward(x, f, *how)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _remember_forward(ctx, inputs, output)
        ctx.save_for_forward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _forward_backward(ctx, *grads)

    @staticmethod
    def jvp(ctx: Any, *moves: Any) -> Any:
        x, f = ctx.saved_tensors
        dx, df = moves[:2]
        first = None if dx is None else forward(dx, f, *ctx.how)
        return _both(first, None if df is None else forward(x, df, *ctx.how))

    @staticmethod
    def vmap(info: Any, dims: Any, x: AnyTensor, f: AnyTensor, *how: Any) -> Any:
        return fold_forward(forward, dims, x, f, *how)


class _InputGradient(torch.autograd.Function):
    """`input_gradient`, for autograd and `torch.func`."""

    @staticmethod
    def forward(f: AnyTensor, g: AnyTensor, size: Any, *how: Any) -> AnyTensor:
        return _input_gradient(f, g, size, *how)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _remember_input_gradient(ctx, inputs, output)
        ctx.save_for_forward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _input_gradient_backward(ctx, *grads)

    @staticmethod
    def jvp(ctx: Any, *moves: Any) -> Any:
        f, g = ctx.saved_tensors
        df, dg = moves[:2]
        first = None if df is None else input_gradient(df, g, ctx.size, *ctx.how)
        return _both(first, None if dg is None else input_gradient(f, dg, ctx.size, *ctx.how))

    @staticmethod
    def vmap(info: Any, dims: Any, f: AnyTensor, g: AnyTensor, size: Any, *how: Any) -> Any:
        return fold_input_gradient(input_gradient, dims, f, g, size, *how)


class _FilterGradient(torch.autograd.Function):
    """`filter_gradient`, for autograd and `torch.func`."""

    @staticmethod
    def forward(x: AnyTensor, g: AnyTensor, window: Any, *how: Any) -> AnyTensor:
        return _filter_gradient(x, g, window, *how)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _remember_filter_gradient(ctx, inputs, output)
        ctx.save_for_forward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _filter_gradient_backward(ctx, *grads)

    @staticmethod
    def jvp(ctx: Any, *moves: Any) -> Any:
        x, g = ctx.saved_tensors
        dx, dg = moves[:2]
        rest = (ctx.window, *ctx.how)
        first = None if dx is None else filter_gradient(dx, g, *rest, by_output=ctx.by_output)
        second = None if dg is None else filter_gradient(x, dg, *rest, by_output=ctx.by_output)
        return _both(first, second)

    @staticmethod
    def vmap(info: Any, dims: Any, x: AnyTensor, g: AnyTensor, window: Any, *how: Any) -> Any:
        return fold_filter_gradient(filter_gradient, dims, x, g, window, *how)


def _define() -> None:
    """Define the operators: kernels, shapes, derivatives, batching."""
    rows: Any = {
        "forward": (_forward, _fake_forward, _forward_backward, _remember_forward, _Forward),
        "input_gradient": (
            *(_input_gradient, _fake_input_gradient),
            *(_input_gradient_backward, _remember_input_gradient, _InputGradient),
        ),
        "filter_gradient": (
            *(_filter_gradient, _fake_filter_gradient),
            *(_filter_gradient_backward, _remember_filter_gradient, _FilterGradient),
        ),
    }
    for name, (kernel, fake, backward, remember, function) in rows.items():
        tags = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides)
        _library.define(f"{name}{SCHEMAS[name]}", tags=tags)
        _library.impl(name, kernel, "CPU")
        full = f"convgrad::{name}"
        torch.library.register_fake(full, fake, lib=_library)
        torch.library.register_autograd(full, backward, setup_context=remember, lib=_library)
        torch.library.register_vmap(full, function.vmap, lib=_library)


_define()
