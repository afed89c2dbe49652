"""What the kernels of `winograd_gradient` are told: the first one's identity, and the words of both when they run.

All blocks of channels have one size. Where the channels are not a multiple of it, the last block is moved back to end
with the last channel; a single block may be larger than all channels, by less than a register tile.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..shared.winograd_scheme import F2
from ..shared.winograd_tiles import DILATION_WORDS

LINE = 16
"""Numbers of a cache line: between rows and frequencies it keeps them out of each other's sets."""

WORDS = (
    "in_c",  # channels of x
    "out_c",  # channels of dy
    "block_in",  # channels of a block, whole register tiles
    "block_out",
    "in_blocks",
    "out_blocks",
    "slices",
    "tiles",
    "tile_rows",  # of an image
    "tile_cols",
    "batch",
    "source_rows",  # x
    "source_cols",
    "target_rows",  # dy
    "target_cols",
    "before_rows",  # dy's row p meets x's rows from p - before_rows on
    "before_cols",
    "source_image",  # elements from image to image, ...
    "source_row",
    "source_col",
    "target_image",
    "target_row",
    "target_col",
)
"""The run-time words behind the pointers: x, dy, partial sums, result."""


def words_of(dilated: bool) -> tuple[str, ...]:
    """Return the words of both kernels."""
    return (*WORDS, *DILATION_WORDS) if dilated else WORDS


@dataclass(frozen=True)
class GradientKernel:
    """Identity of a kernel: all that shapes its code besides the target."""

    dtype: str
    rows: int
    """Input channels held in registers."""
    vectors: int
    """Vectors of output channels held in registers."""
    most_in: int
    """Input channels of a block, at most; a multiple of `rows`."""
    most_out: int
    chunk: int
    """Tiles of a chunk."""
    dilated: bool
    """Whether a tile's cells lie a dilation apart."""

    @property
    def pitches(self) -> tuple[int, int]:
        """Elements from tile to tile, in V and in D."""
        return _pitch(self.most_in), _pitch(self.most_out)

    @property
    def scratch_bytes(self) -> int:
        """Workspace of one thread: V, D and the line of zeros."""
        pitches = self.pitches
        sides = (F2.frequencies * (self.chunk * pitch + LINE) for pitch in pitches)
        return 4 * (sum(sides) + max(pitches))


def _pitch(channels: int) -> int:
    return (-(-channels // LINE) + 1) * LINE
