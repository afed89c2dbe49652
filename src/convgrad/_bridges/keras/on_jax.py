"""Keras on JAX: eagerly and under `jit`, by the functions of `convgrad`, which take arrays and tracers of JAX."""

from __future__ import annotations

import sys
from typing import Any

from ... import jax as _bridge  # says what is missing, before a layer is taken
from .on_graphs import convolve, depthwise, normalizing, transpose

__all__ = [
    "COMPILES_WITH_XLA",
    "FUSES_COMPILED",
    "batch_norm",
    "convolve",
    "depthwise",
    "device",
    "forget_compiled",
    "is_computable",
    "transpose",
]

COMPILES_WITH_XLA = True
FUSES_COMPILED = True
batch_norm = normalizing(_bridge.batch_norm_act)


def is_computable(image: Any) -> bool:
    """Tell whether an image has a shape of numbers; under `jax.export` sizes may be symbols, which JAX itself takes."""
    return all(isinstance(size, int) for size in image.shape)


def forget_compiled() -> None:
    """Drop what JAX has compiled in this process.

    Keras jits bound methods, such as `model.train_step`. Two of one model are equal, and JAX finds compiled code by
    equality: while anybody holds the function of before, a new one would run its code, without layers taken since.
    """
    sys.modules["jax"].clear_caches()


def device(value: Any) -> str:
    """Return where a variable's numbers are."""
    return ", ".join(sorted({str(each.platform) for each in value.devices()}))
