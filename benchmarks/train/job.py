"""What a child is asked to train, and what it says about a step: plain records, sent over the pipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol


@dataclass(frozen=True)
class Job:
    """One model in one configuration; everything a trainer needs to know."""

    model: str
    image: int
    """Height and width."""
    batch: int
    threads: int
    family: str
    layout: str
    memory: bool
    accelerate: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    """Of the weights, images and labels: alike in all children, so that first losses can be compared."""


class Parts(NamedTuple):
    """Seconds of one training step."""

    forward: float
    """With the loss."""
    backward: float
    optimizer: float
    """With forgetting the gradients."""


class Whole(NamedTuple):
    """Seconds of one training step that is compiled as one program: nobody can tell its parts apart."""

    step: float


class Trained(Protocol):
    """A model that is ready to be trained."""

    parameters: int
    note: str
    """What is worth telling about how it was prepared."""

    def step(self) -> Parts | Whole: ...
    def loss(self) -> float:
        """Return the loss of the last step; not part of its time."""


class Trainer(Protocol):
    """A module that knows a framework; only children import it."""

    def prepare(self, job: Job) -> Trained: ...
    def layers(self, job: Job, repeats: int) -> Sequence[Mapping[str, Any]]:
        """Time each distinct convolution of the model, native and ours in turns: see `ratios.slower`."""
