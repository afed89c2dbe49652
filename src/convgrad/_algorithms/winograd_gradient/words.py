"""What the two kernels of `winograd_gradient` are told at run time: the same pointers and words for both.

All blocks of channels have one size. Where the channels are no multiple of it, the last block is moved back to end with
the last channel; a single block may be larger than all channels, by less than a register tile.
"""

from __future__ import annotations

from ..._codegen import F32, Element, Int, KernelBuilder
from ..winograd.words import Tiles

POINTERS = 4

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


class Frame(Tiles):
    """Names the arguments."""

    def __init__(self, k: KernelBuilder, storage: Element) -> None:
        super().__init__(k, storage, POINTERS, WORDS)
        self.source = k.arg_pointer(0, storage)
        self.target = k.arg_pointer(1, storage)
        self.partial = k.arg_pointer(2, F32)
        """dU[slice][block of input channels][block of output channels][frequency][input channel][output channel]."""
        self.result = k.arg_pointer(3, storage)

    def first(self, block: Int, side: str) -> Int:
        """Return the first channel of a block."""
        size = self.word[f"block_{side}"]
        return self.k.max(self.k.min(block * size, self.word[f"{side}_c"] - size), 0)

    def count(self, side: str) -> Int:
        """Return the channels of a block, without those that fill up its last register tile."""
        return self.k.min(self.word[f"block_{side}"], self.word[f"{side}_c"])
