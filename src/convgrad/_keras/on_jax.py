"""Keras on JAX: eagerly and under `jit`, by the functions of `convgrad`, which take arrays and tracers of JAX."""

from __future__ import annotations

from typing import Any

from .. import jax as _bridge  # noqa: F401  # says what is missing, before a layer is taken
from .on_graphs import convolve, depthwise, transpose

__all__ = ["COMPILES_WITH_XLA", "convolve", "depthwise", "device", "is_computable", "transpose"]

COMPILES_WITH_XLA = True


def is_computable(image: Any) -> bool:
    """Tell whether an image has a shape of numbers; under `jax.export` sizes may be symbols, which JAX itself takes."""
    return all(isinstance(size, int) for size in image.shape)


def device(value: Any) -> str:
    """Return where a variable's numbers are."""
    return ", ".join(sorted({str(each.platform) for each in value.devices()}))
