"""The three sums as primitives of JAX: differentiable to any order, under every transform.

::

    forward(x, f)         -> y         y = x * f, the convolution
    input_gradient(f, g)  -> like x    what moves x so that y moves along g
    filter_gradient(x, g) -> like f    the same for f

Each is linear in both operands, and its transpose by one of them is another of the three with the other operand kept,
around the triangle x, f, y. So derivatives of any order, forwards and backwards, are made of these three. A primitive's
only parameter is the `Problem`, whose layout and shapes its operands have.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ..._base.errors import ArgumentError, DTypeError
from ..._problem.convolution import Kind, Problem
from . import eagerly, lowering, mapping, meshes

PRIMITIVES = {
    kind: Primitive(f"convgrad_{kind.name.lower()}")
    for kind in (Kind.FORWARD, Kind.INPUT_GRADIENT, Kind.FILTER_GRADIENT)
}


def compute(problem: Problem, first: Any, second: Any) -> Any:
    """Return the result of a problem on two arrays, concrete or traced."""
    first, second = meshes.vary_alike(first, second)
    return PRIMITIVES[problem.kind].bind(first, second, problem=problem)


def _as(problem: Problem, kind: Kind, first: Any, second: Any) -> Any:
    return compute(replace(problem, kind=kind), first, second)


_TRANSPOSES: dict[Kind, Any] = {
    # A cotangent, the two operands, of which one is not known, and the problem.
    Kind.FORWARD: (
        lambda y, x, f, *, problem: _as(problem, Kind.INPUT_GRADIENT, f, y),
        lambda y, x, f, *, problem: _as(problem, Kind.FILTER_GRADIENT, x, y),
    ),
    Kind.INPUT_GRADIENT: (
        lambda x, f, g, *, problem: _as(problem, Kind.FILTER_GRADIENT, x, g),
        lambda x, f, g, *, problem: _as(problem, Kind.FORWARD, x, f),
    ),
    Kind.FILTER_GRADIENT: (
        lambda f, x, g, *, problem: _as(problem, Kind.INPUT_GRADIENT, f, g),
        lambda f, x, g, *, problem: _as(problem, Kind.FORWARD, x, f),
    ),
}


# What tracing sees. ---------------------------------------------------------------------------------------------------


def _abstract(first: Any, second: Any, *, problem: Problem) -> Any:
    for which, given, wanted in zip(
        ("first", "second"), (first, second), problem.operand_shapes, strict=True
    ):
        if given.shape != wanted:
            raise ArgumentError(
                f"{problem.kind.value}: the {which} operand must have shape {wanted}, got {given.shape}."
            )
        if given.dtype != problem.dtype.numpy:
            raise DTypeError(
                f"{problem.kind.value}: the {which} operand must be {problem.dtype.name}, got {given.dtype}."
            )
    if any(map(meshes.is_split, (first, second))):
        raise ArgumentError(
            f"{problem.kind.value}: operands must not be sharded over explicit axes of a mesh, got {first} and "
            f"{second}; use jax.shard_map, or jax.sharding.reshard before the call."
        )
    return first.update(shape=problem.result_shape, weak_type=False)


def _define() -> None:
    for kind, primitive in PRIMITIVES.items():
        primitive.def_impl(eagerly.jitted(primitive))
        primitive.def_abstract_eval(_abstract)
        ad.defbilinear(primitive, *_TRANSPOSES[kind])
        batching.primitive_batchers[primitive] = partial(mapping.fold, compute)
        mlir.register_lowering(primitive, lowering.on_cpu, platform="cpu")
        mlir.register_lowering(primitive, lowering.elsewhere)
        meshes.teach(primitive)


_define()
