"""Attributes that oneDNN's rewriting cannot read: refused before TensorFlow sees them.

With oneDNN on, TensorFlow renames an op before it looks for its kernel, and copies its attributes as 32-bit numbers on
the way. A larger one ends the process (`mkl_layout_pass.cc`), and no kernel of ours has been asked yet. All of Python's
ways to an op of this kind lead through two names of the module of generated functions, one eagerly and one in graphs;
that is where these checks stand. They take half a microsecond of an eager call of the six, and less of one of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import gen_nn_ops
from tensorflow.python.util import _pywrap_util_port

from .._errors import shown

_LEAST, _MOST = -(2**31), 2**31 - 1


def needed() -> bool:
    """Tell whether oneDNN's rewriting is on in this process."""
    return bool(_pywrap_util_port.IsMklEnabled())


def stand(inputs: Mapping[str, int]) -> None:
    """Check attributes in calls of some ops, by how many inputs each has; once per process."""
    if not isinstance(gen_nn_ops.pywrap_tfe, SimpleNamespace):
        _exchange("pywrap_tfe", "TFE_Py_FastPathExecute", lambda f: _eager(f, inputs))
        _exchange("_op_def_library", "_apply_op_helper", lambda f: _graph(f, inputs))


def _exchange(module: str, function: str, made: Any) -> None:
    """Let the generated functions see another function in a module they use; nobody else sees it."""
    given = getattr(gen_nn_ops, module)
    names = {name: getattr(given, name) for name in dir(given)}
    setattr(gen_nn_ops, module, SimpleNamespace(**names | {function: made(names[function])}))


def _eager(execute: Any, inputs: Mapping[str, int]) -> Any:
    def checked(context: Any, op: str, name: Any, *rest: Any) -> Any:
        count = inputs.get(op)
        if count is not None:
            text = _wrong(op, zip(rest[count::2], rest[count + 1 :: 2], strict=False))
            if text:
                raise tf.errors.InvalidArgumentError(None, None, text)
        return execute(context, op, name, *rest)

    return checked


def _graph(add: Any, inputs: Mapping[str, int]) -> Any:
    def checked(op: str, name: Any = None, **keywords: Any) -> Any:
        if op in inputs:
            text = _wrong(op, keywords.items())
            if text:
                raise ValueError(text)  # as TensorFlow does for what is wrong with a node
        return add(op, name=name, **keywords)

    return checked


def _wrong(op: str, attributes: Iterable[tuple[str, Any]]) -> str:
    """Return what is wrong with a list of integers among the attributes, or an empty text."""
    for argument, value in attributes:
        if isinstance(value, list | tuple):
            for number in value:
                if isinstance(number, int) and not _LEAST <= number <= _MOST:
                    rule = "below 2**31" if number > 0 else "above -2**31"
                    return f"{op}: `{argument}` must be {rule}, got {number} in {shown(value)}."
    return ""
