"""Items and chunks of the dense filter gradient at run time: what an item covers, where a chunk lies, how pixels run.

The table has spans and classes of blocks for each axis (`tables`); a chunk is put together from those of its rows and
of its columns. An item is its number cut into four ranges. Both take some tens of instructions for a chunk of a hundred
pixels or more; as tables they took more memory than the kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..._compiler.codegen import Bool, Int, KernelBuilder, Pointer
from ..shared.words import load_row
from .words import CLASS, RUN, SPAN


@dataclass(frozen=True)
class Item:
    """What an item covers: chunks, tiles, panels and groups, each a range."""

    chunk: Int
    chunk_end: Int
    tile: Int
    tile_end: Int
    panel: Int
    panel_end: Int
    group: Int
    group_end: Int
    slice: Int
    key: Int
    """Number of the item's copy of x if neighbouring items use the same, else 0."""


def item_of(number: Int, word: dict[str, Int]) -> Item:
    """Return an item: panels run fastest, then tiles, groups and slices of the chunks."""
    copy, panel = number // word["panel_parts"], number % word["panel_parts"]
    rest, tile = copy // word["tile_parts"], copy % word["tile_parts"]
    slice_, group = rest // word["group_parts"], rest % word["group_parts"]
    first = slice_ * word["slice_chunks"]

    def part(at: Int, total: str, parts: str) -> tuple[Int, Int]:
        """Cut a range into parts that differ by one at most."""
        return word[total] * at // word[parts], word[total] * (at + 1) // word[parts]

    return Item(
        first,
        (first + word["slice_chunks"]).minimum(word["chunks"]),
        *part(tile, "tiles", "tile_parts"),
        *part(panel, "panels", "panel_parts"),
        *part(group, "groups", "group_parts"),
        slice_,
        (copy + 1) * word["keeps_x"],
    )


@dataclass(frozen=True)
class Corner:
    """Where a chunk starts, and the numbers of its classes of rows and of columns."""

    x: Int
    """Elements from the start of x."""
    y: Int
    row_kind: Int
    col_kind: Int
    images: Int
    """Its block of images."""
    x_col: Int
    """The first column of x; where windows' columns are channels, the padding counts."""


@dataclass(frozen=True)
class Shape:
    """What chunks of one class of rows, one of columns and one number of images have in common."""

    rows: dict[str, Int]
    cols: dict[str, Int]
    images: Int
    x_pixels: Int
    """Of one image."""
    y_pixels: Int
    copied_images: Int
    """Images to copy one by one: 1 where all of them follow each other without a gap."""
    x_whole: Int
    """Pixels that follow each other where rows do so, else 0."""
    y_whole: Int


@dataclass(frozen=True)
class PixelRun:
    """Pixels at equal distances."""

    first: Int
    count: Int
    apart: Int
    place: Int
    """Where the first goes."""
    col: Int
    """Columns from the chunk's first one to its first."""


class Chunks:
    """Writes into a kernel where chunks lie and what their shape is."""

    def __init__(
        self,
        k: KernelBuilder,
        table: Pointer,
        word: dict[str, Int],
        by_channel: bool,
        folded: bool,
    ) -> None:
        self.k, self.table, self.word = k, table, word
        self.by_channel, self.folded = by_channel, folded

    def corner(self, chunk: Int) -> Corner:
        word = self.word
        cols, rest = chunk % word["col_blocks"], chunk // word["col_blocks"]
        rows, images = rest % word["row_blocks"], rest // word["row_blocks"]
        row_kind, x_row, y_row = self._block(rows, "row", self.table)
        col_spans = self.table.offset(word["col_spans_at"])
        col_kind, x_col, y_col = self._block(cols, "col", col_spans)
        image = images * word["images"]
        x = image * word["x_image"] + (x_row * word["x_cols"] + x_col) * word["x_pixel"]
        y = image * word["y_image"] + (y_row * word["y_cols"] + y_col) * word["y_pixel"]
        if self.folded:
            x = x - word["x_before"] * word["x_pixel"]
        return Corner(x, y, row_kind, col_kind, images, x_col)

    def _block(self, block: Int, axis: str, spans: Pointer) -> tuple[Int, Int, Int]:
        """Return the class of a block, and where it starts in x and in dy."""
        k, word = self.k, self.word
        span = k.variable(spans)
        with k.loop(1, word[f"{axis}_spans"], carry=[span]) as number:
            later = spans.offset(number * len(SPAN))
            inside = load_row(later, SPAN[:1])["first"] <= block
            span.value = k.select(inside, later, span.value)
        found = load_row(span.value, SPAN)
        block = block - found["first"]
        x = found["x_first"] + block * word[f"x_block_{axis}s"]
        return found["kind"], x, found["y_first"] + block * word[f"y_block_{axis}s"]

    def shape(self, corner: Corner) -> tuple[Shape, Int]:
        """Return the shape of a chunk and its number."""
        k, word = self.k, self.word
        classes = self.table.offset(word["classes_at"])
        rows = load_row(classes.offset(corner.row_kind * len(CLASS)), CLASS)
        cols = load_row(classes.offset(corner.col_kind * len(CLASS)), CLASS)
        last = corner.images.equals(word["image_blocks"] - 1)
        images = k.select(last, word["last_images"], word["images"])
        number = corner.row_kind * word["classes"] + corner.col_kind
        number = number * (word["images"] + 1) + images
        x_pixels, y_pixels = rows["cells"] * cols["cells"], rows["count"] * cols["count"]
        x_solid = (rows["solid"] & cols["solid"]).differs(0)
        y_solid = cols["count"].equals(word["y_cols"])
        repeated, x_whole, y_whole = images, x_pixels, y_pixels
        if not self.by_channel:
            joined = self._joined(rows, x_solid, y_solid)
            repeated = k.select(joined, k.i64(1), images)
            together = k.select(joined, images, k.i64(1))
            x_whole, y_whole = x_pixels * together, y_pixels * together
        none = k.i64(0)
        x_whole, y_whole = k.select(x_solid, x_whole, none), k.select(y_solid, y_whole, none)
        return Shape(rows, cols, images, x_pixels, y_pixels, repeated, x_whole, y_whole), number

    def _joined(self, rows: dict[str, Int], x_solid: Bool, y_solid: Bool) -> Bool:
        """Tell whether a chunk's images are whole ones, in x and in dy."""
        word = self.word
        all_rows = rows["cells"].equals(word["x_rows"]) & rows["count"].equals(word["y_rows"])
        return x_solid & y_solid & all_rows

    @contextmanager
    def runs(self, side: str, shape: Shape) -> Iterator[PixelRun]:
        """Loop over the runs of one image of a chunk, in the order of their places."""
        k, word = self.k, self.word
        rows, cols = shape.rows, shape.cols
        if side == "y":
            whole = shape.y_whole
            count, single = cols["count"], whole.differs(0)
            with k.loop(0, k.select(single, k.i64(1), rows["count"]), nonempty=True) as row:
                first, place = row * word["y_cols"], row * count
                count = k.select(single, whole, count)
                yield PixelRun(first, count, k.i64(1), place, k.i64(0))
            return
        whole = shape.x_whole
        single = whole.differs(0)
        runs = self.table.offset(word["runs_at"])
        with k.loop(rows["x_run"], rows["x_run_end"]) as number:
            down = load_row(runs.offset(number * len(RUN)), RUN)
            with (
                k.loop(0, k.select(single, k.i64(1), down["count"]), nonempty=True) as row,
                k.loop(cols["x_run"], cols["x_run_end"]) as number,
            ):
                along = load_row(runs.offset(number * len(RUN)), RUN)
                first = (down["first"] + row * down["apart"]) * word["x_cols"] + along["first"]
                place = (down["place"] + row) * cols["cells"] + along["place"]
                count = k.select(single, whole, along["count"])
                yield PixelRun(first, count, along["apart"], place, along["first"])
