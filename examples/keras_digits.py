"""Train the network of digits.py in Keras, once as it is and once with its convolutions computed by convgrad.

What you learn: one line, `convgrad.keras.accelerate(model)`, is all that changes, on each of Keras's backends. The
layers, the optimizer and `fit` are Keras's own.

    pip install keras torch          # or jax, or tensorflow-cpu, and KERAS_BACKEND=jax or tensorflow before python
    pip install '.[cli,examples]'
    python examples/keras_digits.py

It takes minutes. Both networks start from the same numbers and see the same images, epoch by
epoch in turns, so that both have the same machine. The exit status is 1 if one of them recognises fewer than 97% of the
test images.
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
os.environ.setdefault("KERAS_BACKEND", "torch")
try:
    import keras
except ImportError as error:
    sys.exit(
        f"keras_digits.py: Keras or its backend is not installed ({error}): pip install keras torch"
    )

import convgrad.keras


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

    def __init__(self, seed: int, rate: float, steps: int, accelerated: bool) -> None:
        self.network = build(seed)
        schedule = keras.optimizers.schedules.CosineDecay(rate, steps)
        self.network.compile(
            keras.optimizers.AdamW(schedule),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        if accelerated:
            print(convgrad.keras.accelerate(self.network), end="\n\n")  # the one line
        self.seconds: list[float] = []
        self.losses: list[float] = []

    def epoch(self, images: Any, labels: Any) -> None:
        started = time.perf_counter()
        history = self.network.fit(images, labels, BATCH, shuffle=False, verbose=0)
        self.seconds.append(time.perf_counter() - started)
        self.losses.append(history.history["loss"][0])

    def accuracy(self, images: Any, labels: Any) -> float:
        return float(np.mean(self.network.predict(images, verbose=0).argmax(1) == labels))


def train(epochs: int, rate: float, seed: int) -> dict[str, Trainer]:
    """Train both networks in turns, and print loss and seconds of each epoch as they come."""
    random = np.random.default_rng(seed)
    x, y, _, _ = data(random)
    count = len(y) // BATCH
    trainers = {
        "Keras": Trainer(seed, rate, epochs * count, accelerated=False),
        "convgrad": Trainer(seed, rate, epochs * count, accelerated=True),
    }
    print("epoch     Keras: loss  seconds   convgrad: loss  seconds")
    with progress(epochs) as advance:
        for epoch in range(epochs):
            order = random.permutation(len(y))[: count * BATCH]
            images = shifted(x[order], random).astype(np.float32)
            for trainer in trainers.values():
                trainer.epoch(images, y[order])
            (a, b), (c, d) = (
                (trainer.losses[-1], trainer.seconds[-1]) for trainer in trainers.values()
            )
            print(f"{epoch + 1:5d}  {a:14.3f}  {b:7.3f}  {c:15.3f}  {d:7.3f}")
            advance()
    return trainers


def main() -> int:
    """Train both and say whether they learnt, and how long an epoch took."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=15, help="default: %(default)s")
    parser.add_argument("--rate", type=float, default=0.01, help="of AdamW; default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    arguments = parser.parse_args()
    if arguments.epochs < 1:
        parser.error("--epochs must be at least 1")
    print(f"Keras {keras.__version__} on {keras.backend.backend()}")
    trainers = train(arguments.epochs, arguments.rate, arguments.seed)
    _, _, x, y = data(np.random.default_rng(arguments.seed))  # the same split
    found = {name: each.accuracy(x, y) for name, each in trainers.items()}
    print()
    for name, trainer in trainers.items():
        # The first epoch compiles, here and there.
        seconds = median(trainer.seconds[1:] or trainer.seconds)
        print(f"{name:9s} {found[name]:.2%} of the test images, {seconds:.3f} s per epoch")
    learnt = min(found.values()) >= REQUIRED
    print("verdict:", "ok" if learnt else f"NOT LEARNT, {REQUIRED:.0%} are required")
    return 0 if learnt else 1


if __name__ == "__main__":
    sys.exit(main())
