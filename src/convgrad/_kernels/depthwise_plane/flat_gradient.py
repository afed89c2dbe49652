"""The filter gradient of `depthwise_flat`; `kernel` tells the mathematics."""

from __future__ import annotations

from ..._compiler.codegen import Bool, Int, Pointer, Variable, Vector
from ..._compiler.kernel import KernelSource
from .frame import BlockRows, Frame, Reads, reads
from .in_place import InPlace
from .loops import tap_loop
from .padded import Padded
from .words import Windows


class FlatFilterWriter:
    """Writes a filter gradient; methods go from the outermost loop to the innermost body."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.k, self.kernel, self.word = frame.k, frame.kernel, frame.word
        self.number, self.lanes, self.taps = frame.number, frame.lanes, frame.taps
        self.in_place, self.padded = InPlace(frame), Padded(frame)

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
            if self.kernel.direct:
                longest = k.max(word["source_cols"], word["target_cols"])
                self.frame.clear(self.frame.block, longest + 3 * self.lanes)
            else:
                # Columns around the image stay zero from here on; rows come and go with the block.
                self.frame.clear(
                    self.frame.block,
                    self.frame.block_size + word["grad_rows"] * self.kernel.grad_pitch,
                )
            with k.loop(first, last, nonempty=True) as c:
                self._channel(share, c)
        return k.finish()

    def _channel(self, share: Int, c: Int) -> None:
        """Add up the units of one share, block by block, and leave the sums of its lanes."""
        k, word = self.k, self.word
        multiplier, blocks = word["multiplier"], word["row_blocks"]
        size = self.taps * self.turns * self.lanes
        self.frame.clear(self.frame.bank, multiplier * size)
        begin = share * word["units"] // word["shares"]
        end = (share + 1) * word["units"] // word["shares"]
        if self.kernel.direct:
            together = self.kernel.together
            with (
                k.loop(begin, end, together, nonempty=True) as unit,
                self.frame.each_multiple() as m,
            ):
                stop = k.min(unit + together, end)
                self._add_in_place(unit, stop, c, m, self.frame.bank.offset(m * size))
        else:
            with k.loop(begin, end, nonempty=True) as unit:
                rows = self.frame.rows(unit % blocks)
                plane = unit // blocks * word["channels"] + c
                self._clear_rows(self.frame.block, self.frame.row_pitch, k.i64(0), rows.low)
                self.padded.copy_source(plane, rows, self.frame.block)
                self._clear_rows(
                    self.frame.block, self.frame.row_pitch, rows.high, word["block_rows"]
                )
                with self.frame.each_multiple() as m:
                    self._copy_grads(plane * multiplier + m, rows)
                    self._add_products(rows, self.frame.bank.offset(m * size))
        with self.frame.each_multiple() as m:
            self._leave(share, c, m, self.frame.bank.offset(m * size))

    def _clear_rows(self, block: Pointer, pitch: int, start: Int, stop: Int) -> None:
        with self.k.loop(start, stop) as row:
            self.frame.clear(block.offset(row * pitch), self.k.i64(pitch))

    def _copy_grads(self, plane: Int, rows: BlockRows) -> None:
        """Copy rows of out_backprop; zeros fill the last tile."""
        k, word, pitch = self.k, self.word, self.kernel.grad_pitch
        cols = word["target_cols"]
        source = self.frame.second.offset(plane * self.frame.target_plane + rows.start * cols)
        with k.loop(0, rows.count, nonempty=True) as row:
            there = self.frame.grads.offset(row * pitch)
            self.padded.copy_row(source.offset(row * cols), there, cols, self.kernel.target_width)
        self._clear_rows(self.frame.grads, pitch, rows.count, word["grad_rows"])

    def _add_products(self, rows: BlockRows, sums: Pointer) -> None:
        """Add the products of one block to the sums, a few taps at a time."""
        k, word, step = self.k, self.word, self.turns * self.lanes
        with k.loop(0, self.turns, nonempty=True) as turn:
            if not self.kernel.col_chunk:
                self._add_columns(rows, sums, turn, turn * self.lanes, word["groups_w"])
                return
            # What all taps of a long window read stays in the first cache, some columns at a time.
            chunk = max(1, self.kernel.col_chunk // step) * step
            with k.loop(turn * self.lanes, word["groups_w"], chunk, nonempty=False) as begin:
                end = k.min(begin + chunk, word["groups_w"])
                self._add_columns(rows, sums, turn, begin, end)

    def _add_columns(self, rows: BlockRows, sums: Pointer, turn: Int, begin: Int, end: Int) -> None:
        """Add the products of some columns to the sums of all taps: pieces of the window in loops."""
        k, kernel, frame = self.k, self.kernel, self.frame
        down = tap_loop(kernel.rows, kernel.tap_rows)
        along = tap_loop(kernel.cols, kernel.tap_cols, kernel.cols.step)

        def add(tall: Windows, wide: Windows, i: Int, j: Int) -> None:
            row_reads = reads(tall, kernel.height)
            if kernel.single and (down.count == 1 or tall is down.rest):
                row_reads = {r: uses for r, uses in row_reads.items() if r in frame.row_reads}
            shift = i * (down.distance * frame.row_pitch) + j * along.distance
            tap0 = i * (down.numbers * kernel.window[1]) + j * along.numbers
            (taps,) = wide.phases
            for first in range(0, len(taps), kernel.tap_cols):
                group = taps[first : first + kernel.tap_cols]
                places = [tap.offset for tap in group]
                products = self._products(rows, row_reads, places, shift, begin, end)
                for (tap_h, place), value in products.items():
                    tap = tap0 + (tap_h * kernel.window[1] + group[place].number)
                    there = sums.offset((tap * self.turns + turn) * self.lanes)
                    there.store(there.load(self.lanes, aligned=True) + value, aligned=True)

        def add_rows(tall: Windows, i: Int) -> None:
            with k.loop(0, along.count, nonempty=True) as j:
                add(tall, along.piece, i, j)
            if along.rest:
                add(tall, along.rest, i, k.i64(0))

        with k.loop(0, down.count, nonempty=True) as i:
            add_rows(down.piece, i)
        if down.rest:
            add_rows(down.rest, k.i64(0))

    def _products(
        self, rows: BlockRows, tall: Reads, offsets: list[int], shift: Int, begin: Int, end: Int
    ) -> dict[tuple[int, int], Vector]:
        """Return, for some tap rows and each of some tap columns, the sum of products over a block."""
        k, kernel = self.k, self.kernel
        sums: dict[tuple[int, int], Variable[Vector]] = {
            (tap_h, place): k.variable(k.zeros(self.number, self.lanes))
            for tap_h in sorted({tap_h for readers in tall.values() for _, tap_h in readers})
            for place in range(len(offsets))
        }
        carry = list(sums.values())
        with k.loop(0, rows.count, kernel.height, carry=carry, nonempty=True) as row:
            x = self.frame.block.offset(row * (kernel.rows.step * self.frame.row_pitch) + shift)
            y = self.frame.grads.offset(row * kernel.grad_pitch)
            with k.loop(begin, end, self.turns * self.lanes, carry=carry) as q:
                here, there = x.offset(self.frame.place(q)), y.offset(q)
                grads = [
                    there.offset(i * kernel.grad_pitch).load(self.lanes, aligned=True)
                    for i in range(kernel.height)
                ]
                for place, offset in enumerate(offsets):
                    column = here.offset(self.padded.column(offset))
                    for source_row, readers in sorted(tall.items()):
                        distance = (source_row - kernel.rows.lowest) * self.frame.row_pitch
                        value = self.frame.load(column.offset(distance))
                        for cell, tap_h in readers:
                            total = sums[tap_h, place]
                            total.value = k.fma(value, grads[cell], total.value)
        return {key: total.value for key, total in sums.items()}

    def _add_in_place(self, begin: Int, end: Int, c: Int, m: Int, bank: Pointer) -> None:
        """Add the products of some units, read in place, to the sums; all of them in registers."""
        k, kernel, word, cols = self.k, self.kernel, self.word, self.frame.target_cols
        sums = [k.variable(k.zeros(self.number, self.lanes)) for _ in range(self.taps)]
        with k.loop(begin, end, carry=sums, nonempty=True) as unit:
            image = unit if kernel.single else unit // word["row_blocks"]
            rows = self.frame.rows(unit if kernel.single else unit % word["row_blocks"])
            plane = image * word["channels"] + c
            source = self.frame.source.offset(plane * self.frame.source_plane)
            target = self.frame.second.offset(
                (plane * word["multiplier"] + m) * self.frame.target_plane
            )
            with k.loop(0, rows.count, kernel.height, carry=sums, nonempty=True) as row:
                sources = self.in_place.row_pointers(source, rows.start + row)
                first = target.offset((rows.start + row) * cols)
                grads = [first]
                for i in range(1, kernel.height):
                    here = first.offset(cols * i)
                    if not kernel.single:
                        here = k.select(row + i < rows.count, here, self.in_place.zero_row)
                    grads.append(here)
                self._walk_in_place(sources, grads, sums)
        for tap, total in enumerate(sums):
            there = bank.offset(tap * self.lanes)
            there.store(there.load(self.lanes, aligned=True) + total.value, aligned=True)

    def _walk_in_place(
        self, sources: dict[int, Pointer], grads: list[Pointer], sums: list[Variable[Vector]]
    ) -> None:
        """Cover the columns of a tile of rows: what the last vector shares with the one before is zero there."""
        k, lanes, groups = self.k, self.in_place.reach, self.word["groups_w"]
        if self.kernel.target_width:
            self._tile_in_place(sources, grads, sums, k.i64(0), True, True)
            return
        last = groups - lanes
        self._tile_in_place(sources, grads, sums, k.i64(0), True, False)
        with k.loop(lanes, last, lanes, carry=sums) as q:
            self._tile_in_place(sources, grads, sums, q, False, False)
        self._tile_in_place(sources, grads, sums, last, False, True)

    def _tile_in_place(
        self,
        sources: dict[int, Pointer],
        grads: list[Pointer],
        sums: list[Variable[Vector]],
        q: Int,
        at_start: bool,
        at_end: bool,
    ) -> None:
        k, kernel = self.k, self.kernel
        mask: list[bool] | None = None
        if kernel.target_width:
            mask = [lane < kernel.target_width for lane in range(self.lanes)]
        elif at_end and kernel.tail:
            reach = self.in_place.reach
            mask = [lane >= reach - kernel.tail for lane in range(reach)]
        for part in self.in_place.parts:
            values = [self.in_place.load(row.offset(q), part, mask) for row in grads]
            if kernel.cols.step == 2:
                values = [k.shuffle(value, None, self.in_place.parted) for value in values]
            self._add_tile_in_place(sources, values, sums, q, at_start, at_end, part)

    def _add_tile_in_place(
        self,
        sources: dict[int, Pointer],
        values: list[Vector],
        sums: list[Variable[Vector]],
        q: Int,
        at_start: bool,
        at_end: bool,
        part: int,
    ) -> None:
        k, kernel = self.k, self.kernel
        (taps,) = kernel.cols.phases
        for source_row, row in sorted(sources.items()):
            here = row.offset(q * kernel.cols.step)
            seen: dict[int, Vector] = {}
            for tap in taps:
                x = self.in_place.load_tap(here, tap.offset, at_start, at_end, seen, part)
                if x is None:
                    continue
                for cell, tap_h in self.frame.row_reads[source_row]:
                    total = sums[tap_h * kernel.window[1] + tap.number]
                    total.value = k.fma(x, values[cell], total.value)

    def _leave(self, share: Int, c: Int, m: Int, sums: Pointer) -> None:
        """Add the lanes and store the sums, in the result or in the share's row of partial sums."""
        k, kernel, period = self.k, self.kernel, self.kernel.period
        width = self.turns * self.lanes
        element = self.frame.storage if kernel.whole else self.number
        outputs = self.frame.outputs * period if period else self.frame.outputs
        result = k.arg_pointer(2, element).offset(share * (outputs * self.taps))
        with k.loop(0, self.taps, nonempty=True) as tap:
            here, there = sums.offset(tap * width), result.offset(tap * outputs)
            if not period:
                total = k.variable(here.load(self.lanes, aligned=True).sum())
                self._mend(total, share, tap, c, m, k.i64(0))
                there.offset(c * self.word["multiplier"] + m).store(total.value)
                return
            with k.loop(0, period, nonempty=True) as phase:
                total = k.variable(here.offset(phase).load())
                with k.loop(phase + period, width, period, carry=[total]) as i:
                    total.value = total.value + here.offset(i).load()
                self._mend(total, share, tap, c, m, phase)
                there.offset(phase).store(total.value)

    def _mend(
        self, total: Variable[Vector], share: Int, tap: Int, c: Int, m: Int, phase: Int
    ) -> None:
        """Compute a sum that is not finite once more, product by product and without the padding."""
        k, kernel, word = self.k, self.kernel, self.word
        finite = total.value - total.value
        wrong = Bool(finite.emitter, finite.compare("une", "", 0.0).text)
        down = tap // kernel.window[1] * kernel.rows.spacing + kernel.rows.lowest
        cell, across = kernel.cell, kernel.cols.across
        right = tap % kernel.window[1] * (kernel.cols.spacing // across * cell)
        right = right + kernel.cols.lowest // across * cell
        channel = phase // kernel.repeat
        carry = [total]
        with k.when(wrong):
            total.value = k.zeros(self.number, 1)
            begin = share * word["units"] // word["shares"]
            end = (share + 1) * word["units"] // word["shares"]
            with k.loop(begin, end, carry=carry, nonempty=True) as unit:
                plane = unit // word["row_blocks"] * word["channels"] + c
                rows = self.frame.rows(unit % word["row_blocks"])
                source = self.frame.source.offset(plane * self.frame.source_plane)
                target = self.frame.second.offset(
                    (plane * word["multiplier"] + m) * self.frame.target_plane
                )
                with k.loop(rows.start, rows.start + rows.count, carry=carry, nonempty=True) as p:
                    h = p * kernel.rows.step + down
                    with k.when(h.inside(word["source_rows"])):
                        here = source.offset(h * word["source_cols"])
                        there = target.offset(p * word["target_cols"])
                        period = kernel.period or 1
                        with k.loop(phase, word["target_cols"], period, carry=carry) as q:
                            w = q // period * (kernel.cols.step * cell) + right + channel
                            with k.when(w.inside(word["source_cols"])):
                                x, y = here.offset(w).load(), there.offset(q).load()
                                total.value = k.fma(x, y, total.value)
