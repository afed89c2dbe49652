"""Symbolic gradients: nodes that compute how much each of some tensors changes others."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from ..._base.errors import ArgumentError, ArgumentTypeError, ConvgradError, shown
from . import dtypes
from .operation import Operation, Output
from .scope import Scope, as_output
from .spec import fits, shape_spelled
from .table.rules import zeros_like

_FUNCTION = "add_symbolic_gradients"


def add_symbolic_gradients(scope: Scope, ys: Any, xs: Any, grad_ys: Any = None) -> list[Output]:
    """Add nodes for the gradients of the sum of `ys` with respect to each of `xs`, and return their outputs.

    `grad_ys` are weights of the elements of `ys`, ones by default. What `ys` do not depend on has gradient zero. The
    result can be differentiated again.

    >>> import numpy as np
    >>> from convgrad.graph import ClientSession, ops
    >>> scope = Scope.new_root_scope()
    >>> x = ops.Placeholder(scope, "float32", [2])
    >>> (slope,) = add_symbolic_gradients(scope, [ops.Square(scope, x)], [x])
    >>> (curvature,) = add_symbolic_gradients(scope, [slope], [x])
    >>> ClientSession(scope).run([slope, curvature], {x: [3.0, 4.0]})
    [array([6., 8.], dtype=float32), array([2., 2.], dtype=float32)]
    """
    if not isinstance(scope, Scope):
        raise ArgumentTypeError(f"{_FUNCTION}: `scope` must be a Scope, got {shown(scope)}.")
    start = len(scope.graph.nodes)
    outputs, wanted = _tensors(scope, "ys", ys), _tensors(scope, "xs", xs)
    try:
        seeds = _seeds(scope, outputs, grad_ys)
        inner = scope.new_sub_scope("gradients")
        found = _propagate(inner, outputs, wanted, seeds)
        results = [
            zeros_like(inner, x) if grad is None else grad
            for x, grad in zip(wanted, found, strict=True)
        ]
    except ConvgradError:
        scope.graph.keep(start, ())
        raise
    scope.graph.keep(start, [*results, *seeds.values()] if grad_ys is not None else results)
    return results


def _tensors(scope: Scope, name: str, given: Any) -> list[Output]:
    values = [given] if as_single(given) else given
    if isinstance(values, str | bytes | dict) or not hasattr(values, "__iter__"):
        raise ArgumentTypeError(
            f"{_FUNCTION}: `{name}` must be a list of tensors of the graph, got {shown(given)}."
        )
    found = []
    for value in values:
        tensor = as_output(value)
        if tensor is None or tensor.operation.graph is not scope.graph:
            raise ArgumentTypeError(
                f"{_FUNCTION}: `{name}` must be tensors of the scope's graph, got {shown(value)}."
            )
        if tensor.dtype not in dtypes.FLOATS:
            raise ArgumentTypeError(
                f"{_FUNCTION}: `{name}` must have a floating dtype, got {tensor.dtype.name} of {tensor.name!r}."
            )
        found.append(tensor)
    return found


def as_single(value: Any) -> bool:
    """Return whether a value is one tensor and not a list of them."""
    return isinstance(value, Output | Operation) or hasattr(value, "operation")


def _seeds(scope: Scope, ys: Sequence[Output], grad_ys: Any) -> dict[int, Output]:
    """Return the weights of `ys` by their place in the list."""
    if grad_ys is None:
        return {}
    if isinstance(grad_ys, str | bytes | dict) or not (
        as_single(grad_ys) or hasattr(grad_ys, "__iter__")
    ):
        raise ArgumentTypeError(
            f"{_FUNCTION}: `grad_ys` must be a list of tensors, arrays or None, got {shown(grad_ys)}."
        )
    given = [grad_ys] if as_single(grad_ys) else list(grad_ys)
    if len(given) != len(ys):
        raise ArgumentError(
            f"{_FUNCTION}: `grad_ys` must hold one tensor for each of the {len(ys)} of `ys`, got {len(given)}."
        )
    found = {}
    for at, (y, value) in enumerate(zip(ys, given, strict=True)):
        if value is None:
            continue
        tensor = as_output(value)
        if tensor is None:
            tensor = scope.constant(dtypes.array(_FUNCTION, "grad_ys", value, y.dtype))
        if tensor.operation.graph is not scope.graph:
            raise ArgumentTypeError(
                f"{_FUNCTION}: `grad_ys` must be tensors of the scope's graph, got {shown(value)}."
            )
        if tensor.dtype != y.dtype or not fits(tensor.shape, y.shape):
            raise ArgumentError(
                f"{_FUNCTION}: `grad_ys` of {y.name!r} must be {y.dtype.name}{shape_spelled(y.shape)}, "
                f"got {tensor.dtype.name}{shape_spelled(tensor.shape)}."
            )
        found[at] = tensor
    return found


def _propagate(
    scope: Scope, ys: Sequence[Output], xs: Sequence[Output], seeds: dict[int, Output]
) -> list[Output | None]:
    """Walk back from `ys` and return the gradients of `xs`."""
    below = _dependent(scope, xs)
    parts: dict[Output, list[Output]] = {}
    for at, y in enumerate(ys):
        seed = seeds.get(at)
        if seed is None:
            seed = _ones_like(scope, y)
        elif not (
            y.spec.is_known and seed.spec.is_known
        ):  # refused in a run that finds another size
            seed = scope.op("Reshape", seed, scope.op("Shape", y))
        parts.setdefault(y, []).append(seed)
    totals: dict[Output, Output] = {}
    wanted = set(xs)
    nodes = scope.graph.nodes
    open_ = [-number for number in {y.operation.number for y in ys}]
    heapify(open_)
    seen = set(open_)
    while open_:  # the last made first: all that is made from it has been there
        node = nodes[-heappop(open_)]
        grads = [_added(scope, parts.pop(output, [])) for output in node.outputs]
        totals |= {
            output: grad
            for output, grad in zip(node.outputs, grads, strict=True)
            if grad is not None and output in wanted
        }
        if node.number not in below or all(grad is None for grad in grads):
            continue
        if not any(each.operation.number in below or each in wanted for each in node.inputs):
            continue
        for tensor, grad in zip(node.inputs, _of(scope, node, grads), strict=True):
            if grad is not None and (tensor.operation.number in below or tensor in wanted):
                parts.setdefault(tensor, []).append(grad)
                place = -tensor.operation.number
                if place not in seen:
                    seen.add(place)
                    heappush(open_, place)
    return [totals.get(x) for x in xs]


def _of(scope: Scope, node: Operation, grads: Sequence[Output | None]) -> Sequence[Output | None]:
    if node.row.gradient is None:
        raise ArgumentError(
            f"{_FUNCTION}: node {node.name!r}: {node.type} has no gradient: it changes a Variable."
        )
    if all(output.dtype not in dtypes.FLOATS for output in node.outputs):
        return [None] * len(node.inputs)
    return node.row.gradient(scope.new_sub_scope(node.name.replace("/", ".")), node, grads)


def _dependent(scope: Scope, xs: Sequence[Output]) -> set[int]:
    """Return the numbers of nodes that compute something from `xs`."""
    wanted, found = set(xs), set[int]()
    for node in scope.graph.nodes:
        if any(each in wanted or each.operation.number in found for each in node.inputs):
            found.add(node.number)
    return found


def _added(scope: Scope, parts: Sequence[Output]) -> Output | None:
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else scope.op("AddN", list(parts))


def _ones_like(scope: Scope, tensor: Output) -> Output:
    one = scope.constant(1, tensor.dtype)
    return scope.op("BroadcastTo", one, scope.op("Shape", tensor))
