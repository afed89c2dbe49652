"""A network of `networks` before any framework has seen it: its parameters, its convolutions, and a batch for it.

Whoever trains starts from the same numbers, so first losses can be compared between configurations, and between JAX
and TensorFlow too.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from convgrad._base.dtypes import AnyArray
from convgrad._problem.geometry import solve

from .job import Job
from .networks import CLASSES, NETWORKS

Shape = tuple[int, ...]
Tree = dict[str, dict[str, AnyArray]]
"""Arrays by layer and by role: a kernel, a scale, a bias, a mean, a variance."""


class Convolution(NamedTuple):
    """What tells two convolutions of a model apart; NHWC and HWIO."""

    input: Shape
    filter: Shape
    stride: int
    groups: int
    input_gradient: bool
    """The first layer of a model is not asked for it."""

    @property
    def is_depthwise(self) -> bool:
        return self.groups > 1

    @property
    def output(self) -> Shape:
        batch, height, width, _ = self.input
        window = self.filter[0]
        rows, cols = (solve(size, window, self.stride, 1, "SAME") for size in (height, width))
        return (batch, rows.out, cols.out, self.filter[3])

    def row(self) -> dict[str, object]:
        """Return the words of a row of `report.as_layer`, which are PyTorch's: NCHW, OIHW."""
        batch, height, width, channels = self.input
        window, _, inputs, outputs = self.filter
        axes = [solve(size, window, self.stride, 1, "SAME") for size in (height, width)]
        return {
            "input": (batch, channels, height, width),
            "filter": (outputs, inputs, window, window),
            "stride": (self.stride, self.stride),
            "padding": [(axis.before, axis.after) for axis in axes],
            "dilation": (1, 1),
            "groups": self.groups,
            "bias": False,
            "input_gradient": self.input_gradient,
        }


class Sketch:
    """Stands for an image: its shape, and nothing else."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape

    def __add__(self, other: Sketch) -> Sketch:
        assert self.shape == other.shape, f"{self.shape} + {other.shape}"
        return self


class Draft:
    """The layers of a network as they were said, by shapes. Satisfies `networks.Layers`."""

    def __init__(self) -> None:
        self.shapes: dict[str, dict[str, Shape]] = {}
        """Of the parameters, by layer and role."""
        self.normalized: dict[str, int] = {}
        """Channels by layer with running statistics."""
        self.convolutions: dict[Convolution, int] = {}
        """How often each occurs."""

    def convolution(
        self, name: str, x: Sketch, outputs: int, window: int, stride: int, groups: int
    ) -> Sketch:
        taps = (window, window, x.shape[3] // groups, outputs)
        found = Convolution(x.shape, taps, stride, groups, bool(self.convolutions))
        self.convolutions[found] = self.convolutions.get(found, 0) + 1
        self._add(name, kernel=taps)
        return Sketch(*found.output)

    def normalize(self, name: str, x: Sketch) -> Sketch:
        channels = x.shape[-1]
        self._add(name, scale=(channels,), bias=(channels,))
        self.normalized[name] = channels
        return x

    def linear(self, name: str, x: Sketch, outputs: int) -> Sketch:
        self._add(name, kernel=(x.shape[1], outputs), bias=(outputs,))
        return Sketch(x.shape[0], outputs)

    def relu(self, x: Sketch) -> Sketch:
        return x

    def relu6(self, x: Sketch) -> Sketch:
        return x

    def max_pool(self, x: Sketch) -> Sketch:
        batch, height, width, channels = x.shape
        return Sketch(batch, (height + 1) // 2, (width + 1) // 2, channels)

    def mean(self, x: Sketch) -> Sketch:
        return Sketch(x.shape[0], x.shape[3])

    def channels(self, x: Sketch) -> int:
        return x.shape[-1]

    def _add(self, name: str, **shapes: Shape) -> None:
        assert name not in self.shapes, f"two layers are called {name}"
        self.shapes[name] = shapes

    @property
    def parameters(self) -> int:
        return sum(prod(shape) for layer in self.shapes.values() for shape in layer.values())


def draft(model: str, batch: int, image: int) -> Draft:
    """Return what a network consists of for images of some size."""
    found = Draft()
    logits = NETWORKS[model](found, Sketch(batch, image, image, 3))
    assert logits.shape == (batch, CLASSES)
    return found


def starting_values(of: Draft, seed: int) -> tuple[Tree, Tree]:
    """Return the parameters and the running statistics a training starts from."""
    random = np.random.default_rng(seed)

    def values(role: str, shape: Shape) -> AnyArray:
        if role == "kernel":  # He et al. 2015: the size of numbers is kept from layer to layer
            deviation = (2 / prod(shape[:-1])) ** 0.5 if len(shape) == 4 else 0.01
            return random.standard_normal(shape, np.float32) * np.float32(deviation)
        return np.full(shape, role == "scale", np.float32)

    parameters = {
        name: {role: values(role, shape) for role, shape in shapes.items()}
        for name, shapes in of.shapes.items()
    }
    statistics = {
        name: {"mean": np.zeros(size, np.float32), "variance": np.ones(size, np.float32)}
        for name, size in of.normalized.items()
    }
    return parameters, statistics


def batch_of(job: Job) -> tuple[AnyArray, AnyArray]:
    """Return images, NHWC, and the numbers of their classes."""
    random = np.random.default_rng([job.seed, 1])
    images = random.standard_normal((job.batch, job.image, job.image, 3), np.float32)
    return images, random.integers(0, CLASSES, job.batch, np.int32)
