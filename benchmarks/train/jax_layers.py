"""JAX: a convolution of a network, native and ours, as compiled programs of its own."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import jax
from jax import numpy as jnp

from convgrad._base.dtypes import AnyArray

from . import layer_turns
from .drafts import Convolution, Draft
from .jax_models import convolve
from .layer_turns import Side


def compare(of: Draft, repeats: int) -> list[dict[str, Any]]:
    """Time each distinct convolution, native and ours in turns."""
    return layer_turns.compare(of, repeats, _sides)


def _sides(
    convolution: Convolution, image: AnyArray, taps: AnyArray, gradient: AnyArray
) -> tuple[Side, Side]:
    arrays = [jnp.asarray(each) for each in (image, taps, gradient)]
    under = import_module("convgrad.jax").accelerate
    return _side(convolution, arrays, lambda f: f), _side(convolution, arrays, lambda f: under()(f))


def _side(convolution: Convolution, arrays: Sequence[Any], traced: Any) -> Side:
    """Compile both directions; `traced` wraps the function that is traced."""
    x, kernel, gradient = arrays

    def forward(x: Any, kernel: Any) -> Any:
        return (convolve(x, kernel, convolution.stride, convolution.groups),)

    def backward(x: Any, kernel: Any, gradient: Any) -> Any:
        # What a gradient does not need of the forward pass, XLA leaves out.
        if convolution.input_gradient:
            return jax.vjp(forward, x, kernel)[1]((gradient,))
        return jax.vjp(lambda kernel: forward(x, kernel), kernel)[1]((gradient,))

    there, back = jax.jit(traced(forward)), jax.jit(traced(backward))
    return Side(
        lambda: jax.block_until_ready(there(x, kernel)),
        lambda: jax.block_until_ready(back(x, kernel, gradient)),
    )
