"""Our functions among TensorFlow's own: datasets, maps, modules, Keras, saved models."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import convgrad.tensorflow
import numpy as np
import pytest
import tensorflow as tf

import convgrad
from tensorflow_bridge import children
from tensorflow_bridge.running import bits


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_datasets() -> None:
    """`tf.data` maps run on threads of TensorFlow's own, several at once."""
    x, f = numbers(12, 2, 6, 7, 3), numbers(3, 3, 3, 2, seed=1)
    dataset = tf.data.Dataset.from_tensor_slices(x).map(
        lambda each: convgrad.depthwise_conv2d(each, f, 2, "SAME", dilations=2),
        num_parallel_calls=4,
    )
    made = list(dataset)
    assert len(made) == 12
    for mine, each in zip(made, x, strict=True):
        assert bits(mine) == bits(convgrad.depthwise_conv2d(each, f, 2, "SAME", dilations=2))


@pytest.mark.parametrize("mode", ["map_fn", "vectorized_map"])
def test_maps(mode: str) -> None:
    """Over a batch of batches, gradients included."""
    x, f = tf.constant(numbers(4, 2, 5, 5, 3)), tf.constant(numbers(3, 3, 3, 4, seed=1))
    mapped = getattr(tf, mode)

    def one(each: Any) -> Any:
        return convgrad.conv2d(each, f, 1, "SAME")

    wanted = [convgrad.conv2d(np.asarray(each), np.asarray(f), 1, "SAME") for each in x]
    assert bits(tf.function(lambda: mapped(one, x))()) == bits(np.stack(wanted))
    with tf.GradientTape() as tape:
        tape.watch(f)
        loss = tf.reduce_sum(mapped(one, x))
    gradient = tape.gradient(loss, f)
    ones = np.ones((8, 5, 5, 4), np.float32)
    flat = np.asarray(x).reshape(8, 5, 5, 3)
    exact = convgrad.reference.conv2d_backprop_filter(flat, f.shape, ones, 1, "SAME")
    np.testing.assert_allclose(gradient, exact, rtol=1e-4, atol=1e-4)


def test_per_example_gradients() -> None:
    x, f = tf.constant(numbers(3, 5, 5, 2)), tf.constant(numbers(3, 3, 2, 2, seed=1))

    def gradient(image: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(f)
            y = convgrad.depthwise_conv2d(image[None], f, 1, "SAME")
        return tape.gradient(y, f)

    made = tf.vectorized_map(gradient, x)
    for mine, image in zip(made, np.asarray(x), strict=True):
        ones = np.ones((1, 5, 5, 4), np.float32)
        wanted = convgrad.depthwise_conv2d_backprop_filter(image[None], f.shape, ones, 1, "SAME")
        assert bits(mine) == bits(wanted)


def test_recomputed_gradients() -> None:
    x, f = tf.constant(numbers(2, 5, 5, 2)), tf.Variable(numbers(3, 3, 2, 2, seed=1))
    again = tf.recompute_grad(lambda x: convgrad.conv2d(x, f, 1, "SAME") ** 2)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(again(x))
    made = tape.gradient(loss, f)
    y = convgrad.conv2d(np.asarray(x), f.numpy(), 1, "SAME")
    assert bits(made) == bits(
        convgrad.conv2d_backprop_filter(np.asarray(x), f.shape, 2 * y, 1, "SAME")
    )


def test_training_in_a_loop_of_ones_own() -> None:
    """A filter is found again from its results, in a compiled step with unknown batches."""
    rng = np.random.default_rng(0)
    wanted = numbers(3, 3, 4, 1, seed=2)
    f = tf.Variable(tf.zeros((3, 3, 4, 1)))
    optimizer = tf.keras.optimizers.Adam(0.05)

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 4])] * 2)
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            error = convgrad.depthwise_conv2d(x, f, 1, "SAME", dilations=2) - y
            loss = tf.reduce_mean(error**2)
        optimizer.apply([tape.gradient(loss, f)], [f])
        return loss

    losses = []
    for turn in range(120):
        x = rng.standard_normal((2 + turn % 3, 8, 8, 4)).astype(np.float32)
        losses.append(float(step(x, convgrad.depthwise_conv2d(x, wanted, 1, "SAME", dilations=2))))
    assert losses[-1] < 1e-3 * losses[0]
    np.testing.assert_allclose(f.numpy(), wanted, atol=0.05)


class Model(tf.Module):
    """A convolution and its gradient, saved with an unknown batch."""

    def __init__(self) -> None:
        super().__init__()
        self.f = tf.Variable(numbers(3, 3, 2, 3, seed=1))

    @tf.function(input_signature=[tf.TensorSpec([None, 6, 6, 2])])
    def forward(self, x: Any) -> Any:
        return convgrad.conv2d(x, self.f, 2, "SAME")

    @tf.function(input_signature=[tf.TensorSpec([None, 6, 6, 2])])
    def gradient(self, x: Any) -> Any:
        with tf.GradientTape() as tape:
            y = convgrad.depthwise_conv2d(x, self.f, 1, "SAME", dilations=2)
        return tape.gradient(y, self.f)


LOAD = """
import json, sys
import numpy as np, tensorflow as tf
{before}
try:
    model = tf.saved_model.load({path!r})
    x = np.load({path!r} + "/x.npy")
    found = {{"forward": model.forward(x).numpy().tolist(), "gradient": model.gradient(x).numpy().tolist()}}
    with tf.GradientTape() as tape:
        y = model.forward(tf.constant(x))
    found["tape"] = tape.gradient(y, model.f).numpy().tolist()
except Exception as error:
    found = {{"error": type(error).__name__, "text": str(error)}}
print(json.dumps(found))
"""


def test_saved_models(tmp_path: Path) -> None:
    """Saved here; loaded here, in a process that has imported the bridge, and in one that has not."""
    path, model, x = str(tmp_path / "saved"), Model(), numbers(2, 6, 6, 2)
    tf.saved_model.save(model, path)
    np.save(path + "/x.npy", x)
    f = model.f.numpy()
    wanted = {
        "forward": convgrad.conv2d(x, f, 2, "SAME"),
        "gradient": convgrad.depthwise_conv2d_backprop_filter(
            x, f.shape, np.ones((2, 6, 6, 6), np.float32), 1, "SAME", dilations=2
        ),
        "tape": convgrad.conv2d_backprop_filter(
            x, f.shape, np.ones((2, 3, 3, 3), np.float32), 2, "SAME"
        ),
    }
    loaded = tf.saved_model.load(path)
    assert bits(loaded.forward(x)) == bits(wanted["forward"])
    assert bits(loaded.gradient(x)) == bits(wanted["gradient"])
    made = children.report(LOAD.format(before="import convgrad.tensorflow", path=path))
    assert {name: np.float32(value).tolist() for name, value in made.items()} == {
        name: value.tolist() for name, value in wanted.items()
    }, textwrap.shorten(str(made), 500)
    missing = children.report(LOAD.format(before="", path=path))
    assert "convgrad" in missing["text"].lower(), missing


def test_keras_layers_of_ones_own() -> None:
    """A layer that calls our function: `fit`, a graph of unknown batches, saving of its weights."""

    class Layer(tf.keras.layers.Layer):
        def build(self, shape: Any) -> None:
            self.f = self.add_weight(shape=(3, 3, shape[-1], 2), initializer="glorot_uniform")

        def call(self, x: Any) -> Any:
            return convgrad.depthwise_conv2d(x, self.f, 1, "SAME", dilations=2)

    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential(
        [
            tf.keras.Input((8, 8, 3)),
            Layer(),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(1),
        ]
    )
    x = numbers(64, 8, 8, 3)
    y = x[:, ::2].sum(axis=(1, 2, 3), keepdims=False)[:, None] / 10
    model.compile(tf.keras.optimizers.Adam(0.05), "mse")
    losses = model.fit(x, y, epochs=8, verbose=0, batch_size=16).history["loss"]
    assert losses[-1] < 0.7 * losses[0]
