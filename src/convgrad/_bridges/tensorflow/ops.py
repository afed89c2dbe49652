"""Our ops in TensorFlow: six, named after TensorFlow's own and with the same attributes.

They are registered when this module is first needed, and are there until the process ends. A function here calls one,
eagerly or as a node of the graph that is being built. TensorFlow compiles a `tf.function(jit_compile=True)` with XLA,
which knows no kernels of others: inside of one, TensorFlow's own ops are used.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import context as _eager_context
from tensorflow.python.eager import execute as _execute
from tensorflow.python.framework import op_def_library, op_def_registry
from tensorflow.python.framework import ops as _framework_ops
from tensorflow.python.ops import control_flow_util

from ..._base.errors import BackendMissingError
from ..._problem.convolution import OPS, Call, Kind
from . import capi, kernel, kernels
from .attributes import NAMES as ATTRIBUTES
from .attributes import Attrs

NATIVE = {
    (Kind.FORWARD, False): "Conv2D",
    (Kind.INPUT_GRADIENT, False): "Conv2DBackpropInput",
    (Kind.FILTER_GRADIENT, False): "Conv2DBackpropFilter",
    (Kind.FORWARD, True): "DepthwiseConv2dNative",
    (Kind.INPUT_GRADIENT, True): "DepthwiseConv2dNativeBackpropInput",
    (Kind.FILTER_GRADIENT, True): "DepthwiseConv2dNativeBackpropFilter",
}
"""TensorFlow's own ops, by what they compute."""
OURS = {which: f"Convgrad{name}" for which, name in NATIVE.items()}
_INPUTS = {
    Kind.FORWARD: ("input: T", "filter: T"),
    Kind.INPUT_GRADIENT: ("input_sizes: Tsizes", "filter: T", "out_backprop: T"),
    Kind.FILTER_GRADIENT: ("input: T", "filter_sizes: Tsizes", "out_backprop: T"),
}
NAMES = {kind: tuple(each.split(":")[0] for each in inputs) for kind, inputs in _INPUTS.items()}
"""Names of an op's inputs."""
_SPECS = (
    "strides: list(int)",
    "padding: {'SAME', 'VALID', 'EXPLICIT'}",
    "explicit_paddings: list(int) = []",
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    "dilations: list(int) = [1, 1, 1, 1]",
)


@functools.cache
def _registered() -> bool:
    """Register the six ops and their kernels; returns whether they are there."""
    found = kernels.kernels()
    if found is None:
        return False
    for call in OPS:
        name = OURS[call.kind, call.depthwise]
        if op_def_registry.get(name) is None:  # else by a first import of convgrad in this process
            _define(found, name, call)
            found.register(name, call)
    from . import gradients  # needs the functions of this module

    gradients.register()
    return True


def _define(found: kernels.Kernels, name: str, call: Call) -> None:
    library = found.library
    builder = library.NewOpDefinitionBuilder(name.encode())
    for each in _INPUTS[call.kind]:
        library.OpDefinitionBuilderAddInput(builder, each.encode())
    library.OpDefinitionBuilderAddOutput(builder, b"output: T")
    integers = not call.depthwise and call.kind is not Kind.FILTER_GRADIENT
    types = "half, bfloat16, float, double" + (", int32" if integers else "")
    specs = [f"T: {{{types}}}", *_SPECS]
    if call.kind is not Kind.FORWARD:
        specs.append("Tsizes: {int32, int64} = DT_INT32")
    for spec in specs:
        library.OpDefinitionBuilderAddAttr(builder, spec.encode())
    shape = found.functions[kernel.SHAPES[call.kind]]
    library.OpDefinitionBuilderSetShapeInferenceFunction(builder, shape)
    with library.status() as status:
        library.RegisterOpDefinition(builder, status)
        library.check(status, f"the op {name}")


_lock = threading.RLock()


def available() -> bool:
    """Tell whether our ops are there, after they were registered if they can be."""
    with _lock:
        return _registered()


def why_not() -> str:
    """Return why our ops are not there, as part of a sentence."""
    return capi.lacking() or "no kernels can be compiled here"


def require(what: str) -> None:
    """Raise an error that names what is missing, where our ops are not there."""
    if not available():
        raise BackendMissingError(f"{what} needs ops of ours in TensorFlow, but {why_not()}")


def execute(
    which: tuple[Kind, bool],
    inputs: Sequence[Any],
    attrs: Attrs,
    shape: Sequence[int | None] | None = None,
    name: str | None = None,
) -> Any:
    """Call an op, ours or in the hands of XLA TensorFlow's; `shape` is what is known of its result's."""
    context = _eager_context._context or _eager_context.context()
    if context.executing_eagerly():
        found = kernels.ready()
        assert found is not None
        found.heed()
        strides, padding, explicit, layout, dilations = attrs
        try:
            return pywrap_tfe.TFE_Py_FastPathExecute(
                *(context, OURS[which], name, *inputs),
                *("strides", strides, "padding", padding, "explicit_paddings", explicit),
                *("data_format", layout, "dilations", dilations),
            )
        except _framework_ops._NotOkStatusException as error:
            _framework_ops.raise_from_not_ok_status(error, name)
    keywords = dict(zip(NAMES[which[0]], inputs, strict=True))
    keywords.update(zip(ATTRIBUTES, attrs, strict=True))
    graph = _framework_ops.get_default_graph()
    if control_flow_util.GraphOrParentsInXlaContext(graph):
        return _native(which, keywords, name)
    _, _, op, outputs = op_def_library._apply_op_helper(OURS[which], name=name, **keywords)
    result = outputs[0]
    if _execute.must_record_gradient():  # a tape that watches while a graph is built
        pairs: tuple[Any, ...] = ("T", op._get_attr_type("T"))
        for key in ATTRIBUTES:
            pairs += (key, op.get_attr(key))
        _execute.record_gradient(OURS[which], op.inputs, pairs, outputs)
    if shape is not None:
        result.set_shape(shape)
    return result


def _native(which: tuple[Kind, bool], keywords: dict[str, Any], name: str | None) -> Any:
    for key, value in keywords.items():
        if key.endswith("_sizes"):
            keywords[key] = tf.cast(value, tf.int32)
    return getattr(tf.raw_ops, NATIVE[which])(name=name, **keywords)
