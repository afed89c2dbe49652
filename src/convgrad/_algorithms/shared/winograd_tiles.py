"""Tiles of Winograd's algorithms, and where their pixels are.

Tiles are numbered row by row through all images; a block is some of them in a row, so it covers whole and parts of
rows of tiles. Positions are worked out row by row from the numbers, so there is no table that could grow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..._codegen import Int, KernelBuilder, Pointer, Variable


@dataclass(frozen=True)
class TileRow:
    """The tiles of a block that lie in one row of tiles."""

    image: Int
    row: Int
    """Of tiles, in its image."""
    first: Int
    """The first tile's number in the block."""
    col: Int
    """The first tile's column in the row of tiles."""
    count: Int


class TileWalk:
    """Walks through the tiles of a kernel, by its words: `tile_rows`, `tile_cols` and those of each image it reads."""

    def __init__(self, k: KernelBuilder, word: dict[str, Int]) -> None:
        self.k = k
        self.word = word

    def address(self, base: Pointer, what: str, image: Int, row: Int, col: Int) -> Pointer:
        """Return where a pixel of the source or the target starts; it need not exist."""
        word = self.word
        return base.offset(
            image * word[f"{what}_image"] + row * word[f"{what}_row"] + col * word[f"{what}_col"]
        )

    def patch(
        self, base: Pointer, what: str, corner: tuple[Int, Int, Int], size: int, zeros: Pointer
    ) -> list[list[Pointer]]:
        """Return where the pixels of a square lie that starts at (image, row, column); outside the image, `zeros`."""
        k, word = self.k, self.word
        image, top, left = corner
        exists = [(left + j).inside(word[f"{what}_cols"]) for j in range(size)]
        pixels = []
        for i in range(size):
            row = top + i
            line = self.address(base, what, image, row, left)
            there = row.inside(word[f"{what}_rows"])
            pixels.append(
                [
                    k.select(there & exists[j], line.offset(word[f"{what}_col"] * j), zeros)
                    for j in range(size)
                ]
            )
        return pixels

    @contextmanager
    def tile_rows(
        self, begin: Int, end: Int, carry: Iterable[Variable[Any]] = ()
    ) -> Iterator[TileRow]:
        """Walk through the tiles from `begin` to below `end`, a row of tiles at a time."""
        k, cols = self.k, self.word["tile_cols"]
        with k.loop(begin // cols, (end - 1) // cols + 1, carry=carry, nonempty=True) as line:
            start = line * cols
            first = k.max(start, begin)
            count = k.min(start + cols, end) - first
            image, row = line // self.word["tile_rows"], line % self.word["tile_rows"]
            yield TileRow(image, row, first - begin, first - start, count)
