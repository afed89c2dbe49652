"""Ops without tensors before them: constants, placeholders, random numbers, ranges."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from ...._base.errors import ArgumentError
from .. import dtypes, philox
from ..row import Attr, Kernel, NodeCall, OpRow, Pin, no_gradient
from ..spec import MOST_VALUES, Spec, Value
from .rules import attribute, room, scalar, shape_of_vector

if TYPE_CHECKING:
    from ..operation import Operation


def value_of(array: np.ndarray[Any, np.dtype[Any]]) -> Value:
    """Return the numbers of a small integer scalar or vector, for shape rules."""
    if array.dtype not in dtypes.INDICES or array.ndim > 1 or array.size > MOST_VALUES:
        return None
    return int(array) if array.ndim == 0 else tuple(array.tolist())


def _constant(call: NodeCall) -> Sequence[Spec]:
    array = call.attrs["value"]
    return [Spec(array.dtype, array.shape, value_of(array))]


def _the_value(node: Operation) -> Kernel:
    array = node.attrs["value"]
    return lambda: array


def _random_infer(call: NodeCall) -> Sequence[Spec]:
    if call.attrs["dtype"] not in dtypes.FLOATS:
        raise call.refuse(
            f"`dtype` must be one of {dtypes.listed(dtypes.FLOATS)}", call.attrs["dtype"].name
        )
    return [Spec(call.attrs["dtype"], shape_of_vector(call, "shape"))]


def _random(draw: Any) -> Any:
    def compute(node: Operation) -> Kernel:
        seed, seed2, dtype = node.attrs["seed"], node.attrs["seed2"], node.attrs["dtype"]
        if (
            seed == seed2 == 0
        ):  # TensorFlow takes the clock; the name gives every node its own numbers, and the same again
            seed = crc32(node.name.encode())

        def run(shape: Any) -> Any:
            wanted = shape.tolist()
            if min(wanted, default=0) < 0:
                raise ArgumentError(f"{node.type}: `shape` must hold sizes >= 0, got {wanted}.")
            room(wanted, dtype)
            return draw(seed, seed2, prod(wanted), dtype).reshape(wanted)

        return run

    return compute


def range_size(start: Any, limit: Any, delta: Any) -> int:
    """Return how many numbers a range has; raises ArgumentError for those that never end."""
    if delta == 0:
        raise ArgumentError("Range: `delta` must not be 0.")
    if (
        not isinstance(start, int)
        and not np.isfinite([float(start), float(limit), float(delta)]).all()
    ):
        raise ArgumentError(
            f"Range: `start`, `limit` and `delta` must be finite, got {start}, {limit} and {delta}."
        )
    if (delta > 0 and start > limit) or (delta < 0 and start < limit):
        relation = "<=" if delta > 0 else ">="
        raise ArgumentError(
            f"Range: `start` must be {relation} `limit` with `delta` {delta}, got {start} and {limit}."
        )
    if isinstance(start, int):
        return -(-abs(int(limit) - start) // abs(int(delta)))
    with np.errstate(over="ignore"):
        size = np.ceil(abs((np.float64(limit) - np.float64(start)) / np.float64(delta)))
    return int(min(size, 2.0**63))  # a delta may be so small that the count overflows to infinity


def _range_infer(call: NodeCall) -> Sequence[Spec]:
    for pin in call.row.inputs:
        scalar(call, pin.name)
    numbers = [spec.value for spec in call.inputs]
    dtype = call.inputs[0].dtype
    start, limit, delta = numbers
    if not (isinstance(start, int) and isinstance(limit, int) and isinstance(delta, int)):
        return [Spec(dtype, (None,))]
    size = range_size(start, limit, delta)
    value = tuple(start + at * delta for at in range(size)) if size <= MOST_VALUES else None
    return [Spec(dtype, (size,), value)]


def _range(node: Operation) -> Kernel:
    dtype = node.specs[0].dtype

    def run(start: Any, limit: Any, delta: Any) -> Any:
        first, last, step = start.item(), limit.item(), delta.item()
        size = range_size(first, last, step)
        room([size], np.dtype(np.int64))
        if dtype.kind in "iu":
            return np.arange(size, dtype=np.int64).astype(dtype) * dtype.type(step) + dtype.type(
                first
            )
        return (first + np.arange(size, dtype=np.float64) * step).astype(dtype)

    return run


_SHAPE = Attr("shape", "shape")
_DTYPE = Attr("dtype", "type")
_SEEDS = (Attr("seed", "int", 0), Attr("seed2", "int", 0))
_RANDOM_SHAPE = Pin("shape", dtypes.INDICES)

ROWS = (
    OpRow(
        "Const",
        "A constant.",
        (),
        ("output",),
        _constant,
        _the_value,
        no_gradient,
        required=(Attr("value", "tensor"),),
    ),
    OpRow(
        "Placeholder",
        "A tensor that is fed when a session runs.",
        (),
        ("output",),
        attribute("shape"),
        None,
        no_gradient,
        required=(_DTYPE,),
        optional=(_SHAPE,),
    ),
    OpRow(
        "RandomNormal",
        "Normally distributed random numbers, the same in every run: TensorFlow's own for seeds that are not both 0.",
        (_RANDOM_SHAPE,),
        ("output",),
        _random_infer,
        _random(philox.normal),
        no_gradient,
        required=(_DTYPE,),
        optional=_SEEDS,
    ),
    OpRow(
        "RandomUniform",
        "Random numbers from [0, 1), the same in every run: TensorFlow's own for seeds that are not both 0.",
        (_RANDOM_SHAPE,),
        ("output",),
        _random_infer,
        _random(philox.uniform),
        no_gradient,
        required=(_DTYPE,),
        optional=_SEEDS,
    ),
    OpRow(
        "Range",
        "The numbers from `start` up to, and without, `limit`, in steps of `delta`.",
        tuple(Pin(name, dtypes.NUMBERS, "T") for name in ("start", "limit", "delta")),
        ("output",),
        _range_infer,
        _range,
        no_gradient,
    ),
)
