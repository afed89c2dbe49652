"""Two networks without a framework, for 1000 classes: each says its layers in order to whoever computes them.

    MobileNetV2      Sandler et al. 2018, table 2
    ResNet-50        He et al. 2015, table 1; the stride is in the 3x3 convolution, as everybody trains it today

`jax_models` and `tensorflow_models` compute, `drafts` has the shapes. Images are NHWC and padding is SAME, as users of
both write it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

CLASSES = 1000
Tensor = Any
"""Of the framework that computes."""


class Layers(Protocol):
    """What a framework computes. Layers with parameters have a name that no other layer of the model has."""

    def convolution(
        self, name: str, x: Tensor, outputs: int, window: int, stride: int, groups: int
    ) -> Tensor:
        """Without a bias; `groups` is 1 or the number of channels."""

    def normalize(self, name: str, x: Tensor) -> Tensor:
        """Batch normalization as in training: by the batch's own statistics, which also move the running ones."""

    def linear(self, name: str, x: Tensor, outputs: int) -> Tensor: ...
    def relu(self, x: Tensor) -> Tensor: ...
    def relu6(self, x: Tensor) -> Tensor: ...
    def max_pool(self, x: Tensor) -> Tensor:
        """Window 3, stride 2."""

    def mean(self, x: Tensor) -> Tensor:
        """Over the image."""

    def channels(self, x: Tensor) -> int: ...


def _normalized(
    net: Layers,
    name: str,
    x: Tensor,
    outputs: int,
    window: int = 1,
    stride: int = 1,
    groups: int = 1,
) -> Tensor:
    y = net.convolution(f"{name}/conv", x, outputs, window, stride, groups)
    return net.normalize(f"{name}/norm", y)


def mobilenet_v2(net: Layers, images: Tensor) -> Tensor:
    """Return the classes' logits; 3,504,872 parameters."""
    x = net.relu6(_normalized(net, "stem", images, 32, 3, 2))
    count = 0
    for expansion, outputs, repeats, first_stride in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for number in range(repeats):
            stride = 1 if number else first_stride
            x = _inverted_residual(net, f"block{count}", x, outputs, stride, expansion)
            count += 1
    x = net.relu6(_normalized(net, "head", x, 1280))
    return net.linear("classifier", net.mean(x), CLASSES)


def _inverted_residual(
    net: Layers, name: str, x: Tensor, outputs: int, stride: int, expansion: int
) -> Tensor:
    """Expand, convolve channel by channel, project; add the input where the shapes agree."""
    inputs = net.channels(x)
    wide, y = inputs * expansion, x
    if expansion != 1:
        y = net.relu6(_normalized(net, f"{name}/expand", y, wide))
    y = net.relu6(_normalized(net, f"{name}/depthwise", y, wide, 3, stride, wide))
    y = _normalized(net, f"{name}/project", y, outputs)
    return x + y if stride == 1 and inputs == outputs else y


def resnet50(net: Layers, images: Tensor) -> Tensor:
    """Return the classes' logits; 25,557,032 parameters."""
    x = net.max_pool(net.relu(_normalized(net, "stem", images, 64, 7, 2)))
    count = 0
    for width, repeats, first_stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for number in range(repeats):
            x = _bottleneck(net, f"block{count}", x, width, 1 if number else first_stride)
            count += 1
    return net.linear("classifier", net.mean(x), CLASSES)


def _bottleneck(net: Layers, name: str, x: Tensor, width: int, stride: int) -> Tensor:
    """Narrow, convolve, widen; the input is added before the last activation."""
    outputs = 4 * width
    y = net.relu(_normalized(net, f"{name}/narrow", x, width))
    y = net.relu(_normalized(net, f"{name}/convolve", y, width, 3, stride))
    y = _normalized(net, f"{name}/widen", y, outputs)
    if stride != 1 or net.channels(x) != outputs:
        x = _normalized(net, f"{name}/shortcut", x, outputs, stride=stride)
    return net.relu(x + y)


NETWORKS: dict[str, Callable[[Layers, Tensor], Tensor]] = {
    "mobilenet_v2": mobilenet_v2,
    "resnet50": resnet50,
}
