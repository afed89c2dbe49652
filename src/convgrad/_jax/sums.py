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

from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from .. import _config
from .._errors import ArgumentError, DTypeError
from .._problem import Kind, Problem
from . import lowering, mapping

PRIMITIVES = {
    kind: Primitive(f"convgrad_{kind.name.lower()}")
    for kind in (Kind.FORWARD, Kind.INPUT_GRADIENT, Kind.FILTER_GRADIENT)
}


def compute(problem: Problem, first: Any, second: Any) -> Any:
    """Return the result of a problem on two arrays, concrete or traced."""
    first, second = _vary_alike(first, second)
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
    if any(map(_is_split, (first, second))):
        raise ArgumentError(
            f"{problem.kind.value}: operands must not be sharded over explicit axes of a mesh, got {first} and "
            f"{second}; use jax.shard_map, or jax.sharding.reshard before the call."
        )
    return first.update(shape=problem.result_shape, weak_type=False)


def is_sharded(*arrays: Any) -> bool:
    """Tell whether an array's type says how it is split over a mesh (`jax.sharding.AxisType.Explicit`)."""
    return _HAS_TYPES and any(_is_split(jax.typeof(each)) for each in arrays)


def _is_split(aval: Any) -> bool:
    spec = getattr(getattr(aval, "sharding", None), "spec", None) or ()
    return any(part is not None for part in spec)


def _varying(aval: Any) -> frozenset[Any]:
    """Return the axes of a mesh along which an array differs from device to device, inside `shard_map`."""
    found = getattr(getattr(aval, "mat", aval), "varying", None)
    return frozenset(getattr(aval, "vma", ()) if found is None else found)  # its name until 0.9


def _vary_alike(*arrays: Any) -> tuple[Any, ...]:
    """Return arrays that differ along the same axes: `shard_map` does not let others meet in an operation.

    Marking an array as different is what JAX's own operations do; its transpose is a sum over the axis.
    """
    if not any(isinstance(each, jax.core.Tracer) for each in arrays):
        return arrays
    axes = [_varying(jax.typeof(each)) if _HAS_TYPES else frozenset() for each in arrays]
    union = frozenset().union(*axes)
    return tuple(
        each if axes_of == union else _mark(each, tuple(union - axes_of))
        for each, axes_of in zip(arrays, axes, strict=True)
    )


_HAS_TYPES = hasattr(jax, "typeof")


def _mark(array: Any, axes: tuple[Any, ...]) -> Any:
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(array, axes, to="varying")
    return jax.lax.pvary(array, axes)


# Calls outside of `jit`. ----------------------------------------------------------------------------------------------

_jitted: dict[Hashable, Any] = {}
_MOST = 4096


def _eagerly(first: Any, second: Any, *, problem: Problem) -> Any:
    """Compute at once: as a jitted function of its own, which JAX calls without Python between.

    They are kept by the switches too, which decide what a function is compiled to.
    """
    key = (problem, _config.deciding())
    found = _jitted.get(key)
    if found is None:
        if len(_jitted) >= _MOST:
            _jitted.clear()
        primitive = PRIMITIVES[problem.kind]

        def call(first: Any, second: Any) -> Any:
            return primitive.bind(first, second, problem=problem)

        call.__name__ = primitive.name  # what profiles show
        found = jax.jit(call)
        _jitted[key] = found
    if jax.config.jax_disable_jit:  # it would end up here again
        with jax.disable_jit(False):
            return found(first, second)
    return found(first, second)


def _define() -> None:
    for kind, primitive in PRIMITIVES.items():
        primitive.def_impl(_eagerly)
        primitive.def_abstract_eval(_abstract)
        ad.defbilinear(primitive, *_TRANSPOSES[kind])
        batching.primitive_batchers[primitive] = partial(mapping.fold, compute)
        mlir.register_lowering(primitive, lowering.on_cpu, platform="cpu")
        mlir.register_lowering(primitive, lowering.elsewhere)
        if not _HAS_TYPES:  # before 0.6 `shard_map` asks for a rule where types now tell
            from jax.experimental import shard_map

            shard_map.register_standard_check(primitive)
            shard_map.register_standard_rewrite(primitive)


_define()
