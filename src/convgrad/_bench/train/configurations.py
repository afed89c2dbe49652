"""In which ways a training step is run: one row each, and which of them are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ..._errors import nearest

Family = Literal["native", "compiled", "ours"]

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

    @property
    def may_fail(self) -> bool:
        """Whether the run is still good without it: not every model compiles, nor in reasonable time."""
        return self.family == "compiled"


CONFIGURATIONS = (
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
)
"""PyTorch's."""

REFERENCE = "native_cl_memory"
"""Whom the table compares everybody with, and who runs in two processes."""


@dataclass(frozen=True)
class Place:
    """A process of a run: its configuration, and a label that tells it from another one of the same."""

    label: str
    configuration: Configuration


def select(text: str, rows: Sequence[Configuration]) -> list[Place]:
    """Return the processes a list like ``native,ours,native#2`` names; `all` is every row and the control.

    >>> [place.label for place in select("ours_memory,native_cl_memory#2", CONFIGURATIONS)]
    ['ours_memory', 'native_cl_memory#2']
    """
    by_name = {row.name: row for row in rows}
    labels = [word.strip() for word in text.split(",") if word.strip()]
    if labels == ["all"]:
        labels = [*by_name, *([REFERENCE + AGAIN] if REFERENCE in by_name else [])]
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
