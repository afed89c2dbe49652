"""Variables, which keep their value from run to run, and what changes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...._base.dtypes import AnyArray
from ...._base.errors import ArgumentError
from .. import dtypes
from ..row import Attr, Kernel, NodeCall, OpRow, Pin, no_gradient
from ..spec import Spec, fits, merged, shape_spelled
from .rules import attribute, scalar

if TYPE_CHECKING:
    from ..operation import Operation


def _assign_infer(call: NodeCall) -> Sequence[Spec]:
    ref, value = call["ref"], call["value"]
    if not call.attrs["validate_shape"]:
        return [Spec(ref.dtype, value.shape)]
    if not fits(ref.shape, value.shape):
        raise call.refuse(
            f"`value` must have the shape of `ref`, {shape_spelled(ref.shape)}",
            shape_spelled(value.shape),
        )
    return [Spec(ref.dtype, merged(ref.shape, value.shape))]


def _assign(node: Operation) -> Kernel:
    wanted = node.inputs[0].shape if node.attrs["validate_shape"] else None

    def run(ref: object, value: AnyArray) -> AnyArray:
        if not fits(wanted, value.shape):
            raise ArgumentError(
                f"Assign: `value` must have the shape of `ref`, {shape_spelled(wanted)}, got {list(value.shape)}."
            )
        return value

    return run


def _descent_infer(call: NodeCall) -> Sequence[Spec]:
    scalar(call, "alpha")
    var, delta = call["var"], call["delta"]
    if not fits(var.shape, delta.shape):
        raise call.refuse(
            f"`delta` must have the shape of `var`, {shape_spelled(var.shape)}",
            shape_spelled(delta.shape),
        )
    return [Spec(var.dtype, merged(var.shape, delta.shape))]


def _descent(node: Operation) -> Kernel:
    def run(var: AnyArray, alpha: AnyArray, delta: AnyArray) -> AnyArray:
        if var.shape != delta.shape:
            raise ArgumentError(
                f"ApplyGradientDescent: `delta` must have the shape of `var`, {list(var.shape)}, "
                f"got {list(delta.shape)}."
            )
        if alpha.ndim:
            raise ArgumentError(
                f"ApplyGradientDescent: `alpha` must be a scalar, got shape {list(alpha.shape)}."
            )
        change = np.asarray(delta * alpha)  # of arrays without dimensions NumPy makes a number
        changed: AnyArray = np.subtract(var, change, out=change)
        return changed

    return run


_LOCKING = Attr("use_locking", "bool", True)

ROWS = (
    OpRow(
        "Variable",
        "A tensor that keeps its value from run to run.",
        (),
        ("ref",),
        attribute("shape"),
        None,
        no_gradient,
        required=(Attr("shape", "shape"), Attr("dtype", "type")),
        optional=(Attr("container", "string", ""), Attr("shared_name", "string", "")),
    ),
    OpRow(
        "Assign",
        "The new value of a Variable, which it has from the next run on.",
        (Pin("ref", dtypes.ANY, "T", ref=True), Pin("value", dtypes.ANY, "T")),
        ("output_ref",),
        _assign_infer,
        _assign,
        optional=(Attr("validate_shape", "bool", True), _LOCKING),
        updates=True,
    ),
    OpRow(
        "ApplyGradientDescent",
        "var - alpha * delta, which the Variable has from the next run on.",
        (
            Pin("var", dtypes.FLOATS, "T", ref=True),
            Pin("alpha", dtypes.FLOATS, "T"),
            Pin("delta", dtypes.FLOATS, "T"),
        ),
        ("out",),
        _descent_infer,
        _descent,
        optional=(Attr("use_locking", "bool", False),),
        updates=True,
    ),
)
