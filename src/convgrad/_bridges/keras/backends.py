"""Which of Keras's backends computes, and what convolves on it."""

from __future__ import annotations

import importlib
from typing import Any

import keras

from ..._base.errors import ArgumentError, BackendMissingError

_COMPUTERS = {"torch": "on_torch", "jax": "on_jax", "tensorflow": "on_tensorflow"}
"""Modules of this package by the backends' names. A backend is chosen once per process, so one of them is imported."""


def name() -> str:
    return str(keras.backend.backend())


def computer(function: str) -> Any:
    """Return the module that convolves on the backend of this process, for the function that asks."""
    backend = name()
    if backend not in _COMPUTERS:
        raise ArgumentError(
            f"{function}: Keras runs on the backend {backend!r}, whose layers convgrad does not compute; it has "
            f"{', '.join(_COMPUTERS)}. KERAS_BACKEND chooses one before Keras is imported."
        )
    try:
        return importlib.import_module(f".{_COMPUTERS[backend]}", __package__)
    except BackendMissingError:
        raise
    except ImportError as error:
        raise BackendMissingError(
            f"{function}: Keras's backend {backend!r} could not be loaded: {error}"
        ) from error
