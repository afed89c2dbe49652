"""Derivatives of our ops: each of the three sums is linear in both operands, and its derivative is one of the others.

So derivatives of every order are made of the same six ops, also those of forward-mode accumulators, which TensorFlow
gets from derivatives of derivatives.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ..._problem.convolution import Kind
from . import ops
from .attributes import NAMES as ATTRIBUTES
from .attributes import Attrs
from .ops import OURS, execute
from .quick import sizes_of

FORWARD, INPUT, FILTER = Kind.FORWARD, Kind.INPUT_GRADIENT, Kind.FILTER_GRADIENT


def attrs_of(op: Any) -> Attrs:
    """Return the settings of a node."""
    found = [op.get_attr(name) for name in ATTRIBUTES]
    texts = [each.decode() if isinstance(each, bytes) else each for each in found]
    strides, padding, explicit, layout, dilations = texts
    return list(strides), padding, list(explicit or []), layout, list(dilations)


def _like(tensor: Any) -> Any:
    """Return a tensor's shape as sizes for an op, and as far as it is known while a graph is built."""
    if tf.executing_eagerly():
        return sizes_of(tuple(tensor.shape)), None
    return tf.shape(tensor), tensor.shape


def input_gradient(deep: bool, x: Any, f: Any, g: Any, attrs: Attrs) -> Any:
    """Return the gradient of an input like `x`."""
    sizes, shape = _like(x)
    return execute((INPUT, deep), (sizes, f, g), attrs, shape)


def filter_gradient(deep: bool, x: Any, f: Any, g: Any, attrs: Attrs) -> Any:
    """Return the gradient of a filter like `f`."""
    sizes, shape = _like(f)
    return execute((FILTER, deep), (x, sizes, g), attrs, shape)


def _of_forward(op: Any, grad: Any) -> Any:
    x, f = op.inputs
    deep, attrs = _deep(op), attrs_of(op)
    return input_gradient(deep, x, f, grad, attrs), filter_gradient(deep, x, f, grad, attrs)


def _of_input_gradient(op: Any, grad: Any) -> Any:
    _, f, g = op.inputs
    deep, attrs = _deep(op), attrs_of(op)
    forward = execute((FORWARD, deep), (grad, f), attrs, g.shape)
    return None, filter_gradient(deep, grad, f, g, attrs), forward


def _of_filter_gradient(op: Any, grad: Any) -> Any:
    x, _, g = op.inputs
    deep, attrs = _deep(op), attrs_of(op)
    forward = execute((FORWARD, deep), (x, grad), attrs, g.shape)
    return input_gradient(deep, x, grad, g, attrs), None, forward


def _deep(op: Any) -> bool:
    """Tell whether an op is one of the depthwise ones."""
    return str(op.type).startswith(OURS[FORWARD, True])


def register() -> None:
    """Tell TensorFlow, once per process."""
    rows = {FORWARD: _of_forward, INPUT: _of_input_gradient, FILTER: _of_filter_gradient}
    for (kind, _), name in ops.OURS.items():
        try:
            tf.RegisterGradient(name)(rows[kind])
        except KeyError:  # by a first import of convgrad in this process
            continue
