"""The networks and layers of the benchmarks, for the verbs that take a model's name: the one place that looks there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .verb import Refusal

if TYPE_CHECKING:
    from .._bench.layers import Layer as Layer


def names() -> list[str]:
    """Return the networks there are."""
    from .._bench.networks import NETWORKS

    return list(NETWORKS)


def network(name: str, batch: int) -> list[Layer]:
    """Return the convolutions of a network; its name is read without regard to case and punctuation."""
    from .._bench.networks import NETWORKS, find

    try:
        return list(NETWORKS[find(name)].layers(batch))
    except ValueError as error:
        raise Refusal(str(error)) from None


def layers(texts: Sequence[str]) -> list[Layer]:
    """Read layers such as 8x56x56x144k3s2."""
    from .._bench.layers import parse

    try:
        return [parse(text) for text in texts]
    except ValueError as error:
        raise Refusal(str(error)) from None
