"""Parts of an array by the chunks they lie in."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from ..._problem.convolution import Shape
from . import axes
from .axes import Overlap, Range

Chunks = tuple[tuple[int, ...], ...]


class Piece(NamedTuple):
    """A part of a chunk: the chunk's place, the cells inside of it, and where they go in a block's operand."""

    chunk: tuple[int, ...]
    inside: tuple[Range, ...]
    at: tuple[int, ...]


class Box(NamedTuple):
    """An operand of a block, and what of which chunks it is put together from."""

    shape: Shape
    pieces: tuple[Piece, ...]

    @property
    def middle(self) -> int:
        """Which of the pieces is the largest."""
        sizes = [prod(each.size for each in piece.inside) for piece in self.pieces]
        return sizes.index(max(sizes))


class Overlaps:
    """The chunks of an operand, asked for boxes; along an axis the same ranges are asked for again and again."""

    def __init__(self, chunks: Chunks) -> None:
        self._ends = [axes.edges(each) for each in chunks]
        self._found: list[dict[Range, list[Overlap]]] = [{} for _ in chunks]

    def box(self, wanted: Sequence[Range]) -> Box:
        lists = [self._along(axis, each) for axis, each in enumerate(wanted)]
        pieces = tuple(
            Piece(*(tuple(each) for each in zip(*overlap, strict=True)))
            for overlap in product(*lists)
        )
        return Box(tuple(each.size for each in wanted), pieces)

    def _along(self, axis: int, wanted: Range) -> list[Overlap]:
        found = self._found[axis]
        if wanted not in found:
            found[wanted] = axes.overlaps(self._ends[axis], wanted)
        return found[wanted]
