"""Settings that end the process before a kernel is asked: refused by TensorFlow's own functions once we are installed.

The pass that renames ops for oneDNN ends the process at a stride that does not fit 32 bits, and the estimator of costs
divides by a stride of 0. Both look at a node before there is a kernel that could object. So the six functions that make
such nodes look first; TensorFlow's other functions, its gradients and Keras call these.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import gen_nn_ops

FUNCTIONS = {
    "Conv2D": "conv2d",
    "Conv2DBackpropInput": "conv2d_backprop_input",
    "Conv2DBackpropFilter": "conv2d_backprop_filter",
    "DepthwiseConv2dNative": "depthwise_conv2d_native",
    "DepthwiseConv2dNativeBackpropInput": "depthwise_conv2d_native_backprop_input",
    "DepthwiseConv2dNativeBackpropFilter": "depthwise_conv2d_native_backprop_filter",
}
"""Ops, and what TensorFlow's generated Python calls them."""
_LISTS = {"strides": 1, "dilations": 1, "explicit_paddings": 0}
"""Settings that are lists, and the least that may be in them."""
_LARGEST = 2**31 - 1


def guard() -> None:
    """Let the six functions look at their settings; those of `tf.raw_ops` too."""
    for op, name in FUNCTIONS.items():
        for place, attribute in ((gen_nn_ops, name), (tf.raw_ops, op)):
            function = getattr(place, attribute, None)
            if function is not None:
                setattr(place, attribute, _guarded(op, function))


def _guarded(op: str, function: Callable[..., Any]) -> Callable[..., Any]:
    names = list(inspect.signature(function).parameters)
    places = [(names.index(each), each) for each in _LISTS if each in names]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for at, name in places:
            value = args[at] if at < len(args) else kwargs.get(name)
            if isinstance(value, list | tuple):
                _check(op, name, value)
        return function(*args, **kwargs)

    return call


def _check(op: str, name: str, value: Iterable[Any]) -> None:
    for item in value:
        if isinstance(item, int) and not _LISTS[name] <= item <= _LARGEST:
            raise tf.errors.InvalidArgumentError(
                *(None, None),
                f"{op}: `{name}` must be from {_LISTS[name]} to {_LARGEST}, got {item} in {list(value)}.",
            )
