"""What became of a model's layers when convgrad took them over: one report for every framework with layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from .._base.memory import MemorySetting
from .._base.text import aligned


@dataclass(frozen=True)
class Layer:
    """What became of one layer."""

    name: str
    kind: str
    """Its class, before."""
    taken: bool
    reason: str
    """Why it was left alone; of one that was taken, with which neighbour or why without; or empty."""
    what: str = ""
    """depthwise, grouped, 3x3, pointwise, dense, linear, separable or transposed."""
    expected: str = ""
    """How many times as fast such layers are, from measurements; empty where it was left alone or nothing is known."""


@dataclass(frozen=True)
class Fused:
    """What became of a batch norm and the layers around it, or of a squeeze and its excitation."""

    name: str
    """The first layer's."""
    what: str
    """The layers that are one now, in order; of a batch norm that was left alone its class."""
    taken: bool
    reason: str
    """Why it was left alone, or empty."""


_Row = TypeVar("_Row", Layer, Fused)


@dataclass(frozen=True)
class Report:
    """What `accelerate` did: `print` it."""

    layers: tuple[Layer, ...]
    memory: MemorySetting | None
    advice: tuple[str, ...]
    blocks: tuple[Fused, ...] | None = None
    """Where layers were to be fused: what became of each block."""

    @property
    def taken(self) -> tuple[str, ...]:
        return tuple(layer.name for layer in self.layers if layer.taken)

    @property
    def left(self) -> dict[str, str]:
        """Layers that were left alone, and why."""
        return {layer.name: layer.reason for layer in self.layers if not layer.taken}

    @property
    def fused(self) -> dict[str, str]:
        """Blocks that are computed as one, by the name of their first layer."""
        return {block.name: block.what for block in self.blocks or () if block.taken}

    @property
    def unfused(self) -> dict[str, str]:
        """Batch norms that are not part of a block, and why."""
        return {block.name: block.reason for block in self.blocks or () if not block.taken}

    def __str__(self) -> str:
        # Only PyTorch's report knows how much faster a layer should be.
        known = any(layer.expected for layer in self.layers)
        rows = [["layer", "what", "expected" if known else "outcome", ""]]
        for names, layer in _grouped(self.layers):
            expected = f"x {layer.expected}" if layer.expected else "taken"
            rows.append(
                [names, layer.what, expected if layer.taken else "left alone", layer.reason]
            )
        lines = [aligned(rows, left=(0, 1, 2, 3)).rstrip()]
        lines.append(f"{len(self.taken)} of {len(self.layers)} layers are computed by convgrad.")
        if self.blocks is not None:
            lines += self._about_blocks(self.blocks)
        if self.memory is not None:
            lines.append(f"Memory: {self.memory}.")
        lines += self.advice
        return "\n".join(line.rstrip() for text in lines for line in text.splitlines())

    def _about_blocks(self, blocks: tuple[Fused, ...]) -> list[str]:
        if not blocks:
            return ["Nothing is fused: there is no batch norm in this model."]
        rows = [["block", "what", ""]]
        for names, block in _grouped(blocks):
            rows.append([names, block.what, "" if block.taken else f"left alone: {block.reason}"])
        return [
            aligned(rows, left=(0, 1, 2)).rstrip(),
            f"{len(self.fused)} of {len(blocks)} blocks are computed as one.",
        ]


def _grouped(rows: Sequence[_Row]) -> list[tuple[str, _Row]]:
    """Return rows with their names; those that were left alone for the same reason are one, with how many they are."""
    alike: dict[object, list[_Row]] = {}
    for row in rows:
        key = row.name if row.taken else (row.what, row.reason)
        alike.setdefault(key, []).append(row)
    made = []
    for first, *others in alike.values():
        more = f" and {len(others)} more" if others else ""
        made.append(((first.name or "(the model)") + more, first))
    return made
