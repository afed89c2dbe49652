"""Layers with random settings: values and gradients are those of Keras's own layers, in float64 and below."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import convgrad.keras
from convgrad._problem.convolution import Kind
from keras_bridge.configurations import Configuration, configurations
from keras_bridge.running import ALL, BACKEND, array, both_ways, computed, filled, numbers, taken

FIRST = (0, 3, 1, 2)
LAST = (0, 2, 3, 1)


def made(configuration: Configuration, **other: Any) -> Any:
    """Return a layer with numbers in its weights, built for its image."""
    settings = {**configuration.settings, "dtype": "float64", **other}
    if BACKEND == "jax" and settings["dtype"] == "float64":
        # There Keras's own sum of float64 and float64 is float32, with us or without.
        settings |= {"use_bias": False, "activation": None}
    layer = getattr(keras.layers, configuration.kind)(**settings)
    n, h, w, c = configuration.image
    layer.build((n, h, w, c) if layer.data_format == "channels_last" else (n, c, h, w))
    return filled(layer)


def close(mine: np.ndarray, theirs: np.ndarray, tolerance: float) -> None:
    assert mine.shape == theirs.shape and mine.dtype == theirs.dtype
    scale = np.abs(theirs.astype("float64")).max(initial=1.0)
    np.testing.assert_allclose(
        mine.astype("float64"), theirs.astype("float64"), rtol=tolerance, atol=tolerance * scale
    )


def compare(configuration: Configuration, compiled: bool, dtype: str = "float64") -> None:
    """Compare a layer of ours with Keras's in channels_last: on TensorFlow its own refuses channels_first."""
    ours = made(configuration, dtype=dtype)
    theirs = made(configuration, dtype=dtype, data_format="channels_last")
    x = numbers(configuration.image, 3, dtype)
    g = numbers(theirs.compute_output_shape(x.shape), 4, dtype)
    expected = both_ways(theirs, x, g, compiled and BACKEND == "jax")
    first = ours.data_format == "channels_first"
    taken(ours)
    with computed(*ALL):
        turned = [each.transpose(FIRST) if first else each for each in (x, g)]
        found = both_ways(ours, *map(np.ascontiguousarray, turned), compiled)
    if first:
        found[:2] = [each.transpose(LAST) for each in found[:2]]
    assert len(found) == len(expected) == 2 + len(ours.weights)
    for mine, their in zip(found, expected, strict=True):
        close(mine, their, 1e-12 if dtype == "float64" else 1e-5)


EAGERLY, COMPILED = {"torch": (16, 2), "tensorflow": (12, 4), "jax": (1, 8)}[BACKEND]
"""How many: compilers take their time, and JAX compiles step by step what is not compiled as a whole."""
CONFIGURATIONS = configurations(EAGERLY)
TO_COMPILE = configurations(COMPILED, seed=19)
IN_FLOAT32 = configurations(4, seed=20)


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=map(str, CONFIGURATIONS))
def test_values_and_gradients(configuration: Configuration) -> None:
    compare(configuration, compiled=False)


@pytest.mark.parametrize("configuration", TO_COMPILE, ids=map(str, TO_COMPILE))
def test_values_and_gradients_compiled(configuration: Configuration) -> None:
    """Under `jax.jit`, in a `tf.function` whose sizes are unknown, by `torch.compile`."""
    compare(configuration, compiled=True)


@pytest.mark.parametrize("configuration", IN_FLOAT32, ids=map(str, IN_FLOAT32))
def test_values_and_gradients_in_float32(configuration: Configuration) -> None:
    """With biases and activations on every backend."""
    compare(configuration, compiled=BACKEND == "jax", dtype="float32")


@pytest.mark.parametrize(
    ("kind", "image", "settings"),
    [
        ("Conv2D", (2, 6, 11, 4), {"filters": 6, "groups": 2, "data_format": "channels_first"}),
        ("Conv2D", (2, 9, 11, 3), {"filters": 4, "data_format": "channels_first", "strides": 2}),
        ("DepthwiseConv2D", (2, 12, 7, 3), {"strides": (2, 1), "padding": "same"}),
        ("DepthwiseConv2D", (2, 12, 8, 3), {"strides": (1, 3), "data_format": "channels_first"}),
        ("SeparableConv2D", (1, 12, 9, 3), {"filters": 5, "strides": (2, 1)}),
        ("Conv2DTranspose", (2, 5, 13, 1), {"filters": 6, "padding": "same"}),
        ("Conv2DTranspose", (2, 6, 13, 2), {"filters": 3, "data_format": "channels_first"}),
        ("Conv2DTranspose", (2, 7, 13, 2), {"filters": 3, "padding": "same", "dilation_rate": 2}),
        (
            "Conv2DTranspose",
            (2, 4, 13, 2),
            {"filters": 3, "kernel_size": 4, "strides": 2, "padding": "same", "output_padding": 0},
        ),
    ],
)
def test_what_some_backend_refuses(
    kind: str, image: tuple[int, int, int, int], settings: dict[str, Any]
) -> None:
    """Linear layers: all three sums of the numbers that meet are the same number, and the result is not 0."""
    how = {"kernel_size": 3, "use_bias": False, **settings}
    layer = taken(made(Configuration(kind, how, image)))
    n, h, w, c = image
    x = numbers((n, c, h, w) if layer.data_format == "channels_first" else image, seed=5)
    g = numbers(layer.compute_output_shape(x.shape), seed=6)
    with computed(*ALL):
        result, by_image, *by_weights = both_ways(layer, x, g, BACKEND == "jax")
    total = np.vdot(result, g)
    assert abs(total) > 1e-3 and result.shape == g.shape
    for weights, gradient in zip((x, *layer.get_weights()), (by_image, *by_weights), strict=True):
        np.testing.assert_allclose(np.vdot(weights, gradient), total, rtol=1e-10)


NARROW = {"bfloat16": 2e-2, "float16": 3e-3}


@pytest.mark.parametrize(
    ("kind", "policy"),
    [
        ("Conv2D", "mixed_float16"),
        ("DepthwiseConv2D", "mixed_bfloat16"),
        ("SeparableConv2D", "float16"),
        ("Conv2DTranspose", "bfloat16"),
    ],
)
def test_narrow_dtypes(kind: str, policy: str) -> None:
    """Results have the layer's compute dtype, and are near what float64 gives with the same numbers."""
    how: dict[str, Any] = {"kernel_size": 3, "padding": "same", "activation": "tanh"}
    if kind != "DepthwiseConv2D":
        how["filters"] = 4
    layer = getattr(keras.layers, kind)(**how, dtype=policy)
    dtype = policy.removeprefix("mixed_")
    size = (2, 15, 6 + len(policy), 8)
    layer.build(size)
    exact = getattr(keras.layers, kind)(**how, dtype="float64")
    exact.build(size)
    filled(layer)
    # What a mixed layer computes with has been rounded, too.
    exact.set_weights(
        [array(keras.ops.cast(each, dtype)).astype("float64") for each in layer.weights]
    )
    x = array(keras.ops.cast(numbers(size, seed=7), dtype))
    expected = array(exact(keras.ops.convert_to_tensor(x.astype("float64"))))
    taken(layer)
    with computed(Kind.INPUT_GRADIENT if kind == "Conv2DTranspose" else Kind.FORWARD):
        found = layer(keras.ops.convert_to_tensor(x, dtype=dtype))
    assert keras.backend.standardize_dtype(found.dtype) == dtype
    assert layer.weights[0].dtype == ("float32" if policy.startswith("mixed") else dtype)
    np.testing.assert_allclose(
        array(found).astype("float64"), expected, rtol=0, atol=3 * NARROW[dtype]
    )


def test_bits_come_back() -> None:
    layer = keras.layers.Conv2D(16, 3, padding="same")
    x = keras.ops.convert_to_tensor(numbers((2, 31, 17, 24), dtype="float32"))
    before = array(layer(x))
    taken(layer)
    with computed(Kind.FORWARD):
        layer(x)
    assert convgrad.keras.restore(layer) == 1
    assert convgrad.keras.restore(layer) == 0
    assert "call" not in layer.__dict__ and layer.supports_jit is True
    with computed():
        assert np.array_equal(array(layer(x)), before)


def test_an_empty_batch() -> None:
    layer = taken(keras.layers.Conv2D(3, 3))
    layer.build((None, 6, 7, 2))
    assert tuple(layer(keras.ops.zeros((0, 6, 7, 2))).shape) == (0, 4, 5, 3)


def test_too_small_an_image_is_refused_in_the_same_words() -> None:
    layer = keras.layers.Conv2D(3, 5)
    layer.build((None, None, None, 2))
    x = keras.ops.zeros((1, 4, 9, 2))
    with pytest.raises(Exception) as theirs:
        layer(x)
    with pytest.raises(type(theirs.value)) as ours:
        taken(layer)(x)
    assert str(ours.value).splitlines()[0] == str(theirs.value).splitlines()[0]


def test_wrong_channels_are_refused_by_keras() -> None:
    layer = taken(keras.layers.Conv2D(3, 3))
    layer.build((None, 6, 7, 2))
    with pytest.raises(ValueError, match="expected axis -1"):
        layer(keras.ops.zeros((1, 6, 7, 3)))


def test_the_same_bits_as_the_function() -> None:
    """A layer gives what `convgrad.conv2d` gives on NumPy's arrays: who calls does not matter."""
    layer = keras.layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False)
    x = numbers((2, 21, 19, 12), seed=8, dtype="float32")
    layer.build(x.shape)
    taken(layer)
    expected = convgrad.conv2d(x, layer.get_weights()[0], 2, "SAME")
    assert np.array_equal(array(layer(keras.ops.convert_to_tensor(x))), expected)
