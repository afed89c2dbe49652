"""The filter gradient of `depthwise_plane` and `depthwise_flat`; `depthwise_plane_kernel` tells the mathematics."""

from __future__ import annotations

from .._codegen import Int, Pointer, Variable, Vector
from .._kernel import KernelSource
from .depthwise_plane_frame import Frame, Rows


class FilterWriter(Frame):
    """Writes a filter gradient; methods go from the outermost loop to the innermost body."""

    @property
    def turns(self) -> int:
        """Vectors until the channels along a row repeat: each has sums of its own."""
        lanes, period = self.lanes, self.kernel.period
        turns = 1
        while period and turns * lanes % period:
            turns += 1
        return turns

    def write(self) -> KernelSource:
        k, word = self.k, self.word
        with k.loop(k.begin, k.end) as item:
            first = item % word["chunks"] * word["chunk"]
            last = k.min(first + word["chunk"], word["channels"])
            share = item // word["chunks"]
            # Columns around the image stay zero from here on; rows come and go with the block.
            self.clear(self.block, self.block_size + word["grad_rows"] * self.kernel.pitch)
            with k.loop(first, last, nonempty=True) as c:
                self._channel(share, c)
        return k.finish()

    def _channel(self, share: Int, c: Int) -> None:
        """Add up the units of one share, block by block, and leave the sums of its lanes."""
        k, word = self.k, self.word
        multiplier, blocks = word["multiplier"], word["row_blocks"]
        size = self.taps * self.turns * self.lanes
        self.clear(self.bank, multiplier * size)
        begin = share * word["units"] // word["shares"]
        end = (share + 1) * word["units"] // word["shares"]
        with k.loop(begin, end, nonempty=True) as unit:
            image, rows = unit // blocks, self.rows(unit % blocks)
            self._clear_rows(self.block, self.row_pitch, k.i64(0), rows.low)
            self.copy_source(image * word["channels"] + c, rows, self.block)
            self._clear_rows(self.block, self.row_pitch, rows.high, word["block_rows"])
            with self.each_multiple() as m:
                self._copy_grads((image * word["channels"] + c) * multiplier + m, rows)
                self._add_products(rows, self.bank.offset(m * size))
        with self.each_multiple() as m:
            self._leave(share, c * multiplier + m, self.bank.offset(m * size))

    def _clear_rows(self, block: Pointer, pitch: int, start: Int, stop: Int) -> None:
        with self.k.loop(start, stop) as row:
            self.clear(block.offset(row * pitch), self.k.i64(pitch))

    def _copy_grads(self, plane: Int, rows: Rows) -> None:
        """Copy rows of out_backprop; zeros fill the last tile."""
        k, word, pitch = self.k, self.word, self.kernel.pitch
        cols = word["target_cols"]
        source = self.second.offset(plane * self.target_plane + rows.start * cols)
        with k.loop(0, rows.count, nonempty=True) as row:
            there = self.grads.offset(row * pitch)
            self.copy_row(source.offset(row * cols), there, cols, self.kernel.target_width)
        self._clear_rows(self.grads, pitch, rows.count, word["grad_rows"])

    def _add_products(self, rows: Rows, sums: Pointer) -> None:
        """Add the products of one block to the sums, a few tap columns at a time."""
        kernel = self.kernel
        (taps,) = kernel.cols.phases
        with self.k.loop(0, self.turns, nonempty=True) as turn:
            for first in range(0, len(taps), kernel.tap_cols):
                group = taps[first : first + kernel.tap_cols]
                products = self._products(rows, turn * self.lanes, [tap.offset for tap in group])
                for (tap_h, place), value in products.items():
                    tap = tap_h * kernel.window[1] + group[place].number
                    there = sums.offset(turn * self.lanes + tap * self.turns * self.lanes)
                    total = there.load(self.lanes, aligned=True) + value
                    there.store(total, aligned=True)

    def _products(
        self, rows: Rows, start: Int, offsets: list[int]
    ) -> dict[tuple[int, int], Vector]:
        """Return, for every tap row and each of some tap columns, the sum of products over a block."""
        k, kernel = self.k, self.kernel
        sums: dict[tuple[int, int], Variable[Vector]] = {
            (tap_h, place): k.variable(k.zeros(self.number, self.lanes))
            for tap_h in range(kernel.window[0])
            for place in range(len(offsets))
        }
        carry = list(sums.values())
        with k.loop(0, rows.count, kernel.height, carry=carry, nonempty=True) as row:
            x = self.block.offset(row * (kernel.rows.step * self.row_pitch))
            y = self.grads.offset(row * kernel.pitch)
            step = self.turns * self.lanes
            with k.loop(start, self.word["groups_w"], step, carry=carry) as q:
                here, there = x.offset(q), y.offset(q)
                grads = [
                    there.offset(i * kernel.pitch).load(self.lanes, aligned=True)
                    for i in range(kernel.height)
                ]
                for place, offset in enumerate(offsets):
                    column = here.offset(self.column(offset))
                    for source_row, readers in sorted(self.row_reads.items()):
                        distance = (source_row - kernel.rows.lowest) * self.row_pitch
                        value = column.offset(distance).load(self.lanes)
                        for cell, tap_h in readers:
                            total = sums[tap_h, place]
                            total.value = k.fma(value, grads[cell], total.value)
        return {key: total.value for key, total in sums.items()}

    def _leave(self, share: Int, output: Int, sums: Pointer) -> None:
        """Add the lanes and store the sums, in the result or in the share's row of partial sums."""
        k, kernel, period = self.k, self.kernel, self.kernel.period
        width = self.turns * self.lanes
        element = self.storage if kernel.whole else self.number
        outputs = self.outputs * period if period else self.outputs
        result = k.arg_pointer(2, element).offset(share * (outputs * self.taps))
        with k.loop(0, self.taps, nonempty=True) as tap:
            here, there = sums.offset(tap * width), result.offset(tap * outputs)
            if not period:
                there.offset(output).store(here.load(self.lanes, aligned=True).sum())
            else:
                with k.loop(0, period, nonempty=True) as c:
                    total = k.variable(here.offset(c).load())
                    with k.loop(c + period, width, period, carry=[total]) as i:
                        total.value = total.value + here.offset(i).load()
                    there.offset(c).store(total.value)
