"""What layers of a network need besides convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...._base.errors import ArgumentError
from .. import dtypes
from ..row import Attr, Kernel, NodeCall, OpRow, Pin
from ..spec import Spec, broadcast, fits, merged, shape_spelled
from .rules import Grads, only, rank, same, unary, zeros_like

if TYPE_CHECKING:
    from ..operation import Operation, Output
    from ..scope import Scope

_LAYOUT = (Attr("data_format", "string", "NHWC", ("NHWC", "NCHW")),)


def _relu(x: Any, out: Any = None) -> Any:
    return np.maximum(x, x.dtype.type(0), out=out)


def _relu_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    return [scope.op("ReluGrad", only(grads), node.outputs[0])]


def _relu_grad(g: Any, features: Any, out: Any = None) -> Any:
    if g.shape != features.shape:
        raise ArgumentError(
            f"ReluGrad: `gradients` and `features` must have one shape, got {list(g.shape)} and {list(features.shape)}."
        )
    return np.multiply(g, features > 0, out=out)


def _relu_grad_infer(call: NodeCall) -> Sequence[Spec]:
    g, features = call.inputs
    if not fits(g.shape, features.shape):
        raise call.refuse(
            "`gradients` and `features` must have one shape",
            f"{shape_spelled(g.shape)} and {shape_spelled(features.shape)}",
        )
    return [Spec(g.dtype, merged(g.shape, features.shape))]


def _relu_grad_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    return [scope.op("ReluGrad", only(grads), node.inputs[1]), None]


def _bias_infer(call: NodeCall) -> Sequence[Spec]:
    value, bias = call["value"], rank(call, "bias", 1)
    if value.shape is None:
        return [Spec(value.dtype, None)]
    if len(value.shape) < 2:
        raise call.refuse(
            "`value` must have at least 2 dimensions", f"shape {shape_spelled(value.shape)}"
        )
    at = len(value.shape) - 1 if call.attrs["data_format"] == "NHWC" else 1
    if not fits((value.shape[at],), bias):
        raise call.refuse(
            f"`bias` must have as many elements as `value` has channels, {value.shape[at]}",
            bias[0],
        )
    channels = value.shape[at] if bias[0] is None else bias[0]
    return [Spec(value.dtype, (*value.shape[:at], channels, *value.shape[at + 1 :]))]


def _along(bias: Any, layout: str, count: int) -> Any:
    """Return a bias so that it broadcasts along the channels."""
    return bias if layout == "NHWC" else bias.reshape(-1, *(1,) * (count - 2))


def _bias(node: Operation) -> Kernel:
    layout = node.attrs["data_format"]

    def run(value: Any, bias: Any, out: Any = None) -> Any:
        channels = value.shape[-1 if layout == "NHWC" else 1]
        if bias.shape != (channels,):
            call = NodeCall(node.row, node.attrs, ())
            raise call.refuse(f"`bias` must have {channels} elements", f"shape {bias.shape}")
        return np.add(value, _along(bias, layout, value.ndim), out=out)

    return run


def _bias_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    g = only(grads)
    return [g, scope.op("BiasAddGrad", g, data_format=node.attrs["data_format"])]


def _bias_grad_infer(call: NodeCall) -> Sequence[Spec]:
    g = call.inputs[0]
    if g.shape is None:
        return [Spec(g.dtype, (None,))]
    if len(g.shape) < 2:
        raise call.refuse("`out_backprop` must have at least 2 dimensions", shape_spelled(g.shape))
    return [Spec(g.dtype, (g.shape[-1 if call.attrs["data_format"] == "NHWC" else 1],))]


def _bias_grad(node: Operation) -> Kernel:
    layout, dtype = node.attrs["data_format"], node.specs[0].dtype
    wide = dtypes.wide(dtype)

    def run(g: Any) -> Any:
        at = g.ndim - 1 if layout == "NHWC" else 1
        axes = tuple(axis for axis in range(g.ndim) if axis != at)
        return g.sum(axis=axes, dtype=wide).astype(dtype, copy=False)

    return run


def _bias_grad_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    zeros = zeros_like(scope, node.inputs[0])
    return [scope.op("BiasAdd", zeros, only(grads), data_format=node.attrs["data_format"])]


def _softmax_infer(call: NodeCall) -> Sequence[Spec]:
    shape = call.inputs[0].shape
    if shape is not None and not shape:
        raise call.refuse("`logits` must have at least 1 dimension", "a scalar")
    return same(call)


def log_softmax(x: Any) -> Any:
    """Return the logarithms of shares that add up to 1 along the last axis."""
    if not x.ndim:
        raise ArgumentError("Softmax: `logits` must have at least 1 dimension, got a scalar.")
    wide = x.astype(dtypes.wide(x.dtype), copy=False)
    shifted = wide - wide.max(-1, keepdims=True, initial=-np.inf)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def _log_softmax(node: Operation) -> Kernel:
    dtype = node.specs[0].dtype
    return lambda x: log_softmax(x).astype(dtype, copy=False)


def _softmax(node: Operation) -> Kernel:
    dtype = node.specs[0].dtype
    return lambda x: np.exp(log_softmax(x)).astype(dtype, copy=False)


def _total(scope: Scope, x: Output) -> Output:
    return scope.op("Sum", x, [-1], keep_dims=True)


def _softmax_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    return [_through_softmax(scope, only(grads), node.outputs[0])]


def _through_softmax(scope: Scope, g: Output, y: Output) -> Output:
    """(g - sum(g * y)) * y"""
    rest = scope.op("Subtract", g, _total(scope, scope.op("Multiply", g, y)))
    return scope.op("Multiply", rest, y)


def _log_softmax_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    g = only(grads)
    shares = scope.op("Softmax", node.inputs[0])
    return [scope.op("Subtract", g, scope.op("Multiply", _total(scope, g), shares))]


def _entropy_infer(call: NodeCall) -> Sequence[Spec]:
    features, labels = rank(call, "features", 2), rank(call, "labels", 2)
    shape = broadcast(call.row.name, ("features", "labels"), (features, labels))
    assert shape is not None
    dtype = call.inputs[0].dtype
    return [Spec(dtype, shape[:1]), Spec(dtype, shape)]


def _entropy(node: Operation) -> Kernel:
    dtype = node.specs[0].dtype
    wide = dtypes.wide(dtype)

    def run(features: Any, labels: Any) -> Any:
        if features.ndim != 2 or labels.ndim != 2:
            raise ArgumentError(
                f"{node.type}: `features` and `labels` must have 2 dimensions, got shapes {list(features.shape)} "
                f"and {list(labels.shape)}."
            )
        if features.shape[1] < labels.shape[1]:  # one logit stands for all: they share alike
            features = np.repeat(features, labels.shape[1], 1)
        logs, wanted = log_softmax(features), labels.astype(wide, copy=False)
        loss = -(wanted * logs).sum(-1)
        return loss.astype(dtype, copy=False), (np.exp(logs) - wanted).astype(dtype, copy=False)

    return run


def _entropy_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    """The loss's gradient is the second output; the second's own goes through softmax."""
    (features, labels), (loss, back) = node.inputs, grads
    logits = features
    if not _same_last(features, node.outputs[1]):
        logits = scope.op("BroadcastTo", features, scope.op("Shape", node.outputs[1]))
    to_features: list[Output] = []
    to_labels: list[Output] = []
    if loss is not None:
        column = scope.op("Reshape", loss, [-1, 1])
        to_features.append(scope.op("Multiply", column, node.outputs[1]))
        logs = scope.op("LogSoftmax", logits)
        to_labels.append(scope.op("Negate", scope.op("Multiply", column, logs)))
    if back is not None:
        to_features.append(_through_softmax(scope, back, scope.op("Softmax", logits)))
        to_labels.append(scope.op("Negate", back))
    return [_added(scope, to_features, features), _added(scope, to_labels, labels)]


def _same_last(x: Output, y: Output) -> bool:
    """Return whether two matrices are known to have as many columns."""
    if x.shape is None or y.shape is None:
        return False
    return x.shape[-1] is not None and x.shape[-1] == y.shape[-1]


def _added(scope: Scope, parts: Sequence[Output], operand: Output) -> Output:
    whole = parts[0] if len(parts) == 1 else scope.op("Add", *parts)
    if operand.spec.is_known and whole.spec.is_known and operand.shape == whole.shape:
        return whole
    return scope.op("SumToShape", whole, scope.op("Shape", operand))


_LOGITS = (Pin("logits", dtypes.FLOATS),)

ROWS = (
    OpRow(
        "Relu",
        "The larger of x and 0.",
        (Pin("features", dtypes.NUMBERS),),
        ("activations",),
        same,
        unary(_relu),
        _relu_gradient,
        elementwise=True,
    ),
    OpRow(
        "ReluGrad",
        "The gradient of Relu: `gradients` where `features` are above 0.",
        (Pin("gradients", dtypes.NUMBERS, "T"), Pin("features", dtypes.NUMBERS, "T")),
        ("backprops",),
        _relu_grad_infer,
        unary(_relu_grad),
        _relu_grad_gradient,
        elementwise=True,
        internal=True,
    ),
    OpRow(
        "BiasAdd",
        "A number per channel, added to all of it.",
        (Pin("value", dtypes.NUMBERS, "T"), Pin("bias", dtypes.NUMBERS, "T")),
        ("output",),
        _bias_infer,
        _bias,
        _bias_gradient,
        optional=_LAYOUT,
        elementwise=True,
    ),
    OpRow(
        "BiasAddGrad",
        "The gradient of a bias: the sum over everything but channels.",
        (Pin("out_backprop", dtypes.NUMBERS),),
        ("output",),
        _bias_grad_infer,
        _bias_grad,
        _bias_grad_gradient,
        optional=_LAYOUT,
    ),
    OpRow(
        "Softmax",
        "Shares that add up to 1 along the last dimension.",
        _LOGITS,
        ("softmax",),
        _softmax_infer,
        _softmax,
        _softmax_gradient,
    ),
    OpRow(
        "LogSoftmax",
        "The logarithm of Softmax.",
        _LOGITS,
        ("logsoftmax",),
        _softmax_infer,
        _log_softmax,
        _log_softmax_gradient,
    ),
    OpRow(
        "SoftmaxCrossEntropyWithLogits",
        "The cross entropy of `labels` and Softmax of `features`, and its gradient: softmax - labels.",
        (Pin("features", dtypes.FLOATS, "T"), Pin("labels", dtypes.FLOATS, "T")),
        ("loss", "backprop"),
        _entropy_infer,
        _entropy,
        _entropy_gradient,
    ),
)
