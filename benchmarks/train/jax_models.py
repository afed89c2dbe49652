"""The networks of `networks` in plain JAX: pure functions of pytrees, in the manner of Flax.

Convolutions are `jax.lax.conv_general_dilated`, NHWC and HWIO, which is what Flax, Haiku, Equinox and Keras call;
depthwise is `feature_group_count=channels`. Batch normalization computes the variance as Flax does, E[x^2] - E[x]^2:
one pass over the image instead of two.
"""

from __future__ import annotations

from typing import Any

import jax
from jax import lax
from jax import numpy as jnp

from .networks import NETWORKS

MOMENTUM = 0.9
"""Of running statistics: the share that stays."""
EPSILON = 1e-5
Array = Any
"""JAX's, or a tracer."""


class Computed:
    """Computes layers from parameters; the running statistics it was given move. Satisfies `networks.Layers`."""

    def __init__(self, parameters: Any, statistics: Any) -> None:
        self.moved: dict[str, dict[str, Array]] = {}
        self._parameters = parameters
        self._statistics = statistics

    def convolution(
        self, name: str, x: Array, outputs: int, window: int, stride: int, groups: int
    ) -> Array:
        return convolve(x, self._parameters[name]["kernel"], stride, groups)

    def normalize(self, name: str, x: Array) -> Array:
        mean = x.mean((0, 1, 2))
        variance = jnp.maximum((x * x).mean((0, 1, 2)) - mean * mean, 0.0)
        before, now = self._statistics[name], {"mean": mean, "variance": variance}
        self.moved[name] = {
            key: MOMENTUM * before[key] + (1 - MOMENTUM) * lax.stop_gradient(now[key])
            for key in now
        }
        own = self._parameters[name]
        return (x - mean) * (lax.rsqrt(variance + EPSILON) * own["scale"]) + own["bias"]

    def linear(self, name: str, x: Array, outputs: int) -> Array:
        return x @ self._parameters[name]["kernel"] + self._parameters[name]["bias"]

    def relu(self, x: Array) -> Array:
        return jax.nn.relu(x)

    def relu6(self, x: Array) -> Array:
        return jax.nn.relu6(x)

    def max_pool(self, x: Array) -> Array:
        window, strides = (1, 3, 3, 1), (1, 2, 2, 1)
        return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, "SAME")

    def mean(self, x: Array) -> Array:
        return x.mean((1, 2))

    def channels(self, x: Array) -> int:
        return int(x.shape[-1])


def convolve(x: Array, kernel: Array, stride: int, groups: int) -> Array:
    """Convolve as the networks do."""
    return lax.conv_general_dilated(
        x,
        kernel,
        (stride, stride),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )


def cross_entropy(
    model: str, parameters: Any, statistics: Any, images: Array, labels: Array
) -> tuple[Array, Any]:
    """Return the loss of a batch, and the statistics after it."""
    computed = Computed(parameters, statistics)
    logits = jax.nn.log_softmax(NETWORKS[model](computed, images))
    chosen = jnp.take_along_axis(logits, labels[:, None], axis=1)
    return -chosen.mean(), computed.moved
