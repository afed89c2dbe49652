"""What the kernel of `dense_filter` is told: its identity when it is written, its words when it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..._compiler.kernel import added_field

UNROLL = 4
"""Pixels per turn of the innermost loop where they follow each other."""
LISTED = 2
"""Pixels per turn where they are listed; lists are padded to a multiple of it. By fours, 42 pixels of 3 rows of 14 take
5% longer."""
SPAN = ("first", "kind", "x_first", "y_first")
"""What the table says of blocks of rows or columns that follow each other and are alike: the first one, their class,
and where the first one starts in x and in dy."""
CLASS = ("x_run", "x_run_end", "cells", "solid", "count", "taps")
"""What the table says of a class of blocks: its runs of cells of x, how many cells these are, whether they follow each
other without a hole (columns: whether they are all of a row), how many outputs there are, and where its taps are."""
TAP = ("first", "count", "start", "step")
"""What the table says of a tap along an axis: the first output that meets a cell, how many do, and in the copy the
place of its cell and the distance to the next one's."""
RUN = ("first", "count", "apart", "place")
"""What the table says of a run of cells along an axis: the first, how many, how far apart, and where the first goes."""

WORDS = (
    *("row_spans", "col_spans", "col_spans_at", "classes_at", "taps_at", "runs_at"),
    *(
        "ends_at",
        "lists_at",
        "index_room",
        "tap_parts",
        "part_rows",
        "tap_rows",
        "tap_cols",
        "stack_at",
        "stack_pitch",
    ),
    *("chunks", "slice_chunks", "groups", "group_parts", "tile_parts", "panel_parts"),
    *("keeps_x",),
    *("row_blocks", "col_blocks", "image_blocks", "images", "last_images"),
    *("x_block_rows", "x_block_cols", "y_block_rows", "y_block_cols"),
    *("classes", "taps", "run_images", "run_rows", "run_cols"),
    *("x_rows", "x_cols", "x_pixel", "x_channel", "x_image", "x_channels"),
    *("x_fold", "x_before", "x_window", "x_step", "x_edges"),
    *("y_rows", "y_cols", "y_pixel", "y_channel", "y_image", "y_channels"),
    *("group_in", "group_out", "big_tiles", "tiles", "panels"),
    *("whole_tiles", "whole_panels"),
    *("x_tile", "y_tile", "x_zero", "y_zero", "y_at"),
    *("out_slice", "out_group", "out_tap", "out_row", "out_rows", "out_cols"),
)
"""Run-time words behind the pointers (x, dy, out, table). Places in the table count 4 bytes, all others elements;
`ends_at`, `lists_at` and `stack_at` are places in scratch. Spans of rows stand first. The blocks' words are cells from
one block to the next."""

SUM_WORDS = ("sums_at", "sums_pitch", "sums_stack_at")
"""Behind them where pixels are added up besides, and the partial sums' pointer stands before the table: elements from
there to the first slice's sums of pixels, and from one slice's to the next; and where theirs wait in scratch."""


@dataclass(frozen=True)
class DenseFilterKernel:
    """Everything that shapes the code besides the target."""

    dtype: str
    data_format: str
    out: str
    """Type of the output: the result's, or the compute type for partial sums."""
    rows: int
    """Input channels of a tile."""
    few: int
    """Input channels of the small tiles that end a row of tiles."""
    vectors: int
    """Vectors of output channels of a tile."""
    diagonal: int = 1
    """Narrow groups side by side in one vector: the tile is then the input channels of one group by all of them."""
    sets: int = 1
    """Chains of a result, whose pixels take turns."""
    folded: bool = False
    """Whether x has windows' columns for channels."""
    straight: bool = False
    """Whether pixels need no lists: windows of one tap that miss no pixel."""
    prefetch: int = 0
    """Lines of the next chunk that the products of `UNROLL` pixels ask for: NHWC, and a chunk is one run."""
    sums: Literal["", "x", "y"] = added_field("")
    """Whose pixels are added up besides, for the gradient of a bias; x only where a chunk has each of its own once."""

    @property
    def x_width(self) -> int:
        """Channels of a tile of x."""
        return self.rows * self.diagonal
