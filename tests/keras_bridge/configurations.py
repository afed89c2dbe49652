"""Layers with settings of all sorts, and images for them: a list that is the same every time."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

KINDS = ("Conv2D", "DepthwiseConv2D", "SeparableConv2D", "Conv2DTranspose")


class Configuration(NamedTuple):
    kind: str
    settings: dict[str, Any]
    image: tuple[int, int, int, int]
    """n, h, w, c, whatever the layer's data format."""

    def __str__(self) -> str:
        words = [f"{name}={value}" for name, value in self.settings.items()]
        return " ".join((self.kind, "x".join(map(str, self.image)), *words)).replace(" ", "_")


def _one(kind: str, draw: random.Random) -> Configuration:
    window = (draw.randint(1, 4), draw.randint(1, 4))
    strides, dilation = (1, 1), (1, 1)
    # TensorFlow natively has no dilated transposed convolutions.
    ways = ("plain", "strided", "strided", *(["dilated"] if kind != "Conv2DTranspose" else []))
    how = draw.choice(ways)
    if how == "strided":
        step = draw.randint(2, 3)
        # Depthwise layers on TensorFlow natively refuse strides that differ.
        oblong = kind in ("Conv2D", "Conv2DTranspose") and draw.random() < 0.4
        strides = (step, 1) if oblong else (step, step)
    if how == "dilated":
        dilation = (draw.randint(1, 2), 2)
    # With one channel on either side Keras on PyTorch natively has no gradients in float64.
    channels = draw.choice((2, 4, 6))
    settings: dict[str, Any] = {
        "kernel_size": window,
        "strides": strides,
        "padding": draw.choice(("valid", "same")),
        "dilation_rate": dilation,
        "use_bias": draw.random() < 0.6,
        "activation": draw.choice((None, None, "tanh")),
        "data_format": draw.choice(("channels_last", "channels_last", "channels_first")),
    }
    if kind != "DepthwiseConv2D":
        settings["filters"] = draw.choice((2, 4, 6))
    if kind in ("DepthwiseConv2D", "SeparableConv2D"):
        settings["depth_multiplier"] = draw.choice((1, 1, 2, 3))
    if kind == "Conv2DTranspose" and max(strides) > 1 and draw.random() < 0.4:
        # On TensorFlow natively the result must not be shorter than a stride allows.
        odd = [(size - 1) * rate % 2 == 0 for size, rate in zip(window, dilation, strict=True)]
        settings["output_padding"] = tuple(0 if step == 1 else step - 1 for step in strides)
        if not all(odd):
            del settings["output_padding"]
    if kind == "Conv2D" and draw.random() < 0.15 and channels % 2 == settings["filters"] % 2 == 0:
        settings["groups"] = 2
    reach = [(size - 1) * rate + 1 for size, rate in zip(window, dilation, strict=True)]
    image = (draw.randint(1, 3), *(edge + draw.randint(0, 7) for edge in reach), channels)
    return Configuration(kind, settings, image)


def configurations(count: int, seed: int = 18) -> list[Configuration]:
    draw = random.Random(seed)
    return [_one(KINDS[at % len(KINDS)], draw) for at in range(count)]
