"""Networks in plain JAX, written as Flax, Haiku and Equinox write theirs: on `jax.lax`, by several of its names."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.lax import conv_general_dilated as held_since_import

NHWC = ("NHWC", "HWIO", "NHWC")


def parameters(seed: int = 0, dtype: Any = np.float64) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    shapes = {
        "stem": (3, 3, 2, 8),
        "depthwise": (3, 3, 1, 8),
        "pointwise": (1, 1, 8, 6),
        "grouped": (3, 3, 3, 4),
        "nchw": (4, 4, 3, 3),
        "up": (2, 2, 4, 3),
        "shift": (3,),
    }
    return {
        name: (rng.standard_normal(shape) * 0.4).astype(dtype) for name, shape in shapes.items()
    }


def apply(weights: dict[str, Any], images: Any) -> Any:
    """Six convolutions: dense, strided depthwise, pointwise, grouped and dilated, NCHW, transposed."""
    y = jnp.tanh(
        lax.conv_general_dilated(images, weights["stem"], (1, 1), "SAME", dimension_numbers=NHWC)
    )
    y = held_since_import(
        y,
        weights["depthwise"],
        (2, 2),
        ((1, 1), (1, 1)),
        dimension_numbers=NHWC,
        feature_group_count=8,
    )
    y = jax.nn.relu(
        jax.lax.conv_general_dilated(
            y, weights["pointwise"], (1, 1), "VALID", dimension_numbers=NHWC
        )
    )
    y = lax.conv_general_dilated(
        y,
        weights["grouped"],
        (1, 1),
        "SAME",
        rhs_dilation=(2, 1),
        dimension_numbers=NHWC,
        feature_group_count=2,
    )
    y = jnp.moveaxis(lax.conv(jnp.moveaxis(y, -1, 1), weights["nchw"], (1, 1), "SAME"), 1, -1)
    y = lax.conv_transpose(jnp.sin(y), weights["up"], (2, 2), "SAME", dimension_numbers=NHWC)
    return y + weights["shift"]


CONVOLUTIONS = 6


def loss(weights: dict[str, Any], images: Any) -> Any:
    return jnp.mean(apply(weights, images) ** 2)


def images(seed: int = 5, dtype: Any = np.float64) -> Any:
    return np.random.default_rng(seed).standard_normal((3, 8, 9, 2)).astype(dtype)
