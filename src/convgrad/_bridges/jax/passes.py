"""Passes of batch norm as a primitive of JAX: one, whose parameter is the `Normalisation`.

Its operands and results are those of the call, in order; images have four dimensions and one shape. Its derivatives are
those of the `formulas`; first ones go another way (`batch_norm`). Under `vmap` the examples become further channels,
which is exact, as channels do not know of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import jax
import jax.ffi
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ... import _engine
from ..._base.dtypes import AnyArray
from ..._base.errors import ArgumentError, DTypeError
from ..._problem.norm.normalisation import IMAGES, Normalisation
from ..._runtime.bound import Bound
from ..._runtime.pointers import data_pointer
from ..._runtime.results import new_result
from . import eagerly, formulas, mapping, meshes, targets

PRIMITIVE = Primitive("convgrad_batch_norm")
PRIMITIVE.multiple_results = True


def compute(call: Normalisation, operands: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results of a call, by the names of their places."""
    given = meshes.vary_alike(*(operands[place] for place in call.operands))
    return dict(zip(call.results, PRIMITIVE.bind(*given, call=call), strict=True))


def _abstract(*operands: Any, call: Normalisation) -> Any:
    image = operands[0].shape
    for place, given in zip(call.operands, operands, strict=True):
        wanted = image if place in IMAGES else call.shape(place)
        if given.shape != wanted or prod(given.shape) != call.elements(place):
            raise ArgumentError(
                f"batch_norm_act: `{place}` must have shape {wanted} and {call.elements(place)} "
                f"elements, got {given.shape}."
            )
        if given.dtype != call.dtype(place).numpy:
            raise DTypeError(
                f"batch_norm_act: `{place}` must be {call.dtype(place).name}, got {given.dtype}."
            )
    if any(map(meshes.is_split, operands)):
        raise ArgumentError(
            "batch_norm_act: operands must not be sharded over explicit axes of a mesh, got "
            f"{', '.join(map(str, operands))}; use jax.shard_map, or jax.sharding.reshard before the call."
        )
    return [
        operands[0].update(
            shape=image if place in IMAGES else call.shape(place),
            dtype=call.dtype(place).numpy,
            weak_type=False,
        )
        for place in call.results
    ]


# What it is compiled to. ----------------------------------------------------------------------------------------------


def _on_cpu(ctx: Any, *operands: Any, call: Normalisation) -> Any:
    execute = _engine.program(call.task)
    if isinstance(execute, Bound):
        target = targets.target_for(call, execute)
        if target is not None:
            rule = jax.ffi.ffi_lowering(target.name)
            return rule(ctx, *operands, problem=target.problem, switches=target.switches)
    return _lowered(_through_python(call), ctx, operands)


def _elsewhere(ctx: Any, *operands: Any, call: Normalisation) -> Any:
    """Lower for a GPU or TPU, where we have no kernels: as formulas of JAX."""
    return _lowered(_formula(call), ctx, operands)


def _formula(call: Normalisation) -> Callable[..., list[Any]]:
    def compute(*operands: Any) -> list[Any]:
        made = formulas.compute(call, dict(zip(call.operands, operands, strict=True)))
        return [made[place] for place in call.results]

    return compute


def _lowered(function: Callable[..., Any], ctx: Any, operands: Sequence[Any]) -> Any:
    return mlir.lower_fun(function, multiple_results=True)(ctx, *operands)


def _through_python(call: Normalisation) -> Callable[..., Any]:
    """Return a function that calls back into Python when it runs."""

    def run(*operands: Any) -> list[AnyArray]:
        arrays = {
            place: np.require(np.asarray(each), call.dtype(place).numpy, ("C", "A"))
            for place, each in zip(call.operands, operands, strict=True)
        }
        image = arrays["x"].shape
        assert all(each.size == call.elements(place) for place, each in arrays.items())
        made = {
            place: new_result(
                image if place in IMAGES else call.shape(place), call.dtype(place).numpy
            )
            for place in call.results
        }
        arrays |= {**made, "scalars": np.array(call.scalars)}
        _engine.run(
            call.task,
            *(data_pointer(arrays[place]) if place in arrays else 0 for place in call.places),
        )
        return list(made.values())

    def traced(*operands: Any) -> Any:
        image = operands[0].shape
        shapes = [
            jax.ShapeDtypeStruct(
                image if place in IMAGES else call.shape(place), call.dtype(place).numpy
            )
            for place in call.results
        ]
        return jax.pure_callback(run, shapes, *operands)

    return traced


def _moved(primals: Sequence[Any], tangents: Sequence[Any], *, call: Normalisation) -> Any:
    moves = tuple(map(ad.instantiate_zeros, tangents))
    _, results = jax.jvp(_formula(call), tuple(primals), moves)
    return PRIMITIVE.bind(*primals, call=call), results


# A batch of calls. ----------------------------------------------------------------------------------------------------


def _fold(operands: Sequence[Any], dims: Sequence[int | None], *, call: Normalisation) -> Any:
    """Compute a batch of calls as one with more channels: those of the first example, the second, ..."""
    examples = next(
        each.shape[dim] for each, dim in zip(operands, dims, strict=True) if dim is not None
    )
    grown = {}
    for place, each, dim in zip(call.operands, operands, dims, strict=True):
        array = jnp.broadcast_to(each, (examples, *each.shape)) if dim is None else each
        grown[place] = mapping.side_by_side(array, dim or 0, _channel_axis(call, place))
    task = call.task
    image = (
        tuple(np.delete(operands[0].shape, dims[0])) if dims[0] is not None else (operands[0].shape)
    )
    if not examples:
        empty = [
            jnp.zeros(
                (0, *(image if place in IMAGES else call.shape(place))), call.dtype(place).numpy
            )
            for place in call.results
        ]
        return empty, [0] * len(empty)
    made = compute(call.sized(task.images, task.pixels, task.channels * examples), grown)
    results, axes = [], []
    for place in call.results:
        axis, shape = _channel_axis(call, place), made[place].shape
        results.append(
            made[place].reshape(*shape[:axis], examples, task.channels, *shape[axis + 1 :])
        )
        axes.append(axis)
    return results, axes


def _channel_axis(call: Normalisation, place: str) -> int:
    if place in IMAGES:
        return 3 if call.task.data_format == "NHWC" else 1
    return 1 if place == "saved" else 0


PRIMITIVE.def_impl(eagerly.jitted(PRIMITIVE))
PRIMITIVE.def_abstract_eval(_abstract)
ad.primitive_jvps[PRIMITIVE] = _moved
batching.primitive_batchers[PRIMITIVE] = _fold
mlir.register_lowering(PRIMITIVE, _on_cpu, platform="cpu")
mlir.register_lowering(PRIMITIVE, _elsewhere)
meshes.teach(PRIMITIVE)
