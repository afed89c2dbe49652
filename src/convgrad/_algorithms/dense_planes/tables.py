"""The table of a plan of `dense_planes`: vectors of a block, taps and phases, one list behind the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .lattice import Lattice


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
        return np.array(self._numbers, np.int64).tobytes()


def vectors_of_rows(
    rows: int, cols: Lattice, start: int, count: int, pitch: int, lanes: int
) -> list[int]:
    """List the vectors of a block from place `start` of a row on: staged place, and place in the target.

    The last vector of a row of the target overlaps the one before. Both places are relative to the block's first one,
    which therefore lies earlier too if the block is narrower than a vector.
    """
    last = cols.places - lanes
    origin = min(start, last)
    begins = [min(col, last) - origin for col in range(start, start + count, lanes)]
    width = cols.gather.target
    return [
        at for row in range(rows) for col in begins for at in (row * pitch + col, row * width + col)
    ]


def vectors_of_tiles(listed: Sequence[int], depth: int, vectors: int, lanes: int) -> list[int]:
    """Return a list of vectors with their places in a block that is staged tile by tile.

    There is a gap between tiles: those a multiple of 4 KB apart would share one set of the first cache.
    """
    found = []
    for number, target in enumerate(listed[1::2]):
        tile, place = divmod(number, vectors)
        found += [(tile * (depth + 1) * vectors + place) * lanes, target]
    return found


def vectors_of_places(count: int, lanes: int) -> list[int]:
    """List vectors that run on from row to row: they are stored where they are staged."""
    return [place for number in range(count) for place in 2 * [number * lanes]]


def products(taps: Sequence[int], depth: int, plane: int) -> list[int]:
    """List the displacement of each product."""
    return [tap + k * plane for tap in taps for k in range(depth)]
