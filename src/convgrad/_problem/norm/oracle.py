"""What the tasks compute, obviously right: in float64, on arrays. See `task` for the formulas.

Images are [n, c, p] here: images, channels, pixels.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .. import activations

Array = np.ndarray[Any, np.dtype[np.float64]]


def _sigmoid(u: Array) -> Array:
    small = np.exp(-np.abs(u))
    return np.asarray(np.where(u < 0, small, 1) / (1 + small))


def _softplus(u: Array) -> Array:
    return np.asarray(np.logaddexp(0, u))


def _erf(u: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(u))


_OPERATIONS = activations.Operations(np.where, np.exp, np.expm1, np.tanh, _sigmoid, _softplus, _erf)


def activated(activation: str, u: Array, slope: float = 0.0) -> Array:
    """Return an activation's value."""
    return np.asarray(activations.activated(_OPERATIONS, activation, u, slope))


def derivative(activation: str, u: Array, slope: float = 0.0) -> Array:
    """Return an activation's derivative; at a kink it is PyTorch's."""
    return np.asarray(activations.derivative(_OPERATIONS, activation, u, slope))


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
