"""What goes wrong in TensorFlow itself before it looks for a kernel: attributes it dies of, and one that it loses.

- With oneDNN on, TensorFlow renames an op first, and copies its attributes as 32-bit numbers on the way. A larger one
  ends the process (`mkl_layout_pass.cc`).
- Before a graph runs, TensorFlow estimates what its nodes cost, and divides by the strides of gradients, also by 0.
- With oneDNN on, grappler makes one node of a convolution, its bias, an addition and a leaky ReLU, and forgets the
  slope: the node says 0.2, whatever it was. So in front of another slope the nodes that add are marked as ones to keep.

All of Python's ways to an op of this kind lead through two names of the module of generated functions, one eagerly and
one in graphs; that is where these checks stand. They take half a microsecond of an eager call of the six.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.ops import gen_nn_ops
from tensorflow.python.util import _pywrap_util_port

from ..._base.errors import shown
from ..._problem import arguments

_LEAST, _MOST = -(2**31), 2**31 - 1
_LEAKY, _SLOPE = "LeakyRelu", 0.2
_SUMS = ("Add", "AddV2", "AddN")
_KEPT = "_grappler_do_not_remove"


def stand(inputs: Mapping[str, int]) -> None:
    """Check attributes in calls of some ops, by how many inputs each has; once per process."""
    if not isinstance(gen_nn_ops._op_def_library, SimpleNamespace):
        _exchange("_op_def_library", "_apply_op_helper", lambda add: _graph(add, inputs))
        if _pywrap_util_port.IsMklEnabled():
            _exchange("pywrap_tfe", "TFE_Py_FastPathExecute", lambda call: _eager(call, inputs))


def _exchange(module: str, function: str, made: Any) -> None:
    """Let the generated functions see another function in a module they use; nobody else sees it."""
    given = getattr(gen_nn_ops, module)
    names = {name: getattr(given, name) for name in dir(given)}
    setattr(gen_nn_ops, module, SimpleNamespace(**names | {function: made(names[function])}))


def _graph(add: Any, inputs: Mapping[str, int]) -> Any:
    """Return a function that adds a node after all checks of its attributes, with the words of an eager call."""

    def checked(op: str, name: Any = None, **keywords: Any) -> Any:
        if op in inputs:
            text = tf.compat.as_str
            arguments.settings(
                *(op, arguments.RAW, keywords["strides"], text(keywords["padding"])),
                *(text(keywords["data_format"]), keywords["dilations"]),
                keywords["explicit_paddings"],
            )
        if op == _LEAKY and keywords.get("alpha") not in (None, _SLOPE):
            _keep(keywords.get("features"))
        return add(op, name=name, **keywords)

    return checked


def _keep(tensor: Any) -> None:
    """Tell grappler to leave the addition that makes a tensor of a graph alone, and those of biases in front of it."""
    source = getattr(tensor, "op", None) if hasattr(tensor, "graph") else None
    if source is not None and source.type in _SUMS:
        for each in (source, *(given.op for given in source.inputs)):
            if each.type in (*_SUMS, "BiasAdd"):
                each._set_attr(_KEPT, attr_value_pb2.AttrValue(b=True))


def _eager(execute: Any, inputs: Mapping[str, int]) -> Any:
    """Return a function that executes an op after a look at its integers; the kernel checks the rest."""

    def checked(context: Any, op: str, name: Any, *rest: Any) -> Any:
        count = inputs.get(op)
        if count is not None:
            for at in range(count + 1, len(rest), 2):
                value = rest[at]
                if isinstance(value, list | tuple):
                    for number in value:
                        if isinstance(number, int) and not _LEAST <= number <= _MOST:
                            _refuse(op, rest[at - 1], value, number)
        return execute(context, op, name, *rest)

    return checked


def _refuse(op: str, argument: str, value: Any, number: int) -> None:
    rule = "below 2**31" if number > 0 else "larger than 0"
    raise tf.errors.InvalidArgumentError(
        None, None, f"{op}: `{argument}` must be {rule}, got {number} in {shown(value)}."
    )
