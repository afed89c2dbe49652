"""A row against families of peers, and whole networks: layers times how often they run.

A family is a framework; its time for a row is that of its fastest way to compute it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .networks import NETWORKS

FAMILIES = {"PyTorch": "torch", "TensorFlow": "tf", "JAX": "jax"}
"""How people write a framework, and how its rows of `peers.PEERS` begin."""

Row = dict[str, Any]


def family_times(row: Row) -> dict[str, float]:
    """Return milliseconds of the best member of each family whose result was right."""
    found: dict[str, float] = {}
    for family, prefix in FAMILIES.items():
        times = [
            peer["min_ms"]
            for name, peer in row["peers"].items()
            if name.split("-")[0] == prefix and peer["status"] == "ok" and "min_ms" in peer
        ]
        if times:
            found[family] = min(times)
    return found


@dataclass(frozen=True)
class Total:
    """All convolutions of one operation in a network, in milliseconds; a family that lacks a layer is left out."""

    network: str
    op: str
    layers: int
    ours: float
    families: dict[str, float]

    @property
    def title(self) -> str:
        return title(self.network)


def title(network: str) -> str:
    """Return how people write a network's name; a saved run may know networks that we do not."""
    return NETWORKS[network].title if network in NETWORKS else network


def layers_of(results: dict[str, Any], network: str, op: str) -> list[tuple[Row, int]]:
    """Return the measured rows of a network in order, with the count of each."""
    rows = {(row["text"], row["op"]): row for row in results["rows"]}
    listed: list[tuple[str, int]] = results["networks"][network]
    return [(rows[text, op], count) for text, count in listed if (text, op) in rows]


def totals(results: dict[str, Any]) -> list[Total]:
    """Add up every network of a run; one that was filtered or interrupted has no sum."""
    found = []
    for network, listed in results.get("networks", {}).items():
        for op in results["settings"]["ops"]:
            layers = layers_of(results, network, op)
            if layers and len(layers) == len(listed) - (op == "dx"):  # none of the image
                found.append(_add_up(network, op, layers))
    return found


def _add_up(network: str, op: str, layers: Sequence[tuple[Row, int]]) -> Total:
    times = [(family_times(row), count) for row, count in layers]
    families = {
        family: sum(each[family] * count for each, count in times)
        for family in FAMILIES
        if all(family in each for each, _ in times)
    }
    ours = sum(row["ours"]["min_ms"] * count for row, count in layers)
    return Total(network, op, sum(count for _, count in layers), ours, families)
