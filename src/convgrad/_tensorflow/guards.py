"""Attributes that oneDNN's rewriting cannot read: refused before TensorFlow sees them.

With oneDNN on, TensorFlow renames an op before it looks for its kernel, and copies its attributes as 32-bit numbers on
the way. A larger one ends the process (`mkl_layout_pass.cc`), and no kernel of ours has been asked yet. Graphs are
safe: there TensorFlow checks attributes when a node is made. Eager calls of the generated functions all go through one
name of their module, which is where this stands. It takes half a microsecond of a call of the six.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.ops import gen_nn_ops
from tensorflow.python.util import _pywrap_util_port

from .._errors import shown

_LEAST, _MOST = -(2**31), 2**31 - 1


def needed() -> bool:
    """Tell whether oneDNN's rewriting is on in this process."""
    return bool(_pywrap_util_port.IsMklEnabled())


def stand(inputs: Mapping[str, int]) -> None:
    """Check attributes in eager calls of some ops, by how many inputs each has; once per process."""
    given = gen_nn_ops.pywrap_tfe
    if not isinstance(given, SimpleNamespace):
        functions = {name: getattr(pywrap_tfe, name) for name in dir(pywrap_tfe)}
        functions["TFE_Py_FastPathExecute"] = _checked(pywrap_tfe.TFE_Py_FastPathExecute, inputs)
        gen_nn_ops.pywrap_tfe = SimpleNamespace(**functions)


def _checked(execute: Any, inputs: Mapping[str, int]) -> Any:
    def checked(context: Any, op: str, name: Any, *rest: Any) -> Any:
        count = inputs.get(op)
        if count is not None:
            for value in rest[count + 1 :: 2]:
                if isinstance(value, list | tuple):
                    for number in value:
                        if isinstance(number, int) and not _LEAST <= number <= _MOST:
                            _refuse(op, rest[count:], value, number)
        return execute(context, op, name, *rest)

    return checked


def _refuse(op: str, attributes: Any, value: Any, number: int) -> None:
    argument = next(attributes[at - 1] for at, each in enumerate(attributes) if each is value)
    rule = "below 2**31" if number > 0 else "above -2**31"
    raise tf.errors.InvalidArgumentError(
        None, None, f"{op}: `{argument}` must be {rule}, got {number} in {shown(value)}."
    )
