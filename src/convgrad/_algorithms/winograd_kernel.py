"""The second kernel of `winograd`: forward and input gradient, all of it fused in one item.

::

    item = (group, part of the panels, block of tiles):
      V[frequency][tile][k] = B^T x B                                            # thread's scratch, in L2
      for panel of channels:                                                      # two vectors wide
        for frequency:  for R tiles:  for run of k:
          M[frequency][tile][channel] += V[frequency][tile][k] * U[panel][frequency][k][channel]
        y = A^T M A, straight to the result                                       # M never leaves L1

The product is the usual tile of R x 2 vectors in registers. Its sums are cut into runs of k, which are added up in M:
a plain running sum over 64 channels, widened by the transforms, errs by twice as much as the promise allows.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._codegen import F32, KernelBuilder, Pointer, element, symbol
from .._kernel import KernelSource
from .._targets import Target
from .winograd_filter import UNROLL
from .winograd_input import Input
from .winograd_output import Output, Panel
from .winograd_scheme import SCHEMES
from .winograd_words import Geometry


@dataclass(frozen=True)
class WinogradKernel:
    """Identity of a kernel: all that shapes its code besides the target."""

    outputs: int
    """Of a tile along an axis: which scheme."""
    dtype: str
    data_format: str
    rows: int
    """Tiles held in registers."""
    vectors: int
    """Vectors of channels held in registers: a panel."""
    most_tiles: int
    """Tiles of a block, at most; a multiple of `rows`."""
    run: int
    """Products added up in registers; a multiple of `UNROLL`."""


def emit(kernel: WinogradKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    return _Writer(kernel, target).write()


class _Writer:
    """Writes one kernel, from the outermost loop to the innermost body."""

    def __init__(self, kernel: WinogradKernel, target: Target) -> None:
        self.kernel = kernel
        tile = f"{kernel.outputs}x{kernel.rows}x{kernel.vectors}"
        title = symbol(
            f"winograd_{kernel.data_format.lower()}", kernel.dtype, tile, target, kernel
        )
        self.k = k = KernelBuilder(title, target)
        self.lanes = k.lanes(F32)
        self.width = kernel.vectors * self.lanes
        self.scheme = SCHEMES[kernel.outputs]
        self.geometry = Geometry(k, element(kernel.dtype))
        self.word = self.geometry.word
        nchw = kernel.data_format == "NCHW"
        # Blocks of constant size come first in scratch.
        self.output = Output(
            k, self.geometry, self.scheme, nchw, kernel.vectors, kernel.most_tiles
        )
        self.input = Input(k, self.geometry, self.scheme, nchw)
        self.transformed = self.geometry.scratch("input_at")
        """V."""

    def write(self) -> KernelSource:
        k, word = self.k, self.word
        self.input.clear()
        with k.loop(k.begin, k.end) as item:
            # Blocks follow each other: the part of U they share stays near.
            block, rest = item % word["blocks"], item // word["blocks"]
            part, group = rest % word["parts"], rest // word["parts"]
            begin = block * word["block_tiles"]
            end = k.min(begin + word["block_tiles"], word["tiles"])
            self.input.transform(begin, end, group, self.transformed)
            panels = word["panels"]
            first, last = part * panels // word["parts"], (part + 1) * panels // word["parts"]
            with k.loop(first, last, nonempty=True) as panel:
                index = group * panels + panel
                size = word["filter_pitch"] * self.scheme.frequencies
                weights = self.geometry.packed.offset(index * size)
                with (
                    k.loop(0, self.scheme.frequencies, nonempty=True) as f,
                    k.loop(0, end - begin, self.kernel.rows, nonempty=True) as tile,
                ):
                    self._product(
                        self.transformed.offset(
                            f * word["input_pitch"] + tile * word["row_pitch"]
                        ),
                        weights.offset(f * word["filter_pitch"]),
                        self.output.products.offset(
                            f * self.output.product_pitch + tile * self.width
                        ),
                    )
                column = k.min(panel * self.width, word["columns"] - self.width)
                self.output.write(Panel(begin, end, group, column))
        return k.finish()

    def _product(self, inputs: Pointer, weights: Pointer, products: Pointer) -> None:
        """Write one tile of M: rows of V times a panel of U."""
        k, lanes, rows, vectors = self.k, self.lanes, self.kernel.rows, self.kernel.vectors
        length = self.word["sums_padded"]
        lines = [inputs.offset(self.word["row_pitch"] * i) for i in range(rows)]
        places = [
            products.offset(i * self.width + v * lanes) for i in range(rows) for v in range(vectors)
        ]
        with k.loop(0, length, self.kernel.run, nonempty=True) as start:
            sums = [k.variable(k.zeros(F32, lanes)) for _ in places]
            stop = k.min(start + self.kernel.run, length)
            with k.loop(start, stop, UNROLL, carry=sums, nonempty=True) as at:
                column = weights.offset(at * self.width)
                here = [line.offset(at) for line in lines]
                for u in range(UNROLL):
                    factors = [
                        column.offset(u * self.width + v * lanes).load(lanes, aligned=True)
                        for v in range(vectors)
                    ]
                    for i in range(rows):
                        value = here[i].offset(u).broadcast(lanes)
                        for v in range(vectors):
                            total = sums[i * vectors + v]
                            total.value = k.fma(value, factors[v], total.value)
            with k.branch(start.equals(0)) as run:
                with run.then():
                    for place, total in zip(places, sums, strict=True):
                        place.store(total.value, aligned=True)
                with run.otherwise():
                    for place, total in zip(places, sums, strict=True):
                        before = place.load(lanes, aligned=True)
                        place.store(before + total.value, aligned=True)
        return
