"""Train the network of digits.py in plain JAX, once as it is and once with its convolutions computed by convgrad.

What you learn: one line, `with convgrad.jax.accelerate():`, is all that changes. The network calls
`jax.lax.conv_general_dilated`, as the layers of Flax, Haiku and Equinox do; the step is jitted and differentiated by
JAX.

    pip install jax
    pip install '.[cli,examples]'
    python examples/jax_digits.py

It takes half a minute. Both networks start from the same numbers and see the same images, epoch by epoch in
turns, so that both have the same machine. The exit status is 1 if one of them recognises fewer than 97% of the test
images.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from statistics import median
from typing import Any

import numpy as np
from digits import BATCH, REQUIRED, data, progress, shifted

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    sys.exit("jax_digits.py: JAX is not installed: pip install jax")

import convgrad.jax

BLOCKS = ((16, 32, 1), (32, 64, 2), (64, 64, 1))
"""Channels in, channels out, and the stride of the three depthwise-separable blocks."""
Weights = dict[str, Any]


def weights(seed: int) -> Weights:
    """A 3x3 stem, three blocks and a classifier, as in digits.py; each convolution is normalized over its batch."""
    random = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {"stem": (3, 3, 1, 16)}
    for at, (inputs, outputs, _) in enumerate(BLOCKS):
        shapes |= {f"depthwise{at}": (3, 3, 1, inputs), f"pointwise{at}": (1, 1, inputs, outputs)}
    made: Weights = {}
    for name, shape in shapes.items():
        made[name] = random.standard_normal(shape) * np.sqrt(2 / np.prod(shape[:3]))
        made[name + " scale"], made[name + " shift"] = np.ones(shape[3]), np.zeros(shape[3])
    made["classifier"], made["bias"] = random.standard_normal((64, 10)) * 0.1, np.zeros(10)
    return {name: jnp.asarray(value, jnp.float32) for name, value in made.items()}


def network(given: Weights, images: Any) -> Any:
    """Return the ten scores of each image."""
    y = layer(given, "stem", images)
    for at, (inputs, _, stride) in enumerate(BLOCKS):
        y = layer(given, f"depthwise{at}", y, stride, groups=inputs)
        y = layer(given, f"pointwise{at}", y)
    return y.mean((1, 2)) @ given["classifier"] + given["bias"]


def layer(given: Weights, name: str, images: Any, stride: int = 1, groups: int = 1) -> Any:
    """Convolve, normalize over the batch, and cut off what is negative."""
    y = jax.lax.conv_general_dilated(
        images,
        given[name],
        (stride, stride),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )
    y = (y - y.mean((0, 1, 2))) * jax.lax.rsqrt(y.var((0, 1, 2)) + 1e-5)
    return jax.nn.relu(y * given[name + " scale"] + given[name + " shift"])


def loss(given: Weights, images: Any, labels: Any) -> Any:
    scores = jax.nn.log_softmax(network(given, images))
    return -jnp.take_along_axis(scores, labels[:, None], 1).mean()


def step(state: Any, images: Any, labels: Any, rate: Any) -> Any:
    """One step of Adam; `state` is the weights, their two moments, and how many steps there were."""
    given, first, second, count = state
    value, moves = jax.value_and_grad(loss)(given, images, labels)
    count += 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, moves)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, moves)
    size = rate * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    given = jax.tree.map(lambda w, m, v: w - size * m / (jnp.sqrt(v) + 1e-8), given, first, second)
    return (given, first, second, count), value


class Trainer:
    """A network with its optimizer, and what its epochs took."""

    def __init__(self, seed: int, rate: float, steps: int, accelerated: bool) -> None:
        given = weights(seed)
        zeros = jax.tree.map(jnp.zeros_like, given)
        self.state: Any = (given, zeros, zeros, jnp.zeros((), jnp.int32))
        self.rate, self.steps, self.done = rate, steps, 0
        self.accelerated = accelerated
        self.step = jax.jit(step)
        self.seconds: list[float] = []
        self.losses: list[float] = []

    def block(self) -> AbstractContextManager[Any]:
        return convgrad.jax.accelerate() if self.accelerated else nullcontext()  # the one line

    def epoch(self, batches: list[tuple[np.ndarray, np.ndarray]]) -> None:
        started, total = time.perf_counter(), 0.0
        with self.block():
            for images, labels in batches:
                rate = self.rate * (1 + np.cos(np.pi * self.done / self.steps)) / 2
                self.state, value = self.step(self.state, images, labels, rate)
                self.done += 1
                total += float(value)
        self.seconds.append(time.perf_counter() - started)
        self.losses.append(total / len(batches))

    def accuracy(self, images: np.ndarray, labels: np.ndarray) -> float:
        with self.block():
            scores = jax.jit(network)(self.state[0], images)
        return float((scores.argmax(1) == labels).mean())


def train(epochs: int, rate: float, seed: int) -> dict[str, Trainer]:
    """Train both networks in turns, and print loss and seconds of each epoch as they come."""
    random = np.random.default_rng(seed)
    x, y, _, _ = data(random)
    count = len(y) // BATCH
    steps = epochs * count
    trainers = {
        "JAX": Trainer(seed, rate, steps, accelerated=False),
        "convgrad": Trainer(seed, rate, steps, accelerated=True),
    }
    print("epoch       JAX: loss  seconds   convgrad: loss  seconds")
    with progress(epochs) as advance:
        for epoch in range(epochs):
            order = random.permutation(len(y))
            batches = [
                (shifted(x[chosen], random).astype(np.float32), y[chosen])
                for chosen in np.split(order[: count * BATCH], count)
            ]
            for trainer in trainers.values():
                trainer.epoch(batches)
            (a, b), (c, d) = (
                (trainer.losses[-1], trainer.seconds[-1]) for trainer in trainers.values()
            )
            print(f"{epoch + 1:5d}  {a:14.3f}  {b:7.3f}  {c:15.3f}  {d:7.3f}")
            advance()
    return trainers


def main() -> int:
    """Train both and say whether they learnt, and how long an epoch took."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=16, help="default: %(default)s")
    parser.add_argument("--rate", type=float, default=0.01, help="of Adam; default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    arguments = parser.parse_args()
    if arguments.epochs < 1:
        parser.error("--epochs must be at least 1")
    trainers = train(arguments.epochs, arguments.rate, arguments.seed)
    _, _, x, y = data(np.random.default_rng(arguments.seed))  # the same split
    found = {name: each.accuracy(x.astype(np.float32), y) for name, each in trainers.items()}
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
