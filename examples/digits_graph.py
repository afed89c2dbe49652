"""Train the network of digits.py as a graph: nothing is written by hand but the network itself.

What you learn: a graph is built once from ops with TensorFlow's C++ names, `add_symbolic_gradients` adds the nodes of
its gradient, Variables keep parameters from run to run, and a session runs what is fetched. The optimizer, Adam, is a
few nodes per parameter.

    pip install '.[examples]'
    python examples/digits_graph.py

It takes seconds and exits with 1 if fewer than 97% of the test images are recognised.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
from digits import BATCH, REQUIRED, data, shifted
from layers import gaussian

from convgrad.graph import ClientSession, Output, Scope, add_symbolic_gradients, ops

Array = np.ndarray[Any, np.dtype[Any]]


class Network:
    """A scope, its Variables with their initial values, and what is fetched to train and to test."""

    def __init__(self, random: np.random.Generator) -> None:
        self.scope, self.random = Scope.new_root_scope(), random
        self.parameters: list[Output] = []
        self.initial: dict[str, Array] = {}
        self.updates: list[Any] = []
        self.images = ops.Placeholder(self.scope, "float32", [None, 8, 8, 1])
        self.labels = ops.Placeholder(self.scope, "int32", [None])
        self.rate = ops.Placeholder(self.scope, "float32", [])
        # Training and testing normalise differently and share every parameter.
        self.trained, self.tested = self.images.output, self.images.output
        self.convolution(3, 1, 16)
        for inputs, outputs, stride in ((16, 32, 1), (32, 64, 2), (64, 64, 1)):
            self.depthwise(inputs, stride)
            self.convolution(1, inputs, outputs)
        scores, self.scores = self.classified(64)
        hot = ops.OneHot(self.scope, self.labels, 10, np.float32(1), np.float32(0))
        entropy = ops.SoftmaxCrossEntropyWithLogits(self.scope, scores, hot)
        self.loss = ops.Mean(self.scope, entropy.loss, 0)
        self.digits = ops.ArgMax(self.scope, self.scores, 1)
        gradients = add_symbolic_gradients(self.scope, [self.loss], self.parameters)
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            self.adam(parameter, gradient)

    def variable(self, value: Array, name: str) -> Output:
        found = ops.Variable(self.scope.with_op_name(name), value.shape, value.dtype)
        self.initial[found.name] = value
        return found.ref

    def parameter(self, value: Array, name: str) -> Output:
        self.parameters.append(self.variable(value, name))
        return self.parameters[-1]

    def convolution(self, size: int, inputs: int, outputs: int) -> None:
        """A dense convolution, normalisation and ReLU."""
        start = gaussian(self.random, (size, size, inputs, outputs), terms=size * size * inputs)
        weights = self.parameter(start, "filter")
        self.trained, self.tested = (
            ops.Conv2D(self.scope, x, weights, [1, 1, 1, 1], "SAME").output
            for x in (self.trained, self.tested)
        )
        self.normalized(outputs)

    def depthwise(self, channels: int, stride: int) -> None:
        """A 3x3 filter per channel, normalisation and ReLU."""
        start = gaussian(self.random, (3, 3, channels, 1), terms=9)
        weights = self.parameter(start, "depthwise_filter")
        strides = [1, stride, stride, 1]
        self.trained, self.tested = (
            ops.DepthwiseConv2dNative(self.scope, x, weights, strides, "SAME").output
            for x in (self.trained, self.tested)
        )
        self.normalized(channels)

    def normalized(self, channels: int) -> None:
        """Batch normalisation: statistics of the batch in training, their running averages in use."""
        s = self.scope
        ones, zeros = np.ones(channels, np.float32), np.zeros(channels, np.float32)
        scale, shift = self.parameter(ones, "scale"), self.parameter(zeros, "shift")
        usual, spread = self.variable(zeros, "mean"), self.variable(ones, "variance")
        mean = ops.Mean(s, self.trained, [0, 1, 2])
        away = ops.Subtract(s, self.trained, mean)
        variance = ops.Mean(s, ops.Square(s, away), [0, 1, 2])
        for average, seen in ((usual, mean), (spread, variance)):
            step = ops.Multiply(s, 0.1, ops.Subtract(s, seen, average))
            self.updates.append(ops.Assign(s, average, ops.Add(s, average, step)))
        for name, x, var in (
            ("trained", away, variance),
            ("tested", ops.Subtract(s, self.tested, usual), spread),
        ):
            factor = ops.Div(s, scale, ops.Sqrt(s, ops.Add(s, var, 1e-5)))
            setattr(
                self, name, ops.Relu(s, ops.Add(s, ops.Multiply(s, x, factor), shift)).activations
            )

    def classified(self, channels: int) -> list[Output]:
        """The mean of each channel over the image, then a score for each digit: for training and for testing."""
        weights = self.parameter(
            gaussian(self.random, (channels, 10), terms=2 * channels), "weights"
        )
        bias = self.parameter(np.zeros(10, np.float32), "bias")
        found = []
        for x in (self.trained, self.tested):
            means = ops.Mean(self.scope, x, [1, 2])
            found.append(
                ops.BiasAdd(self.scope, ops.MatMul(self.scope, means, weights), bias).output
            )
        return found

    def adam(self, parameter: Output, gradient: Output) -> None:
        """Move a parameter against its mean gradient, measured in the gradient's own typical size."""
        s, zeros = self.scope, np.zeros(parameter.shape, np.float32)
        mean, square = self.variable(zeros, "moment"), self.variable(zeros, "square")
        means = ops.Assign(
            s, mean, ops.Add(s, mean, ops.Multiply(s, 0.1, ops.Subtract(s, gradient, mean)))
        )
        away = ops.Subtract(s, ops.Square(s, gradient), square)
        squares = ops.Assign(s, square, ops.Add(s, square, ops.Multiply(s, 0.001, away)))
        size = ops.Add(s, ops.Sqrt(s, squares), 1e-8)
        self.updates.append(
            ops.ApplyGradientDescent(s, parameter, self.rate, ops.Div(s, means, size))
        )


def accuracy(session: ClientSession, network: Network, x: Array, y: Array) -> float:
    right = 0
    for at in range(0, len(y), BATCH):
        (found,) = session.run([network.digits], {network.images: x[at : at + BATCH]})
        right += int((found == y[at : at + BATCH]).sum())
    return right / len(y)


def train(epochs: int, rate: float, seed: int) -> float:
    """Train a new network and return the share of test images it recognises."""
    random = np.random.default_rng(seed)
    x, y, test_x, test_y = data(random)
    network = Network(random)
    session = ClientSession(network.scope)
    session.set_variables(network.initial)
    batches = len(y) // BATCH
    feeds = {network.images: x[:BATCH], network.labels: y[:BATCH].astype(np.int32)}
    feeds[network.rate] = np.float32(0)
    plan = session.explain([network.loss, *network.updates], feeds)
    print(f"{len(network.scope.graph.nodes)} nodes, {len(network.initial)} Variables; a step runs "
          f"{len(plan.steps)} nodes in {plan.peak_bytes / 1e6:.1f} MB ({plan.kept_bytes / 1e6:.1f} MB if nothing "
          "was freed)\n")  # fmt: skip
    print("epoch   loss   test   seconds")
    found, steps, started = 0.0, 0, time.perf_counter()
    for epoch in range(epochs):
        order, losses = random.permutation(len(y)), 0.0
        for at in range(batches):
            chosen = order[at * BATCH : (at + 1) * BATCH]
            steps += 1
            share = (epoch + at / batches) / epochs
            now = rate * (0.5 + 0.5 * np.cos(np.pi * share))  # from `rate` down to 0
            now *= np.sqrt(1 - 0.999**steps) / (1 - 0.9**steps)
            feeds = {
                network.images: shifted(x[chosen], random),
                network.labels: y[chosen].astype(np.int32),
                network.rate: np.float32(now),
            }
            losses += float(session.run([network.loss], feeds, network.updates)[0])
        found = accuracy(session, network, test_x, test_y)
        took = time.perf_counter() - started
        print(f"{epoch + 1:5d}  {losses / batches:.3f} {found:6.2%}   {took:7.1f}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--epochs", type=int, default=20, help="passes over the images (20)")
    parser.add_argument(
        "--rate", type=float, default=0.02, help="learning rate at the start (0.02)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the split, weights and shifts (0)")
    given = parser.parse_args()
    found = train(given.epochs, given.rate, given.seed)
    learnt = found >= REQUIRED
    print(f"verdict: {'ok' if learnt else 'NOT LEARNT'}, {found:.2%} of the test images are recognised, "
          f"{REQUIRED:.0%} are required")  # fmt: skip
    return 0 if learnt else 1


if __name__ == "__main__":
    sys.exit(main())
