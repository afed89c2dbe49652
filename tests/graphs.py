"""Graphs for tests: numbers of every dtype, and one op computed in all the ways a graph can know its sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from convgrad._apps.graph.dtypes import FLOATS
from convgrad._apps.graph.spec import fits
from convgrad.graph import ClientSession, Operation, Scope, ops

UNIT = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-22, "float64": 2.0**-50}
"""What counts as the last places of a dtype: two roundings, and what NumPy's functions err by."""


def numbers(rng: np.random.Generator, shape: Any, dtype: Any) -> Any:
    """Draw normal numbers, small whole ones or truth values."""
    if dtype in FLOATS:
        return rng.standard_normal(shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    return rng.integers(0 if dtype.kind == "u" else -6, 7, shape).astype(dtype)


def whole(rng: np.random.Generator, shape: Any, dtype: Any) -> Any:
    """Draw small whole numbers, whose sums are exact in every dtype."""
    return rng.integers(
        0 if dtype.kind in "ub" else -3, 2 if dtype.kind == "b" else 4, shape
    ).astype(dtype)


def placed(scope: Scope, array: Any, how: str) -> Any:
    """Return a tensor for an array: a constant, or a placeholder that knows all sizes, the rank, or nothing."""
    if how == "constant":
        return ops.Const(scope, array)
    shape = {"sizes": array.shape, "rank": [None] * array.ndim, "nothing": None}[how]
    return ops.Placeholder(scope, array.dtype, shape)


def node(op: Any) -> Operation:
    return op.operation


def agrees(output: Any, array: Any) -> None:
    """Assert that what was inferred of a tensor is true of its array."""
    spec = output.spec
    assert isinstance(array, np.ndarray), (output, type(array))
    assert array.dtype == spec.dtype, (output, array.dtype)
    assert fits(spec.shape, array.shape), (output, array.shape)
    value = (spec.value,) if isinstance(spec.value, int) else spec.value
    for known, number in zip(value or (), array.reshape(-1).tolist(), strict=bool(value)):
        assert known is None or known == number, (output, array)


def computed(name: str, inputs: list[Any], **attrs: Any) -> list[Any]:
    """Compute an op from constants and from placeholders, and return its outputs, which must be the same each time."""
    found: list[Any] = []
    for how in ("constant", "sizes", "rank", "nothing"):
        scope = Scope.new_root_scope()
        listed = [each if isinstance(each, list) else [each] for each in inputs]
        tensors = [[placed(scope, each, how) for each in part] for part in listed]
        arguments = [
            part if isinstance(given, list) else part[0]
            for part, given in zip(tensors, inputs, strict=True)
        ]
        op = getattr(ops, name)(scope, *arguments, **attrs)
        feeds = {
            tensor: array
            for part, arrays in zip(tensors, listed, strict=True)
            for tensor, array in zip(part, arrays, strict=True)
            if how != "constant"
        }
        results = ClientSession(scope).run(op.operation.outputs, feeds)
        for output, array in zip(op.operation.outputs, results, strict=True):
            agrees(output, array)
            if how in ("constant", "sizes") and output.spec.shape is not None:
                assert len(output.shape) == array.ndim
        if found:
            for first, array in zip(found, results, strict=True):
                assert same_bits(first, array), (name, how)
        found = results
    return found


def same_bits(first: Any, second: Any) -> bool:
    return (
        first.dtype == second.dtype
        and first.shape == second.shape
        and first.tobytes() == second.tobytes()
    )


def close(got: Any, expected: Any, dtype: Any, units: float = 4.0) -> None:
    """Assert a result's dtype and shape, and its numbers to some last places; NaN and Inf where they are expected."""
    assert got.dtype == dtype and got.shape == np.shape(expected), (got.dtype, got.shape)
    if dtype not in FLOATS:
        np.testing.assert_array_equal(got, np.asarray(expected).astype(dtype))
        return
    unit = UNIT[dtype.name] * units
    with np.errstate(all="ignore"):
        rounded = np.asarray(expected).astype(dtype).astype(np.float64)
    np.testing.assert_allclose(got.astype(np.float64), rounded, rtol=unit, atol=unit * 2**-4)
