"""Batch norm with activation in JAX's own operations: for GPUs and TPUs, for empty images, for second derivatives.

They compute what `_norm.oracle` says, in the dtype of the statistics. Kinks are written with `where`, so that JAX's
derivatives there are those of our kernels: `jnp.maximum` would have half of each side's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from ..._base.dtypes import accumulator
from ..._problem.norm.rules import IMAGES, Call
from ..._problem.norm.task import unknown_activation

_TANH_SCALE, _TANH_CUBE = math.sqrt(2 / math.pi), 0.044715


def activated(activation: str, u: Any, slope: float) -> Any:
    """Return an activation's value."""
    if activation == "relu":
        return jnp.where(u <= 0, 0, u)
    if activation == "relu6":
        return jnp.where(u <= 0, 0, jnp.where(u >= 6, 6, u))
    if activation == "leaky_relu":
        return jnp.where(u > 0, u, u * slope)
    if activation == "hardswish":
        return jnp.where(u <= -3, 0, jnp.where(u < 3, u * (u + 3) / 6, u))
    if activation == "silu":
        return u * jax.nn.sigmoid(u)
    if activation == "gelu":
        return u * (1 + jax.lax.erf(u / math.sqrt(2))) / 2
    if activation == "gelu_tanh":
        return u * jax.nn.sigmoid(2 * _TANH_SCALE * (u + _TANH_CUBE * u**3))
    if activation != "none":
        raise unknown_activation(activation)
    return u


def compute(call: Call, operands: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results of a call, by the names of their places."""
    wide = accumulator(call.task.dtype).numpy
    given = {place: each.astype(wide) for place, each in operands.items()}
    made = (_forward if call.task.name.startswith("forward") else _backward)(call, given)
    return {
        place: made[place].astype(call.dtype(place).numpy) if place in IMAGES else made[place]
        for place in call.results
    }


def _spread(call: Call, row: Any) -> Any:
    """Return a row of channels so that it meets images."""
    return row if call.task.data_format == "NHWC" else row[:, None, None]


def _axes(call: Call) -> tuple[int, int, int]:
    return (0, 1, 2) if call.task.data_format == "NHWC" else (0, 2, 3)


def _argument(call: Call, x: Any, saved: Any, residual: Any) -> Any:
    mean, _, _, scale, shift = saved
    u = (x - _spread(call, mean)) * _spread(call, scale) + _spread(call, shift + mean * scale)
    return u if residual is None else u + residual


def _forward(call: Call, given: Mapping[str, Any]) -> dict[str, Any]:
    x, task = given["x"], call.task
    if task.name == "forward":
        mean = jnp.mean(x, _axes(call))
        variance = jnp.mean((x - _spread(call, mean)) ** 2, _axes(call))
    else:
        mean, variance = given["running_mean"], given["running_var"]
    inverse = 1 / jnp.sqrt(variance + call.epsilon)
    scale = given["weight"] * inverse if "weight" in given else inverse
    shift = given.get("bias", 0) - mean * scale
    saved = jnp.stack([mean, variance, inverse, scale, shift])
    u = _argument(call, x, saved, given["residual"] if task.residual == "before" else None)
    y = activated(task.activation, u, call.slope)
    return {"y": y + given["residual"] if task.residual == "after" else y, "saved": saved}


def _backward(call: Call, given: Mapping[str, Any]) -> dict[str, Any]:
    x, saved, task = given["x"], given["saved"], call.task
    mean, _, inverse, scale, _ = saved
    beside = given.get("beside")
    # The derivative of what is told from its result is the same there: at y as at u.
    u = beside if task.beside == "y" else _argument(call, x, saved, beside)
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
