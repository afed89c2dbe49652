"""In which ways a training step is run: one row each, and which of them are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from convgrad._base.errors import nearest

Family = Literal["native", "compiled", "ours", "installed"]

AGAIN = "#2"
"""Behind a name: a second process of the same configuration. What the two differ by is noise."""


@dataclass(frozen=True)
class Configuration:
    """A row: what is done to a model before it is trained."""

    name: str
    meaning: str
    family: Family = "native"
    """The fastest native row of a memory setting is whom all others with that setting are compared with."""
    layout: Literal["contiguous", "channels_last"] = "contiguous"
    memory: bool = False
    """Whether the allocator is told to keep freed blocks, which saves native and us alike most page faults."""
    accelerate: Mapping[str, Any] = field(default_factory=dict)
    """Ours only: arguments of `accelerate`."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What its process has in the environment: frameworks read it when they are imported."""

    @property
    def may_fail(self) -> bool:
        """Whether the run is still good without it: not every model compiles, nor in reasonable time."""
        return self.family == "compiled"


TORCH = (
    Configuration("native", "the framework's own layout"),
    Configuration("native_cl", "channels_last", layout="channels_last"),
    Configuration("native_memory", "its own layout, memory setting", memory=True),
    Configuration(
        "native_cl_memory",
        "channels_last, memory setting",
        layout="channels_last",
        memory=True,
    ),
    Configuration(
        "compile_cl_memory",
        "torch.compile, channels_last, memory setting",
        family="compiled",
        layout="channels_last",
        memory=True,
    ),
    Configuration("ours", "convgrad, channels_last", family="ours", layout="channels_last"),
    Configuration(
        "ours_memory",
        "convgrad, channels_last, memory setting",
        family="ours",
        layout="channels_last",
        memory=True,
    ),
    Configuration(
        "fused",
        "convgrad, blocks fused, channels_last",
        family="ours",
        layout="channels_last",
        accelerate={"fuse": True},
    ),
    Configuration(
        "fused_memory",
        "convgrad, blocks fused, channels_last, memory setting",
        family="ours",
        layout="channels_last",
        memory=True,
        accelerate={"fuse": True},
    ),
)

PLAIN = (
    Configuration("native", "as it comes"),
    Configuration("native_memory", "memory setting", memory=True),
    Configuration("ours", "convgrad", family="ours"),
    Configuration("ours_memory", "convgrad, memory setting", family="ours", memory=True),
)
"""Of a framework whose arrays lie in one way only."""

FUSED = (
    Configuration("fused", "convgrad, batch norms fused", "ours", accelerate={"fuse": True}),
    Configuration(
        "fused_memory",
        "the same, memory setting",
        "ours",
        memory=True,
        accelerate={"fuse": True},
    ),
)
"""Of Keras, whose layers can be told from each other."""

_ONEDNN = "TF_ENABLE_ONEDNN_OPTS"

TENSORFLOW = (
    *(replace(row, variables={_ONEDNN: "1"}) for row in PLAIN),
    Configuration("native_plain", "without oneDNN", variables={_ONEDNN: "0"}),
    Configuration(
        "native_plain_memory",
        "without oneDNN, memory setting",
        memory=True,
        variables={_ONEDNN: "0"},
    ),
)
"""TensorFlow decides by the CPU whether oneDNN is on unless it is told, so every row tells it."""

KERAS = (
    *TENSORFLOW,
    *(replace(row, variables={_ONEDNN: "1"}) for row in FUSED),
    Configuration(
        "installed",
        "the model unchanged after convgrad.tensorflow.install()",
        family="installed",
        variables={_ONEDNN: "1"},
    ),
    Configuration(
        "installed_memory",
        "the same, memory setting",
        family="installed",
        memory=True,
        variables={_ONEDNN: "1"},
    ),
)
"""On TensorFlow; on JAX and PyTorch it has the `PLAIN` and `FUSED` rows."""


@dataclass(frozen=True)
class Place:
    """A process of a run: its configuration, and a label that tells it from another one of the same."""

    label: str
    configuration: Configuration


def select(text: str, rows: Sequence[Configuration], reference: str) -> list[Place]:
    """Return the processes a list like ``native,ours,native#2`` names; `all` is every row and
    a second process of the reference, whom the table compares everybody with.

    >>> [place.label for place in select("ours_memory,native_cl_memory#2", TORCH, "native_cl_memory")]
    ['ours_memory', 'native_cl_memory#2']
    """
    by_name = {row.name: row for row in rows}
    labels = [word.strip() for word in text.split(",") if word.strip()]
    if labels == ["all"]:
        labels = [*by_name, reference + AGAIN]
    if not labels:
        raise ValueError(f"no configuration is named; there are {', '.join(by_name)}")
    if len(set(labels)) < len(labels):
        raise ValueError(
            f"a configuration is named twice: {text}; {AGAIN} behind one runs it again"
        )
    places = []
    for label in labels:
        name = label.removesuffix(AGAIN)
        if name not in by_name:
            hint = nearest(name, tuple(by_name)) or ";"
            raise ValueError(f"no configuration {name!r}{hint} there are {', '.join(by_name)}")
        places.append(Place(label, by_name[name]))
    return places
