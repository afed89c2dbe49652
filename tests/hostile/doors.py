"""Every public function with arguments that are right, to be spoiled one by one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import convgrad
from convgrad import compat, dispatch, nn, raw_ops, reference


def _functions() -> dict[str, Callable[..., Any]]:
    found = {}
    for place, module in {
        "": convgrad,
        "nn.": nn,
        "v1.": compat.v1.nn,
        "v2.": compat.v2.nn,
        "raw_ops.": raw_ops,
        "reference.": reference,
    }.items():
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing) and not isinstance(thing, type):
                found[place + name] = thing
    del found["export"]  # writes files: tests/export/test_door.py spoils its arguments
    found |= {f"dispatch.{name}": getattr(dispatch, name) for name in dispatch.__all__}
    return {
        name: thing
        for name, thing in found.items()
        if callable(thing) and not isinstance(thing, type)
    }


FUNCTIONS = _functions()


def right_arguments(name: str) -> dict[str, Any]:
    """Return arguments by name with which the function succeeds."""
    function = FUNCTIONS[name]
    parameters = inspect.signature(function).parameters
    x, g = np.ones((1, 4, 4, 2), np.float32), np.ones((1, 4, 4, 2), np.float32)
    last = name.rpartition(".")[2]
    depthwise = "epthwise" in last
    f = np.ones((3, 3, 2, 1 if depthwise else 2), np.float32)
    by_shape = last.endswith("V2") and "Backprop" in last
    values: dict[str, Any] = {
        "input": x,
        "filter": f,
        "filters": f,
        "out_backprop": g,
        "strides": [1, 1, 1, 1],
        "padding": "SAME",
        "input_sizes": [1, 4, 4, 2],
        "filter_sizes": list(f.shape),
        "depthwise_filter": np.ones((3, 3, 2, 1), np.float32),
        "pointwise_filter": np.ones((1, 1, 2, 2), np.float32),
        "output_shape": [1, 4, 4, 2],
        "op": "conv2d_transpose",
        "input_shape": [1, 4, 4, 2],
        "filter_shape": list(f.shape),
        "n": 2,
    }
    if last.startswith("batch_norm_act"):
        row = np.ones(2, np.float32)
        values = {"input": x, "out_backprop": g, "residual": g, "scale": row, "offset": row}
        if last.endswith("_grad"):
            values |= {"mean": row, "variance": row}
    if by_shape:
        values |= {"input": x, "filter": f}
    if name == "explain":
        del values["out_backprop"]  # arrays of Dask only, and the transposed convolution has none
    given = {key: value for key, value in values.items() if key in parameters}
    if name in ("options",):
        given = {"winograd": "auto"}
    # v1's names come in pairs of an old and a new spelling; one of them is enough.
    if "filters" in given and "filter" in given:
        del given["filters"]
    return given


def call(name: str, arguments: dict[str, Any]) -> Any:
    """Call a function; a context manager is entered and left."""
    result = FUNCTIONS[name](**arguments)
    if hasattr(result, "__enter__"):
        with result:
            pass
    return result
