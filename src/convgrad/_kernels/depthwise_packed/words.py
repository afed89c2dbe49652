"""What the kernel of `depthwise_packed` is told: its identity when it is written, its words when it runs."""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.kernel import added_field
from ..._problem.convolution import Kind
from .columns import Columns

WORDS = (
    "source_rows",
    "source_cols",
    "target_rows",
    "target_cols",
    "channels",  # of the filter gradient and the forward result, or of the input gradient
    "chunks",
    "row_block",
    "row_blocks",
    "units",
    "col_block",  # q per block of columns
    "col_blocks",
    "col_parts",  # into which the blocks of columns are divided among units
    "window_rows",
    "row_scale",  # y * row_scale + tap * row_step + row_start is the source row, times the stride of an input gradient
    "row_step",
    "row_start",
    "row_stride",
    "row_spacing",  # distance of the kernel rows that a target row reads
    "ring_rows",
    "ring_pitch",  # elements of a row of the ring
    "plane_pitch",  # elements of one plane of it
    "slots_at",  # offsets into scratch, in bytes
    "bank_at",
    "sums_at",
    "ring_at",
    "plane_at",
)
"""The run-time words behind the pointers: three, and a bias."""
RING_WORDS = ("slot_mask",)
"""Behind them for a filter gradient, and those of `shared.units`: the list of slots is a ring of a power of two."""


def entry_words(levels: int) -> int:
    """Return the numbers of an entry of the list: places in the ring and in the bank, and for grand totals its run."""
    return 3 if levels > 1 else 2


@dataclass(frozen=True)
class PackedKernel:
    """Identity of a kernel: all that shapes its code besides the target."""

    kind: Kind
    dtype: str
    data_format: str
    columns: Columns
    multiplier: int
    tile: int
    """Columns held in registers."""
    vectors: int
    """Vectors of channels in a full chunk."""
    small: bool
    """Whether there are fewer channels than lanes."""
    strided: bool
    """Whether this is an input gradient whose rows have a stride to divide by."""
    prefetch: bool
    """Whether to ask for the next source row while one is copied (NHWC, multiplier 1)."""
    tiles: tuple[tuple[int, int], ...] = ()
    """Start and width of all tiles where they are few and fixed; columns outside the image are then left out."""
    image: int = 0
    """Source columns, where the tiles are fixed."""
    bias: bool = added_field(False)
    """Whether a bias is added to the result, or out_backprop added up besides: that sum is one more tap."""
    levels: int = added_field(0)
    """Levels above the chains of a sum: totals, and grand totals (forward and input gradient)."""
