"""The layers of the network in digits.py: what each computes, and its gradients, written by hand.

A layer knows its result (`forward`) and, given the gradient `g` of the loss with respect to that result, the gradients
with respect to its parameters and its input (`backward`). The convolutions are convgrad's; the rest is NumPy.
Images are [batch, rows, columns, channels]. Nothing to run here: `python examples/digits.py` trains them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

import convgrad

Array = NDArray[Any]  # float32 in training; float64 works too, for a gradient check


class Layer(ABC):
    """A step of the network. `gradients[i]` belongs to `parameters[i]` once `backward` has run."""

    parameters: tuple[Array, ...] = ()
    gradients: tuple[Array, ...] = ()

    @abstractmethod
    def forward(self, x: Array, training: bool) -> Array: ...

    @abstractmethod
    def backward(self, g: Array) -> Array: ...


class Conv(Layer):
    """Every output channel sees every input channel; `size` 1 is the pointwise half of a separable block."""

    def __init__(self, random: np.random.Generator, size: int, inputs: int, outputs: int) -> None:
        self.filter = gaussian(random, (size, size, inputs, outputs), terms=size * size * inputs)
        self.parameters = (self.filter,)

    def forward(self, x: Array, training: bool) -> Array:
        self.x = x
        return convgrad.conv2d(x, self.filter, strides=1, padding="SAME")

    def backward(self, g: Array) -> Array:
        shape = self.filter.shape
        self.gradients = (convgrad.conv2d_backprop_filter(self.x, shape, g, 1, "SAME"),)
        return convgrad.conv2d_backprop_input(self.x.shape, self.filter, g, 1, "SAME")


class DepthwiseConv(Layer):
    """Each channel has a 3x3 filter of its own and sees no other channel; stride 2 halves the image."""

    def __init__(self, random: np.random.Generator, channels: int, stride: int) -> None:
        self.filter, self.stride = gaussian(random, (3, 3, channels, 1), terms=9), stride
        self.parameters = (self.filter,)

    def forward(self, x: Array, training: bool) -> Array:
        self.x = x
        return convgrad.depthwise_conv2d(x, self.filter, self.stride, "SAME")

    def backward(self, g: Array) -> Array:
        x, f = self.x, self.filter
        df = convgrad.depthwise_conv2d_backprop_filter(x, f.shape, g, self.stride, "SAME")
        self.gradients = (df,)
        return convgrad.depthwise_conv2d_backprop_input(x.shape, f, g, self.stride, "SAME")


class Normalize(Layer):
    """Batch normalisation: each channel gets mean 0 and variance 1 over the batch, then a learnt scale and shift."""

    def __init__(self, channels: int) -> None:
        self.scale, self.shift = np.ones(channels, np.float32), np.zeros(channels, np.float32)
        self.parameters = (self.scale, self.shift)
        self.mean, self.variance = np.zeros(channels, np.float32), np.ones(channels, np.float32)

    def forward(self, x: Array, training: bool) -> Array:
        mean, variance = self.mean, self.variance  # in use: running averages of what training saw
        if training:
            mean = channel_means(x)
            variance = channel_means(np.square(x - mean))
            self.mean = self.mean + 0.1 * (mean - self.mean)
            self.variance = self.variance + 0.1 * (variance - self.variance)
        self.deviation = np.sqrt(variance + 1e-5)
        self.normal = (x - mean) / self.deviation
        return self.normal * self.scale + self.shift

    def backward(self, g: Array) -> Array:
        shift, scale = channel_means(g), channel_means(g * self.normal)
        pixels = g.size // g.shape[-1]
        self.gradients = (scale * pixels, shift * pixels)
        # Mean and variance depend on x too: what would move them is taken out of g.
        return (g - shift - self.normal * scale) * (self.scale / self.deviation)


class Relu(Layer):
    def forward(self, x: Array, training: bool) -> Array:
        self.positive = x > 0
        return x * self.positive

    def backward(self, g: Array) -> Array:
        return g * self.positive


class PoolAndClassify(Layer):
    """The mean of each channel over the image, then a score for each of the 10 digits."""

    def __init__(self, random: np.random.Generator, channels: int) -> None:
        self.weights = gaussian(random, (channels, 10), terms=2 * channels)
        self.bias = np.zeros(10, np.float32)
        self.parameters = (self.weights, self.bias)

    def forward(self, x: Array, training: bool) -> Array:
        self.shape, self.means = x.shape, x.mean((1, 2))
        return self.means @ self.weights + self.bias

    def backward(self, g: Array) -> Array:
        self.gradients = (self.means.T @ g, g.sum(0))
        _, height, width, _ = self.shape
        d = (g @ self.weights.T) / (height * width)
        return np.broadcast_to(d[:, None, None, :], self.shape)


def channel_means(x: Array) -> Array:
    """The mean of each channel, as a matrix product: ten times faster than `x.mean((0, 1, 2))`."""
    pixels = x.reshape(-1, x.shape[-1])
    return np.full(len(pixels), 1 / len(pixels), x.dtype) @ pixels


def gaussian(random: np.random.Generator, shape: tuple[int, ...], terms: int) -> Array:
    """Random weights that keep the size of numbers through a sum of `terms` products and a ReLU."""
    return random.standard_normal(shape, np.float32) * np.float32(np.sqrt(2 / terms))
