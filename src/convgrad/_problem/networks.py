"""Whole networks, layer by layer in the order they run, repeats included: what one training step calls.

A network is a function that lists its convolutions as texts of `layer_text` without batch; a new one is such a
function and a row of `NETWORKS`. Sizes are those of the published networks at 224x224 unless noted, with SAME padding
as in their TensorFlow versions. Squeeze-and-excitation layers are 1x1 convolutions of 1x1 images; classifiers are
left out.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import NamedTuple


def _square(
    size: int, channels: int, window: int, outputs: int = 0, stride: int = 1, groups: int = 1
) -> str:
    """Write a layer on square images; depthwise without `outputs`."""
    dense = f"o{outputs}" if outputs else ""
    grouped = f"g{groups}" if groups > 1 else ""
    return f"{size}x{size}x{channels}k{window}s{stride}{dense}{grouped}"


def _squeeze(channels: int, reduced: int) -> list[str]:
    return [_square(1, channels, 1, reduced), _square(1, reduced, 1, channels)]


def resnet50(groups: int = 1, inner: int = 64) -> list[str]:
    """Version 1.5: the stride is on the 3x3 layer. 53 convolutions."""
    texts = [_square(224, 3, 7, 64, 2)]
    before, size = 64, 56
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width, outputs = inner << stage, 256 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            texts += [
                _square(size, before, 1, width),
                _square(size, width, 3, width, stride, groups),
                _square(size // stride, width, 1, outputs),
            ]
            if not block:
                texts.append(_square(size, before, 1, outputs, stride))
            before, size = outputs, size // stride
    return texts


def resnet18() -> list[str]:
    """20 convolutions."""
    texts = [_square(224, 3, 7, 64, 2)]
    before, size = 64, 56
    for stage in range(4):
        width = 64 << stage
        for block in range(2):
            stride = 2 if stage and not block else 1
            texts.append(_square(size, before, 3, width, stride))
            texts.append(_square(size // stride, width, 3, width))
            if stride > 1:
                texts.append(_square(size, before, 1, width, stride))
            before, size = width, size // stride
    return texts


def resnext50() -> list[str]:
    """32 groups of 4 to 32 channels in the 3x3 layers."""
    return resnet50(groups=32, inner=128)


def vgg16() -> list[str]:
    """13 convolutions, all 3x3."""
    texts: list[str] = []
    before = 3
    for stage, (blocks, width) in enumerate(((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))):
        for _ in range(blocks):
            texts.append(_square(224 >> stage, before, 3, width))
            before = width
    return texts


def densenet121() -> list[str]:
    """Growth 32; every layer of a block sees all those before it."""
    texts = [_square(224, 3, 7, 64, 2)]
    channels, size = 64, 56
    for stage, blocks in enumerate((6, 12, 24, 16)):
        for _ in range(blocks):
            texts += [_square(size, channels, 1, 128), _square(size, 128, 3, 32)]
            channels += 32
        if stage < 3:
            texts.append(_square(size, channels, 1, channels // 2))
            channels, size = channels // 2, size // 2
    return texts


def unet() -> list[str]:
    """At 256x256 with 32 to 512 channels: two 3x3 layers per level down and up, and 2x2 upsampling by 1x1."""
    texts: list[str] = []
    before = 3
    for level in range(5):
        width = 32 << level
        texts += [_square(256 >> level, before, 3, width), _square(256 >> level, width, 3, width)]
        before = width
    for level in reversed(range(4)):
        width = 32 << level
        texts.append(_square(128 >> level, 2 * width, 1, 4 * width))
        texts += [
            _square(256 >> level, 2 * width, 3, width),
            _square(256 >> level, width, 3, width),
        ]
    return [*texts, _square(256, 32, 1, 2)]


def mobilenet_v1() -> list[str]:
    """Width 1: 13 pairs of a depthwise and a pointwise layer."""
    texts = [_square(224, 3, 3, 32, 2)]
    before, size = 32, 112
    strides = {64: 1, 128: 2, 256: 2, 512: 2, 1024: 2}
    for width in (64, 128, 128, 256, 256, *(512,) * 6, 1024, 1024):
        stride = strides[width] if width != before else 1
        texts.append(_square(size, before, 3, stride=stride))
        size //= stride
        texts.append(_square(size, before, 1, width))
        before = width
    return texts


def mobilenet_v2() -> list[str]:
    """Width 1: 35 dense and 17 depthwise convolutions."""
    texts = [_square(224, 3, 3, 32, 2)]
    before, size = 32, 112
    rows = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1))
    for widen, width, blocks, first in (*rows, (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(blocks):
            stride, inside = (1 if block else first), widen * before
            if widen > 1:
                texts.append(_square(size, before, 1, inside))
            texts.append(_square(size, inside, 3, stride=stride))
            size //= stride
            texts.append(_square(size, inside, 1, width))
            before = width
    return [*texts, _square(size, before, 1, 1280)]


_LARGE = """16,16,3,1,0 64,24,3,2,0 72,24,3,1,0 72,40,5,2,24 120,40,5,1,32 120,40,5,1,32 240,80,3,2,0 200,80,3,1,0
    184,80,3,1,0 184,80,3,1,0 480,112,3,1,120 672,112,3,1,168 672,160,5,2,168 960,160,5,1,240 960,160,5,1,240"""
_SMALL = """16,16,3,2,8 72,24,3,2,0 88,24,3,1,0 96,40,5,2,24 240,40,5,1,64 240,40,5,1,64 120,48,5,1,32 144,48,5,1,40
    288,96,5,2,72 576,96,5,1,144 576,96,5,1,144"""
"""MobileNetV3's blocks: widened channels, outputs, window, stride, squeezed channels."""


def _mobilenet_v3(rows: str) -> list[str]:
    texts = [_square(224, 3, 3, 16, 2)]
    before, size = 16, 112
    for row in rows.split():
        inside, width, window, stride, reduced = map(int, row.split(","))
        if inside != before:
            texts.append(_square(size, before, 1, inside))
        texts.append(_square(size, inside, window, stride=stride))
        size //= stride
        if reduced:
            texts += _squeeze(inside, reduced)
        texts.append(_square(size, inside, 1, width))
        before = width
    return [*texts, _square(size, before, 1, 6 * before)]


def mobilenet_v3_large() -> list[str]:
    """15 blocks, 8 of them with squeeze-and-excitation."""
    return _mobilenet_v3(_LARGE)


def mobilenet_v3_small() -> list[str]:
    """11 blocks, 9 of them with squeeze-and-excitation."""
    return _mobilenet_v3(_SMALL)


def efficientnet_b0() -> list[str]:
    """16 blocks, all with squeeze-and-excitation to a quarter of the block's input."""
    texts = [_square(224, 3, 3, 32, 2)]
    before, size = 32, 112
    rows = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3))
    for widen, width, blocks, first, window in (
        *rows,
        *((6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)),
    ):
        for block in range(blocks):
            stride, inside = (1 if block else first), widen * before
            if widen > 1:
                texts.append(_square(size, before, 1, inside))
            texts.append(_square(size, inside, window, stride=stride))
            size //= stride
            texts += [*_squeeze(inside, before // 4), _square(size, inside, 1, width)]
            before = width
    return [*texts, _square(size, before, 1, 1280)]


def convnext_tiny() -> list[str]:
    """18 blocks of a 7x7 depthwise layer and two pointwise ones; 2x2 windows of stride 2 between stages."""
    texts = ["224x224x3k4s4o96v"]
    size, before = 56, 96
    for stage, blocks in enumerate((3, 3, 9, 3)):
        width = 96 << stage
        if stage:
            texts.append(f"{size}x{size}x{before}k2s2o{width}v")
            size //= 2
        block = [_square(size, width, 7), _square(size, width, 1, 4 * width)]
        texts += [*block, _square(size, 4 * width, 1, width)] * blocks
        before = width
    return texts


class Network(NamedTuple):
    """A row: how people write its name, and its layers without batch."""

    title: str
    texts: Callable[[], list[str]]


NETWORKS = {
    "mobilenet_v1": Network("MobileNetV1", mobilenet_v1),
    "mobilenet_v2": Network("MobileNetV2", mobilenet_v2),
    "mobilenet_v3_large": Network("MobileNetV3-Large", mobilenet_v3_large),
    "mobilenet_v3_small": Network("MobileNetV3-Small", mobilenet_v3_small),
    "efficientnet_b0": Network("EfficientNet-B0", efficientnet_b0),
    "convnext_tiny": Network("ConvNeXt-T", convnext_tiny),
    "resnet18": Network("ResNet-18", resnet18),
    "resnet50": Network("ResNet-50", resnet50),
    "resnext50": Network("ResNeXt-50 32x4d", resnext50),
    "densenet121": Network("DenseNet-121", densenet121),
    "vgg16": Network("VGG-16", vgg16),
    "unet": Network("U-Net", unet),
}


def find(name: str) -> str:
    """Return the key a person means: capitals, hyphens and underscores do not matter.

    >>> find("MobileNetV2"), find("resnet-50")
    ('mobilenet_v2', 'resnet50')
    """
    plain = {_plain(word): key for key, row in NETWORKS.items() for word in (key, row.title)}
    key = plain.get(_plain(name))
    if key is None:
        near = difflib.get_close_matches(_plain(name), plain, n=1)
        hint = f", did you mean {plain[near[0]]}?" if near else ";"
        raise ValueError(f"no model {name!r}{hint} there are {', '.join(NETWORKS)}")
    return key


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
