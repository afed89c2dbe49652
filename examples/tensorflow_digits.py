"""Train the network of digits.py in Keras on TensorFlow, as it is, then after `convgrad.tensorflow.install()`.

What you learn: one line, `convgrad.tensorflow.install()`, is all that changes. The layers, the optimizer and `fit` are
Keras's own, and TensorFlow's graph stays as it was. It lasts until the process ends, so the native run comes first.

    pip install tensorflow-cpu
    pip install '.[cli,examples]'
    python examples/tensorflow_digits.py

It takes about a minute. Both networks start from the same numbers and see the same images. The exit status is 1 if one
of them recognises fewer than 97% of the test images.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from statistics import median
from typing import Any

import numpy as np
from digits import BATCH, REQUIRED, data, progress, shifted

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
try:
    import tensorflow as tf
    from tensorflow import keras
except ImportError:
    sys.exit("tensorflow_digits.py: TensorFlow is not installed: pip install tensorflow-cpu")

import convgrad.tensorflow


def build(seed: int) -> Any:
    """A 3x3 stem and three depthwise-separable blocks, as in digits.py."""
    keras.utils.set_random_seed(seed)
    layers: list[Any] = [keras.Input((8, 8, 1))]
    layers += normalized(keras.layers.Conv2D(16, 3, padding="same", use_bias=False))
    for outputs, stride in ((32, 1), (64, 2), (64, 1)):
        layers += normalized(
            keras.layers.DepthwiseConv2D(3, stride, padding="same", use_bias=False)
        )
        layers += normalized(keras.layers.Conv2D(outputs, 1, use_bias=False))
    return keras.Sequential(
        [*layers, keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(10)]
    )


def normalized(convolution: Any) -> list[Any]:
    return [convolution, keras.layers.BatchNormalization(momentum=0.9), keras.layers.ReLU()]


class Trainer:
    """A network with its optimizer, and what its epochs took."""

    def __init__(self, seed: int, rate: float, steps: int) -> None:
        self.network = build(seed)
        schedule = keras.optimizers.schedules.CosineDecay(rate, steps)
        self.network.compile(
            keras.optimizers.AdamW(schedule),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        self.seconds: list[float] = []
        self.losses: list[float] = []

    def epoch(self, images: Any, labels: Any) -> None:
        started = time.perf_counter()
        history = self.network.fit(images, labels, BATCH, shuffle=False, verbose=0)
        self.seconds.append(time.perf_counter() - started)
        self.losses.append(history.history["loss"][0])

    def accuracy(self, images: Any, labels: Any) -> float:
        return float(np.mean(self.network.predict(images, verbose=0).argmax(1) == labels))


def train(epochs: int, rate: float, seed: int) -> Trainer:
    """Train a network, and print loss and seconds of each epoch as they come."""
    random = np.random.default_rng(seed)
    x, y, _, _ = data(random)
    count = len(y) // BATCH
    trainer = Trainer(seed, rate, epochs * count)
    print("epoch     loss  seconds")
    with progress(epochs) as advance:
        for epoch in range(epochs):
            order = random.permutation(len(y))[: count * BATCH]
            trainer.epoch(shifted(x[order], random), y[order])
            print(f"{epoch + 1:5d}  {trainer.losses[-1]:7.3f}  {trainer.seconds[-1]:7.3f}")
            advance()
    return trainer


def main() -> int:
    """Train twice and say whether both learnt, and how long an epoch took."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=15, help="default: %(default)s")
    parser.add_argument("--rate", type=float, default=0.01, help="of AdamW; default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    arguments = parser.parse_args()
    if arguments.epochs < 1:
        parser.error("--epochs must be at least 1")
    _, _, x, y = data(np.random.default_rng(arguments.seed))  # the same split
    found = {}
    for name in ("TensorFlow", "convgrad"):
        if name == "convgrad":
            print(convgrad.tensorflow.install(), end="\n\n")
        print(f"{name} {tf.__version__ if name == 'TensorFlow' else convgrad.__version__}")
        trainer = train(arguments.epochs, arguments.rate, arguments.seed)
        found[name] = trainer.accuracy(x, y), median(trainer.seconds[1:] or trainer.seconds)
        print()
    for name, (share, seconds) in found.items():
        # The first epoch builds the graph, and compiles kernels.
        print(f"{name:10s} {share:.2%} of the test images, {seconds:.3f} s per epoch")
    learnt = min(share for share, _ in found.values()) >= REQUIRED
    print("verdict:", "ok" if learnt else f"NOT LEARNT, {REQUIRED:.0%} are required")
    return 0 if learnt else 1


if __name__ == "__main__":
    sys.exit(main())
