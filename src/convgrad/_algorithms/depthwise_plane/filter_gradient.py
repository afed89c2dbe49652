"""The filter gradient of `depthwise_plane` and `depthwise_flat`; `kernel` tells the mathematics."""

from __future__ import annotations

from ..._codegen import Bool, Int, Pointer, Variable, Vector
from ..._kernel import KernelSource
from .frame import BlockRows, Frame
from .in_place import InPlace
from .padded import Padded


class FilterWriter:
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
                    self.frame.block, self.frame.block_size + word["grad_rows"] * self.kernel.pitch
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
        k, word, pitch = self.k, self.word, self.kernel.pitch
        cols = word["target_cols"]
        source = self.frame.second.offset(plane * self.frame.target_plane + rows.start * cols)
        with k.loop(0, rows.count, nonempty=True) as row:
            there = self.frame.grads.offset(row * pitch)
            self.padded.copy_row(source.offset(row * cols), there, cols, self.kernel.target_width)
        self._clear_rows(self.frame.grads, pitch, rows.count, word["grad_rows"])

    def _add_products(self, rows: BlockRows, sums: Pointer) -> None:
        """Add the products of one block to the sums, a few tap columns at a time."""
        k, size, cols = self.k, self.kernel.tap_cols, self.kernel.cols
        (taps,) = cols.phases

        def add(turn: Int, first: int, count: int, later: Int) -> None:
            """Add up tap columns `first` and on, moved `later` columns along the window."""
            group = taps[first : first + count]
            shift = later * cols.spacing
            products = self._products(rows, turn, [tap.offset for tap in group], shift)
            for (tap_h, place), value in products.items():
                tap = later + (tap_h * self.kernel.window[1] + group[place].number)
                there = sums.offset((tap * self.turns + turn) * self.lanes)
                there.store(there.load(self.lanes, aligned=True) + value, aligned=True)

        with k.loop(0, self.turns, nonempty=True) as turn:
            # Whole groups share one body where a step along the window is a step in memory.
            whole = len(taps) // size * size if cols.step == 1 else 0
            if whole:
                with k.loop(0, whole, size, nonempty=True) as later:
                    add(turn, 0, size, later)
            for first in range(whole, len(taps), size):
                add(turn, first, size, k.i64(0))

    def _products(
        self, rows: BlockRows, turn: Int, offsets: list[int], shift: Int
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
            x = self.frame.block.offset(row * (kernel.rows.step * self.frame.row_pitch) + shift)
            y = self.frame.grads.offset(row * kernel.pitch)
            step = self.turns * self.lanes
            with k.loop(turn * self.lanes, self.word["groups_w"], step, carry=carry) as q:
                here, there = x.offset(q), y.offset(q)
                grads = [
                    there.offset(i * kernel.pitch).load(self.lanes, aligned=True)
                    for i in range(kernel.height)
                ]
                for place, offset in enumerate(offsets):
                    column = here.offset(self.padded.column(offset))
                    for source_row, readers in sorted(self.frame.row_reads.items()):
                        distance = (source_row - kernel.rows.lowest) * self.frame.row_pitch
                        value = column.offset(distance).load(self.lanes)
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
        k, lanes, groups = self.k, self.lanes, self.word["groups_w"]
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
            mask = [lane >= self.lanes - kernel.tail for lane in range(self.lanes)]
        values = [row.offset(q).load(self.lanes, mask=mask) for row in grads]
        if kernel.cols.step == 2:
            values = [k.shuffle(value, None, self.in_place.parted) for value in values]
        (taps,) = kernel.cols.phases
        for source_row, row in sorted(sources.items()):
            here = row.offset(q * kernel.cols.step)
            seen: dict[int, Vector] = {}
            for tap in taps:
                x = self.in_place.load_tap(here, tap.offset, at_start, at_end, seen)
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
        right = tap % kernel.window[1] * kernel.cols.spacing + kernel.cols.lowest
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
                        with k.loop(
                            phase, word["target_cols"], kernel.period or 1, carry=carry
                        ) as q:
                            w = q * kernel.cols.step + right
                            with k.when(w.inside(word["source_cols"])):
                                x, y = here.offset(w).load(), there.offset(q).load()
                                total.value = k.fma(x, y, total.value)
