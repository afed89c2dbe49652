"""What the second kernel of `winograd` is told at run time, and the pieces of its work.

Tiles are numbered row by row through all images; a block is some of them in a row, so it covers whole and parts of
rows of tiles. Positions are worked out row by row from the numbers, so there is no table that could grow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..._codegen import F32, Element, Int, KernelBuilder, Pointer, Variable
from ..shared.words import arguments

WORDS = (
    "sums",  # channels summed over in a group: the range of k
    "columns",  # channels that come out of a group
    "sums_padded",  # k in U and V, zeros included
    "panels",  # of a group
    "parts",  # into which the panels of a group are divided among items
    "blocks",  # of tiles
    "block_tiles",
    "tiles",
    "tile_rows",  # of an image
    "tile_cols",
    "source_rows",
    "source_cols",
    "target_rows",
    "target_cols",
    "before_rows",  # target row p reads source rows from p - before_rows on
    "before_cols",
    "source_image",  # elements from image to image, ...
    "source_row",
    "source_col",
    "source_channel",
    "target_image",
    "target_row",
    "target_col",
    "target_channel",
    "filter_start",  # where tap (0, 0) lies; the rest is strides again
    "filter_tap",
    "filter_sum",
    "filter_column",
    "filter_group",
    "runs",  # of k; all but the last have the kernel's length
    "last_pitch",  # elements from one tile of V to the next in the last run
    "row_pitch",  # elements of a pixel: of the line of zeros, and of a staged one
    "input_pitch",  # elements of one frequency of V
    "filter_pitch",  # elements of one frequency of U
    "zeros_at",  # offsets into scratch, in bytes
    "stage_at",
    "input_at",
)
"""The run-time words behind the pointers: source, filter, packed, result."""

POINTERS = 4


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


class Tiles:
    """Reads a kernel's words by name and walks through the tiles."""

    def __init__(
        self, k: KernelBuilder, storage: Element, pointers: int, words: Sequence[str]
    ) -> None:
        self.k = k
        self.storage = storage
        self.word = arguments(k, pointers, words)

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


class Geometry(Tiles):
    """What the second kernel of `winograd` works on."""

    def __init__(self, k: KernelBuilder, storage: Element) -> None:
        super().__init__(k, storage, POINTERS, WORDS)
        self.source = k.arg_pointer(0, storage)
        self.filter = k.arg_pointer(1, storage)
        self.packed = k.arg_pointer(2, F32)
        self.target = k.arg_pointer(3, storage)

    def scratch(self, word: str, element: Element = F32) -> Pointer:
        """Return a block of the workspace whose size only the plan knows."""
        k = self.k
        return k.scratch(F32, 0).offset(self.word[word] // 4).as_element(element)
