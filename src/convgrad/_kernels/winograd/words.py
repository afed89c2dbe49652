"""What the second kernel of `winograd` is told: its identity when it is written, its words when it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..._compiler.kernel import added_field
from ..shared.winograd_tiles import DILATION_WORDS

Stage = Literal["fused", "inputs", "products"]

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
"""The run-time words behind the pointers: source, filter, packed, result, V if launches share it, and the bias if there
is one."""


PHASE_WORDS = (
    *DILATION_WORDS,
    "pixels_at",  # offset into scratch: NCHW, where a panel's results wait to be turned
)
"""Behind them where the kernel is for dilated windows."""
BUNDLE_WORDS = (
    "groups",
    "bundle",  # groups of an item; `row_pitch` is that of all of them
)
"""Behind them where an item takes several groups."""


@dataclass(frozen=True)
class WinogradKernel:
    """Identity of a kernel: all that shapes its code besides the target."""

    outputs: int
    """Of a tile along an axis: which scheme."""
    dtype: str
    data_format: str
    rows: int
    """Tiles held in registers."""
    vectors: int
    """Vectors of channels held in registers: a panel."""
    most_tiles: int
    """Tiles of a block, at most; a multiple of `rows`."""
    chain: int
    """k of a chain, in registers of its own; 0 where a run is one chain."""
    run: int
    """k of a run; a multiple of `chain`."""
    dilated: bool
    """Whether a tile's cells lie a dilation apart."""
    bundled: bool
    """Whether an item takes several groups: NHWC, whose channels of one group are a line or two of each pixel."""
    stage: Stage
    """What it computes: all behind the filter's transform, or V only, into memory that launches share, or the rest."""
    bias: bool = added_field(False)
    """Whether a bias is added to the result."""

    @property
    def piece(self) -> int:
        """Tiles that are transformed by an item of a launch of its own; NCHW turns squares of a vector's columns."""
        return self.rows if self.data_format == "NHWC" else 2 * self.rows


def words_of(kernel: WinogradKernel) -> tuple[str, ...]:
    """Return the words of a kernel."""
    return (
        *WORDS,
        *(PHASE_WORDS if kernel.dilated else ()),
        *(BUNDLE_WORDS if kernel.bundled else ()),
    )
