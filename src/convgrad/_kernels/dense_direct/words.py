"""What the kernel of `dense_direct` is told: its identity when it is written, its words when it runs."""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.kernel import added_field
from . import pack
from .pack import PackKernel

WORDS = (
    *pack.WORDS,
    "source_image",  # elements from one to the next
    "source_row",
    "source_col",
    "source_plane",  # NCHW: from one channel to the next
    "source_cols",  # columns of an image
    "target_image",
    "target_row",
    "target_col",
    "target_plane",
    "target_cols",
    "filter_row",  # elements from one k to the next in a filter that is read in place
    "images",  # of a block
    "batch",
    "row_blocks",
    "col_blocks",
    "panel_range",  # panels of an item
    "panel_ranges",
    "rows_at",  # places in the table
    "cols_at",
    "block_pixels",  # of a block of flat pixels
    "block_size",  # elements from one block of the source to the next, where the kernel prefetches
    "ahead",  # elements of the next block to ask for per tile and panel
    "group_size",  # elements of one group in a staged block
    "contract_block",  # channels of a block of the contract, or more than there are
    "contract_blocks",
    "block_runs",  # numbers of runs of a block
    "panel_at",  # places in the workspace, in elements
    "pixels_at",
)
"""The run-time words behind the pointers."""


@dataclass(frozen=True)
class DirectDenseKernel:
    """Identity of a kernel: all that shapes its code besides the target."""

    dtype: str
    height: int
    """Pixels of a tile."""
    vectors: int
    """Vectors of channels of a panel, or channels where each has a vector of partial sums (`dot`)."""
    flat: bool = False
    """Whether windows are one pixel, so that pixel i reads pixel i, all images are one row, and there is no table."""
    planes: bool = False
    """Whether arrays are NCHW."""
    staged: bool = False
    """Whether the source is copied to the workspace first."""
    dot: int = 0
    """Chains of a result where vectors run along the channels summed over, else 0."""
    woven: int = 1
    """Groups that share a vector, lane by lane in turn: for groups that fill half a vector or less."""
    in_place: bool = False
    """Whether the filter is read where it is: for so few pixels that packing it would be the larger work."""
    pack: PackKernel | None = None
    """How an item packs its own panels; None if they are packed already."""
    levels: bool = True
    """Whether sums are long enough to be taken in runs: not under a 16-bit rounding, nor in integers."""
    blocked: bool = False
    """Whether the channels summed over are several blocks of the contract."""
    narrow: int = 0
    """Channels where they are fewer than lanes, else 0."""
    prefetch: bool = False
    """Whether to ask for the next block of the source while one is in use (of flat pixels)."""
    far: bool = False
    """Whether the numbers of the table have 64 bits, not 32."""
    bias: bool = added_field(False)
    """Whether a bias is added to the result."""
