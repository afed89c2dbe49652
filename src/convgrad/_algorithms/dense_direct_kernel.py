"""The kernel of `dense_direct`: tiles of pixels times panels of channels.

::

    item = (block of the target, some panels of one range)
      [stage the source cells of the block: converted, channels last, zero-bordered]
      for panel:  [pack the panel]
        for tile of the block:                      # `height` pixels of one class, see dense_direct_tables
          acc[height][vectors] = 0
          for row entry, column entry, run of k:    # taps inside the image, and at most RUN channels of one
            for k:  acc[i] += broadcast(source[pixel i + displacement + k]) * packed[tap][k]
            totals += acc, acc = 0 once RUN products are in it
          store acc + totals
        [NCHW: turn the panel's pixels into planes]

Forward and input gradient are the same sum: source and target change places and the filter is packed transposed. The
code depends on the tile, the dtype and the layout; channels, windows, strides and images are words and tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._codegen import I64, Int, KernelBuilder, Pointer, Variable, Vector, compute, element, symbol
from .._kernel import KernelSource
from .._targets import Target
from . import dense_pack
from .dense_pack import Packer, PackKernel
from .dense_stage import clear, copy, transposed_copy

RUN = 44
"""Most products added up in registers before they go to the totals; runs of a tap are of equal length.

A plain sum of n products errs by about 0.29 sqrt(n) u: 7 u for the 576 of a 3x3 window on 64 channels. In runs of 32 it
is 2.2 u, and of 64, which is 3% faster there, 2.6 u.
"""
_ENOUGH = 32
"""Products after which runs of several taps go to the totals."""
SHORT = 64
"""Sums of so few products need no totals."""
_UNROLL = 4

WORDS = (
    *dense_pack.WORDS,
    "source_cols",  # of the whole image
    "source_image",  # elements of one
    "source_row",
    "source_col",  # elements from one column to the next, NCHW: 1
    "target_image",
    "target_row",
    "target_col",
    "images",  # of a block
    "batch",
    "row_blocks",
    "col_blocks",
    "row_structures",
    "col_structures",
    "panel_range",  # panels of an item
    "panel_ranges",
    "before",  # columns of zeros in front of the image, staged
    "borders",  # columns staged more than there are between the first and the last one read
    "channels",  # of a source pixel
    "target_plane",  # NCHW: elements from one channel to the next
    "source_plane",
    "rows_at",  # places in the table
    "cols_at",
    "structures_at",
    "tiles_at",
    "run",  # products added up in registers
    "runs",  # of a tap
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
    """Vectors of channels of a panel."""
    planes: bool
    """Whether arrays are NCHW."""
    staged: bool
    """Whether the source is copied to the workspace first."""
    pack: PackKernel | None
    """How an item packs its own panels; None if they are packed already."""
    levels: bool
    """Whether sums are long enough to be taken in runs: not under a 16-bit rounding, nor in integers."""
    narrow: int
    """Channels where they are fewer than lanes, else 0."""
    prefetch: bool
    """Whether to ask for the next block of the source while one is in use."""


def emit(kernel: DirectDenseKernel, target: Target) -> KernelSource:
    """Write the kernel: words are source, filter or packed filter, result, table, then `WORDS`."""
    return _Writer(kernel, target).write()


@dataclass(frozen=True)
class _Block:
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
    tiles: Pointer
    count: Int


class _Writer:
    """Writes one kernel; methods go from the outermost loop to the innermost body."""

    def __init__(self, kernel: DirectDenseKernel, target: Target) -> None:
        self.kernel = kernel
        size = f"{kernel.height}x{kernel.vectors}"
        self.k = k = KernelBuilder(symbol("dense", kernel.dtype, size, target, kernel), target)
        self.storage = element(kernel.dtype)
        self.number = compute(self.storage)
        self.lanes = k.lanes(self.number)
        self.panel = kernel.vectors * self.lanes
        self.source = k.arg_pointer(0, self.storage)
        self.result = k.arg_pointer(2, self.storage)
        self.table = k.arg_pointer(3, I64)
        self.word = {word: k.arg_i64(4 + i) for i, word in enumerate(WORDS)}
        self.totals = k.scratch(self.number, kernel.height * self.panel)
        self.staged = k.scratch(self.number, 0)
        self.packer = None
        self.packed = k.arg_pointer(1, self.number)
        if kernel.pack:
            self.packer = Packer(k, kernel.pack, k.arg_pointer(1, self.storage), self.word)
            self.packed = self.staged.offset(self.word["panel_at"])
        self.pixels = self.staged.offset(self.word["pixels_at"]) if kernel.planes else self.result

    def write(self) -> KernelSource:
        k, word = self.k, self.word
        tap_size = word["depth"] * word["merged"] * self.panel
        panel_size = tap_size * word["taps"]
        with k.loop(k.begin, k.end) as item:
            block = self._block(item // word["panel_ranges"])
            first = item % word["panel_ranges"] * word["panel_range"]
            last = k.min(first + word["panel_range"], word["panels"] * word["groups"])
            if self.kernel.staged:
                self._stage(block)
            with k.loop(first, last, nonempty=True) as panel:
                packed = self.packed
                if self.packer:
                    with k.loop(0, word["taps"]) as tap:
                        self.packer.tap(panel, tap, packed.offset(tap * tap_size))
                else:
                    packed = packed.offset(panel * panel_size)
                self._panel(block, panel, packed)
        return k.finish()

    def _block(self, number: Int) -> _Block:
        k, word = self.k, self.word
        col, rest = number % word["col_blocks"], number // word["col_blocks"]
        row, group = rest % word["row_blocks"], rest // word["row_blocks"]
        image = group * word["images"]
        images = k.min(word["images"], word["batch"] - image)
        rows = self.table.offset(word["rows_at"] + row * 5)
        cols = self.table.offset(word["cols_at"] + col * 5)
        r, c = ([axis.offset(i).load_int() for i in range(5)] for axis in (rows, cols))
        usual = k.select(images.equals(word["images"]), k.i64(0), k.i64(1))
        structure = (usual * word["row_structures"] + r[4]) * word["col_structures"] + c[4]
        found = self.table.offset(word["structures_at"] + structure * 2)
        tile_words = 4 + 2 * self.kernel.height
        tiles = self.table.offset(word["tiles_at"] + found.load_int() * tile_words)
        count = found.offset(1).load_int()
        return _Block(
            *(image, images, r[0], r[1], c[0], c[1]), *(r[2], r[3], c[2], c[3]), tiles, count
        )

    def _stage(self, block: _Block) -> None:
        """Copy what a block reads: ``staged[image][row][column][channel]``, columns with their borders."""
        k, word = self.k, self.word
        channels = word["channels"]
        row_size = (block.source_cols + word["borders"]) * channels
        first = block.source_col - word["before"]
        left = k.max(-first, 0)
        start = first + left
        count = k.max(k.min(word["source_cols"] - start, block.source_cols + word["borders"] - left), 0)  # fmt: skip
        right = block.source_cols + word["borders"] - left - count
        with k.loop(0, block.images, nonempty=True) as n:
            image = self.source.offset((block.image + n) * word["source_image"])
            image = image.offset(block.source_row * word["source_row"] + start * word["source_col"])
            target = self.staged.offset(n * block.source_rows * row_size)
            if self.kernel.planes:
                # Whole rows of a plane follow each other: one long run of pixels.
                joined = (block.source_cols + word["borders"]).equals(word["source_cols"])
                joined = joined & count.equals(word["source_cols"])
                with k.branch(joined) as ways:
                    with ways.then():
                        pixels = block.source_rows * count
                        transposed_copy(k, image, target, channels, pixels, word["source_plane"], channels)  # fmt: skip
                    with ways.otherwise(), k.loop(0, block.source_rows) as row:
                        here = image.offset(row * word["source_row"])
                        self._bordered(target.offset(row * row_size), left, count, right, here)
            else:
                with k.loop(0, block.source_rows) as row:
                    here = image.offset(row * word["source_row"])
                    self._bordered(target.offset(row * row_size), left, count, right, here)

    def _bordered(
        self, target: Pointer, left: Int, count: Int, right: Int, source: Pointer
    ) -> None:
        k, channels = self.k, self.word["channels"]
        clear(k, target, left * channels)
        inner = target.offset(left * channels)
        if self.kernel.planes:
            transposed_copy(k, source, inner, channels, count, self.word["source_plane"], channels)
        else:
            copy(k, source, inner, count * channels)
        clear(k, inner.offset(count * channels), right * channels)

    def _panel(self, block: _Block, panel: Int, packed: Pointer) -> None:
        k, word, kernel = self.k, self.word, self.kernel
        group, place = panel // word["panels"], panel % word["panels"]
        depth, width = word["depth"] * word["merged"], word["width"] * word["merged"]
        channel = k.max(k.min(place * self.panel, width - self.panel), 0) + group * width
        if kernel.staged:
            source = self.staged.offset(group * depth)
        else:
            at = block.source_row * word["source_row"] + block.source_col * word["source_col"]
            source = self.source.offset(block.image * word["source_image"] + at + group * depth)
        at = block.target_row * word["target_row"] + block.target_col * word["target_col"]
        result = self.result.offset(block.image * word["target_image"] + at)
        if kernel.planes:
            with k.loop(0, block.count) as tile:
                self._tile(block.tiles, tile, source, self.pixels, packed, depth)
            self._to_planes(block, result.offset(channel * word["target_plane"]))
        else:
            with k.loop(0, block.count) as tile:
                self._tile(block.tiles, tile, source, result.offset(channel), packed, depth)

    def _to_planes(self, block: _Block, target: Pointer) -> None:
        """Turn the pixels of a panel into rows of its channels' planes."""
        k, word = self.k, self.word
        channels = self.kernel.narrow or self.panel
        plane, pitch = word["target_plane"], self.panel
        size = block.target_rows * block.target_cols
        with k.loop(0, block.images, nonempty=True) as n:
            source = self.pixels.offset(n * size * pitch)
            there = target.offset(n * word["target_image"])
            with k.branch(block.target_cols.equals(word["target_row"])) as ways:
                with ways.then():
                    transposed_copy(k, source, there, size, channels, pitch, plane)
                with ways.otherwise(), k.loop(0, block.target_rows) as row:
                    here = source.offset(row * block.target_cols * pitch)
                    to = there.offset(row * word["target_row"])
                    transposed_copy(k, here, to, block.target_cols, channels, pitch, plane)

    def _tile(
        self, tiles: Pointer, number: Int, source: Pointer, target: Pointer, packed: Pointer, depth: Int
    ) -> None:  # fmt: skip
        k, kernel = self.k, self.kernel
        height = kernel.height
        tile = tiles.offset(number * (4 + 2 * height))
        first_row, last_row, first_col, last_col = (tile.offset(i).load_int() for i in range(4))
        pixels = [source.offset(tile.offset(4 + i).load_int()) for i in range(height)]
        zero = k.zeros(self.number, self.lanes)
        acc = [k.variable(zero) for _ in range(height * kernel.vectors)]
        done = k.variable(k.i64(0))
        carry: list[Variable[Any]] = [*acc, done] if kernel.levels else [*acc]
        if self.kernel.levels:
            for i in range(len(acc)):
                self.totals.offset(i * self.lanes).store(zero, aligned=True)
        entries = self.table
        with k.loop(first_row, last_row, carry=carry) as row:
            down = entries.offset(row * 2)
            down_filter, down_source = down.load_int(), down.offset(1).load_int()
            with k.loop(first_col, last_col, carry=carry) as col:
                right = entries.offset(col * 2)
                weights = packed.offset(down_filter + right.load_int())
                moved = down_source + right.offset(1).load_int()
                if self.kernel.levels:
                    self._runs(acc, done, pixels, moved, weights, depth)
                else:
                    self._run(acc, pixels, moved, weights, k.i64(0), depth)
        for i, sum_ in enumerate(acc):
            if self.kernel.levels:
                total = self.totals.offset(i * self.lanes)
                sum_.value = sum_.value + total.load(self.lanes, aligned=True)
        for i in range(height):
            self._store(target, tile.offset(4 + height + i).load_int(), acc[i * kernel.vectors :])

    def _runs(
        self,
        acc: list[Variable[Vector]],
        done: Variable[Int],
        pixels: list[Pointer],
        moved: Int,
        weights: Pointer,
        depth: Int,
    ) -> None:
        """Add the products of one tap in runs, and what has run long enough to the totals."""
        k = self.k
        carry: list[Variable[Any]] = [*acc, done]
        with k.loop(0, self.word["runs"], carry=carry, nonempty=True) as number:
            start = number * self.word["run"]
            stop = k.min(start + self.word["run"], depth)
            self._run(acc, pixels, moved, weights, start, stop)
            done.value = done.value + stop - start
            with k.when(done.value >= _ENOUGH):
                done.value = k.i64(0)
                for i, sum_ in enumerate(acc):
                    total = self.totals.offset(i * self.lanes)
                    before = total.load(self.lanes, aligned=True)
                    total.store(before + sum_.value, aligned=True)
                    sum_.value = k.zeros(self.number, self.lanes)

    def _run(
        self, acc: list[Variable[Vector]], pixels: list[Pointer], moved: Int, weights: Pointer, start: Int, stop: Int
    ) -> None:  # fmt: skip
        """Add the products of channels `start` to `stop` of one tap."""
        k = self.k
        whole = start + ((stop - start) & -_UNROLL)
        for first, last, step in ((start, whole, _UNROLL), (whole, stop, 1)):
            with k.loop(first, last, step, carry=acc) as depth:
                rows = weights.offset(depth * self.panel)
                at = moved + depth
                for u in range(step):
                    here = [pixel.offset(at).offset(u) for pixel in pixels]
                    self._step(acc, here, rows.offset(u * self.panel))

    def _step(self, acc: list[Variable[Vector]], pixels: list[Pointer], weights: Pointer) -> None:
        k, vectors = self.k, self.kernel.vectors
        row = [weights.offset(v * self.lanes).load(self.lanes) for v in range(vectors)]
        for i, pixel in enumerate(pixels):
            value = pixel.broadcast(self.lanes)
            for v in range(vectors):
                place = acc[i * vectors + v]
                place.value = k.fma(value, row[v], place.value)

    def _store(self, target: Pointer, offset: Int, sums: list[Variable[Vector]]) -> None:
        kernel = self.kernel
        there = target.offset(offset)
        for v in range(kernel.vectors):
            value = sums[v].value
            if not kernel.narrow or kernel.planes:
                there.offset(v * self.lanes).store(value)
                continue
            # Pieces of 4, 2 and 1 lanes: masked stores are slow, and a branch per lane in the 16-bit types.
            start = 0
            for piece in (4, 2, 1):
                while kernel.narrow - start >= piece:
                    there.offset(start).store(value.part(start, piece))
                    start += piece
