"""Who trains: one row per framework. The module it names is imported by children only."""

from __future__ import annotations

from dataclasses import dataclass

from ..._errors import nearest
from ..._frameworks import FRAMEWORKS, Framework
from .configurations import CONFIGURATIONS, Configuration

TITLES = {
    "mobilenet_v2": "MobileNetV2",
    "efficientnet_b0": "EfficientNet-B0",
    "resnet50": "ResNet-50",
    "convnext_t": "ConvNeXt-T",
}
"""The networks, as people write them."""


@dataclass(frozen=True)
class Training:
    """A row: a framework, how it trains, and in which ways."""

    framework: Framework
    trainer: str
    """The module, which satisfies `job.Trainer`."""
    models: tuple[str, ...]
    configurations: tuple[Configuration, ...]


TRAININGS = {
    "torch": Training(
        FRAMEWORKS["torch"],
        "convgrad._bench.train.torch_trainer",
        tuple(TITLES),
        CONFIGURATIONS,
    ),
}


def find_model(name: str, models: tuple[str, ...]) -> str:
    """Return the model's name as we write it, or say which there are.

    >>> find_model("ResNet50", tuple(TITLES))
    'resnet50'
    """
    written = name.lower().replace("-", "_")
    if written not in models:
        raise ValueError(
            f"no model {name!r}{nearest(written, models) or ';'} there are {', '.join(models)}"
        )
    return written
