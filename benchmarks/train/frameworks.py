"""Who trains: one row per framework. The module it names is imported by children only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec

from convgrad._base.errors import nearest
from convgrad._bridges.peers import FRAMEWORKS, Framework

from .configurations import FUSED, KERAS, PLAIN, TENSORFLOW, TORCH, Configuration

TITLES = {
    "mobilenet_v2": "MobileNetV2",
    "mobilenet_v3_large": "MobileNetV3-Large",
    "efficientnet_b0": "EfficientNet-B0",
    "resnet50": "ResNet-50",
    "convnext_t": "ConvNeXt-T",
}
"""The networks, as people write them."""


NETWORKS = ("mobilenet_v2", "resnet50")
"""Those that every framework has."""


@dataclass(frozen=True)
class Training:
    """A row: a framework, how it trains, and in which ways."""

    framework: Framework
    """Which does the work; it limits the threads."""
    trainer: str
    """The module, which satisfies `job.Trainer`."""
    models: tuple[str, ...]
    configurations: tuple[Configuration, ...]
    reference: str
    """The configuration that the table compares everybody with, and that runs in two processes."""
    above: str = ""
    """What models are written in, where that is not the framework itself."""
    above_title: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What all processes have in the environment besides the framework's own."""
    no_layers: str = ""
    """Why its convolutions cannot be timed one by one, where they cannot."""

    @property
    def title(self) -> str:
        named = self.framework.title
        return f"{self.above_title} on {named}" if self.above else named

    @property
    def missing(self) -> tuple[str, str] | None:
        """Return the title and the distribution of what is not installed."""
        if self.above and find_spec(self.above) is None:
            return self.above_title, self.above
        if not self.framework.is_installed:
            return self.framework.title, self.framework.distributions[0]
        return None

    @property
    def versions(self) -> dict[str, str]:
        """The versions that are installed."""
        from importlib.metadata import version  # takes 10 ms

        above = {self.above: version(self.above)} if self.above else {}
        return {**above, self.framework.name: self.framework.version}

    def environment(self, configuration: Configuration, threads: int) -> dict[str, str]:
        """Return the variables for a process of a configuration; frameworks read them when they are imported."""
        own = self.framework.environment(threads)
        return {**own, **self.variables, **configuration.variables}


def _keras(backend: str, configurations: tuple[Configuration, ...]) -> Training:
    return Training(
        FRAMEWORKS[backend],
        "benchmarks.train.keras_trainer",
        NETWORKS,
        configurations,
        "native_memory",
        "keras",
        "Keras",
        {"KERAS_BACKEND": backend},
        f"Keras' convolutions are those of {FRAMEWORKS[backend].title}: time them with --framework {backend}",
    )


TRAININGS = {
    "torch": Training(
        FRAMEWORKS["torch"],
        "benchmarks.train.torch_trainer",
        tuple(TITLES),
        TORCH,
        "native_cl_memory",
    ),
    "jax": Training(
        FRAMEWORKS["jax"],
        "benchmarks.train.jax_trainer",
        NETWORKS,
        PLAIN,
        "native_memory",
    ),
    "tensorflow": Training(
        FRAMEWORKS["tensorflow"],
        "benchmarks.train.tensorflow_trainer",
        NETWORKS,
        TENSORFLOW,
        "native_memory",
    ),
    "keras": _keras("tensorflow", KERAS),
    "keras_jax": _keras("jax", (*PLAIN, *FUSED)),
    "keras_torch": _keras("torch", (*PLAIN, *FUSED)),
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
