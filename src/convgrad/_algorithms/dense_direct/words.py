"""Identity and words of the kernel of `dense_direct`, and the block an item works on."""

from __future__ import annotations

from dataclasses import dataclass

from ..._codegen import I64, Int, KernelBuilder, Pointer, compute, element, symbol
from ..._targets import Target
from ..shared.words import arguments
from . import pack
from .pack import PackKernel
from .tables import SPAN

WORDS = (
    *pack.WORDS,
    "source_image",  # elements from one to the next
    "source_row",
    "source_col",
    "source_plane",  # NCHW: from one channel to the next
    "source_cols",  # columns of an image
    "target_image",
    "target_row",
    "target_col",
    "target_plane",
    "target_cols",
    "filter_row",  # elements from one k to the next in a filter that is read in place
    "images",  # of a block
    "batch",
    "row_blocks",
    "col_blocks",
    "row_structures",
    "col_structures",
    "panel_range",  # panels of an item
    "panel_ranges",
    "rows_at",  # places in the table
    "cols_at",
    "structures_at",
    "tiles_at",
    "block_size",  # elements from one block of the source to the next, where the kernel prefetches
    "ahead",  # elements of the next block to ask for per tile and panel
    "group_size",  # elements of one group in a staged block
    "panel_at",  # places in the workspace, in elements
    "pixels_at",
)
"""The run-time words behind the pointers."""


@dataclass(frozen=True)
class DirectDenseKernel:
    """Identity of a kernel: all that shapes its code besides the target."""

    dtype: str
    height: int
    """Pixels of a tile."""
    vectors: int
    """Vectors of channels of a panel, or channels where each has a vector of partial sums (`dot`)."""
    planes: bool = False
    """Whether arrays are NCHW."""
    staged: bool = False
    """Whether the source is copied to the workspace first."""
    dot: bool = False
    """Whether vectors run along the channels summed over: for fewer results than lanes."""
    woven: int = 1
    """Groups that share a vector, lane by lane in turn: for groups that fill half a vector or less."""
    in_place: bool = False
    """Whether the filter is read where it is: for so few pixels that packing it would be the larger work."""
    pack: PackKernel | None = None
    """How an item packs its own panels; None if they are packed already."""
    levels: bool = True
    """Whether sums are long enough to be taken in runs: not under a 16-bit rounding, nor in integers."""
    narrow: int = 0
    """Channels where they are fewer than lanes, else 0."""
    prefetch: bool = False
    """Whether to ask for the next block of the source while one is in use (one tap, blocks that follow each other)."""


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
    """What all parts of the kernel share: arguments, workspace, and how an item finds its block."""

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
        rows = self.table.offset(word["rows_at"] + row * SPAN)
        cols = self.table.offset(word["cols_at"] + col * SPAN)
        r, c = ([axis.offset(i).load_int() for i in range(SPAN)] for axis in (rows, cols))
        usual = k.select(images.equals(word["images"]), k.i64(0), k.i64(1))
        structure = (usual * word["row_structures"] + r[4]) * word["col_structures"] + c[4]
        found = self.table.offset(word["structures_at"] + structure * 2)
        tiles = self.table.offset(
            word["tiles_at"] + found.load_int() * (4 + 2 * self.kernel.height)
        )
        count = found.offset(1).load_int()
        sizes = (r[0], r[1], c[0], c[1], r[2], r[3], c[2], c[3])
        return Block(image, images, *sizes, row_list=r[5], tiles=tiles, count=count)
