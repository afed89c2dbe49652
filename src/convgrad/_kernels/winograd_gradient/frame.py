"""What both kernels of `winograd_gradient` share: arguments, blocks of channels, and the walk through the tiles."""

from __future__ import annotations

from ..._compiler.codegen import F32, Element, Int, KernelBuilder
from ..shared.winograd_scheme import F2
from ..shared.winograd_tiles import TileWalk
from ..shared.words import arguments
from .words import words_of


class Frame:
    """The kernel being written and its arguments."""

    def __init__(self, k: KernelBuilder, storage: Element, dilated: bool) -> None:
        self.k = k
        self.storage = storage
        self.word = arguments(k, 4, words_of(dilated))
        self.tiles = TileWalk(k, self.word, F2.outputs, dilated)
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
