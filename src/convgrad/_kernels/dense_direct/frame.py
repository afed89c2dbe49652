"""What all parts of the kernel of `dense_direct` share: arguments, workspace, and the block an item works on."""

from __future__ import annotations

from dataclasses import dataclass

from ..._compiler.codegen import I32, I64, Int, KernelBuilder, arithmetic, element, symbol
from ..._compiler.targets import Target
from ..shared.levels import Levels
from ..shared.words import arguments, load_row
from .axis import SPAN
from .words import WORDS, DirectDenseKernel


@dataclass(frozen=True)
class TargetBlock:
    """Where a block lies and what it reads."""

    image: Int
    images: Int
    source_row: Int
    source_rows: Int
    source_col: Int
    source_cols: Int
    target_row: Int
    target_rows: Int
    target_col: Int
    target_cols: Int
    row_list: Int
    """Where in the table the source rows are listed; 0 if they follow each other."""
    row_pieces: tuple[Int, Int]
    """Where in the table the pieces of its rows start and end."""
    col_pieces: tuple[Int, Int]


class Frame:
    """The kernel being written, its arguments and its workspace."""

    def __init__(self, kernel: DirectDenseKernel, target: Target) -> None:
        self.kernel = kernel
        size = f"{kernel.height}x{kernel.vectors}"
        name = "dense_dot" if kernel.dot else "dense"
        self.k = k = KernelBuilder(symbol(name, kernel.dtype, size, target, kernel), target)
        self.storage = element(kernel.dtype)
        self.number = arithmetic(self.storage)
        self.lanes = k.lanes(self.number)
        self.panel = kernel.vectors if kernel.dot else kernel.vectors * self.lanes
        """Channels of a panel."""
        # NCHW that is not staged has been turned, and converted on the way.
        turned = kernel.planes and not kernel.staged
        self.source = k.arg_pointer(0, self.number if turned else self.storage)
        self.result = k.arg_pointer(2, self.storage)
        pointers = 3
        self.bias = None
        if kernel.bias:
            self.bias = k.arg_pointer(pointers, self.storage)
            pointers += 1
        if not kernel.flat:
            self.table = k.arg_pointer(pointers, I64 if kernel.far else I32)
            pointers += 1
        self.word = arguments(k, pointers, WORDS)
        self.parts = kernel.dot // self.lanes if kernel.dot else 1
        """Vectors of the chains of one result."""
        self._sums = kernel.height * kernel.vectors * self.parts
        self._totals, self._grand = (
            k.scratch(self.number, self._sums * self.lanes) if kernel.levels else None
            for _ in range(2)
        )
        self.staged = k.scratch(self.number, 0)
        self.depth = self.word["depth"]
        self.pixel = self.depth * kernel.woven
        """Channels of a source pixel that one panel reads."""
        self.width = self.word["width"] * kernel.woven
        self.groups = self.word["groups"] // kernel.woven

    def sums(self) -> Levels:
        """Begin the sums of a tile: vectors for each pair of a pixel and a vector of channels."""
        return Levels(self.k, self.number, self._sums, self._totals, self._grand)

    def block(self, number: Int) -> TargetBlock:
        """Look a block up."""
        if self.kernel.flat:
            return self._flat_block(number)
        k, word = self.k, self.word
        col, rest = number % word["col_blocks"], number // word["col_blocks"]
        row, group = rest % word["row_blocks"], rest // word["row_blocks"]
        image = group * word["images"]
        r = load_row(self.table.offset(word["rows_at"] + row * len(SPAN)), SPAN)
        c = load_row(self.table.offset(word["cols_at"] + col * len(SPAN)), SPAN)
        return TargetBlock(
            image=image,
            images=k.min(word["images"], word["batch"] - image),
            source_row=r["source"],
            source_rows=r["source_count"],
            source_col=c["source"],
            source_cols=c["source_count"],
            target_row=r["start"],
            target_rows=r["count"],
            target_col=c["start"],
            target_cols=c["count"],
            row_list=r["list_at"],
            row_pieces=(r["first_piece"], r["last_piece"]),
            col_pieces=(c["first_piece"], c["last_piece"]),
        )

    def _flat_block(self, number: Int) -> TargetBlock:
        """Compute where a block of flat pixels lies."""
        k, word = self.k, self.word
        none, one = k.i64(0), k.i64(1)
        start = number * word["block_pixels"]
        count = k.min(word["block_pixels"], word["target_cols"] - start)
        return TargetBlock(
            image=none,
            images=one,
            source_row=none,
            source_rows=one,
            source_col=start,
            source_cols=count,
            target_row=none,
            target_rows=one,
            target_col=start,
            target_cols=count,
            row_list=none,
            row_pieces=(none, none),
            col_pieces=(none, none),
        )

    def source_pitches(self, block: TargetBlock) -> tuple[Int, Int, Int]:
        """Return how far it is from one image, row and column of the source to the next, as a tile reads it."""
        if not self.kernel.staged:
            return self.word["source_image"], self.word["source_row"], self.word["source_col"]
        row = block.source_cols * self.pixel
        return block.source_rows * row, row, self.pixel

    def target_pitches(self, block: TargetBlock) -> tuple[Int, Int, Int]:
        """Return the same of what a tile writes: for NCHW, of the pixels of one panel."""
        if not self.kernel.planes:
            return self.word["target_image"], self.word["target_row"], self.word["target_col"]
        row = block.target_cols * self.panel
        return block.target_rows * row, row, self.k.i64(self.panel)
