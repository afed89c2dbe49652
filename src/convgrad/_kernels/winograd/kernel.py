"""The second kernel of `winograd`: forward and input gradient, all of it fused in one item.

::

    item = (group or some groups, part of the panels, block of tiles):
      V[frequency][run of k][tile][k] = B^T x B                                  # thread's scratch, in L2
      for panel of channels:                                                      # two vectors wide
        for frequency:  for run of k:  for R tiles:
          M[frequency][tile][channel] += V[frequency][tile][k] * U[panel][frequency][k][channel]
        y = A^T M A, straight to the result                                       # M never leaves L1

Where there are few tiles, panels are divided among many items, and each would transform the same input. Then V is
written by a launch of its own to memory that all share, and the items of the next do the rest.

Accuracy shapes the product. M is 1.67 times as large as y, and its errors with it: a running sum over 64 channels is
off by 4.4 units of rounding where the promise is 2.5. So products are added up by eights, eights in a run, and runs in
M, three levels of short sums, the first two of them in registers (`_problem/sums/winograd.py`). That leaves room for a
tile of 3 x 2 vectors only (16 registers). Results of 16 bits do not show the difference and take 6 x 2.
"""

from __future__ import annotations

from ..._compiler.codegen import F32, Bool, Int, KernelBuilder, Pointer, Vector, symbol
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..shared.winograd_scheme import SCHEMES
from .filter_transform import UNROLL
from .frame import Frame
from .input_transform import Input
from .output_transform import OutputTransform, Panel
from .words import WinogradKernel


def emit(kernel: WinogradKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    writer = _Writer(kernel, target)
    return writer.write_inputs() if kernel.stage == "inputs" else writer.write()


class _Writer:
    """Writes one kernel, from the outermost loop to the innermost body."""

    def __init__(self, kernel: WinogradKernel, target: Target) -> None:
        self.kernel = kernel
        tile = f"{kernel.outputs}x{kernel.rows}x{kernel.vectors}"
        stage = "" if kernel.stage == "fused" else f"_{kernel.stage}"
        family = f"winograd{stage}_{kernel.data_format.lower()}"
        title = symbol(family, kernel.dtype, tile, target, kernel)
        self.k = k = KernelBuilder(title, target)
        self.lanes = k.lanes(F32)
        self.width = kernel.vectors * self.lanes
        self.scheme = SCHEMES[kernel.outputs]
        self.frame = Frame(k, kernel)
        self.word = self.frame.word
        nchw = kernel.data_format == "NCHW"
        # Blocks of constant size come first in scratch.
        self.output = OutputTransform(
            k, self.frame, self.scheme, nchw, kernel.vectors, kernel.most_tiles
        )
        self.input = Input(k, self.frame, self.scheme, nchw, kernel.run)
        self.transformed = self.frame.scratch("input_at")
        """V."""

    def write(self) -> KernelSource:
        k, word = self.k, self.word
        self.input.clear()
        with k.loop(k.begin, k.end) as item:
            # Blocks follow each other: the part of U they share stays near.
            block, rest = item % word["blocks"], item // word["blocks"]
            part, bundle = rest % word["parts"], rest // word["parts"]
            begin = block * word["block_tiles"]
            end = k.min(begin + word["block_tiles"], word["tiles"])
            transformed = self._transformed(bundle, block)
            if self.kernel.bundled:
                self._bundle(part, bundle, (begin, end), transformed)
            else:
                if self.kernel.stage == "fused":
                    self.input.transform(begin, end, bundle, transformed)
                self._panels(part, bundle, (begin, end), transformed)
        return k.finish()

    def write_inputs(self) -> KernelSource:
        """Write V only. An item is (group or some groups, block, piece of it)."""
        k, word, size = self.k, self.word, self.kernel.piece
        self.input.clear()
        pieces = (word["block_tiles"] + (size - 1)) // size
        with k.loop(k.begin, k.end) as item:
            piece, rest = item % pieces, item // pieces
            block, bundle = rest % word["blocks"], rest // word["blocks"]
            shift, start = piece * size, block * word["block_tiles"]
            begin = start + shift
            end = k.min(k.min(begin + size, start + word["block_tiles"]), word["tiles"])
            transformed = self._transformed(bundle, block)
            # The last block may be shorter than the others.
            with k.when(begin < end):
                first, groups = bundle, None
                if self.kernel.bundled:
                    first = bundle * word["bundle"]
                    groups = k.min(word["bundle"], word["groups"] - first)
                self.input.transform(begin, end, first, transformed, groups, shift)
        return k.finish()

    def _transformed(self, bundle: Int, block: Int) -> Pointer:
        """Return where V of a block starts."""
        if self.frame.shared is None:
            return self.transformed
        groups = self.word["bundle"] if self.kernel.bundled else 1
        size = self.input.group_pitch * groups
        return self.frame.shared.offset((bundle * self.word["blocks"] + block) * size)

    def _bundle(self, part: Int, bundle: Int, tiles: tuple[Int, Int], transformed: Pointer) -> None:
        """Write a part of the results of each of some groups."""
        k, word = self.k, self.word
        first = bundle * word["bundle"]
        last = k.min(first + word["bundle"], word["groups"])
        if self.kernel.stage == "fused":
            self.input.transform(*tiles, first, transformed, last - first)
        with k.loop(first, last, nonempty=True) as group:
            inputs = transformed.offset((group - first) * self.input.group_pitch)
            self._panels(part, group, tiles, inputs)

    def _panels(self, part: Int, group: Int, tiles: tuple[Int, Int], inputs: Pointer) -> None:
        """Write a part of a group's results for some tiles."""
        k, word = self.k, self.word
        begin, end = tiles
        panels = word["panels"]
        first, last = part * panels // word["parts"], (part + 1) * panels // word["parts"]
        with k.loop(first, last, nonempty=True) as panel:
            index = group * panels + panel
            size = word["filter_pitch"] * self.scheme.frequencies
            column = k.min(panel * self.width, word["columns"] - self.width)
            results = Panel(begin, end, group, column)
            if self.kernel.bundled:
                self.output.fetch(results)
            self._products(self.frame.packed.offset(index * size), inputs, end - begin)
            self.output.write(results)

    def _products(self, weights: Pointer, transformed: Pointer, tiles: Int) -> None:
        """Write M for a panel: one product of matrices per frequency."""
        k, word, rows, run = self.k, self.word, self.kernel.rows, self.kernel.run
        with k.loop(0, self.scheme.frequencies, nonempty=True) as f:
            inputs = transformed.offset(f * word["input_pitch"])
            column = weights.offset(f * word["filter_pitch"])
            products = self.output.products.offset(f * self.output.product_pitch)
            # Runs outside tiles: a run of U stays in L1 for all tiles of the block, and V is read as it lies.
            with k.loop(0, word["runs"], nonempty=True) as index:
                last = index.equals(word["runs"] - 1)
                pitch = k.select(last, word["last_pitch"], k.i64(run))
                length = k.select(last, word["sums_padded"] - index * run, k.i64(run))
                line = k.variable(inputs.offset(index * run * word["block_tiles"]))
                start = column.offset(index * (run * self.width))
                with k.loop(0, tiles, rows, carry=[line], nonempty=True) as tile:
                    lines = [line.value.offset(pitch * i) for i in range(rows)]
                    place = products.offset(tile * self.width)
                    self._run(lines, start, place, length, index.equals(0))
                    line.value = line.value.offset(pitch * rows)

    def _run(
        self, lines: list[Pointer], weights: Pointer, products: Pointer, length: Int, first: Bool
    ) -> None:
        """Add a run of k to one tile of M: rows of V times a panel of U."""
        k, lanes, rows, vectors = self.k, self.lanes, self.kernel.rows, self.kernel.vectors
        places = [
            products.offset(i * self.width + v * lanes) for i in range(rows) for v in range(vectors)
        ]
        totals = [k.variable(k.zeros(F32, lanes)) for _ in places]

        def add(at: Int, count: int) -> None:
            column = weights.offset(at * self.width)
            here = [line.offset(at) for line in lines]
            sums = [] if self.kernel.chain else [total.value for total in totals]
            for u in range(count):
                self._step(column.offset(u * self.width), [line + u for line in here], sums)
            for total, each in zip(totals, sums, strict=True):
                total.value = total.value + each if self.kernel.chain else each

        most = self.kernel.chain or UNROLL
        # All runs but the last have whole chains.
        whole = length - length % most if most > UNROLL else length
        with k.loop(0, whole, most, carry=totals, nonempty=True) as at:
            add(at, most)
        if most > UNROLL:
            with k.loop(whole, length, UNROLL, carry=totals) as at:
                add(at, UNROLL)
        with k.branch(first) as kind:
            with kind.then():
                for place, total in zip(places, totals, strict=True):
                    place.store(total.value, aligned=True)
            with kind.otherwise():
                for place, total in zip(places, totals, strict=True):
                    place.store(place.load(lanes, aligned=True) + total.value, aligned=True)

    def _step(self, weights: Pointer, values: list[Pointer], sums: list[Vector]) -> None:
        """Add one product to each sum; to none yet, start them."""
        k, lanes, vectors = self.k, self.lanes, self.kernel.vectors
        factors = [weights.offset(v * lanes).load(lanes, aligned=True) for v in range(vectors)]
        fresh = not sums
        for i, place in enumerate(values):
            value = place.broadcast(lanes)
            for v, factor in enumerate(factors):
                if fresh:
                    sums.append(value * factor)
                else:
                    n = i * vectors + v
                    sums[n] = k.fma(value, factor, sums[n])
