"""A small Keras model on drawn images, trained for some epochs: the same run natively and after `install()`.

`python -m tensorflow_bridge.keras_digits` prints its losses without `install()`.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import tensorflow as tf


def images(count: int = 256) -> tuple[Any, Any]:
    """Return noise with a bright bar, and where it stands: three classes."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((count, 12, 12, 1)).astype(np.float32)
    y = rng.integers(0, 3, count)
    for image, kind in zip(x, y, strict=True):
        if kind < 2:
            bar = image[5:7] if kind == 0 else image[:, 5:7]
            bar += 1.5
    return x, y


def model() -> Any:
    """Dense, strided, depthwise, separable, dilated and transposed layers, with batch norm between."""
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(5)
    return tf.keras.Sequential(
        [
            tf.keras.Input((12, 12, 1)),
            layers.Conv2D(8, 3, padding="same", activation="relu"),
            layers.DepthwiseConv2D(3, padding="same"),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.SeparableConv2D(12, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2D(12, 3, dilation_rate=2, padding="same", activation="relu"),
            layers.Conv2DTranspose(6, 2, strides=2, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(3),
        ]
    )


def losses() -> list[float]:
    x, y = images()
    network = model()
    network.compile(
        tf.keras.optimizers.Adam(0.01),
        tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    history = network.fit(x, y, batch_size=32, epochs=6, shuffle=False, verbose=0).history["loss"]
    return [float(each) for each in history]


if __name__ == "__main__":
    print(json.dumps(losses()))
