"""The layers we measure: one string per network, in the text form of `layers.parse`, batch left to the suite.

A new suite is one row of `SUITES`. Layers are those of the published networks at their published image size
(224 unless noted), stride 2 where the network halves the image, SAME padding as in their TensorFlow versions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .layers import Layer, deduplicate, parse

DEPTHWISE = {
    "mb1": """112x112x32k3 112x112x64k3s2 56x56x128k3 56x56x128k3s2 28x28x256k3 28x28x256k3s2 14x14x512k3
        14x14x512k3s2 7x7x1024k3""",
    "mb2": """112x112x32k3 112x112x96k3s2 56x56x144k3 56x56x144k3s2 28x28x192k3 28x28x192k3s2 14x14x384k3
        14x14x576k3 14x14x576k3s2 7x7x960k3""",
    # Large, then Small.
    "mb3": """112x112x16k3 112x112x64k3s2 56x56x72k3 56x56x72k5s2 28x28x120k5 28x28x240k3s2 14x14x200k3 14x14x184k3
        14x14x480k3 14x14x672k3 14x14x672k5s2 7x7x960k5
        112x112x16k3s2 56x56x72k3s2 28x28x88k3 28x28x96k5s2 14x14x240k5 14x14x120k5 14x14x144k5 14x14x288k5s2
        7x7x576k5""",
    "ef0": """112x112x32k3 112x112x96k3s2 56x56x144k3 56x56x144k5s2 28x28x240k5 28x28x240k3s2 14x14x480k3
        14x14x480k5 14x14x672k5 14x14x672k5s2 7x7x1152k5 7x7x1152k3""",
    "mnas": """112x112x32k3 112x112x48k3s2 56x56x72k3 56x56x72k5s2 28x28x120k5 28x28x240k5s2 14x14x480k5 14x14x480k3
        14x14x576k3 14x14x576k5s2 7x7x1152k5 7x7x1152k3""",
    "cnx": "56x56x96k7 28x28x192k7 14x14x384k7 7x7x768k7",
    # Image 299.
    "xcep": """147x147x64k3 147x147x128k3 74x74x128k3 74x74x256k3 37x37x256k3 37x37x728k3 19x19x728k3
        10x10x1024k3 10x10x1536k3""",
    "shuf2": "56x56x24k3s2 56x56x58k3s2 28x28x58k3 28x28x116k3s2 14x14x116k3 14x14x232k3s2 7x7x232k3",
}
"""Measured at batch 8, and some at other batches below."""

DEPTHWISE_OTHER = {
    # DeepLab on MobileNetV2 and Xception, image 513, output stride 16 and 8; its pyramid at rates 6 to 18.
    "deeplab": """33x33x960k3d2b2 65x65x384k3d2b2 65x65x960k3d4b1 33x33x2048k3d6b1 33x33x2048k3d12b1 33x33x256k3d18b2
        28x28x240k3d2b8 28x28x256k3d2b8""",
    "replk": "56x56x128k31b1 28x28x256k29b1 14x14x512k27b8 7x7x1024k13b8",
    "mult": "28x28x96k3m2b8 28x28x64k3m4b8 56x56x32k3m2b8 56x56x32k3s2m4b8 112x112x3k3s2m8b8 14x14x128k5m2b8",
    "odd": """112x112x3k3b8 112x112x3k3s2b8 96x96x4k3b8 56x56x17k3b8 28x5x64k3b8 5x5x48k3b8 57x43x24k3b8 57x43x24k3s2b8
        29x31x40k5s2b8 40x40x100k3b8 13x13x36k7b8 150x150x64k3s2b2 80x80x48k3b4 30x30x32k3vb8 31x31x20k4s2b8
        28x28x64k1x7b8 28x28x64k7x1b8 56x56x1k5b8""",
    "mb2": """112x112x32k3b1 112x112x96k3s2b1 56x56x144k3b1 28x28x192k3b1 14x14x384k3b1 14x14x576k3b1 7x7x960k3b1
        112x112x32k3b32 56x56x144k3b32 14x14x576k3b32""",
    "cnx": "56x56x96k7b1 28x28x192k7b1 14x14x384k7b1 7x7x768k7b1 14x14x384k7b32",
    "ef0": "28x28x240k5b1 14x14x672k5b1 7x7x1152k5b1 28x28x240k5b32",
}

DEPTHWISE_QUICK = """112x112x32k3b8 112x112x96k3s2b8 56x56x144k3b8 14x14x384k3b8 7x7x960k3b1 28x28x240k5b8 14x14x384k7b8
    28x28x256k3d2b8 28x28x96k3m2b8 56x56x17k3b8"""

DENSE = {
    # Version 1.5: the stride is on the 3x3 layer.
    "rn50": """56x56x64k1o64 56x56x64k3o64 56x56x64k1o256 56x56x256k1o64 56x56x256k1o128 56x56x128k3s2o128
        28x28x128k1o512
        56x56x256k1s2o512 28x28x512k1o128 28x28x128k3o128 28x28x512k1o256 28x28x256k3s2o256 14x14x256k1o1024
        28x28x512k1s2o1024 14x14x1024k1o256 14x14x256k3o256 14x14x1024k1o512 14x14x512k3s2o512 7x7x512k1o2048
        14x14x1024k1s2o2048 7x7x2048k1o512 7x7x512k3o512""",
    "rnx4d": """56x56x128k3o128g32 56x56x256k3s2o256g32 28x28x256k3o256g32 28x28x512k3s2o512g32 14x14x512k3o512g32
        14x14x1024k3s2o1024g32 7x7x1024k3o1024g32""",
    "rnx8d": "56x56x256k3o256g32 28x28x512k3o512g32 14x14x1024k3o1024g32 7x7x2048k3o2048g32",
    # Groups of 4 channels at every stage, and some that change the number of channels.
    "g4": """56x56x64k3o64g16 28x28x128k3o128g32 14x14x256k3o256g64 7x7x512k3o512g128 56x56x64k3s2o128g16
        28x28x128k1o256g32""",
    "mb2": """112x112x32k1o16 112x112x16k1o96 56x56x96k1o24 56x56x24k1o144 56x56x144k1o24 28x28x144k1o32 28x28x32k1o192
        28x28x192k1o32 14x14x192k1o64 14x14x64k1o384 14x14x384k1o64 14x14x384k1o96 14x14x96k1o576 14x14x576k1o96
        7x7x576k1o160 7x7x160k1o960 7x7x960k1o160 7x7x960k1o320 7x7x320k1o1280""",
    "dense121": """56x56x64k1o128 56x56x128k3o32 56x56x256k1o128 28x28x128k3o32 28x28x384k1o128 28x28x512k1o256
        14x14x128k3o32 14x14x640k1o128 14x14x1024k1o512 7x7x128k3o32 7x7x768k1o128""",
    "first": "224x224x3k7s2o64 224x224x3k3s2o32 224x224x3k4s4vo96 299x299x3k3s2vo32",
}

DENSE_OTHER = {
    "vgg": """224x224x3k3o64b1 224x224x64k3o64b1 112x112x64k3o128b1 112x112x128k3o128b1 56x56x128k3o256b2
        56x56x256k3o256b2 28x28x256k3o512b8 28x28x512k3o512b4 14x14x512k3o512b8""",
    "unet": """256x256x32k3o32b1 256x256x64k3o32b1 128x128x64k3o64b1 64x64x128k3o128b1 32x32x256k3o256b1
        16x16x512k3o512b1""",
    "deeplab": "33x33x256k3d2o256b2 33x33x512k3d4o512b1 33x33x512k3d12o256b1 65x65x256k3d2o256b1 28x28x256k3d2o256b8",
    "fc": "1x1x2048k1o1000b1 1x1x2048k1o1000b8 1x1x2048k1o1000b32 1x1x1280k1o1000b8 7x7x512k7vo1024b8",
    "odd": """5x5x17k3o33b8 30x30x17k3o33b8 31x29x20k3s2o50b8 57x43x3k5o7b8 13x13x36k4o100b8 28x28x60k3o60g5b8
        40x40x100k1o100b8 28x28x64k1x7o64b8 28x28x64k7x1o64b8 28x28x1k3o64b8 28x28x64k3o1b8""",
    "rn50": """56x56x64k3o64b1 28x28x128k3o128b1 14x14x256k3o256b1 7x7x512k3o512b1 56x56x64k1o256b1 14x14x1024k1o256b1
        56x56x64k3o64b32 14x14x256k3o256b32 7x7x512k3o512b32""",
    "mb2": "56x56x24k1o144b1 14x14x96k1o576b1 7x7x320k1o1280b1 14x14x96k1o576b32",
    "rnx4d": "56x56x128k3o128g32b1 14x14x512k3o512g32b1 14x14x512k3o512g32b32",
    "first": "224x224x3k7s2o64b1 224x224x3k7s2o64b32 224x224x3k3s2o32b1",
    "huge": "1024x1024x3k3o16b1 1024x1024x16k3o16b1 1536x2048x3k7s2o32b1 1x262144x16k1x9o16b1 262144x1x16k9x1o16b1",
    # Many channels, few pixels, and the other way round.
    "wide": """7x7x2048k3o1024b1 4x4x1024k3o1024b8 1x1x9216k1o4096b8 14x14x4096k1o512b1 3x3x64k3o4096b8
        3x3x4096k3o64b8 112x112x8k3o8b8 112x112x16k1o8b8""",
}

DENSE_QUICK = """56x56x64k3o64b8 56x56x64k1o256b8 56x56x128k3s2o128b8 14x14x256k3o256b8 7x7x512k3o512b1 14x14x96k1o576b8
    56x56x128k3o128g32b8 224x224x3k7s2o64b8 28x28x256k3d2o256b8 30x30x17k3o33b8"""


@dataclass(frozen=True)
class Suite:
    """A named list of layers and the few that `--quick` takes from it."""

    name: str
    layers: tuple[Layer, ...]
    quick: tuple[Layer, ...]


def _read(table: dict[str, str], batch: int = 0) -> list[Layer]:
    layers = [parse(f"{label}:{text}") for label, texts in table.items() for text in texts.split()]
    return [layer.with_batch(batch) for layer in layers] if batch else layers


def _suite(name: str, at_batch_8: dict[str, str], other: dict[str, str], quick: str) -> Suite:
    layers = deduplicate([*_read(at_batch_8, batch=8), *_read(other)])
    named = {layer.text: layer for layer in layers}
    chosen = [parse(text) for text in quick.split()]
    return Suite(name, layers, tuple(named.get(layer.text, layer) for layer in chosen))


SUITES = {
    suite.name: suite
    for suite in (
        _suite("depthwise", DEPTHWISE, DEPTHWISE_OTHER, DEPTHWISE_QUICK),
        _suite("dense", DENSE, DENSE_OTHER, DENSE_QUICK),
    )
}


def find_layers(suite: str, *, quick: bool = False, pattern: str = "") -> list[Layer]:
    """Return the layers of a suite, or of ``"all"``, whose name or any other label matches `pattern`."""
    rows = SUITES.values() if suite == "all" else [SUITES[suite]]
    layers = [p for row in rows for p in (row.quick if quick else row.layers)]
    found = re.compile(pattern)
    return [p for p in layers if found.search(p.name) or any(map(found.search, p.labels))]
