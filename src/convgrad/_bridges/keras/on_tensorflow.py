"""Keras on TensorFlow: eagerly and in graphs, by the functions of `convgrad`, which take tensors of TensorFlow."""

from __future__ import annotations

from typing import Any

from ... import tensorflow as _bridge  # says what is missing, before a layer is taken
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

COMPILES_WITH_XLA = False
"""TensorFlow's XLA has no kernels for ops that were registered at run time."""
FUSES_COMPILED = True
batch_norm = normalizing(_bridge.batch_norm_act)


def is_computable(image: Any) -> bool:
    return True


def forget_compiled() -> None:
    """Do nothing: what is compiled belongs to the functions that a model drops."""


def device(value: Any) -> str:
    """Return where a variable's numbers are."""
    kind = str(value.device).rpartition("device:")[2].partition(":")[0]
    return kind.lower() or "cpu"
