"""What a fused forward does, as plain data: numbers of values and names of modules, nothing that belongs to a model.

A value is something a graph's node made. `Plan.steps` are carried out in order (`forwards`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Path: TypeAlias = tuple[str, ...]
"""Names of children, from the module whose forward it is."""


Children: TypeAlias = tuple[tuple[str, bool], ...]
"""Names of children, and whether there is one of that name: it may be None."""


def children(module: Any) -> Children:
    """Return what decides which children a module has."""
    return tuple([(name, child is not None) for name, child in module._modules.items()])


@dataclass(frozen=True)
class Placeholder:
    """Stands for a value among the arguments of a call."""

    number: int


@dataclass(frozen=True)
class PlainCall:
    """Something that is done as it always was."""

    kind: Literal["module", "function", "method", "attribute"]
    target: Path | str | Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]
    made: int


@dataclass(frozen=True)
class Activation:
    """A layer, or a function by its name and slope."""

    path: Path | None
    name: str = "none"
    slope: float = 0.0


@dataclass(frozen=True)
class FusedBlock:
    """Convolution, batch norm, activation and residual as one node."""

    convolution: Path | None
    norm: Path
    activation: Activation
    identities: tuple[Path, ...]
    """Layers in between that return what they are given."""
    image: int
    residual: int | None
    position: Literal["before", "after"]
    made: int
    calls: tuple[PlainCall, ...]
    """The same, layer by layer."""


@dataclass(frozen=True)
class Fork:
    """An image and the means over its pixels."""

    layer: Path | None
    """The pooling layer, where it is one."""
    image: int
    pooled: int
    again: int
    """The image as `Scale` gets it."""
    call: PlainCall


@dataclass(frozen=True)
class Scale:
    """An image times numbers per channel."""

    image: int
    factor: int
    made: int


Step: TypeAlias = PlainCall | FusedBlock | Fork | Scale


@dataclass(frozen=True)
class ForwardPlan:
    """All that a module does in training, or in evaluation."""

    inputs: int
    """How many values are given: the first ones."""
    size: int
    """How many values there are."""
    steps: tuple[tuple[Step, tuple[int, ...]], ...]
    """And the values nobody wants after each."""
    result: Any
    structure: tuple[tuple[Path, Children], ...]
    """Modules whose children were looked at, and these."""
    attributes: tuple[tuple[str, Any], ...]
    """Plain values among the module's own attributes, which may have decided what it does."""
