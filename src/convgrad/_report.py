"""What became of a model's layers when convgrad took them over: one report for every framework with layers."""

from __future__ import annotations

from dataclasses import dataclass

from ._memory import MemorySetting
from ._text import aligned


@dataclass(frozen=True)
class Layer:
    """What became of one layer."""

    name: str
    kind: str
    """Its class, before."""
    taken: bool
    reason: str
    """Why it was left alone, or empty."""
    what: str = ""
    """depthwise, grouped, 3x3, pointwise, dense, linear, separable or transposed."""
    expected: str = ""
    """How many times as fast such layers are, from measurements; empty where it was left alone or nothing is known."""


@dataclass(frozen=True)
class Report:
    """What `accelerate` did: `print` it."""

    layers: tuple[Layer, ...]
    memory: MemorySetting | None
    advice: tuple[str, ...]

    @property
    def taken(self) -> tuple[str, ...]:
        return tuple(layer.name for layer in self.layers if layer.taken)

    @property
    def left(self) -> dict[str, str]:
        """Layers that were left alone, and why."""
        return {layer.name: layer.reason for layer in self.layers if not layer.taken}

    def __str__(self) -> str:
        rows = [["layer", "what", "expected", ""]]
        for layer in self.layers:
            expected = f"x {layer.expected}" if layer.expected else "taken"
            rows.append(
                [
                    layer.name or "(the model)",
                    layer.what,
                    expected if layer.taken else "left alone",
                    layer.reason,
                ]
            )
        lines = [aligned(rows, left=(0, 1, 2, 3)).rstrip()]
        lines.append(f"{len(self.taken)} of {len(self.layers)} layers are computed by convgrad.")
        if self.memory is not None:
            lines.append(f"Memory: {self.memory}.")
        lines += self.advice
        return "\n".join(line.rstrip() for text in lines for line in text.splitlines())
