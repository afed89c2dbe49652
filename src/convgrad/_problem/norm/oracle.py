"""What the tasks compute, obviously right: in float64, on arrays. See `task` for the formulas.

Images are [n, c, p] here: images, channels, pixels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .task import unknown_activation

Array = np.ndarray[Any, np.dtype[np.float64]]
_SQRT2 = math.sqrt(2)
_TANH_SCALE, _TANH_CUBE = math.sqrt(2 / math.pi), 0.044715


def _sigmoid(u: Array) -> Array:
    small = np.exp(-np.abs(u))
    return np.asarray(np.where(u < 0, small, 1) / (1 + small))


def _erf(u: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(u))


def _bell(u: Array) -> Array:
    """The standard normal distribution up to u."""
    return (1 + _erf(u / _SQRT2)) / 2


def _tanh_gate(u: Array) -> Array:
    return _sigmoid(2 * _TANH_SCALE * (u + _TANH_CUBE * u**3))


def value(activation: str, u: Array, slope: float = 0.0) -> Array:
    """Return an activation's value."""
    if activation in ("relu", "relu6"):
        # Not np.maximum, which takes 0 for -0 or the other way round; a NaN stays one.
        above = np.where(u <= 0, 0.0, u)
        return np.where(above >= 6, 6.0, above) if activation == "relu6" else above
    if activation == "leaky_relu":
        return np.where(u > 0, u, u * slope)
    if activation == "hardswish":
        return u * np.clip(u + 3, 0, 6) / 6
    gates: dict[str, Callable[[Array], Array]] = {
        "silu": _sigmoid,
        "gelu": _bell,
        "gelu_tanh": _tanh_gate,
    }
    if activation == "elu":
        return np.where(u > 0, u, np.expm1(np.minimum(u, 0)))
    if activation in ("sigmoid", "tanh"):
        return np.tanh(u) if activation == "tanh" else _sigmoid(u)
    if activation == "mish":
        return u * np.tanh(np.logaddexp(0, u))
    if activation in gates:
        return u * gates[activation](u)
    if activation != "none":
        raise unknown_activation(activation)
    return u


def derivative(activation: str, u: Array, slope: float = 0.0) -> Array:
    """Return an activation's derivative; at a kink it is PyTorch's."""
    if activation == "relu":
        return np.where(u <= 0, 0.0, 1.0)
    if activation == "relu6":
        return np.where((u <= 0) | (u >= 6), 0.0, 1.0)
    if activation == "leaky_relu":
        return np.where(u > 0, 1.0, slope)
    if activation == "hardswish":
        return np.where(u <= -3, 0.0, np.where(u < 3, u / 3 + 0.5, 1.0))
    if activation == "silu":
        gate = _sigmoid(u)
        return gate * (1 + u * (1 - gate))
    if activation == "gelu":
        return _bell(u) + u * np.exp(-u * u / 2) / math.sqrt(2 * math.pi)
    if activation == "gelu_tanh":
        gate = _tanh_gate(u)
        inner = 2 * _TANH_SCALE * (1 + 3 * _TANH_CUBE * u * u)
        return gate + u * gate * (1 - gate) * inner
    if activation != "none":
        raise unknown_activation(activation)
    return np.ones_like(u)


class Statistics(NamedTuple):
    """One number per channel each."""

    mean: Array
    variance: Array
    inverse: Array
    scale: Array
    shift: Array


def statistics(
    mean: Array, variance: Array, epsilon: float, weight: Array | None, bias: Array | None
) -> Statistics:
    """Return what follows from mean and variance."""
    inverse = 1 / np.sqrt(variance + epsilon)
    scale = inverse if weight is None else weight * inverse
    shift = -mean * scale if bias is None else bias - mean * scale
    return Statistics(mean, variance, inverse, scale, shift)


def moments(x: Array) -> tuple[Array, Array]:
    """Return mean and variance of each channel."""
    mean = x.mean(axis=(0, 2))
    return mean, ((x - mean[:, None]) ** 2).mean(axis=(0, 2))


def argument(x: Array, given: Statistics, residual: Array | None) -> Array:
    """Return what the activation is applied to; `residual` is one before it."""
    u = (x - given.mean[:, None]) * given.scale[:, None] + (given.shift + given.mean * given.scale)[
        :, None
    ]
    return u if residual is None else u + residual


class Gradients(NamedTuple):
    """Of all that batch norm with activation is given."""

    x: Array
    residual: Array
    """Of one before the activation."""
    weight: Array
    bias: Array


def gradients(x: Array, given: Statistics, inner: Array, frozen: bool) -> Gradients:
    """Return the gradients from that of the activation's argument, `inner`."""
    count = x.shape[0] * x.shape[2]
    away = (x - given.mean[:, None]) * given.inverse[:, None]
    bias = inner.sum(axis=(0, 2))
    weight = (inner * away).sum(axis=(0, 2))
    dx = inner
    if not frozen:
        dx = inner - bias[:, None] / count - away * weight[:, None] / count
    return Gradients(dx * given.scale[:, None], inner, weight, bias)
