"""Batch norm with activation in JAX's own operations: for GPUs and TPUs, for empty images, for second derivatives.

They compute what the oracle says, in the dtype of the statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from ..._base.dtypes import accumulator
from ..._problem import activations
from ..._problem.norm.normalisation import IMAGES, Normalisation

_OPERATIONS = activations.Operations(
    *(jnp.where, jnp.exp, jnp.expm1, jnp.tanh, jax.nn.sigmoid, jax.nn.softplus, jax.lax.erf)
)


def activated(activation: str, u: Any, slope: float) -> Any:
    """Return an activation's value."""
    return activations.activated(_OPERATIONS, activation, u, slope)


def compute(call: Normalisation, operands: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results of a call, by the names of their places."""
    wide = accumulator(call.task.dtype).numpy
    given = {place: each.astype(wide) for place, each in operands.items()}
    made = (_forward if call.task.name.startswith("forward") else _backward)(call, given)
    return {
        place: made[place].astype(call.dtype(place).numpy) if place in IMAGES else made[place]
        for place in call.results
    }


def _spread(call: Normalisation, row: Any) -> Any:
    """Return a row of channels so that it meets images."""
    return row if call.task.data_format == "NHWC" else row[:, None, None]


def _axes(call: Normalisation) -> tuple[int, int, int]:
    return (0, 1, 2) if call.task.data_format == "NHWC" else (0, 2, 3)


def _argument(call: Normalisation, x: Any, rows: Any, residual: Any) -> Any:
    mean, _, _, scale, shift = rows
    u = (x - _spread(call, mean)) * _spread(call, scale) + _spread(call, shift + mean * scale)
    return u if residual is None else u + residual


def saved(call: Normalisation, given: Mapping[str, Any], mean: Any, variance: Any) -> Any:
    """Return what a forward pass leaves for the backward one."""
    inverse = 1 / jnp.sqrt(variance + call.epsilon)
    scale = given["weight"] * inverse if "weight" in given else inverse
    shift = given.get("bias", 0) - mean * scale
    return jnp.stack([mean, variance, inverse, scale, shift])


def argument(call: Normalisation, x: Any, rows: Any, residual: Any) -> Any:
    """Return what the activation is applied to, in the dtype of images."""
    wide = accumulator(call.task.dtype).numpy
    return _argument(call, x.astype(wide), rows, residual.astype(wide)).astype(x.dtype)


def _forward(call: Normalisation, given: Mapping[str, Any]) -> dict[str, Any]:
    x, task = given["x"], call.task
    if task.name == "forward":
        mean = jnp.mean(x, _axes(call))
        variance = jnp.mean((x - _spread(call, mean)) ** 2, _axes(call))
    else:
        mean, variance = given["running_mean"], given["running_var"]
    rows = saved(call, given, mean, variance)
    u = _argument(call, x, rows, given["residual"] if task.residual == "before" else None)
    y = activated(task.activation, u, call.slope)
    return {"y": y + given["residual"] if task.residual == "after" else y, "saved": rows}


def _backward(call: Normalisation, given: Mapping[str, Any]) -> dict[str, Any]:
    x, rows, task = given["x"], given["saved"], call.task
    mean, _, inverse, scale, _ = rows
    beside = given.get("beside")
    # The derivative of what is told from its result is the same there: at y as at u.
    u = beside if task.beside == "y" else _argument(call, x, rows, beside)
    _, pulled = jax.vjp(lambda u: activated(task.activation, u, call.slope), u)
    (inner,) = pulled(given["grad"])
    away = (x - _spread(call, mean)) * _spread(call, inverse)
    dbias = jnp.sum(inner, _axes(call))
    dweight = jnp.sum(inner * away, _axes(call))
    dx = inner
    if task.name == "backward":
        dx = inner - (_spread(call, dbias) + away * _spread(call, dweight)) / task.values
    return {
        "dx": dx * _spread(call, scale),
        "dresidual": inner,
        "dweight": dweight,
        "dbias": dbias,
    }
