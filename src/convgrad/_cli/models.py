"""The networks and layers of the benchmarks, for the verbs that take a model's name: the one place that looks there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .verb import Refusal


class Layer(Protocol):
    """One convolution of a network; dense ones have `outputs`."""

    @property
    def stride(self) -> int: ...
    @property
    def dilation(self) -> int: ...
    @property
    def padding(self) -> str: ...
    @property
    def is_dense(self) -> bool: ...
    @property
    def filter_shape(self) -> tuple[int, int, int, int]: ...
    def input_shape(self, layout: str = ...) -> tuple[int, int, int, int]: ...
    def output_shape(self, layout: str = ...) -> tuple[int, int, int, int]: ...


def names() -> list[str]:
    """Return the networks there are."""
    from .._bench.networks import NETWORKS

    return list(NETWORKS)


def network(name: str, batch: int) -> list[Layer]:
    """Return the convolutions of a network; its name is read without regard to case and punctuation."""
    from .._bench.networks import NETWORKS, find

    try:
        return list(NETWORKS[find(name)].problems(batch))
    except ValueError as error:
        raise Refusal(str(error)) from None


def layers(texts: Sequence[str]) -> list[Layer]:
    """Read layers such as 8x56x56x144k3s2."""
    from .._bench.problems import parse

    try:
        return [parse(text) for text in texts]
    except ValueError as error:
        raise Refusal(str(error)) from None
