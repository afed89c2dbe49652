"""Five networks as PyTorch modules, from the tables of their papers, for 1000 classes.

    MobileNetV2      Sandler et al. 2018, table 2
    MobileNetV3-Large  Howard et al. 2019, table 1; squeezed to a quarter of the expansion, in steps of 8
    EfficientNet-B0  Tan and Le 2019, table 1
    ResNet-50        He et al. 2015, table 1; the stride is in the 3x3 convolution, as everybody trains it today
    ConvNeXt-T       Liu et al. 2022, figure 4 and section 3

Dropout and stochastic depth are left out: they change which work a step does, and this is about its time. Activations
are in place where the usual implementations have them so, because that decides how much memory a step touches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

CLASSES = 1000
Tensor = Any
"""PyTorch's; its types differ from version to version."""


def normalized(
    inputs: int,
    outputs: int,
    window: int = 1,
    stride: int = 1,
    groups: int = 1,
    activation: Callable[..., nn.Module] | None = None,
) -> nn.Sequential:
    """Return convolution, batch normalization and activation: the brick of all but ConvNeXt."""
    pad = (window - 1) // 2
    convolution = nn.Conv2d(inputs, outputs, window, stride, pad, groups=groups, bias=False)
    layers: list[nn.Module] = [convolution, nn.BatchNorm2d(outputs)]
    if activation is not None:
        layers.append(activation(inplace=True))
    return nn.Sequential(*layers)


class Classifier(nn.Module):
    """Features, averaged over the image, what may come then, and one linear layer."""

    def __init__(self, features: nn.Module, channels: int, head: nn.Module | None = None) -> None:
        super().__init__()
        self.features = features
        self.head = nn.Identity() if head is None else head
        self.classifier = nn.Linear(channels, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        return self.classifier(self.head(self.features(images).mean((2, 3))))


class SqueezeExcite(nn.Module):
    """Scale every channel by a number that depends on the averages of all."""

    def __init__(
        self,
        channels: int,
        squeezed: int,
        activation: Callable[..., nn.Module] = nn.SiLU,
        gate: Callable[..., nn.Module] = nn.Sigmoid,
    ) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(channels, squeezed, 1)
        self.excite = nn.Conv2d(squeezed, channels, 1)
        self.activation = activation()
        self.gate = gate()

    def forward(self, x: Tensor) -> Tensor:
        averages = x.mean((2, 3), keepdim=True)
        return x * self.gate(self.excite(self.activation(self.squeeze(averages))))


class InvertedResidual(nn.Module):
    """Expand, convolve channel by channel, project; add the input where the shapes agree."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        window: int,
        stride: int,
        wide: int,
        activation: Callable[..., nn.Module],
        excite: nn.Module | None = None,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        if wide != inputs:
            layers.append(normalized(inputs, wide, activation=activation))
        layers.append(normalized(wide, wide, window, stride, wide, activation))
        if excite is not None:
            layers.append(excite)
        layers.append(normalized(wide, outputs))
        self.block = nn.Sequential(*layers)
        self.adds_input = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        return x + self.block(x) if self.adds_input else self.block(x)


def mobilenet_v2() -> nn.Module:
    """3,504,872 parameters."""
    layers: list[nn.Module] = [normalized(3, 32, 3, 2, activation=nn.ReLU6)]
    inputs = 32
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
            wide = inputs * expansion
            layers.append(InvertedResidual(inputs, outputs, 3, stride, wide, nn.ReLU6))
            inputs = outputs
    layers.append(normalized(inputs, 1280, activation=nn.ReLU6))
    return Classifier(nn.Sequential(*layers), 1280)


def mobilenet_v3_large() -> nn.Module:
    """5,483,032 parameters."""
    layers: list[nn.Module] = [normalized(3, 16, 3, 2, activation=nn.Hardswish)]
    inputs = 16
    for window, wide, outputs, squeezed, activation, stride in (
        (3, 16, 16, 0, nn.ReLU, 1),
        (3, 64, 24, 0, nn.ReLU, 2),
        (3, 72, 24, 0, nn.ReLU, 1),
        (5, 72, 40, 24, nn.ReLU, 2),
        (5, 120, 40, 32, nn.ReLU, 1),
        (5, 120, 40, 32, nn.ReLU, 1),
        (3, 240, 80, 0, nn.Hardswish, 2),
        (3, 200, 80, 0, nn.Hardswish, 1),
        (3, 184, 80, 0, nn.Hardswish, 1),
        (3, 184, 80, 0, nn.Hardswish, 1),
        (3, 480, 112, 120, nn.Hardswish, 1),
        (3, 672, 112, 168, nn.Hardswish, 1),
        (5, 672, 160, 168, nn.Hardswish, 2),
        (5, 960, 160, 240, nn.Hardswish, 1),
        (5, 960, 160, 240, nn.Hardswish, 1),
    ):
        excite = SqueezeExcite(wide, squeezed, nn.ReLU, nn.Hardsigmoid) if squeezed else None
        layers.append(InvertedResidual(inputs, outputs, window, stride, wide, activation, excite))
        inputs = outputs
    layers.append(normalized(inputs, 960, activation=nn.Hardswish))
    head = nn.Sequential(nn.Linear(960, 1280), nn.Hardswish(inplace=True))
    return Classifier(nn.Sequential(*layers), 1280, head)


def efficientnet_b0() -> nn.Module:
    """5,288,548 parameters. Squeezes to a quarter of the block's input, not of its expansion."""
    layers: list[nn.Module] = [normalized(3, 32, 3, 2, activation=nn.SiLU)]
    inputs = 32
    for expansion, window, first_stride, outputs, repeats in (
        (1, 3, 1, 16, 1),
        (6, 3, 2, 24, 2),
        (6, 5, 2, 40, 2),
        (6, 3, 2, 80, 3),
        (6, 5, 1, 112, 3),
        (6, 5, 2, 192, 4),
        (6, 3, 1, 320, 1),
    ):
        for number in range(repeats):
            stride = 1 if number else first_stride
            wide = inputs * expansion
            excite = SqueezeExcite(wide, inputs // 4)
            layers.append(InvertedResidual(inputs, outputs, window, stride, wide, nn.SiLU, excite))
            inputs = outputs
    layers.append(normalized(inputs, 1280, activation=nn.SiLU))
    return Classifier(nn.Sequential(*layers), 1280)


class Bottleneck(nn.Module):
    """Narrow, convolve, widen; the input is added before the last activation."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.block = nn.Sequential(
            normalized(inputs, width, activation=nn.ReLU),
            normalized(width, width, 3, stride, activation=nn.ReLU),
            normalized(width, outputs),
        )
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else normalized(inputs, outputs, stride=stride)
        self.activation = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.block(x)
        y += self.shortcut(x)
        return self.activation(y)


def resnet50() -> nn.Module:
    """25,557,032 parameters."""
    layers: list[nn.Module] = [
        normalized(3, 64, 7, 2, activation=nn.ReLU),
        nn.MaxPool2d(3, 2, 1),
    ]
    inputs = 64
    for width, repeats, first_stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for number in range(repeats):
            layers.append(Bottleneck(inputs, width, 1 if number else first_stride))
            inputs = 4 * width
    return Classifier(nn.Sequential(*layers), inputs)


class ChannelNorm(nn.LayerNorm):
    """Layer normalization over the channels of an image."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    """Convolve channel by channel, then two linear layers at every place, scaled and added to the input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.at_every_place = nn.Sequential(
            nn.LayerNorm(channels, eps=1e-6),
            nn.Linear(channels, 4 * channels),
            nn.GELU(),
            nn.Linear(4 * channels, channels),
        )
        self.scale = nn.Parameter(torch.full((channels,), 1e-6))

    def forward(self, x: Tensor) -> Tensor:
        places = self.convolution(x).permute(0, 2, 3, 1)
        return x + (self.scale * self.at_every_place(places)).permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    """Four stages, each begun by a convolution that does not overlap; normalized before the classifier."""

    def __init__(self, channels: tuple[int, ...], repeats: tuple[int, ...]) -> None:
        super().__init__()
        layers: list[nn.Module] = [
            nn.Conv2d(3, channels[0], 4, 4),
            ChannelNorm(channels[0], eps=1e-6),
        ]
        before = channels[0]
        for stage, (width, count) in enumerate(zip(channels, repeats, strict=True)):
            if stage:
                layers += [ChannelNorm(before, eps=1e-6), nn.Conv2d(before, width, 2, 2)]
            layers += [ConvNeXtBlock(width) for _ in range(count)]
            before = width
        self.features = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(before, eps=1e-6)
        self.classifier = nn.Linear(before, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        return self.classifier(self.norm(self.features(images).mean((2, 3))))


def convnext_t() -> nn.Module:
    """28,589,128 parameters."""
    return ConvNeXt((96, 192, 384, 768), (3, 3, 9, 3))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "mobilenet_v2": mobilenet_v2,
    "mobilenet_v3_large": mobilenet_v3_large,
    "efficientnet_b0": efficientnet_b0,
    "resnet50": resnet50,
    "convnext_t": convnext_t,
}
