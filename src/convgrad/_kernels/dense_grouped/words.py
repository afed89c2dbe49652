"""What the kernel of `dense_grouped` is told: its identity when it is written, its words when it runs."""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.kernel import added_field

WORDS = (
    "source_rows",
    "source_cols",
    "target_rows",
    "target_cols",
    "lane_blocks",  # of as many groups as there are lanes
    "row_blocks",
    "images",  # of a block
    "batch",
    "panel_ranges",  # into which the panels of a group are cut
    "range_panels",  # panels of one of them
    "row_classes",
    "col_classes",
    "row_classes_at",  # places in the table
    "col_classes_at",
    "cols_at",
    "blocks_at",
    "block_runs",  # numbers of runs of one of the contract's blocks of channels
    "packed_block",  # elements of the packed filter of one block of lanes
    "packed_panel",
    "sums_at",  # elements of scratch in front of the sums and of the lists of pixels
    "sources_at",
    "targets_at",
)
"""The run-time words behind the pointers: source, packed filter, result, a bias, table."""


@dataclass(frozen=True)
class GroupedKernel:
    """Identity of a kernel: all that shapes its code besides the target."""

    dtype: str
    depth: int
    """Channels summed over, of one group."""
    width: int
    """Channels produced, of one group."""
    pixels: int
    """Of a tile."""
    outputs: int
    """Channels of a tile: those of a panel."""
    planes: bool
    """Whether images are NCHW."""
    levels: bool
    """Whether sums are so long that they are added in runs."""
    block: int
    """Channels of a block of the contract, which are gone through one after the other; `depth` if all at once."""
    bias: bool = added_field(False)
    """Whether a bias is added to the result."""
