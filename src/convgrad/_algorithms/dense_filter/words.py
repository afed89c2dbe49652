"""What the kernel of `dense_filter` is told: its identity when it is written, its words when it runs."""

from __future__ import annotations

from dataclasses import dataclass

UNROLL = 4
"""Pixels per turn of the innermost loop; lists of pixels are padded to a multiple of it."""
ITEM = (
    "chunk",  # ranges: of chunks, ...
    "chunk_end",
    "tile",
    "tile_end",
    "panel",
    "panel_end",
    "group",
    "group_end",
    "slice",
    "key",  # number of the item's copy of x if neighbouring items use the same, else 0
)
"""What the table says of an item."""
BLOCK = ("kind", "x_first", "y_first")
"""What the table says of a block of rows or columns: its class, its first cell in x and in dy."""
SHAPE = (
    "x_run",  # ranges of runs of pixels
    "x_run_end",
    "y_run",
    "y_run_end",
    "images",
    "x_pixels",  # of one image
    "y_pixels",
    "x_row",  # pixels of a row
    "y_row",
    "all_images",
    "row_taps",  # the first of the taps of its class of rows, and of columns
    "col_taps",
)
"""What the table says of a shape of chunks."""
TAP = ("first", "count", "start", "step")
"""What the table says of a tap along an axis: the first output that meets a cell, how many do, and in the copy the
place of its cell and the distance to the next one's."""
RUN = ("first", "count", "apart", "place")
"""What the table says of a run of pixels: the first, how many, how far apart, and where the first goes."""

WORDS = (
    *("items_at", "row_blocks_at", "col_blocks_at", "shapes_at", "taps_at", "runs_at"),
    *("lists_at", "tap_rows", "tap_cols"),
    *("row_blocks", "col_blocks", "image_blocks", "images"),
    *("col_classes", "ragged_images", "taps", "run"),
    *("x_cols", "x_pixel", "x_channel", "x_image", "x_channels", "x_fold"),
    *("y_cols", "y_pixel", "y_channel", "y_image", "y_channels"),
    *("group_in", "group_out", "big_tiles", "tiles", "whole_tiles", "whole_panels"),
    *("x_tile", "y_tile", "x_zero", "y_zero", "y_at"),
    *("out_slice", "out_group", "out_tap", "out_row", "out_rows", "out_cols"),
)
"""Run-time words behind the pointers (x, dy, out, table). Places in the table count 8 bytes, all others elements;
`lists_at` is a place in scratch."""


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
    folded: bool = False
    """Whether x may have windows' columns for channels; shapes the code of NCHW only."""
    straight: bool = False
    """Whether pixels need no lists: windows of one tap that miss no pixel."""
    prefetch: int = 0
    """Lines of the next chunk that the products of `UNROLL` pixels ask for: NHWC, and a chunk is one run."""

    @property
    def x_width(self) -> int:
        """Channels of a tile of x."""
        return self.rows * self.diagonal
