"""`vmap`: over images, filters, both, along any axis, nested, and over derivatives. Examples join the batch."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jax_bridge.configurations import OURS, Configuration, some
from jax_bridge.running import custom_calls, function, native, operands, same_numbers

CHOSEN = [
    Configuration(),
    Configuration(layout="NCHW", strides=(2, 1)),
    Configuration(groups=2, depth=2, made=3),
    Configuration("depthwise_conv2d", groups=3, depth=1, made=2),
    Configuration("conv2d_transpose", strides=(2, 2), size=(8, 7)),
    Configuration("conv_general_dilated", groups=2, depth=2),
    Configuration("conv_general_dilated", orders=OURS[0], batch=4, batch_groups=2, depth=2),
    *some(10, seed=6),
]
WAYS: dict[str, tuple[Any, int]] = {
    "images": ((0, None), 0),
    "filters": ((None, 0), 0),
    "both": ((0, 0), 0),
    "other axes": ((2, 4), 3),
    "counted from behind": ((-1, -2), -1),
}


def stacked(configuration: Configuration, axes: Any, many: int = 3) -> list[Any]:
    """Return operands with an axis of examples where `axes` says."""
    return [
        first if axis is None else np.stack([first, *operands_of(configuration, at, many)], axis)
        for at, (first, axis) in enumerate(zip(operands(configuration), axes, strict=True))
    ]


def operands_of(configuration: Configuration, which: int, many: int) -> list[Any]:
    return [operands(configuration, seed=seed)[which] for seed in range(1, many)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("configuration", CHOSEN, ids=str)
def test_vmap(configuration: Configuration, way: str) -> None:
    """Example by example it is the call itself, bit for bit in float64 up to the order of sums."""
    in_axes, out_axes = WAYS[way]
    arrays = stacked(configuration, in_axes)
    made = jax.jit(jax.vmap(function(configuration), in_axes, out_axes))(*arrays)
    theirs = jax.jit(native(configuration))
    for at in range(3):
        each = [
            array if axis is None else np.take(array, at, axis)
            for array, axis in zip(arrays, in_axes, strict=True)
        ]
        same_numbers(jnp.take(made, at, out_axes), theirs(*each))


@pytest.mark.parametrize("configuration", CHOSEN[:7:2], ids=str)
def test_vmap_is_one_call(configuration: Configuration) -> None:
    """Images join the batch: one sum, not one per example, and no loop."""
    many = stacked(configuration, (0, None))
    call = jax.vmap(function(configuration), (0, None))
    mine, theirs = custom_calls(call, *many)
    assert (mine, theirs) == (1, 0)
    assert "while" not in jax.jit(call).lower(*many).as_text()


@pytest.mark.parametrize("configuration", CHOSEN[:7], ids=str)
def test_nested(configuration: Configuration) -> None:
    """Over filters of images of images."""
    image, weight = operands(configuration)
    images = np.stack(
        [np.stack([image, image * 2]), np.stack([image - 1, -image]), np.stack([image, image])]
    )
    weights = np.stack([weight, weight + 1])

    def of(call: Any) -> Any:
        inner = jax.vmap(jax.vmap(call, (0, None)), (0, None))
        return jax.jit(jax.vmap(inner, (None, 0), 2))(images, weights)

    same_numbers(of(function(configuration)), of(native(configuration)))


@pytest.mark.parametrize("configuration", CHOSEN[:7], ids=str)
def test_gradients_per_example(configuration: Configuration) -> None:
    """What differential privacy asks for, and its second derivative."""
    image, weight = operands(configuration)
    images = np.stack([image, image * 2 + 1, image - 3])

    def of(call: Any) -> Any:
        loss = lambda weight, image: jnp.sum(jnp.sin(call(image, weight)))  # noqa: E731
        each = jax.vmap(jax.grad(loss, (0, 1)), (None, 0))
        total = lambda weight: sum(jnp.sum(part**2) for part in each(weight, images))  # noqa: E731
        return jax.jit(lambda weight: (each(weight, images), jax.grad(total)(weight)))(weight)

    same_numbers(of(function(configuration)), of(native(configuration)))


def test_no_examples() -> None:
    image, weight = operands(Configuration())
    made = jax.vmap(function(Configuration()), (0, None))(np.zeros((0, *image.shape)), weight)
    assert made.shape == (0, 2, 6, 7, 6)


def test_examples_without_jit() -> None:
    configuration = Configuration()
    arrays = stacked(configuration, (0, 0))
    made = jax.vmap(function(configuration))(*arrays)
    same_numbers(made, jax.vmap(native(configuration))(*arrays))
