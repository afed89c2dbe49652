"""The table of a plan of `dense_planes`: taps, products and phases, one list behind the other."""

from __future__ import annotations

from collections.abc import Sequence

from ..shared.words import narrow


class NumberLists:
    """Lists of numbers, one behind the other."""

    def __init__(self) -> None:
        self._numbers: list[int] = []

    def add(self, numbers: Sequence[int]) -> int:
        """Append a list, and return its place."""
        place = len(self._numbers)
        self._numbers += numbers
        return place

    @property
    def data(self) -> bytes:
        return narrow(self._numbers)


def products(taps: Sequence[int], depth: int, plane: int) -> list[int]:
    """List the displacement of each product."""
    return [tap + k * plane for tap in taps for k in range(depth)]
