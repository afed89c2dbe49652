"""The kernel of `depthwise_plane` and `depthwise_flat`: vectors along the width, from padded rows in the first cache.

A *plane* is what one filter slides over: one channel of one image (NCHW), or a whole image of few channels whose rows
are taken as flat vectors of columns times channels (`period`). Blocks of its rows are copied into the thread's
workspace, converted to the compute type, with zeros where the window leaves the image; every other column goes to a
sub-row of its own if the window moves by two. From there on nothing is masked and nothing is branched on, and a tap
is a constant distance. The pitch of the rows is a constant of the kernel, all sizes are run-time words.

::

    item (forward, input gradient) = (image, chunk of channels, block of rows)
      for c in chunk:  copy the plane's rows;  for m:  weights of (c, m)
        for R groups of rows:  for U vectors of columns:
          for tap column:  for source row:  x = load;  acc[row] += x * w[tap]  for every tap that reads it
          store acc                                        # phases of an input gradient are interleaved here

    item (filter gradient) = (share of the units, chunk of channels); unit = (block of rows, image)
      for c in chunk:  sums[m][tap][lane] = 0;  for unit, m:  copy the rows of input and out_backprop
        for group of tap columns:  acc[tap] = 0 in registers;  for R rows, vector of columns: acc[tap] += x * y
          sums += acc                                      # blocked summation: short chains, small errors
        lanes of sums -> result, or partial[share]

Rows are covered by whole tiles and columns by whole vectors: the last one is moved back, and what it computes twice
gets the same bits; the filter gradient meets zeros there instead. Zeros spoil a filter gradient only where
`out_backprop` is not finite: a sum that is not finite is therefore computed again, tap by tap, leaving out the padding.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from .._codegen import Int, Pointer, Variable, Vector
from .._kernel import KernelSource
from .._problem import Kind
from .._targets import Target
from .depthwise_plane_filter import FilterWriter
from .depthwise_plane_frame import Frame, PlaneKernel, Rows, reads
from .edges import store_first


def emit(kernel: PlaneKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    if kernel.kind is Kind.FILTER_GRADIENT:
        return FilterWriter(kernel, target).write()
    return _Writer(kernel, target).write()


class _Writer(Frame):
    """Writes a forward or input gradient; methods go from the outermost loop to the innermost body."""

    def write(self) -> KernelSource:
        k, word = self.k, self.word
        with k.loop(k.begin, k.end) as item:
            block, rest = item % word["row_blocks"], item // word["row_blocks"]
            first = rest % word["chunks"] * word["chunk"]
            last = k.min(first + word["chunk"], word["channels"])
            self._image_block(rest // word["chunks"], block, first, last)
        return k.finish()

    def _image_block(self, image: Int, block: Int, first: Int, last: Int) -> None:
        """Compute a block of rows for the channels from `first` to below `last`."""
        k, word, kernel = self.k, self.word, self.kernel
        multiplier = word["multiplier"]
        rows = self.rows(block)
        adds = kernel.kind is Kind.INPUT_GRADIENT and kernel.several
        self.clear(self.block, self.block_size * (multiplier if adds else 1))
        target = k.arg_pointer(2, self.storage).offset(
            rows.start * (len(kernel.rows.phases) * word["target_cols"])
        )
        with k.loop(first, last, nonempty=True) as c:
            if adds:
                with k.loop(0, multiplier, nonempty=True) as m:
                    plane = (image * word["channels"] + c) * multiplier + m
                    self.copy_source(plane, rows, self.block.offset(m * self.block_size))
                    self._pack_weights(c * multiplier + m, m * (self.taps * self.lanes))
                plane = image * word["channels"] + c
                self._cover(target.offset(plane * self.target_plane), rows, None)
            else:
                self.copy_source(image * word["channels"] + c, rows, self.block)
                with self.each_multiple() as m:
                    output = c * multiplier + m if kernel.several else c
                    weights = self._weights(output)
                    plane = image * self.outputs + output
                    self._cover(target.offset(plane * self.target_plane), rows, weights)

    def _weights(self, output: Int) -> dict[int, Vector] | None:
        """Spread the weights of a plane over all lanes: in registers if they are few, else in the bank."""
        if self.taps <= 9 and not self.kernel.period:
            return {
                tap: self.second.offset(self.outputs * tap + output).broadcast(self.lanes)
                for tap in range(self.taps)
            }
        self._pack_weights(output, self.k.i64(0))
        return None

    def _pack_weights(self, output: Int, place: Int) -> None:
        k, period = self.k, self.kernel.period
        with k.loop(0, self.taps, nonempty=True) as tap:
            there = self.bank.offset(tap * self.weight_pitch + place)
            if not period:
                value = self.second.offset(tap * self.outputs + output)
                there.store(value.broadcast(self.lanes), aligned=True)
            else:
                for i in range(self.lanes + period - 1):
                    there.offset(i).store(self.second.offset(tap * period + i % period).load())

    def _cover(self, target: Pointer, rows: Rows, weights: dict[int, Vector] | None) -> None:
        """Cover a block of target rows with tiles; `target` is its first row."""
        k, kernel, word = self.k, self.kernel, self.word
        phases = len(kernel.rows.phases)
        with k.loop(0, rows.count, kernel.height, nonempty=True) as row:
            row = k.min(row, rows.count - kernel.height)
            x = self.block.offset(row * (kernel.rows.step * self.row_pitch))
            out = target.offset(row * (phases * word["target_cols"]))
            group = rows.start + row
            if kernel.target_width:
                self._tile(x, out, [k.i64(0)], group, weights)
            else:
                last = word["groups_w"] - self.lanes
                with k.loop(0, last + self.lanes, kernel.vectors * self.lanes, nonempty=True) as q:
                    at = [k.min(q + i * self.lanes, last) for i in range(kernel.vectors)]
                    self._tile(x, out, at, group, weights)

    def _tile(
        self,
        x: Pointer,
        out: Pointer,
        at: list[Int],
        group: Int,
        weights: dict[int, Vector] | None,
    ) -> None:
        """Compute R groups of rows at some vectors of columns and store them."""
        k, kernel = self.k, self.kernel
        height, width = kernel.height * len(kernel.rows.phases), len(kernel.cols.phases)
        sums = {
            (row, phase, i): k.variable(k.zeros(self.number, self.lanes))
            for row in range(height)
            for phase in range(width)
            for i in range(len(at))
        }
        if kernel.several and kernel.kind is Kind.INPUT_GRADIENT:
            with k.loop(0, self.word["multiplier"], carry=list(sums.values()), nonempty=True) as m:
                bank = self.bank.offset(m * (self.taps * self.lanes))
                self._add_products(sums, x.offset(m * self.block_size), at, bank, None)
        else:
            self._add_products(sums, x, at, self.bank, weights)
        for row in range(height):
            with self._row_exists(group, row):
                there = out.offset(self.word["target_cols"] * row)
                for i, q in enumerate(at):
                    self._store(there, q, [sums[row, phase, i].value for phase in range(width)])

    def _add_products(
        self,
        sums: dict[tuple[int, int, int], Variable[Vector]],
        x: Pointer,
        at: list[Int],
        bank: Pointer,
        weights: dict[int, Vector] | None,
    ) -> None:
        """Walk the taps column by column, so that few weights are live at a time."""
        k, kernel = self.k, self.kernel
        sources = [x.offset(q) for q in at]
        banks = [bank.offset(q % kernel.period) if kernel.period else bank for q in at]
        for offset, uses in sorted(reads(kernel.cols, 1).items()):
            live: dict[tuple[int, int], Vector] = {}
            for source_row, readers in sorted(self.row_reads.items()):
                place = (source_row - kernel.rows.lowest) * self.row_pitch + self.column(offset)
                for i, source in enumerate(sources):
                    value = source.offset(place).load(self.lanes)
                    for row, tap_h in readers:
                        for phase, tap_w in uses:
                            tap = tap_h * kernel.window[1] + tap_w
                            key = (tap, i if kernel.period else 0)
                            if key not in live:
                                live[key] = (
                                    weights[tap]
                                    if weights
                                    else banks[i].offset(tap * self.weight_pitch).load(self.lanes)
                                )
                            total = sums[row, phase, i]
                            total.value = k.fma(value, live[key], total.value)

    def _store(self, row: Pointer, q: Int, phases: list[Vector]) -> None:
        k, lanes, width = self.k, self.lanes, self.kernel.target_width
        if len(phases) == 1:
            if width:
                store_first(row, phases[0], width)
            else:
                row.offset(q).store(phases[0])
            return
        mixed = [i + half for i in range(lanes) for half in (0, lanes)]
        low = k.shuffle(phases[0], phases[1], mixed[:lanes])
        high = k.shuffle(phases[0], phases[1], mixed[lanes:])
        if width:
            store_first(row, low, min(width, lanes))
            if width > lanes:
                store_first(row.offset(lanes), high, width - lanes)
            return
        there = row.offset(q * 2)
        there.store(low)
        if not self.kernel.ragged[1]:
            there.offset(lanes).store(high)
            return
        # The last column of the last group does not exist.
        with k.branch(q.equals(self.word["groups_w"] - lanes)) as last:
            with last.then():
                there.offset(lanes - 1).store(k.shuffle(low, high, range(lanes - 1, 2 * lanes - 1)))
            with last.otherwise():
                there.offset(lanes).store(high)

    def _row_exists(self, group: Int, row: int) -> AbstractContextManager[None]:
        """Guard the phases that the last group of rows does not have."""
        phases = len(self.kernel.rows.phases)
        if self.kernel.ragged[0] and row % phases:
            return self.k.when(group * phases + row < self.word["target_rows"])
        return nullcontext()
