"""Arrays that differ from device to device: what their types say, and what operations of ours must do about it."""

from __future__ import annotations

from typing import Any

import jax

_HAS_TYPES = hasattr(jax, "typeof")


def is_sharded(*arrays: Any) -> bool:
    """Tell whether an array's type says how it is split over a mesh (`jax.sharding.AxisType.Explicit`)."""
    return _HAS_TYPES and any(is_split(jax.typeof(each)) for each in arrays)


def is_split(aval: Any) -> bool:
    spec = getattr(getattr(aval, "sharding", None), "spec", None) or ()
    return any(part is not None for part in spec)


def _varying(aval: Any) -> frozenset[Any]:
    """Return the axes of a mesh along which an array differs from device to device, inside `shard_map`."""
    found = getattr(getattr(aval, "mat", aval), "varying", None)
    return frozenset(getattr(aval, "vma", ()) if found is None else found)  # its name until 0.9


def vary_alike(*arrays: Any) -> tuple[Any, ...]:
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


def _mark(array: Any, axes: tuple[Any, ...]) -> Any:
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(array, axes, to="varying")
    return jax.lax.pvary(array, axes)


def teach(primitive: Any) -> None:
    """Let `shard_map` take a primitive: before 0.6 it asks for a rule where types now tell."""
    if not _HAS_TYPES:
        from jax.experimental import shard_map

        shard_map.register_standard_check(primitive)
        shard_map.register_standard_rewrite(primitive)
