"""What all parts of the kernel of `dense_direct` share: arguments, workspace, and the block an item works on."""

from __future__ import annotations

from dataclasses import dataclass

from ..._codegen import I64, Int, KernelBuilder, Pointer, compute, element, symbol
from ..._targets import Target
from ..shared.words import arguments, load_row
from .tables import SPAN
from .words import WORDS, DirectDenseKernel


@dataclass(frozen=True)
class Block:
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
    tiles: Pointer
    count: Int


class Frame:
    """The kernel being written, its arguments and its workspace."""

    def __init__(self, kernel: DirectDenseKernel, target: Target) -> None:
        self.kernel = kernel
        size = f"{kernel.height}x{kernel.vectors}"
        name = "dense_dot" if kernel.dot else "dense"
        self.k = k = KernelBuilder(symbol(name, kernel.dtype, size, target, kernel), target)
        self.storage = element(kernel.dtype)
        self.number = compute(self.storage)
        self.lanes = k.lanes(self.number)
        self.panel = kernel.vectors if kernel.dot else kernel.vectors * self.lanes
        """Channels of a panel."""
        self.source = k.arg_pointer(0, self.storage)
        self.result = k.arg_pointer(2, self.storage)
        self.table = k.arg_pointer(3, I64)
        self.word = arguments(k, 4, WORDS)
        self.totals = k.scratch(self.number, kernel.height * kernel.vectors * self.lanes)
        self.staged = k.scratch(self.number, 0)
        self.depth = self.word["depth"]
        self.pixel = self.depth * kernel.woven
        """Channels of a source pixel that one panel reads."""
        self.width = self.word["width"] * kernel.woven
        self.groups = self.word["groups"] // kernel.woven

    def block(self, number: Int) -> Block:
        """Look a block up."""
        k, word = self.k, self.word
        col, rest = number % word["col_blocks"], number // word["col_blocks"]
        row, group = rest % word["row_blocks"], rest // word["row_blocks"]
        image = group * word["images"]
        images = k.min(word["images"], word["batch"] - image)
        rows = self.table.offset(word["rows_at"] + row * len(SPAN))
        cols = self.table.offset(word["cols_at"] + col * len(SPAN))
        r, c = load_row(rows, SPAN), load_row(cols, SPAN)
        usual = k.select(images.equals(word["images"]), k.i64(0), k.i64(1))
        structure = (usual * word["row_structures"] + r["structure"]) * word["col_structures"] + c[
            "structure"
        ]
        found = self.table.offset(word["structures_at"] + structure * 2)
        tiles = self.table.offset(
            word["tiles_at"] + found.load_int() * (4 + 2 * self.kernel.height)
        )
        count = found.offset(1).load_int()
        return Block(
            image=image,
            images=images,
            source_row=r["source"],
            source_rows=r["source_count"],
            source_col=c["source"],
            source_cols=c["source_count"],
            target_row=r["start"],
            target_rows=r["count"],
            target_col=c["start"],
            target_cols=c["count"],
            row_list=r["list_at"],
            tiles=tiles,
            count=count,
        )
