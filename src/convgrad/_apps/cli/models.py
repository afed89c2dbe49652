"""The networks and layers of the benchmarks, for the verbs that take a model's name: the one place that looks there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..._base import headroom
from ..._base.errors import AllocationError
from .verb import Refusal

if TYPE_CHECKING:
    from ..bench.layers import Layer as Layer


def names() -> list[str]:
    """Return the networks there are."""
    from ..bench.networks import NETWORKS

    return list(NETWORKS)


def network(name: str, batch: int) -> list[Layer]:
    """Return the convolutions of a network; its name is read without regard to case and punctuation."""
    from ..bench.networks import NETWORKS, find

    try:
        return list(NETWORKS[find(name)].layers(batch))
    except ValueError as error:
        raise Refusal(str(error)) from None


def layers(texts: Sequence[str]) -> list[Layer]:
    """Read layers such as 8x56x56x144k3s2; one that no memory holds is refused, or it would be planned for ever."""
    from ..bench.layers import parse

    try:
        found = [parse(text) for text in texts]
    except ValueError as error:
        raise Refusal(str(error)) from None
    for text, layer in zip(texts, found, strict=True):
        shapes = (layer.input_shape(), layer.filter_shape, layer.output_shape())
        elements = sum(map(math.prod, shapes))
        try:
            headroom.ask(2 * elements, "")  # numbers have 2 bytes at least
        except AllocationError:
            raise Refusal(
                f"{text}: there is no memory for its {elements:,} numbers, input {list(shapes[0])}"
            ) from None
    return list(found)
