"""Where the tiles of a block lie: which pixels of the source and of the target each of them has.

A tile has `height` pixels. Where a block, or a piece of it, has fewer left, the last pixels are taken once more, and
the same numbers are stored twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ..._compiler.codegen import Bool, Int, Pointer, Variable
from ..shared.words import load_row
from .frame import Frame, TargetBlock
from .tables import PIECE


class FlatTile(NamedTuple):
    """Pixels that follow each other and read one pixel each."""

    pixels: list[Pointer]
    targets: list[Pointer]
    number: Int
    """Which of the block's tiles it is."""


class ListedTile(NamedTuple):
    """Pixels of one class, and where in the table the entries of its rows and columns start and end."""

    pixels: list[Pointer]
    targets: list[Pointer]
    rows: tuple[Int, Int]
    cols: tuple[Int, Int]
    row_pitch: Int
    """Elements from one row of the source to the next."""


@contextmanager
def flat_tiles(
    frame: Frame, block: TargetBlock, source: Pointer, target: Pointer
) -> Iterator[FlatTile]:
    """Go through the tiles of a block of flat pixels; the last one begins earlier if it is not full."""
    k, height, count = frame.k, frame.kernel.height, block.target_cols
    from_pitch, to_pitch = frame.source_pitches(block)[2], frame.target_pitches(block)[2]
    last = k.max(count - height, 0)
    places = [k.min(count - 1, i) for i in range(height)]
    steps = [(place * from_pitch, place * to_pitch) for place in places]
    with k.loop(0, count, height, nonempty=True) as first:
        start = k.min(first, last)
        here, there = source.offset(start * from_pitch), target.offset(start * to_pitch)
        yield FlatTile(
            [here.offset(step) for step, _ in steps],
            [there.offset(step) for _, step in steps],
            first // height,
        )


@contextmanager
def listed_tiles(
    frame: Frame, block: TargetBlock, source: Pointer, target: Pointer
) -> Iterator[ListedTile]:
    """Go through the tiles of all pairs of a piece of rows and a piece of columns."""
    k, size = frame.k, len(PIECE)
    from_image, from_row, from_col = frame.source_pitches(block)
    to_image, to_row, to_col = frame.target_pitches(block)
    with (
        k.loop(*block.row_pieces, size, nonempty=True) as row_at,
        k.loop(*block.col_pieces, size, nonempty=True) as col_at,
    ):
        row = load_row(frame.table.offset(row_at), PIECE)
        col = load_row(frame.table.offset(col_at), PIECE)
        walk = _Walk(
            frame,
            (block.images, row["count"], col["count"]),
            (from_image, row["source_step"] * from_row, col["source_step"] * from_col),
            (to_image, row["target_step"] * to_row, col["target_step"] * to_col),
        )
        here = source.offset(row["source"] * from_row + col["source"] * from_col)
        there = target.offset(row["target"] * to_row + col["target"] * to_col)
        with walk.tiles() as places:
            yield ListedTile(
                [here.offset(source_place) for source_place, _ in places],
                [there.offset(target_place) for _, target_place in places],
                (row["first"], row["last"]),
                (col["first"], col["last"]),
                from_row,
            )


class _Walk:
    """Walks through images, rows and columns, column by column, and knows where in source and target it is."""

    def __init__(
        self,
        frame: Frame,
        counts: tuple[Int, Int, Int],
        source: tuple[Int, Int, Int],
        target: tuple[Int, Int, Int],
    ) -> None:
        """Counts of images, rows and columns, and how far it is from one to the next."""
        self.frame, self.k, self.height, self.counts = frame, frame.k, frame.kernel.height, counts
        self.moves = [self._moves(steps) for steps in (source, target)]
        """In source and target: to the next column, to the first one of the next row, and of the next image."""
        self.row, self.col, self.source, self.target = (
            self.k.variable(self.k.i64(0)) for _ in range(4)
        )

    def _moves(self, steps: tuple[Int, Int, Int]) -> tuple[Int, Int, Int]:
        image, row, col = steps
        back = (self.counts[2] - 1) * col
        return col, row - back, image - (self.counts[1] - 1) * row - back

    @contextmanager
    def tiles(self) -> Iterator[list[tuple[Int, Int]]]:
        """Go through all tiles; gives the places of a tile's pixels in source and target."""
        k, height = self.k, self.height
        images, rows, cols = self.counts
        count = images * rows * cols
        carry = [self.row, self.col, self.source, self.target]
        with k.loop(0, count, height, carry=carry, nonempty=True) as first:
            found = [
                (k.variable(self.source.value), k.variable(self.target.value))
                for _ in range(height)
            ]
            with k.branch(self.col.value + height <= cols) as ways:
                with ways.then():
                    # All in one row, as nearly all tiles of large images are.
                    for i in range(1, height):
                        found[i][0].value = self.source.value + self.moves[0][0] * i
                        found[i][1].value = self.target.value + self.moves[1][0] * i
                    self.source.value, self.target.value = (each.value for each in found[-1])
                    self.col.value = self.col.value + (height - 1)
                with ways.otherwise():
                    for i in range(1, height):
                        self._step(first + i < count)
                        found[i][0].value = self.source.value
                        found[i][1].value = self.target.value
            yield [(source.value, target.value) for source, target in found]
            self._step(first + height < count)

    def _step(self, there_is_one: Bool) -> None:
        """Go to the next pixel, or stay if there is none."""
        k = self.k
        none = k.i64(0)
        _, rows, cols = self.counts
        next_row = (self.col.value + 1).equals(cols)
        next_image = next_row & (self.row.value + 1).equals(rows)
        places: tuple[Variable[Int], ...] = (self.source, self.target)
        for place, (col, row, image) in zip(places, self.moves, strict=True):
            move = k.select(next_image, image, k.select(next_row, row, col))
            place.value = place.value + k.select(there_is_one, move, none)
        self.col.value = k.select(next_row, none, self.col.value + 1)
        self.row.value = k.select(
            next_image, none, k.select(next_row, self.row.value + 1, self.row.value)
        )
