"""What all parts of the kernel of `dense_planes` share: arguments, workspace, and the block an item works on."""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.codegen import I32, Int, KernelBuilder, arithmetic, element, symbol
from ..._compiler.targets import Target
from ..shared.words import arguments
from .words import WORDS, PlanesKernel


@dataclass(frozen=True)
class PlaceBlock:
    """Where a block lies."""

    image: Int
    group: Int
    row: Int
    """First place."""
    rows: Int
    col: Int
    cols: Int
    start: Int
    """Where its columns start; `col` lies before that if the block is narrower than a vector."""
    count: Int
    """Of vectors."""
    in_row: Int
    """Vectors of a row; 0 where they run on from row to row."""


class Frame:
    """The kernel being written, its arguments and its workspace."""

    def __init__(self, kernel: PlanesKernel, target: Target) -> None:
        self.kernel = kernel
        size = f"{kernel.high}_{kernel.low}x{kernel.vectors}"
        name = "planes_flat" if kernel.direct else "planes"
        self.k = k = KernelBuilder(symbol(name, kernel.dtype, size, target, kernel), target)
        self.storage = element(kernel.dtype)
        self.number = arithmetic(self.storage)
        self.lanes = k.lanes(self.number)
        self.source = k.arg_pointer(0, self.storage)
        self.packed = k.arg_pointer(1, self.number)
        self.result = k.arg_pointer(2, self.storage)
        self.bias = k.arg_pointer(3, self.storage) if kernel.bias else None
        self.table = k.arg_pointer(3 + kernel.bias, I32)
        self.word = arguments(k, 4 + kernel.bias, WORDS)
        self.totals, self.grand = (
            k.scratch(self.number, kernel.high * kernel.vectors * self.lanes)
            if kernel.levels
            else None
            for _ in range(2)
        )
        self.staged = k.scratch(self.number, 0)
        self.valid = self.staged.offset(self.word["valid_at"])
        self.pixels = self.staged.offset(self.word["pixels_at"])

    def block(self, number: Int) -> PlaceBlock:
        """Find a block by its number."""
        k, word = self.k, self.word
        along, rest = number % word["col_blocks"], number // word["col_blocks"]
        down, rest = rest % word["row_blocks"], rest // word["row_blocks"]
        group, image = rest % word["groups"], rest // word["groups"]
        row = down * word["block_rows"]
        rows = k.min(word["block_rows"], word["places_down"] - row)
        start = along * word["block_cols"]
        cols = k.min(word["block_cols"], word["places_along"] - start)
        if self.kernel.direct:
            # The last vector of a row overlaps the one before: all are whole.
            in_row = (cols + (self.lanes - 1)) // self.lanes
            col = k.min(start, word["places_along"] - self.lanes)
            return PlaceBlock(image, group, row, rows, col, cols, start, rows * in_row, in_row)
        places = (rows - 1) * word["staged_cols"] + cols
        count = (places + (self.lanes - 1)) // self.lanes
        return PlaceBlock(image, group, row, rows, start, cols, start, count, k.i64(0))

    def column(self, block: PlaceBlock, number: Int) -> Int:
        """Return where a vector of a row starts, from the block's `col` on."""
        last = self.word["places_along"] - self.lanes
        return self.k.min(block.start + number * self.lanes, last) - block.col
