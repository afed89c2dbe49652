"""The kernel of the dense filter gradient: sums of outer products of pixels, in register tiles.

``dw[t, c, k] = sum over pixels of x[pixel @ t, c] * dy[pixel, k]`` for a block of input channels c, a block of output
channels k and a slice of the pixels: that is one item. An item walks the chunks of its slice. It copies its channels
of a chunk into the thread's scratch, x as ``[tile of c][pixel][rows]`` and dy as ``[panel of k][pixel][lanes]``
(`dense_filter_pack`), and then, for every panel, tap and tile, runs down the tap's list of pixels: pairs of a place
in x and a place in dy, real pairs only, so taps in the padding cost nothing and touch nothing. Layout, dtype and
strides end in the copies; sizes, taps and channels are run-time words. One code serves every problem of a dtype, a
layout and a tile.

Sums are kept short: runs of 32 products in registers, runs added up in scratch, those added to the output once per
chunk. The output is the filter gradient itself or a block of partial sums with rows of its own length.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._codegen import I32, I64, Bool, Int, KernelBuilder, Pointer, compute, element, symbol
from .._kernel import KernelSource
from .._targets import Target
from .dense_filter_pack import Pack, Packer

UNROLL = 4
"""Pixels per turn of the innermost loop; lists of pixels are padded to a multiple of it."""
ITEM = 10
"""Words of an item in the table."""
SHAPE = 8
"""Words of a shape of chunks in the table."""

WORDS = (
    *("items_at", "row_blocks_at", "col_blocks_at", "shapes_at", "taps_at", "lists_at", "runs_at"),
    *("row_blocks", "col_blocks", "image_blocks", "images", "block_rows", "block_cols"),
    *("col_classes", "ragged_images", "taps", "run"),
    *("x_cols", "x_pixel", "x_channel", "x_image", "x_channels"),
    *("y_cols", "y_pixel", "y_channel", "y_image", "y_channels"),
    *("group_in", "group_out", "big_tiles", "tiles", "whole_tiles", "whole_panels"),
    *("x_tile", "y_tile", "x_zero", "y_zero", "y_at"),
    *("out_slice", "out_group", "out_tap", "out_row", "out_rows", "out_cols"),
)
"""Run-time words behind the pointers (x, dy, out, table). Places in the table count 8 bytes, all others elements."""


@dataclass(frozen=True)
class FilterKernel:
    """Everything that shapes the code besides the target."""

    dtype: str
    data_format: str
    out: str
    """Type of the output: the result's, or the compute type for partial sums."""
    rows: int
    """Input channels of a tile."""
    few: int
    """Input channels of the small tiles that end a row of tiles."""
    vectors: int
    """Vectors of output channels of a tile."""


def emit(kernel: FilterKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    return _Writer(kernel, target).write()


@dataclass(frozen=True)
class _Item:
    """What an item covers: chunks, tiles, panels and groups, each a range."""

    chunk: Int
    chunk_end: Int
    tile: Int
    tile_end: Int
    panel: Int
    panel_end: Int
    group: Int
    group_end: Int
    slice: Int


class _Writer:
    """Writes one kernel; methods go from the outermost loop to the innermost body."""

    def __init__(self, kernel: FilterKernel, target: Target) -> None:
        self.kernel = kernel
        size = f"{kernel.rows}x{kernel.vectors}"
        self.k = k = KernelBuilder(
            symbol("dense_bwd_filter", kernel.dtype, size, target, kernel), target
        )
        self.storage = element(kernel.dtype)
        self.number = compute(self.storage)
        self.lanes = k.lanes(self.number)
        self.width = kernel.vectors * self.lanes
        self.word = {word: k.arg_i64(4 + i) for i, word in enumerate(WORDS)}
        self.table = k.arg_pointer(3, I64)
        self.totals = k.scratch(self.number, kernel.rows * self.width)
        """The tile's sums of runs."""
        self.x_pack = k.scratch(self.number, 0)
        self.y_pack = k.scratch(self.number, 0).offset(self.word["y_at"])
        self.packer = Packer(k, self.storage, kernel.data_format, self.table, self.word)

    def write(self) -> KernelSource:
        k, word = self.k, self.word
        with k.loop(k.begin, k.end) as number:
            row = self.table.offset(word["items_at"] + number * ITEM)
            item = _Item(*(row.offset(i).load_int() for i in range(ITEM - 1)))
            with k.loop(item.chunk, item.chunk_end, nonempty=True) as chunk:
                self._chunk(item, chunk)
        return k.finish()

    def _chunk(self, item: _Item, chunk: Int) -> None:
        k, word, table = self.k, self.word, self.table
        cols, rest = chunk % word["col_blocks"], chunk // word["col_blocks"]
        rows, images = rest % word["row_blocks"], rest // word["row_blocks"]
        row_block = table.offset(word["row_blocks_at"] + rows * 2)
        col_block = table.offset(word["col_blocks_at"] + cols * 2)
        kind = row_block.load_int() * word["col_classes"] + col_block.load_int()
        last = images.equals(word["image_blocks"] - 1)
        kind = kind * 2 + k.select(last, word["ragged_images"], k.i64(0))
        shape = table.offset(word["shapes_at"] + kind * SHAPE)
        x_first, x_last, y_first, y_last, repeat, x_step, y_step, taps = (
            shape.offset(i).load_int() for i in range(SHAPE)
        )
        image = images * word["images"]
        corner = row_block.offset(1).load_int() * word["x_cols"] + col_block.offset(1).load_int()
        x = k.arg_pointer(0, self.storage)
        x = x.offset(image * word["x_image"] + corner * word["x_pixel"])
        corner = rows * word["block_rows"] * word["y_cols"] + cols * word["block_cols"]
        y = k.arg_pointer(1, self.storage)
        y = y.offset(image * word["y_image"] + corner * word["y_pixel"])
        kernel = self.kernel
        big, tiles, whole = word["big_tiles"], word["tiles"], word["whole_tiles"]
        self.packer.pack(
            Pack(
                *("x", x, self.x_pack, x_first, x_last, repeat, x_step),
                *(kernel.rows, word["x_tile"], word["x_zero"]),
                *(item.group, item.group_end, word["group_in"], item.tile, item.tile_end, whole),
                ((kernel.rows, k.i64(0), big), (kernel.few, big, tiles)),
            )
        )
        panels = word["whole_panels"]
        self.packer.pack(
            Pack(
                *("y", y, self.y_pack, y_first, y_last, repeat, y_step),
                *(self.width, word["y_tile"], word["y_zero"]),
                *(item.group, item.group_end, word["group_out"]),
                *(item.panel, item.panel_end, panels),
                ((self.width, k.i64(0), panels),),
            )
        )
        self._products(item, table.offset(word["taps_at"] + taps), chunk.equals(item.chunk))

    def _products(self, item: _Item, taps: Pointer, first: Bool) -> None:
        """Add the products of a chunk to the output, panel by panel, tap by tap, tile by tile."""
        k, word, kernel = self.k, self.word, self.kernel
        out = k.arg_pointer(2, element(kernel.out)).offset(item.slice * word["out_slice"])
        count = item.tile_end - item.tile
        with k.loop(item.group, item.group_end, nonempty=True) as group:
            local = group - item.group
            xs = (local * count - item.tile) * word["x_tile"]
            panels = item.panel_end - item.panel
            ys = (local * panels - item.panel) * word["y_tile"]
            with k.loop(item.panel, item.panel_end, nonempty=True) as panel:
                y = ys + panel * word["y_tile"]
                col = panel * self.width
                place = out.offset(group * word["out_group"] + col)
                with k.loop(0, word["taps"], nonempty=True) as tap:
                    begin = taps.offset(tap).load_int()
                    end = taps.offset(tap + 1).load_int()
                    here = place.offset(tap * word["out_tap"])
                    left = word["out_cols"] - col
                    big = word["big_tiles"]
                    with k.loop(item.tile, k.min(item.tile_end, big)) as tile:
                        x = xs + tile * word["x_tile"]
                        self._tile(
                            kernel.rows, x, y, begin, end, here, tile * kernel.rows, left, first
                        )
                    if kernel.few < kernel.rows:
                        with k.loop(k.max(item.tile, big), item.tile_end) as tile:
                            x = xs + tile * word["x_tile"]
                            row = big * (kernel.rows - kernel.few) + tile * kernel.few
                            self._tile(kernel.few, x, y, begin, end, here, row, left, first)

    def _tile(
        self,
        rows: int,
        x_at: Int,
        y_at: Int,
        begin: Int,
        end: Int,
        out: Pointer,
        row: Int,
        cols_left: Int,
        first: Bool,
    ) -> None:
        """Sum the outer products of one list of pixels and add them to the output."""
        k, lanes, vectors = self.k, self.lanes, self.kernel.vectors
        zero = k.zeros(self.number, lanes)
        sums = [k.variable(zero) for _ in range(rows * vectors)]
        x, y = self.x_pack.offset(x_at), self.y_pack.offset(y_at)
        lists = self.table.offset(self.word["lists_at"]).as_element(I32)
        totals = [self.totals.offset(i * lanes) for i in range(rows * vectors)]
        length = self.word["run"]
        runs = (end - begin + (length - 1)) // length
        with k.loop(0, runs, carry=sums) as number:
            run = begin + number * length
            stop = k.min(run + length, end)
            for each in sums:
                each.value = zero
            with k.loop(run, stop, UNROLL, carry=sums, nonempty=True) as entry:
                pairs = lists.offset(entry * 2)
                for turn in range(UNROLL):
                    a = x.offset(pairs.offset(2 * turn).load_int())
                    b = y.offset(pairs.offset(2 * turn + 1).load_int())
                    right = [b.offset(v * lanes).load(lanes) for v in range(vectors)]
                    for i in range(rows):
                        left = a.offset(i).broadcast(lanes)
                        for v in range(vectors):
                            each = sums[i * vectors + v]
                            each.value = k.fma(left, right[v], each.value)
            with k.when(number > 0):
                for each, total in zip(sums, totals, strict=True):
                    each.value = each.value + total.load(lanes)
            with k.when(stop < end):
                for each, total in zip(sums, totals, strict=True):
                    total.store(each.value)
        rows_left = self.word["out_rows"] - row
        place = out.offset(row * self.word["out_row"])
        whole = (rows_left >= rows) & (cols_left >= vectors * lanes)
        with k.branch(first) as either:
            for arm, adds in ((either.then(), False), (either.otherwise(), True)):
                with arm, k.branch(whole) as inside:
                    with inside.then():
                        at = place
                        for i in range(rows):
                            for v in range(vectors):
                                self._write(at.offset(v * lanes), sums[i * vectors + v].value, adds)
                            at = at.offset(self.word["out_row"])
                    with inside.otherwise():
                        at = place
                        for i in range(rows):
                            with k.when(rows_left > i):
                                for v in range(vectors):
                                    with k.when(cols_left > v * lanes):
                                        value = sums[i * vectors + v].value
                                        self._write(at.offset(v * lanes), value, adds)
                            at = at.offset(self.word["out_row"])

    def _write(self, place: Pointer, value, adds: bool) -> None:  # type: ignore[no-untyped-def]
        place.store(place.load(self.lanes) + value if adds else value)
