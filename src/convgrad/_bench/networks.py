"""Whole networks, layer by layer in the order they run, repeats included: what one training step calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .problems import OPS, Problem, parse


def resnet50(batch: int) -> list[Problem]:
    """Version 1.5 at 224x224: the stride is on the 3x3 layer. 53 convolutions."""
    texts = ["224x224x3k7s2o64"]
    before, size = 64, 56
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            small = size // stride
            texts += [
                f"{size}x{size}x{before}k1o{width}",
                f"{size}x{size}x{width}k3s{stride}o{width}",
                f"{small}x{small}x{width}k1o{4 * width}",
            ]
            if not block:
                texts.append(f"{size}x{size}x{before}k1s{stride}o{4 * width}")
            before, size = 4 * width, small
    return [parse(f"{text}b{batch}") for text in texts]


def mobilenet_v2(batch: int) -> list[Problem]:
    """At 224x224, width 1: 35 dense and 17 depthwise convolutions."""
    texts = ["224x224x3k3s2o32"]
    before, size = 32, 112
    rows = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1))
    for widen, width, blocks, first in (*rows, (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(blocks):
            stride, inside = (1 if block else first), widen * before
            if widen > 1:
                texts.append(f"{size}x{size}x{before}k1o{inside}")
            texts.append(f"{size}x{size}x{inside}k3s{stride}")
            size //= stride
            texts.append(f"{size}x{size}x{inside}k1o{width}")
            before = width
    texts.append(f"{size}x{size}x{before}k1o1280")
    return [parse(f"{text}b{batch}") for text in texts]


NETWORKS: dict[str, Callable[[int], list[Problem]]] = {
    "ResNet-50": resnet50,
    "MobileNetV2": mobilenet_v2,
}


def training_step(network: str, batch: int) -> Iterator[tuple[Problem, str]]:
    """Forward through all layers, then both gradients from the last to the first; nobody asks for that of the image."""
    layers = NETWORKS[network](batch)
    for layer in layers:
        yield layer, OPS[0]
    for number, layer in reversed(list(enumerate(layers))):
        if number:
            yield layer, OPS[1]
        yield layer, OPS[2]
