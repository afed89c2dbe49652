"""TensorFlow: its raw operations, eager or compiled by XLA, or the functions that its documentation shows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal

import numpy as np

from ..._base.dtypes import AnyArray
from ..._problem.convolution import Kind
from .wanted import Pair, Prepared, Wanted

Door = Literal["raw", "documented"]

_SUFFIX = {
    Kind.FORWARD: "",
    Kind.INPUT_GRADIENT: "BackpropInput",
    Kind.FILTER_GRADIENT: "BackpropFilter",
}


def limit_threads(threads: int) -> None:
    tf: Any = import_module("tensorflow")

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)


def prepare(
    wanted: Wanted,
    first: AnyArray,
    second: AnyArray,
    *,
    door: Door = "raw",
    compiled: bool = False,
) -> Prepared:
    """Make constants of the operands. XLA (`compiled`) takes much that the plain CPU kernels refuse."""
    tf: Any = import_module("tensorflow")
    one, two = tf.constant(first), tf.constant(second)
    if door == "documented":
        documented = _documented(wanted)
        return Prepared(lambda: _without_warning(lambda: documented(one, two)), _array)
    dilated = max(wanted.dilations) > 1
    if wanted.kind is Kind.FORWARD and wanted.depthwise and dilated and not compiled:
        # The raw operation refuses dilations without XLA; this is the route TensorFlow documents.
        note = "tf.nn.depthwise_conv2d, not the raw operation"
        documented = _documented(wanted)
        return Prepared(lambda: documented(one, two), _array, note)
    function = getattr(tf.raw_ops, raw_name(wanted))
    settings = raw_settings(wanted)
    sizes: Any = wanted.input_shape if wanted.kind is Kind.INPUT_GRADIENT else wanted.filter_shape
    sizes = sizes if compiled else tf.constant(sizes, tf.int32)

    def operation(one: Any, two: Any) -> Any:
        if wanted.kind is Kind.FORWARD:
            return function(input=one, filter=two, **settings)
        if wanted.kind is Kind.INPUT_GRADIENT:
            return function(input_sizes=sizes, filter=one, out_backprop=two, **settings)
        return function(input=one, filter_sizes=sizes, out_backprop=two, **settings)

    # Operands are arguments, not constants of the program: TensorFlow folds those with its plain kernels.
    run: Any = tf.function(operation, jit_compile=True) if compiled else operation
    return Prepared(lambda: run(one, two), _array)


def raw_name(wanted: Wanted) -> str:
    """Return the operation's name in `tf.raw_ops`."""
    return ("DepthwiseConv2dNative" if wanted.depthwise else "Conv2D") + _SUFFIX[wanted.kind]


def raw_settings(wanted: Wanted) -> dict[str, Any]:
    """Return the settings as raw operations take them: four numbers each, explicit pads in an argument of their own."""
    settings: dict[str, Any] = {
        "strides": _four(wanted, wanted.strides),
        "padding": wanted.padding,
        "data_format": wanted.layout,
        "dilations": _four(wanted, wanted.dilations),
    }
    if not isinstance(wanted.padding, str):
        flat = [pad for pair in _four_pairs(wanted) for pad in pair]
        settings |= {"padding": "EXPLICIT", "explicit_paddings": flat}
    return settings


def documented_name(wanted: Wanted) -> str:
    """Return where TensorFlow documents the operation: the dense gradients have v1 names only."""
    suffix = {Kind.INPUT_GRADIENT: "_backprop_input", Kind.FILTER_GRADIENT: "_backprop_filter"}
    name = ("depthwise_conv2d" if wanted.depthwise else "conv2d") + suffix.get(wanted.kind, "")
    dense_gradient = not wanted.depthwise and wanted.kind is not Kind.FORWARD
    return f"tf.compat.v1.nn.{name}" if dense_gradient else f"tf.nn.{name}"


def documented_settings(wanted: Wanted) -> dict[str, Any]:
    """Return the settings as those functions document them: four numbers, four pairs, but two dilations forward."""
    padding: Any = wanted.padding if isinstance(wanted.padding, str) else _four_pairs(wanted)
    dilations = _four(wanted, wanted.dilations)
    if wanted.depthwise and wanted.kind is Kind.FORWARD:
        dilations = list(wanted.dilations)
    return {
        "strides": _four(wanted, wanted.strides),
        "padding": padding,
        "data_format": wanted.layout,
        "dilations": dilations,
    }


def _documented(wanted: Wanted) -> Callable[[Any, Any], Any]:
    function: Any = import_module("tensorflow")
    for part in documented_name(wanted).split(".")[1:]:
        function = getattr(function, part)
    settings = documented_settings(wanted)
    if wanted.kind is Kind.FORWARD:
        return lambda x, f: function(x, f, **settings)
    if wanted.kind is Kind.INPUT_GRADIENT:
        return lambda f, g: function(list(wanted.input_shape), f, g, **settings)
    return lambda x, g: function(x, list(wanted.filter_shape), g, **settings)


def _without_warning(call: Callable[[], Any]) -> Any:
    """Raise the warning "called with both strides and dilations": what is documented as not allowed is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        return call()


def _array(result: Any) -> AnyArray:
    return np.asarray(result.numpy())


def _four(wanted: Wanted, pair: Pair) -> list[int]:
    return [1, *pair, 1] if wanted.layout == "NHWC" else [1, 1, *pair]


def _four_pairs(wanted: Wanted) -> list[list[int]]:
    assert not isinstance(wanted.padding, str)
    pairs, still = [list(pair) for pair in wanted.padding], [0, 0]
    return [still, *pairs, still] if wanted.layout == "NHWC" else [still, still, *pairs]
