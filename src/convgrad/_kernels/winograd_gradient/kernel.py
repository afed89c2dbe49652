"""The first kernel of `winograd_gradient`: the gradient of the transformed filter, dU, slice by slice.

::

    item = (slice of the tiles, block of input channels, block of output channels):
      dU = 0                                                                     # the item's own, partial memory
      for chunk of tiles:
        V[frequency][tile][input channel]  = B^T x B                             # thread's scratch
        D[frequency][tile][output channel] = A dy A^T
        for frequency:  for output channels, two vectors:  for R input channels:
          dU[frequency][R][two vectors] += sum over the chunk of V * D           # summed up in registers

Pixels outside an image are read from a line of zeros. A chunk is short for two reasons: its sums start from zero, so
none in registers is longer than a chunk; and V, D and dU share the second cache (chunks of 128 tiles took 5 ms to
transform, of 32 tiles 2.5 ms, of 13 ms in all on N8 56x56x64-64, Zen 3). Channels that only fill up the last register
tile are whatever was in scratch; nobody reads what becomes of them.
"""

from __future__ import annotations

from ..._compiler.codegen import F32, Int, KernelBuilder, Pointer, element, symbol
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..shared.winograd_scheme import F2, Matrix, both_ways, turned
from .frame import Frame
from .words import LINE, GradientKernel

UNROLL = 4


def emit(kernel: GradientKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    return _Writer(kernel, target).write()


class _Writer:
    """Writes one kernel, from the outermost loop to the innermost body."""

    def __init__(self, kernel: GradientKernel, target: Target) -> None:
        self.kernel = kernel
        tile = f"{kernel.rows}x{kernel.vectors}"
        title = symbol("winograd_gradient", kernel.dtype, tile, target, kernel)
        self.k = k = KernelBuilder(title, target)
        self.lanes = k.lanes(F32)
        self.width = kernel.vectors * self.lanes
        self.frame = Frame(k, element(kernel.dtype), kernel.dilated)
        self.word = self.frame.word
        self.in_pitch, self.out_pitch = kernel.pitches
        self.in_size, self.out_size = (kernel.chunk * pitch + LINE for pitch in kernel.pitches)
        """Elements of one frequency."""
        self.images = k.scratch(F32, F2.frequencies * self.in_size)
        """V."""
        self.grads = k.scratch(F32, F2.frequencies * self.out_size)
        """D."""
        self.line = max(kernel.pitches)
        self.zeros = k.scratch(F32, self.line).as_element(self.frame.storage)

    def write(self) -> KernelSource:
        k, word = self.k, self.word
        zero = k.zeros(F32, self.lanes)
        with k.loop(0, self.line, self.lanes, nonempty=True) as at:
            self.zeros.as_element(F32).offset(at).store(zero)
        size = word["block_in"] * word["block_out"]
        with k.loop(k.begin, k.end) as item:
            out_block, rest = item % word["out_blocks"], item // word["out_blocks"]
            in_block, part = rest % word["in_blocks"], rest // word["in_blocks"]
            sums = self.frame.partial.offset(item * size * F2.frequencies)
            with k.loop(0, size * F2.frequencies, self.width, nonempty=True) as at:
                for v in range(self.kernel.vectors):
                    sums.offset(at + v * self.lanes).store(zero)
            source = self.frame.source.offset(self.frame.first(in_block, "in"))
            target = self.frame.target.offset(self.frame.first(out_block, "out"))
            begin = part * word["tiles"] // word["slices"]
            end = (part + 1) * word["tiles"] // word["slices"]
            with k.loop(begin, end, self.kernel.chunk, nonempty=True) as start:
                stop = k.min(start + self.kernel.chunk, end)
                self._transform(source, target, start, stop)
                self._products(sums, size, stop - start)
        return k.finish()

    def _transform(self, source: Pointer, target: Pointer, start: Int, stop: Int) -> None:
        """Fill V and D for a chunk."""
        k, word, frame = self.k, self.word, self.frame
        with frame.tiles.tile_rows(start, stop) as tiles:
            row = frame.tiles.top(tiles.row)
            with k.loop(0, tiles.count, nonempty=True) as index:
                col = frame.tiles.left(tiles.col + index)
                tile = tiles.first + index
                corner = (tiles.image, row - word["before_rows"], col - word["before_cols"])
                pixels = frame.tiles.patch(source, "source", corner, F2.points, self.zeros)
                place = self.images.offset(tile * self.in_pitch)
                self._tile(pixels, F2.input_matrix, frame.count("in"), place, self.in_size)
                pixels = frame.tiles.patch(
                    target, "target", (tiles.image, row, col), F2.outputs, self.zeros
                )
                place = self.grads.offset(tile * self.out_pitch)
                matrix = turned(F2.output_matrix)
                self._tile(pixels, matrix, frame.count("out"), place, self.out_size)

    def _tile(
        self, pixels: list[list[Pointer]], matrix: Matrix, channels: Int, place: Pointer, size: int
    ) -> None:
        k, lanes = self.k, self.lanes
        with k.loop(0, channels, lanes, nonempty=True) as c:
            at = k.min(c, channels - lanes)
            grid = [[pixel.offset(at).load(lanes) for pixel in row] for row in pixels]
            to = place.offset(at)
            for line in both_ways(k, matrix, grid):
                for value in line:
                    to.store(value)
                    to = to.offset(size)

    def _products(self, sums: Pointer, size: Int, tiles: Int) -> None:
        """Add a chunk to dU: one product of matrices per frequency."""
        k, word = self.k, self.word
        with (
            k.loop(0, F2.frequencies, nonempty=True) as f,
            k.loop(0, word["block_out"], self.width, nonempty=True) as col,
        ):
            grads = self.grads.offset(f * self.out_size + col)
            images = self.images.offset(f * self.in_size)
            column = sums.offset(f * size + col)
            with k.loop(0, word["block_in"], self.kernel.rows, nonempty=True) as row:
                place = column.offset(row * word["block_out"])
                self._outer(images.offset(row), grads, place, tiles)

    def _outer(self, images: Pointer, grads: Pointer, sums: Pointer, tiles: Int) -> None:
        """Add a chunk to one register tile of dU."""
        k, lanes, rows, vectors = self.k, self.lanes, self.kernel.rows, self.kernel.vectors
        totals = [k.variable(k.zeros(F32, lanes)) for _ in range(rows * vectors)]

        def step(tile: Int, count: int) -> None:
            line, column = images.offset(tile * self.in_pitch), grads.offset(tile * self.out_pitch)
            for u in range(count):
                at = column.offset(u * self.out_pitch)
                factors = [at.offset(v * lanes).load(lanes) for v in range(vectors)]
                for i in range(rows):
                    value = line.offset(u * self.in_pitch + i).broadcast(lanes)
                    for v, factor in enumerate(factors):
                        total = totals[i * vectors + v]
                        total.value = k.fma(value, factor, total.value)

        whole = tiles - tiles % UNROLL
        with k.loop(0, whole, UNROLL, carry=totals) as tile:
            step(tile, UNROLL)
        with k.loop(whole, tiles, carry=totals) as tile:
            step(tile, 1)
        for i in range(rows):
            line = sums.offset(self.word["block_out"] * i)
            for v in range(vectors):
                place = line.offset(v * lanes)
                place.store(place.load(lanes) + totals[i * vectors + v].value)
