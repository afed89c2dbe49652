"""Calls of our primitives outside of `jit`."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import jax

from ..._base import config

_jitted: dict[Hashable, Any] = {}
_MOST = 4096


def jitted(primitive: Any) -> Callable[..., Any]:
    """Return what computes a primitive at once: a jitted function per parameters, which JAX calls without Python.

    They are kept by the switches too, which decide what a function is compiled to.
    """

    def compute(*operands: Any, **parameters: Any) -> Any:
        key = (primitive.name, tuple(parameters.items()), config.deciding())
        found = _jitted.get(key)
        if found is None:
            if len(_jitted) >= _MOST:
                _jitted.clear()

            def call(*operands: Any) -> Any:
                return primitive.bind(*operands, **parameters)

            call.__name__ = primitive.name  # what profiles show
            found = jax.jit(call)
            _jitted[key] = found
        if jax.config.jax_disable_jit:  # it would end up here again
            with jax.disable_jit(False):
                return found(*operands)
        return found(*operands)

    return compute
