"""Sums, means and largest elements along dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...._base.errors import ArgumentError
from .. import dtypes
from ..row import Attr, Kernel, NodeCall, OpRow, Pin, no_gradient
from ..spec import Shape, Spec, shape_spelled, total
from .arrays import repeated
from .rules import Grads, axes_of, checked_axes, only, scalar, shape_of_vector

if TYPE_CHECKING:
    from ..operation import Operation
    from ..scope import Scope


def reduced(shape: Shape, axes: tuple[int, ...] | None, keep: bool) -> Shape:
    """Return the shape behind a reduction, as far as it is known."""
    if shape is None:
        return None
    if axes is None:
        return (None,) * len(shape) if keep else None
    if keep:
        return tuple(1 if at in axes else size for at, size in enumerate(shape))
    return tuple(size for at, size in enumerate(shape) if at not in axes)


def _infer(call: NodeCall) -> Sequence[Spec]:
    given = call["input"]
    axes = None if given.shape is None else axes_of(call, "axis", given.shape)
    return [Spec(given.dtype, reduced(given.shape, axes, call.attrs["keep_dims"]))]


def _axes(node: Operation, axis: Any, count: int) -> tuple[int, ...]:
    call = NodeCall(node.row, node.attrs, ())
    return checked_axes(call, "axis", np.atleast_1d(axis).tolist(), count)


def _sum(node: Operation) -> Kernel:
    keep, dtype = node.attrs["keep_dims"], node.specs[0].dtype
    wide = dtypes.wide(dtype)

    def run(x: Any, axis: Any) -> Any:
        found = np.sum(x, axis=_axes(node, axis, x.ndim), keepdims=keep, dtype=wide)
        return np.asarray(found).astype(dtype, copy=False)

    return run


def _mean(node: Operation) -> Kernel:
    keep, dtype = node.attrs["keep_dims"], node.specs[0].dtype
    wide = dtypes.wide(dtype)

    def run(x: Any, axis: Any) -> Any:
        axes = _axes(node, axis, x.ndim)
        count = prod(x.shape[at] for at in axes)
        found = np.asarray(np.sum(x, axis=axes, keepdims=keep, dtype=wide))
        if dtype.kind in "iu":
            if not count:
                raise ArgumentError("Mean: `input` must not be empty where integers are averaged.")
            if dtype.kind == "u":
                return (found // np.uint64(count)).astype(dtype)
            whole = found.astype(np.int64)
            down = whole // count  # NumPy rounds down, integers are divided towards zero
            return (down + ((down < 0) & (down * count != whole))).astype(dtype)
        return np.asarray(found / wide.type(count)).astype(dtype, copy=False)

    return run


def _gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    x, axis = node.inputs
    shape = scope.op("Shape", x)
    mean = node.type == "Mean"
    return [scope.op("SpreadReduced", only(grads), axis, shape, mean=mean), None]


def _spread_infer(call: NodeCall) -> Sequence[Spec]:
    given, shape = call["input"].shape, shape_of_vector(call, "shape")
    axes = None if shape is None else axes_of(call, "axis", shape)
    if given is not None and shape is not None and axes is not None:
        before, rest = total(given), total(tuple(s for at, s in enumerate(shape) if at not in axes))
        if before is not None and rest is not None and before != rest:
            raise call.refuse(
                f"`input` must have the shape of a reduction of {shape_spelled(shape)} along {list(axes)}",
                shape_spelled(given),
            )
    return [Spec(call["input"].dtype, shape)]


def _spread(node: Operation) -> Kernel:
    mean, dtype = node.attrs["mean"], node.specs[0].dtype
    wide = dtypes.wide(dtype)

    def run(g: Any, axis: Any, shape: Any) -> Any:
        wanted = shape.tolist()
        axes = _axes(node, axis, len(wanted))
        kept = [1 if at in axes else size for at, size in enumerate(wanted)]
        if g.size != prod(kept):
            raise ArgumentError(
                f"SpreadReduced: `input` must have the shape of a reduction of {wanted} along {list(axes)}, "
                f"got {list(g.shape)}."
            )
        if mean:  # a count may be more than a half can hold
            count = wide.type(prod(wanted[at] for at in axes))
            g = (g.astype(wide, copy=False) / count).astype(dtype, copy=False)
        return repeated(g.reshape(kept), wanted)

    return run


def _spread_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    g, axis, _ = node.inputs
    back = scope.op("Mean" if node.attrs["mean"] else "Sum", only(grads), axis)
    if not g.spec.is_known or g.shape != back.shape:  # keep_dims
        back = scope.op("Reshape", back, scope.op("Shape", g))
    return [back, None, None]


def _loss_infer(call: NodeCall) -> Sequence[Spec]:
    return [Spec(call.inputs[0].dtype, ())]


def _loss(node: Operation) -> Kernel:
    dtype = node.specs[0].dtype
    wide = dtypes.wide(dtype)

    def run(t: Any) -> Any:
        squares = np.square(t.astype(wide, copy=False))
        return np.asarray(squares.sum(dtype=wide) / wide.type(2)).astype(dtype, copy=False)

    return run


def _loss_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    return [scope.op("Multiply", node.inputs[0], only(grads))]


def _largest_infer(call: NodeCall) -> Sequence[Spec]:
    if call.attrs["output_type"] not in dtypes.INDICES:
        raise call.refuse("`output_type` must be int32 or int64", call.attrs["output_type"].name)
    scalar(call, "dimension")
    given = call["input"]
    if given.shape is not None and not given.shape:
        raise call.refuse("`input` must have at least 1 dimension", "a scalar")
    axes = None if given.shape is None else axes_of(call, "dimension", given.shape)
    if axes and given.shape is not None and given.shape[axes[0]] == 0:
        raise call.refuse("`input` must not be empty along `dimension`", f"{given}")
    if axes is None and given.shape is not None:
        return [Spec(call.attrs["output_type"], (None,) * (len(given.shape) - 1))]
    return [Spec(call.attrs["output_type"], reduced(given.shape, axes, False))]


def _largest(node: Operation) -> Kernel:
    dtype = node.attrs["output_type"]

    def run(x: Any, dimension: Any) -> Any:
        axis = dimension.item()
        checked_axes(NodeCall(node.row, node.attrs, ()), "dimension", [axis], x.ndim)
        if not x.shape[axis]:
            raise ArgumentError("ArgMax: `input` must not be empty along `dimension`.")
        return np.asarray(np.argmax(x, axis)).astype(dtype)

    return run


_INPUT = Pin("input", dtypes.NUMBERS)
_AXIS = Pin("axis", dtypes.INDICES)
_KEEP = (Attr("keep_dims", "bool", False),)

ROWS = (
    OpRow(
        "Sum",
        "The sum along dimensions.",
        (_INPUT, _AXIS),
        ("output",),
        _infer,
        _sum,
        _gradient,
        optional=_KEEP,
    ),
    OpRow(
        "Mean",
        "The mean along dimensions.",
        (_INPUT, _AXIS),
        ("output",),
        _infer,
        _mean,
        _gradient,
        optional=_KEEP,
    ),
    OpRow(
        "SpreadReduced",
        "The gradient of a sum or mean: every element gets what its sum got.",
        (_INPUT, _AXIS, Pin("shape", dtypes.INDICES)),
        ("output",),
        _spread_infer,
        _spread,
        _spread_gradient,
        optional=(Attr("mean", "bool", False),),
        internal=True,
    ),
    OpRow(
        "L2Loss",
        "Half the sum of squares.",
        (Pin("t", dtypes.FLOATS),),
        ("output",),
        _loss_infer,
        _loss,
        _loss_gradient,
    ),
    OpRow(
        "ArgMax",
        "Where the largest element along a dimension is; the first of several.",
        (Pin("input", dtypes.ANY), Pin("dimension", dtypes.INDICES)),
        ("output",),
        _largest_infer,
        _largest,
        no_gradient,
        optional=(Attr("output_type", "type", dtypes.INT64),),
    ),
)
