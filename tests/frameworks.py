"""The three results of a case as PyTorch, JAX and TensorFlow compute them; each is imported by its first call."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases import Case, Data, door_settings, pads


def torch_results(case: Case, data: Data) -> tuple[Any, Any, Any]:
    """Return forward, input gradient and filter gradient, by PyTorch's own differentiation."""
    import torch

    (top, bottom), (left, right) = pads(*case.axis(0)), pads(*case.axis(1))
    x = torch.tensor(np.ascontiguousarray(_nchw(case, data.x)), requires_grad=True)
    f = torch.tensor(np.ascontiguousarray(_oihw(case, data.f)), requires_grad=True)
    padded = torch.nn.functional.pad(x, (left, right, top, bottom))
    y = torch.nn.functional.conv2d(
        padded, f, None, case.strides, 0, case.dilations, groups=case.groups
    )
    y.backward(torch.tensor(np.ascontiguousarray(_nchw(case, data.g))))
    assert x.grad is not None and f.grad is not None
    df = f.grad.numpy().transpose(2, 3, 1, 0).reshape(case.filter_shape)
    return (
        _from_nchw(case, y.detach().numpy()),
        _from_nchw(case, x.grad.numpy()),
        df,
    )


def jax_results(case: Case, data: Data) -> tuple[Any, Any, Any]:
    """Return forward, input gradient and filter gradient, by JAX's own differentiation."""
    import jax

    jax.config.update("jax_enable_x64", True)

    def convolve(x: Any, f: Any) -> Any:
        return jax.lax.conv_general_dilated(
            x,
            f.reshape(*case.window, case.group_in, -1),
            case.strides,
            (pads(*case.axis(0)), pads(*case.axis(1))),
            rhs_dilation=case.dilations,
            dimension_numbers=(case.data_format, "HWIO", case.data_format),
            feature_group_count=case.groups,
        )

    y, pull_back = jax.vjp(convolve, data.x, data.f)
    dx, df = pull_back(np.asarray(data.g))
    return np.asarray(y), np.asarray(dx), np.asarray(df)


def tensorflow_call(tf: Any, case: Case, kind: str, data: Data) -> Any:
    """Call TensorFlow's raw op of the same name, with the arguments of the raw door."""
    _, settings = door_settings(case, "raw")
    name = "DepthwiseConv2dNative" if case.depthwise else "Conv2D"
    if kind == "forward":
        return getattr(tf.raw_ops, name)(input=data.x, filter=data.f, **settings)
    if kind == "input":
        return getattr(tf.raw_ops, name + "BackpropInput")(
            input_sizes=list(case.input_shape), filter=data.f, out_backprop=data.g, **settings
        )
    return getattr(tf.raw_ops, name + "BackpropFilter")(
        input=data.x, filter_sizes=list(case.filter_shape), out_backprop=data.g, **settings
    )


def tensorflow_compiled(case: Case, kind: str, data: Data) -> Any:
    """Return one result by TensorFlow's compiler, which takes what its plain CPU kernels refuse."""
    import tensorflow as tf

    # Operands must be arguments: TensorFlow folds constants with the very kernels that are wrong.
    compiled = tf.function(
        lambda x, f, g: tensorflow_call(tf, case, kind, Data(x, f, g)), jit_compile=True
    )
    return compiled(data.x, data.f, data.g).numpy()


def _nchw(case: Case, array: Any) -> Any:
    return np.moveaxis(array, -1, 1) if case.data_format == "NHWC" else array


def _from_nchw(case: Case, array: Any) -> Any:
    return np.moveaxis(array, 1, -1) if case.data_format == "NHWC" else array


def _oihw(case: Case, f: Any) -> Any:
    """Filter [kh, kw, I, O] or [kh, kw, C, M] as PyTorch's [O, I / groups, kh, kw]."""
    f = f.reshape(*case.window, case.group_in, case.groups * case.group_out)
    return f.transpose(3, 2, 0, 1)
