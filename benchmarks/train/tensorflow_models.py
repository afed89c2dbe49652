"""The networks of `networks` in plain TensorFlow: variables, and functions of `tf.nn` that are meant for graphs.

Batch normalization is the fused operation, which is TensorFlow's fastest and moves the running statistics itself.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from .drafts import Tree
from .networks import NETWORKS

MOMENTUM = 0.9
"""Of running statistics: the share that stays."""
EPSILON = 1e-5
Tensor = Any


class Computed:
    """Computes layers from variables. Satisfies `networks.Layers`."""

    def __init__(self, parameters: Tree, statistics: Tree) -> None:
        self._parameters = _variables(parameters, trainable=True)
        self._statistics = _variables(statistics, trainable=False)

    @property
    def trained(self) -> list[Any]:
        """The variables an optimizer moves."""
        return [each for layer in self._parameters.values() for each in layer.values()]

    def convolution(
        self, name: str, x: Tensor, outputs: int, window: int, stride: int, groups: int
    ) -> Tensor:
        return convolve(x, self._parameters[name]["kernel"], stride, groups)

    def normalize(self, name: str, x: Tensor) -> Tensor:
        own, running = self._parameters[name], self._statistics[name]
        y, mean, variance = tf.compat.v1.nn.fused_batch_norm(
            x,
            own["scale"],
            own["bias"],
            running["mean"],
            running["variance"],
            epsilon=EPSILON,
            is_training=True,
            exponential_avg_factor=1 - MOMENTUM,
        )
        running["mean"].assign(mean)
        running["variance"].assign(variance)
        return y

    def linear(self, name: str, x: Tensor, outputs: int) -> Tensor:
        own = self._parameters[name]
        return tf.matmul(x, own["kernel"]) + own["bias"]

    def relu(self, x: Tensor) -> Tensor:
        return tf.nn.relu(x)

    def relu6(self, x: Tensor) -> Tensor:
        return tf.nn.relu6(x)

    def max_pool(self, x: Tensor) -> Tensor:
        return tf.nn.max_pool2d(x, 3, 2, "SAME")

    def mean(self, x: Tensor) -> Tensor:
        return tf.reduce_mean(x, (1, 2))

    def channels(self, x: Tensor) -> int:
        return int(x.shape[-1])


def _variables(values: Tree, *, trainable: bool) -> dict[str, dict[str, Any]]:
    return {
        name: {role: tf.Variable(array, trainable=trainable) for role, array in layer.items()}
        for name, layer in values.items()
    }


def convolve(x: Tensor, kernel: Any, stride: int, groups: int) -> Tensor:
    """Convolve as the networks do; a kernel is HWIO, and TensorFlow writes a depthwise one with two axes swapped."""
    if groups == 1:
        return tf.nn.conv2d(x, kernel, stride, "SAME")
    return tf.nn.depthwise_conv2d(x, swapped(kernel), (1, stride, stride, 1), "SAME")


def swapped(kernel: Any) -> Any:
    """Return a depthwise filter as TensorFlow writes it: the same numbers in order, so nothing moves."""
    rows, cols, _, channels = kernel.shape
    return tf.reshape(kernel, (rows, cols, channels, 1))


def cross_entropy(model: str, computed: Computed, images: Tensor, labels: Tensor) -> Tensor:
    """Return the loss of a batch; the statistics move."""
    logits = NETWORKS[model](computed, images)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_mean(losses)
