"""Train a depthwise-separable CNN on 8x8 digits with NumPy and convgrad alone.

What you learn: a convolutional network is a list of layers (layers.py has them, with their gradients), a loss, and a
rule that moves the parameters. Each of convgrad's six functions, two convolutions and their gradients, has its place.

    pip install '.[cli,examples,plot]'
    python examples/digits.py

It takes seconds, writes the learning curve to digits.png, and exits with 1 if fewer than 97% of the test images are
recognised. The same seed on the same machine gives the same network, to the last bit.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from layers import Array, Conv, DepthwiseConv, Layer, Normalize, PoolAndClassify, Relu
from numpy.typing import NDArray

import convgrad

Labels = NDArray[np.int64]
TEST = 360  # images held out, of 1797
BATCH = 60  # divides TEST: training and testing share their shapes, and so their compiled kernels
REQUIRED = 0.97  # of the test images


def build(random: np.random.Generator) -> list[Layer]:
    """A 3x3 stem and three depthwise-separable blocks: 8x8x1 -> 8x8x16 -> 8x8x32 -> 4x4x64 -> 4x4x64 -> 10."""
    layers: list[Layer] = [Conv(random, 3, 1, 16), Normalize(16), Relu()]
    for inputs, outputs, stride in ((16, 32, 1), (32, 64, 2), (64, 64, 1)):
        layers += [DepthwiseConv(random, inputs, stride), Normalize(inputs), Relu()]
        layers += [Conv(random, 1, inputs, outputs), Normalize(outputs), Relu()]
    return [*layers, PoolAndClassify(random, 64)]


def predict(network: list[Layer], x: Array, training: bool = False) -> Array:
    for layer in network:
        x = layer.forward(x, training)
    return x


def cross_entropy(scores: Array, labels: Labels) -> tuple[float, Array]:
    """Return the mean of -log(probability of the right digit), and its gradient with respect to the scores."""
    each = np.arange(len(labels))
    shares = np.exp(scores - scores.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    loss = -float(np.log(shares[each, labels] + 1e-12).mean())
    shares[each, labels] -= 1
    return loss, shares / np.float32(len(labels))


class Adam:
    """Moves each parameter against its mean gradient, measured in the gradient's own typical size."""

    def __init__(self, network: list[Layer]) -> None:
        self.layers, self.steps = network, 0
        self.moments = [
            [(np.zeros_like(p), np.zeros_like(p)) for p in a.parameters] for a in network
        ]

    def step(self, rate: float) -> None:
        self.steps += 1
        rate *= np.sqrt(1 - 0.999**self.steps) / (1 - 0.9**self.steps)
        for layer, moments in zip(self.layers, self.moments, strict=True):
            for p, g, (mean, square) in zip(
                layer.parameters, layer.gradients, moments, strict=True
            ):
                mean += 0.1 * (g - mean)
                square += 0.001 * (g * g - square)
                p -= np.float32(rate) * mean / (np.sqrt(square) + np.float32(1e-8))


def shifted(images: Array, random: np.random.Generator) -> Array:
    """Move each image by up to one pixel: a digit stays the same digit."""
    rows, columns = (random.integers(0, 3, (len(images), 1)) + np.arange(8) for _ in range(2))
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    each = np.arange(len(images))[:, None, None]
    return padded[each, rows[:, :, None], columns[:, None, :]]


def data(random: np.random.Generator) -> tuple[Array, Labels, Array, Labels]:
    """Return training images and labels, then those that are only tested on."""
    if find_spec("sklearn") is None:
        sys.exit("digits.py: scikit-learn has the images: pip install scikit-learn")
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = random.permutation(len(labels))
    x = (images[order].reshape(-1, 8, 8, 1) / 16).astype(np.float32)
    y = labels[order].astype(np.int64)
    return x[TEST:], y[TEST:], x[:TEST], y[:TEST]


def accuracy(network: list[Layer], x: Array, y: Labels) -> float:
    right = [
        predict(network, x[at : at + BATCH]).argmax(1) == y[at : at + BATCH]
        for at in range(0, len(y), BATCH)
    ]
    return float(np.concatenate(right).mean())


Curve = list[tuple[float, float, float]]


def train(epochs: int, rate: float, seed: int) -> Curve:
    """Train a new network; return loss, training and test accuracy of each epoch, and print them as they come."""
    random = np.random.default_rng(seed)
    x, y, test_x, test_y = data(random)
    network = build(random)
    optimizer = Adam(network)
    batches = len(y) // BATCH  # the few images left over are others in each epoch
    numbers = sum(p.size for layer in network for p in layer.parameters)
    print(f"{len(y)} images to learn, {len(test_y)} to be tested on, {numbers} parameters\n")
    print("epoch   loss   training   test   seconds")
    curve: Curve = []
    started = time.perf_counter()
    with progress(epochs * batches) as advance:
        for epoch in range(epochs):
            order, losses, right = random.permutation(len(y)), 0.0, 0
            for at in range(batches):
                chosen = order[at * BATCH : (at + 1) * BATCH]
                scores = predict(network, shifted(x[chosen], random), training=True)
                loss, g = cross_entropy(scores, y[chosen])
                for layer in reversed(network):
                    g = layer.backward(g)
                share = (epoch + at / batches) / epochs
                optimizer.step(rate * (0.5 + 0.5 * np.cos(np.pi * share)))  # from `rate` down to 0
                losses, right = losses + loss, right + int((scores.argmax(1) == y[chosen]).sum())
                advance()
            test = accuracy(network, test_x, test_y)
            curve.append((losses / batches, right / (batches * BATCH), test))
            took = time.perf_counter() - started
            print("{:5d}  {:.3f}     {:6.2%} {:6.2%}   {:7.1f}".format(epoch + 1, *curve[-1], took))
    return curve


@contextmanager
def progress(total: int) -> Iterator[Callable[[], None]]:
    """Show a bar while a person watches: rich's where it is installed, one line otherwise, none in a pipe."""
    if not sys.stdout.isatty():
        yield lambda: None
    elif find_spec("rich"):
        from rich.progress import Progress

        with Progress(transient=True) as bar:
            task = bar.add_task("training", total=total)
            yield lambda: bar.advance(task)
    else:
        done = 0

        def advance() -> None:
            nonlocal done
            done += 1
            print(f"training {100 * done // total:3d}%", end="\r", flush=True)

        yield advance


def draw(curve: Curve, file: Path) -> None:
    """Save the learning curve as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    loss, training, test = np.transpose(curve)
    epochs = np.arange(1, len(curve) + 1)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    figure.suptitle("A depthwise-separable CNN learns digits, in NumPy and convgrad")
    left.semilogy(epochs, loss, "o-", color="C3")
    left.set(title="Loss", xlabel="epoch", ylabel="cross entropy, training images")
    right.plot(epochs, 100 * training, "o-", label="training images, shifted")
    right.plot(epochs, 100 * test, "s-", label=f"test images: {test[-1]:.1%} at the end")
    right.axhline(100 * REQUIRED, color="grey", linestyle=":", label=f"required: {REQUIRED:.0%}")
    right.set(title="Accuracy", xlabel="epoch", ylabel="% recognised")
    right.legend(loc="lower right")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.xaxis.get_major_locator().set_params(integer=True)
    figure.savefig(file, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--epochs", type=int, default=20, help="passes over the images (20)")
    parser.add_argument(
        "--rate", type=float, default=0.02, help="learning rate at the start (0.02)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the split, weights and shifts (0)")
    parser.add_argument("--plot", type=Path, default=Path("digits.png"), metavar="FILE",
                        help="where the learning curve goes (digits.png)")  # fmt: skip
    given = parser.parse_args()
    print(
        f"Training a depthwise-separable CNN on digits: NumPy {np.__version__}, convgrad {convgrad.__version__}"
    )
    curve = train(given.epochs, given.rate, given.seed)
    if find_spec("matplotlib"):
        draw(curve, given.plot)
        print(f"\nlearning curve: {given.plot}")
    else:
        print("\nno picture of the learning curve: pip install matplotlib")
    learnt = curve[-1][2] >= REQUIRED
    print(f"verdict: {'ok' if learnt else 'NOT LEARNT'}, {curve[-1][2]:.2%} of the test images are "
          f"recognised, {REQUIRED:.0%} are required")  # fmt: skip
    return 0 if learnt else 1


if __name__ == "__main__":
    sys.exit(main())
