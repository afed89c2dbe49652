"""What the kernel of `dense_planes` is told: its identity when it is written, its words when it runs."""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.kernel import added_field
from . import pack

WORDS = (
    *pack.WORDS,
    "source_plane",  # elements from one to the next
    "source_rows",
    "source_cols",
    "target_plane",
    "target_rows",
    "target_cols",
    "rows_step",  # source cells from one staged cell to the next
    "cols_step",
    "rows_lowest",  # first staged cell of a block whose first place is 0
    "cols_lowest",
    "rows_phases",  # staged phases of the source
    "cols_phases",
    "places_down",  # places of the target: cells, or groups of cells of all its phases
    "places_along",
    "block_rows",  # places of a block
    "block_cols",
    "row_blocks",
    "col_blocks",
    "panel_range",  # panels of an item
    "panel_ranges",
    "chunk",  # panels that stay in the second cache
    "segment",  # blocks of the contract of which a tile's pixels stay in the first cache
    "segments",
    "staged_rows",
    "staged_cols",
    "staged_plane",  # numbers from one staged channel to the next
    "valid_at",  # places in the workspace, in numbers
    "pixels_at",
    "rows_at",  # places in the table: phases of the source
    "cols_at",
    "taps_at",  # displacement of each tap
    "products_at",  # displacement of each product, where they are listed
    "phases_at",  # first tap of each phase of the target, and behind the last one
    "contract_block",  # channels of a block of the contract, its blocks, and numbers of runs of a block
    "contract_blocks",
    "block_runs",
    "runs_at",  # run of each tap in a block
    "phases_down",  # of the target
    "phases_along",
)
"""The run-time words behind the pointers. Places in the table count 4 bytes."""


@dataclass(frozen=True)
class PlanesKernel:
    """Identity of a kernel: all that shapes its code besides the target."""

    dtype: str
    high: int
    """Channels of a tile."""
    low: int
    """Channels of the last tiles, where the others' do not fit; else 0."""
    vectors: int
    """Vectors of pixels of a tile."""
    tiled: bool
    """Whether a block is staged in the order of its tiles, since each pixel reads just the same pixel."""
    direct: bool
    """Whether tiles are stored where they belong; else in the workspace first, whole rows of staged places."""
    padded: bool
    """Whether windows reach beside the image, which is staged as zeros."""
    listed: bool
    """Whether the displacement of each product is listed: for so few channels that a loop over them is a burden."""
    levels: bool
    """Whether sums are long enough to be taken in runs: not under a 16-bit rounding, nor in integers."""
    blocked: bool
    """Whether taps are gone through once for each of several blocks of channels."""
    segmented: bool
    """Whether a tile goes through its panels segment by segment of the channels, with totals of each panel."""
    step: int
    """Distance of staged columns in the source, where vectors are shuffled for it; 0 if cell by cell."""
    woven: int
    """Phases of the target's columns, where they are joined by shuffles; 0 if cell by cell."""
    prefetch: bool
    """Whether lines of the result are asked for when a tile begins."""
    bias: bool = added_field(False)
    """Whether a bias is added to the result."""

    @property
    def guarded(self) -> bool:
        """Whether a filter that is not finite takes another way: zeros beside the image times infinities are NaNs."""
        return self.padded and self.dtype != "i32"
