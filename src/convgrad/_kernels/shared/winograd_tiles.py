"""Tiles of Winograd's algorithms, and where their pixels are.

Tiles are numbered row by row through all images; a block is some of them in a row, so it covers whole and parts of
rows of tiles. Positions are worked out row by row from the numbers, so there is no table that could grow.

With a dilation d, cells d apart along an axis belong together: each of the d phases is an image of its own, without
dilation. Along an axis of tiles of m cells, tile n is tile ``n // d`` of phase ``n % d``, so it starts with cell
``(n // d) * m * d + n % d``. Neighbours stay neighbours in memory, and no tile is empty: the first ``size % d`` phases
are a cell longer than the others, so if they have one tile more, it is those that come last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..._compiler.codegen import Int, IntLike, KernelBuilder, Pointer, Variable

DILATION_WORDS = ("dilation_rows", "dilation_cols")
"""What a kernel for dilated windows is told besides."""


def tiles_along(cells: int, outputs: int, dilation: int) -> int:
    """Return the tiles of an axis: those of all phases.

    >>> tiles_along(33, 2, 1), tiles_along(33, 2, 2), tiles_along(33, 2, 12), tiles_along(3, 2, 5)
    (17, 17, 21, 3)
    """
    length, longer = divmod(cells, dilation)
    return (dilation - longer) * -(-length // outputs) + longer * -(-(length + 1) // outputs)


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

    def __init__(self, k: KernelBuilder, word: dict[str, Int], outputs: int, dilated: bool) -> None:
        self.k = k
        self.word = word
        self.outputs = outputs
        self.dilated = dilated
        self.down: IntLike = word["dilation_rows"] if dilated else 1
        """Rows from one cell of a tile to the next."""
        self.right: IntLike = word["dilation_cols"] if dilated else 1

    def top(self, row: Int) -> Int:
        """Return the first cell of a row of tiles."""
        return self._start(row, self.down)

    def left(self, col: Int) -> Int:
        """Return the first cell of a column of tiles."""
        return self._start(col, self.right)

    def _start(self, tile: Int, dilation: IntLike) -> Int:
        if not self.dilated:
            return tile * self.outputs
        # Of the cells before it, a dilation's worth of tiles has `outputs` times as many.
        return tile + tile // dilation * (dilation * (self.outputs - 1))

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
        step = word[f"{what}_col"] * self.right
        exists = [(left + self.right * j).inside(word[f"{what}_cols"]) for j in range(size)]
        pixels = []
        for i in range(size):
            row = top + self.down * i
            line = self.address(base, what, image, row, left)
            there = row.inside(word[f"{what}_rows"])
            pixels.append(
                [k.select(there & exists[j], line.offset(step * j), zeros) for j in range(size)]
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
