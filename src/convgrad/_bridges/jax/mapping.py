"""A batch of calls as one call: how `jax.vmap` maps the three sums over a further dimension.

A sum has three tensors: the image x, the filter f and the image y, two of them given and one wanted. The examples'
tensors are put side by side along one axis of each, and the problem grows there:

==========================  =================================================================================
same f for all examples     more images: along the batch of x and y
same x, one group           more output channels: those of f and y
same y, one group           more input channels: those of x and f
else                        more groups, each of which sees its own channels only: channels of x, f and y
==========================  =================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp

from ..._problem.convolution import Kind, Problem

ROLES = {
    Kind.FORWARD: ("x", "f", "y"),
    Kind.INPUT_GRADIENT: ("f", "y", "x"),
    Kind.FILTER_GRADIENT: ("x", "y", "f"),
}
"""What the two operands and the result are."""


def fold(
    compute: Callable[[Problem, Any, Any], Any],
    operands: Sequence[Any],
    dims: Sequence[int | None],
    *,
    problem: Problem,
) -> tuple[Any, int]:
    """Compute a batch of problems; returns the results and the dimension of theirs that counts the examples."""
    roles = ROLES[problem.kind]
    given = dict(zip(roles, operands, strict=False))
    at = {role: dim for role, dim in zip(roles, dims, strict=False) if dim is not None}
    examples = next(given[role].shape[dim] for role, dim in at.items())
    many = {*at, roles[2]}
    if "f" in many and len(many) == 2 and (problem.groups != 1 or problem.depthwise):
        missing = ({"x", "y"} - many).pop()
        given[missing] = jnp.broadcast_to(given[missing], (examples, *given[missing].shape))
        at[missing] = 0
        many.add(missing)
    grown, axes = _grow(problem, many, examples)
    first, second = (
        side_by_side(given[role], at[role], axes[role]) if role in many else given[role]
        for role in roles[:2]
    )
    result = compute(grown, first, second)
    axis = axes[roles[2]]
    shape = result.shape
    return result.reshape(*shape[:axis], examples, -1, *shape[axis + 1 :]) if examples else (
        result.reshape(*shape[:axis], 0, *problem.result_shape[axis:])
    ), axis


def _grow(problem: Problem, many: set[str], examples: int) -> tuple[Problem, dict[str, int]]:
    """Return the problem of all examples, and along which axis each tensor holds them."""
    channels = 3 if problem.data_format == "NHWC" else 1
    if "f" not in many:
        return replace(problem, batch=problem.batch * examples), {"x": 0, "y": 0}
    if many == {"f", "y"}:
        return replace(problem, group_out=problem.group_out * examples), {"f": 3, "y": channels}
    if many == {"f", "x"}:
        return replace(problem, group_in=problem.group_in * examples), {"f": 2, "x": channels}
    # A grouped filter is [kh, kw, in of a group, out of all]; a depthwise one [kh, kw, channels, multiplier].
    axes = {"x": channels, "y": channels, "f": 2 if problem.depthwise else 3}
    return replace(problem, groups=problem.groups * examples), axes


def side_by_side(array: Any, dim: int, axis: int) -> Any:
    """Return examples, counted by `dim`, with their axis `axis` as one: those of the first example, the second, ..."""
    moved = jnp.moveaxis(array, dim, axis)
    shape = moved.shape
    return moved.reshape(*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
