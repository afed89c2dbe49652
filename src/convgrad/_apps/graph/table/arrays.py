"""Shapes and orders of elements, and their types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...._base.errors import ArgumentError
from .. import dtypes
from ..row import Attr, Kernel, NodeCall, OpRow, Pin, no_gradient
from ..spec import MOST_VALUES, Shape, Spec, broadcast, shape_spelled
from .rules import Grads, filled, only, room, scalar, shape_of_vector, vector

if TYPE_CHECKING:
    from ..operation import Operation
    from ..scope import Scope

_OUT_TYPE = Attr("out_type", "type", dtypes.INT32)


def _shape_infer(call: NodeCall) -> Sequence[Spec]:
    _index_type(call, "out_type")
    shape = call.inputs[0].shape
    if shape is None:
        return [Spec(call.attrs["out_type"], (None,))]
    most = np.iinfo(call.attrs["out_type"]).max
    if any(size is not None and size > most for size in shape):
        raise call.refuse(
            f"`input` must have sizes that `out_type` {call.attrs['out_type'].name} can hold",
            shape_spelled(shape),
        )
    value = shape if len(shape) <= MOST_VALUES else None
    return [Spec(call.attrs["out_type"], (len(shape),), value)]


def _index_type(call: NodeCall, name: str) -> None:
    if call.attrs[name] not in dtypes.INDICES:
        raise call.refuse(f"`{name}` must be int32 or int64", call.attrs[name].name)


def _shape(node: Operation) -> Kernel:
    dtype = node.attrs["out_type"]
    return lambda x: np.array(x.shape, dtype)


def _reshape_infer(call: NodeCall) -> Sequence[Spec]:
    tensor = call["tensor"]
    wanted = vector(call, "shape")
    if wanted is None:
        return [Spec(tensor.dtype, None)]
    shape = filled(call, "shape", tensor.shape, wanted)
    value = tensor.value if len(shape) == 1 and isinstance(tensor.value, tuple) else None
    return [Spec(tensor.dtype, shape, value)]


def _reshape(node: Operation) -> Kernel:
    def run(x: Any, shape: Any) -> Any:
        wanted = shape.tolist()
        if shape.ndim == 1 and min(wanted, default=0) < -1:  # NumPy reads any negative size as -1
            raise ArgumentError(f"Reshape: `shape` must hold sizes >= 0 or one -1, got {wanted}.")
        return x.reshape(wanted)

    return run


def _reshape_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    return [scope.op("Reshape", only(grads), scope.op("Shape", node.inputs[0])), None]


def _transpose_infer(call: NodeCall) -> Sequence[Spec]:
    x, perm = call["x"], vector(call, "perm")
    if perm is None:
        return [Spec(x.dtype, None if x.shape is None else (None,) * len(x.shape))]
    if x.shape is not None and len(perm) != len(x.shape):
        raise call.refuse(
            f"`perm` must name the {len(x.shape)} dimensions of `x`, whose shape is {shape_spelled(x.shape)}",
            f"{len(perm)}: {shape_spelled(perm)}",
        )
    if None in perm:
        return [Spec(x.dtype, (None,) * len(perm))]
    order = [axis for axis in perm if axis is not None]
    if sorted(order) != list(range(len(order))):
        raise call.refuse(f"`perm` must hold each of 0 to {len(order) - 1} once", order)
    return [Spec(x.dtype, None if x.shape is None else tuple(x.shape[axis] for axis in order))]


def _transpose(node: Operation) -> Kernel:
    return lambda x, perm: x.transpose(perm.tolist()).copy(order="C")


def _transpose_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    back = scope.op("InvertPermutation", node.inputs[1])
    return [scope.op("Transpose", only(grads), back), None]


def _inverse_infer(call: NodeCall) -> Sequence[Spec]:
    spec, perm = call.inputs[0], vector(call, "x")
    if perm is None or None in perm:
        return [Spec(spec.dtype, spec.shape)]
    order = [axis for axis in perm if axis is not None]
    if sorted(order) != list(range(len(order))):
        raise call.refuse(f"`x` must hold each of 0 to {len(order) - 1} once", order)
    return [Spec(spec.dtype, spec.shape, tuple(order.index(at) for at in range(len(order))))]


def _inverse(node: Operation) -> Kernel:
    def run(x: Any) -> Any:
        if sorted(x.tolist()) != list(range(x.size)):
            raise ArgumentError(
                f"InvertPermutation: `x` must hold each of 0 to {x.size - 1} once, got {x.tolist()}."
            )
        return np.argsort(x).astype(x.dtype)

    return run


def _cast_infer(call: NodeCall) -> Sequence[Spec]:
    x, wanted = call["x"], call.attrs["DstT"]
    value = x.value if wanted in dtypes.INDICES and x.dtype in dtypes.INDICES else None
    if wanted == dtypes.INT32 and isinstance(value, tuple):
        value = tuple(None if each is None else _wrapped(each) for each in value)
    elif wanted == dtypes.INT32 and value is not None:
        value = _wrapped(value)
    return [Spec(wanted, x.shape, value)]


def _wrapped(value: Any) -> int:
    """Return the low 32 bits of a number, with their sign."""
    return (int(value) + 2**31) % 2**32 - 2**31


def _cast(node: Operation) -> Kernel:
    wanted, given = node.attrs["DstT"], node.inputs[0].dtype
    if wanted == given:
        return lambda x: x
    if dtypes.wide(given) != given and wanted.kind not in "f":  # ml_dtypes has few casts of its own
        return lambda x: x.astype(np.float32).astype(wanted)
    return lambda x: x.astype(wanted)


def _cast_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    x = node.inputs[0]
    if x.dtype not in dtypes.FLOATS:
        return [None]
    return [scope.op("Cast", only(grads), DstT=x.dtype)]


def _one_hot_infer(call: NodeCall) -> Sequence[Spec]:
    for name in ("depth", "on_value", "off_value"):
        scalar(call, name)
    indices, depth, axis = call["indices"], call["depth"].value, call.attrs["axis"]
    if isinstance(depth, int) and depth < 0:
        raise call.refuse("`depth` must be >= 0", depth)
    dtype = call["on_value"].dtype
    if indices.shape is None:
        return [Spec(dtype, None)]
    rank = len(indices.shape)
    if not -1 <= axis <= rank:
        raise call.refuse(f"`axis` must lie in [-1, {rank}]", axis)
    at = rank if axis == -1 else axis
    size = depth if isinstance(depth, int) else None
    return [Spec(dtype, (*indices.shape[:at], size, *indices.shape[at:]))]


def _one_hot(node: Operation) -> Kernel:
    axis = node.attrs["axis"]

    def run(indices: Any, depth: Any, on: Any, off: Any) -> Any:
        if depth < 0:
            raise ArgumentError(f"OneHot: `depth` must be >= 0, got {depth}.")
        room([depth.item()], np.dtype(np.int64))
        room([*indices.shape, depth.item()], on.dtype)
        at = indices.ndim if axis == -1 else axis
        steps = np.arange(depth.item()).reshape(-1, *(1,) * (indices.ndim - at))
        return np.where(np.expand_dims(indices, at) == steps, on, off)

    return run


def _broadcast_infer(call: NodeCall) -> Sequence[Spec]:
    given, wanted = call["input"], shape_of_vector(call, "shape")
    if wanted is None:
        return [Spec(given.dtype, None)]
    if given.shape is not None:
        result = broadcast(call.row.name, ("input", "shape"), (given.shape, wanted))
        if len(given.shape) > len(wanted) or not _reached(result, wanted):
            raise call.refuse(
                f"`input` of shape {shape_spelled(given.shape)} must broadcast to `shape`",
                shape_spelled(wanted),
            )
    return [Spec(given.dtype, wanted)]


def _reached(result: Shape, wanted: Shape) -> bool:
    """Return whether broadcasting stays within the wanted sizes: 1 and 3 give 3, which is not 1."""
    assert result is not None and wanted is not None
    return all(b is None or a is None or a == b for a, b in zip(result, wanted, strict=True))


def repeated(x: Any, shape: Sequence[int]) -> Any:
    """Return an array repeated to a shape, in memory of its own."""
    room(shape, x.dtype)
    return np.broadcast_to(x, shape).copy(order="C")


def _broadcast(node: Operation) -> Kernel:
    return lambda x, shape: repeated(x, shape.tolist())


def _broadcast_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    return [scope.op("SumToShape", only(grads), scope.op("Shape", node.inputs[0])), None]


def _sum_to_infer(call: NodeCall) -> Sequence[Spec]:
    given, wanted = call["input"], shape_of_vector(call, "shape")
    if given.shape is not None and wanted is not None:
        result = broadcast(call.row.name, ("input", "shape"), (given.shape, wanted))
        if len(wanted) > len(given.shape) or not _reached(result, given.shape):
            raise call.refuse(
                f"`shape` must broadcast to that of `input`, {shape_spelled(given.shape)}",
                shape_spelled(wanted),
            )
    return [Spec(given.dtype, wanted)]


def sum_to(x: Any, shape: Sequence[int]) -> Any:
    """Sum an array over what a smaller one was repeated along."""
    if list(x.shape) == list(shape):
        return x
    extra = x.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(
        at + extra for at, size in enumerate(shape) if size == 1 and x.shape[at + extra] != 1
    )
    found = x.sum(axis=axes, dtype=dtypes.wide(x.dtype)).astype(x.dtype, copy=False)
    return found.reshape(shape)


def _sum_to(node: Operation) -> Kernel:
    return lambda x, shape: sum_to(x, shape.tolist())


def _sum_to_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    return [scope.op("BroadcastTo", only(grads), scope.op("Shape", node.inputs[0])), None]


_SIZES = Pin("shape", dtypes.INDICES)

ROWS = (
    OpRow(
        "Shape",
        "The sizes of a tensor, as a vector.",
        (Pin("input"),),
        ("output",),
        _shape_infer,
        _shape,
        no_gradient,
        optional=(_OUT_TYPE,),
        eager=True,
    ),
    OpRow(
        "Reshape",
        "The same elements in another shape; one size may be -1.",
        (Pin("tensor"), _SIZES),
        ("output",),
        _reshape_infer,
        _reshape,
        _reshape_gradient,
        alias=True,
    ),
    OpRow(
        "Transpose",
        "The dimensions in another order.",
        (Pin("x"), Pin("perm", dtypes.INDICES)),
        ("y",),
        _transpose_infer,
        _transpose,
        _transpose_gradient,
    ),
    OpRow(
        "InvertPermutation",
        "The permutation that undoes one.",
        (Pin("x", dtypes.INDICES),),
        ("y",),
        _inverse_infer,
        _inverse,
        no_gradient,
    ),
    OpRow(
        "Cast",
        "The same numbers in another type; towards zero from floats to integers.",
        (Pin("x"),),
        ("y",),
        _cast_infer,
        _cast,
        _cast_gradient,
        required=(Attr("DstT", "type"),),
        alias=True,
    ),
    OpRow(
        "OneHot",
        "A row of `depth` values per index: `on_value` at the index, `off_value` elsewhere.",
        (
            Pin("indices", dtypes.INDICES | {dtypes.BY_NAME["DT_UINT8"]}),
            Pin("depth", dtypes.INDICES),
            Pin("on_value", same="T"),
            Pin("off_value", same="T"),
        ),
        ("output",),
        _one_hot_infer,
        _one_hot,
        no_gradient,
        optional=(Attr("axis", "int", -1),),
    ),
    OpRow(
        "BroadcastTo",
        "A tensor repeated to a shape.",
        (Pin("input"), _SIZES),
        ("output",),
        _broadcast_infer,
        _broadcast,
        _broadcast_gradient,
    ),
    OpRow(
        "SumToShape",
        "A tensor summed to a shape that broadcasts to its own: the gradient of repeating.",
        (Pin("input", dtypes.NUMBERS), _SIZES),
        ("output",),
        _sum_to_infer,
        _sum_to,
        _sum_to_gradient,
        alias=True,
        internal=True,
    ),
)
