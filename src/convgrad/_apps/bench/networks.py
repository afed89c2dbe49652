"""The networks of `_problem.networks` as layers that are measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..._problem import networks
from ..._problem.networks import find as find
from .layers import OPS, Layer, parse


@dataclass(frozen=True)
class Network:
    """A row: how people write its name, and its layers without batch."""

    title: str
    texts: Callable[[], list[str]]

    def layers(self, batch: int) -> list[Layer]:
        """Return every convolution in order."""
        return [parse(f"{text}b{batch}") for text in self.texts()]

    def counted(self, batch: int) -> dict[Layer, int]:
        """Return the distinct layers in order of first appearance, and how often each runs."""
        return dict(Counter(self.layers(batch)))


NETWORKS = {name: Network(row.title, row.texts) for name, row in networks.NETWORKS.items()}


def contests_of(
    names: Iterable[str], batches: Sequence[int], ops: Iterable[str]
) -> tuple[dict[tuple[Layer, str], None], dict[str, list[tuple[str, int]]]]:
    """Return the distinct contests of networks, in order, and each network's layers of all batches with their counts.

    Nobody asks for the gradient of the image, so the first layer has none.
    """
    contests: dict[tuple[Layer, str], None] = {}
    counts: dict[str, list[tuple[str, int]]] = {}
    for name, batch in ((name, batch) for name in names for batch in batches):
        counted = NETWORKS[name].counted(batch)
        counts.setdefault(name, []).extend((layer.text, count) for layer, count in counted.items())
        for number, layer in enumerate(counted):
            contests.update({(layer, op): None for op in ops if number or op != "dx"})
    return contests, counts


def training_step(network: str, batch: int) -> Iterator[tuple[Layer, str]]:
    """Forward through all layers, then both gradients from the last to the first; nobody asks for that of the image."""
    layers = NETWORKS[network].layers(batch)
    for layer in layers:
        yield layer, OPS[0]
    for number, layer in reversed(list(enumerate(layers))):
        if number:
            yield layer, OPS[1]
        yield layer, OPS[2]
