"""What all parts of the second kernel of `winograd` share: arguments, workspace, and the walk through the tiles."""

from __future__ import annotations

from ..._compiler.codegen import F32, Element, KernelBuilder, Pointer, element
from ..shared.winograd_tiles import TileWalk
from ..shared.words import arguments
from .words import WinogradKernel, words_of


class Frame:
    """The kernel being written and its arguments."""

    def __init__(self, k: KernelBuilder, kernel: WinogradKernel) -> None:
        self.k = k
        self.storage = storage = element(kernel.dtype)
        self.dilated = kernel.dilated
        pointers = 4 if kernel.stage == "fused" else 5
        self.bias = k.arg_pointer(pointers, storage) if kernel.bias else None
        self.word = arguments(k, pointers + kernel.bias, words_of(kernel))
        self.tiles = TileWalk(k, self.word, kernel.outputs, kernel.dilated)
        self.source = k.arg_pointer(0, storage)
        self.filter = k.arg_pointer(1, storage)
        self.packed = k.arg_pointer(2, F32)
        self.target = k.arg_pointer(3, storage)
        self.shared = None if kernel.stage == "fused" else k.arg_pointer(4, F32)
        """V of all blocks, if launches share it."""

    def scratch(self, word: str, element: Element = F32) -> Pointer:
        """Return a block of the workspace whose size only the plan knows."""
        return self.k.scratch(F32, 0).offset(self.word[word] // 4).as_element(element)
