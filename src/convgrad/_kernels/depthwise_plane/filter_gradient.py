"""The filter gradient of `depthwise_plane`, in the order of the contract of sums for chains that lie along rows.

::

    item = (slice of the units, chunk of channels); unit = (images, whole bands of two rows)
      for c in chunk:  for unit, m:
          for turn, image, band of rows, vector of columns that is the turn's:  acc[tap] += x * y, row by row
          bank[tap][turn] = acc;  V chains of each tap are added halves onto halves, a vector of taps at a time
          sums of the unit -> stack: the leaf of a tree
        result, or partial[slice]

The V chains of a tap are one vector of 512 bits. Narrower ones take turns: each goes through the unit, which is in the
first cache, with sums of its own, so that there are never more of them in registers than on wide vectors.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

from ..._compiler.codegen import Bool, Int, Pointer, Variable, Vector
from ..._compiler.kernel import KernelSource
from ..._problem.sums.gather import LINE
from ..._problem.sums.pixels import BAND, FLAT_BAND
from ..shared.reduce import carries, finish_tree
from .frame import BlockRows, Frame, Reads, reads
from .in_place import InPlace
from .loops import tap_loop
from .padded import Padded
from .words import Windows

MEND_LEVELS = 64
"""Of the tree of one sum that is not finite, at most."""


_SUMS = 10
"""Tap rows whose sums are in registers together, at most."""
_AHEAD = 8
"""Rows from those in work to those asked for: 112 x 112 take 0.49 instead of 0.85 ms and 56 x 56 0.65 instead of 0.91
(batch 8, 32 and 128 channels, one thread of Zen 5)."""
_TOGETHER = 4
"""Vectors of taps that are put into the tree together; more are looped over."""


class FilterWriter:
    """Writes a filter gradient; methods go from the outermost loop to the innermost body."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.k, self.kernel, self.word = frame.k, frame.kernel, frame.word
        self.number, self.lanes, self.taps = frame.number, frame.lanes, frame.taps
        self.in_place, self.padded = InPlace(frame), Padded(frame)
        self.turns = frame.kernel.turns
        self.wide = LINE // self.number.size
        """Sums in 64 bytes."""
        period = self.kernel.period or 1
        self.per_channel = self.kernel.cycle // period if self.kernel.period else self.wide
        """Chains of a sum."""
        self.cycle = self.kernel.cycle
        """Elements of the chains of a tap; fewer than there are if a row has no more."""
        self.step = self.per_channel * period
        """From a vector of a row to the next one of the same chains."""
        self.size = self.taps * self.cycle
        """Elements of the chains of all taps."""
        self.row = -(-self.taps * period // self.lanes) * self.lanes
        """Elements of the sums of all taps."""
        self.chains = frame.bank
        """Of a sum that is mended; behind them its tree."""
        self.bank = frame.bank.offset(self.wide + MEND_LEVELS)
        self.folded = self.bank.offset(frame.word["multiplier"] * self.size)
        """Sums of a unit where several channels are in a row: [tap][channel], the last one stored as whole vectors."""
        room = self.row + self.lanes if self.kernel.period else 0
        self.stack = self.folded.offset(room)

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
                cols = self.kernel.cols
                rows = word["block_rows"] * cols.step
                copied = self.frame.source_cols // self.kernel.cell // cols.step * cols.across
                self._clear_around(self.frame.block, rows, self.kernel.pitch, cols.before, copied)
                self._clear_around(
                    self.frame.grads,
                    word["grad_rows"],
                    self.kernel.grad_pitch,
                    0,
                    self.frame.target_cols,
                )
            with k.loop(first, last, nonempty=True) as c:
                self._channel(share, c)
        return k.finish()

    def _clear_around(self, rows: Pointer, count: Int, pitch: int, before: int, cols: Int) -> None:
        """Zero what is left and right of columns that are copied to rows."""
        k, lanes = self.k, self.lanes
        with k.loop(0, count) as row:
            there = rows.offset(row * pitch)
            self.frame.clear(there, k.i64(before))
            stop = (cols + before) // lanes * lanes
            self.frame.clear(there.offset(stop), k.i64(pitch) - stop)

    @contextmanager
    def _units(
        self, share: Int, *carry: Variable[Vector]
    ) -> Iterator[tuple[Int, Bool, tuple[Int, Int], BlockRows]]:
        """Loop over the units of a slice: the number in it, whether it is the last, its images and rows."""
        k, word = self.k, self.word
        begin = share * word["slice_units"]
        end = k.min(begin + word["slice_units"], word["units"])
        with k.loop(begin, end, carry=carry, nonempty=True) as unit:
            first = unit // word["row_blocks"] * word["images"]
            images = (first, k.min(first + word["images"], word["batch"]))
            rows = self.frame.rows(unit % word["row_blocks"])
            yield unit - begin, (unit + 1).equals(end), images, rows

    def _channel(self, share: Int, c: Int) -> None:
        """Add up the units of one slice, and leave the sums of its taps."""
        k, word = self.k, self.word
        with self._units(share) as (number, is_last, images, rows):
            levels = carries(k, number)
            if self.kernel.direct:
                with self.frame.each_multiple() as m:
                    found = self._add_in_place(images, rows, c, m, self.bank.offset(m * self.size))
                    self._close(number, levels, is_last, m, found)
            else:
                self.frame.clear(self.bank, word["multiplier"] * self.size)
                with k.loop(*images, nonempty=True) as image:
                    self._add_image(image * word["channels"] + c, rows)
                with self.frame.each_multiple() as m:
                    self._close(number, levels, is_last, m)
        with self.frame.each_multiple() as m:
            self._leave(share, c, m)

    def _add_image(self, plane: Int, rows: BlockRows) -> None:
        """Copy the rows of one image, and add their products to the chains of all outputs."""
        word, frame = self.word, self.frame
        self._clear_rows(frame.block, frame.row_pitch, self.k.i64(0), rows.low)
        self.padded.copy_source(plane, rows, frame.block)
        self._clear_rows(frame.block, frame.row_pitch, rows.high, word["block_rows"])
        with frame.each_multiple() as m:
            self._copy_grads(plane * word["multiplier"] + m, rows)
            self._add_products(rows, self.bank.offset(m * self.size))

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

    def _add_products(self, rows: BlockRows, bank: Pointer) -> None:
        """Add the products of one block to the chains, a few taps at a time: columns of the window in loops."""
        k, kernel, frame = self.k, self.kernel, self.frame
        along = tap_loop(kernel.cols, kernel.tap_cols, kernel.cols.step)
        readers = frame.row_reads if kernel.single else reads(kernel.rows, kernel.height)
        met = sorted({row for uses in readers.values() for _, row in uses})
        parts = -(-len(met) // _SUMS)
        size = max(1, -(-len(met) // max(1, parts)))

        def add(wide: Windows, j: Int, turn: Int) -> None:
            (taps,) = wide.phases
            for first in range(0, len(taps), kernel.tap_cols):
                group = taps[first : first + kernel.tap_cols]
                for start in range(0, len(met), size):
                    tap_rows = met[start : start + size]
                    places = {}
                    for row, tap in itertools.product(tap_rows, group):
                        number = j * along.numbers + (row * kernel.window[1] + tap.number)
                        place = number * self.cycle + turn * self.lanes
                        places[row, tap.offset] = bank.offset(place)
                    some: Reads = {}
                    for source_row, uses in readers.items():
                        if found := [use for use in uses if use[1] in tap_rows]:
                            some[source_row] = found
                    self._products(rows, some, places, j * along.distance, turn)

        with k.loop(0, self.turns, nonempty=True) as turn:
            with k.loop(0, along.count, nonempty=True) as j:
                add(along.piece, j, turn)
            if along.rest:
                add(along.rest, k.i64(0), turn)

    def _products(
        self,
        rows: BlockRows,
        tall: Reads,
        places: dict[tuple[int, int], Pointer],
        shift: Int,
        turn: Int,
    ) -> None:
        """Go on with the chains of some tap rows and columns, over the vectors of a block that are the turn's."""
        k, kernel, lanes = self.k, self.kernel, self.lanes
        sums: dict[tuple[int, int], Variable[Vector]] = {
            key: k.variable(place.load(lanes, aligned=True)) for key, place in places.items()
        }
        offsets = sorted({offset for _, offset in places})
        carry = list(sums.values())
        with k.loop(0, rows.count, kernel.height, carry=carry, nonempty=True) as row:
            x = self.frame.block.offset(row * (kernel.rows.step * self.frame.row_pitch) + shift)
            y = self.frame.grads.offset(row * kernel.grad_pitch)
            with k.loop(turn * lanes, self.word["groups_w"], self.step, carry=carry) as q:
                here, there = x.offset(self.frame.place(q)), y.offset(q)
                grads = [
                    there.offset(i * kernel.grad_pitch).load(lanes, aligned=True)
                    for i in range(kernel.height)
                ]
                for offset in offsets:
                    column = here.offset(self.padded.column(offset))
                    for source_row, readers in sorted(tall.items()):
                        distance = (source_row - kernel.rows.lowest) * self.frame.row_pitch
                        value = self.frame.load(column.offset(distance))
                        for cell, tap_h in readers:
                            total = sums[tap_h, offset]
                            total.value = k.fma(value, grads[cell], total.value)
        for key, place in places.items():
            place.store(sums[key].value, aligned=True)

    # In place

    def _add_in_place(
        self, images: tuple[Int, Int], rows: BlockRows, c: Int, m: Int, bank: Pointer
    ) -> list[Vector] | None:
        """Write the chains of a unit that is read in place, or add them if a vector has all sums."""
        k, kernel, lanes = self.k, self.kernel, self.lanes
        if kernel.alternate:
            for each in range(self.turns):
                chains = self._take_turn(images, rows, c, m, k.i64(each // 2), each % 2)
                self._store(chains, bank, k.i64(each))
            return None
        if self.turns == 1 and self.taps <= lanes:
            return [self._lanes_added(self._take_turn(images, rows, c, m, k.i64(0), 0))]
        with k.loop(0, self.turns, nonempty=True) as turn:
            self._store(self._take_turn(images, rows, c, m, turn, 0), bank, turn)
        return None

    def _store(self, chains: list[Vector], bank: Pointer, turn: Int) -> None:
        for tap, value in enumerate(chains):
            there = bank.offset(turn * self.lanes + tap * self.cycle)
            there.store(value, aligned=True)

    def _take_turn(
        self,
        images: tuple[Int, Int],
        rows: BlockRows,
        c: Int,
        m: Int,
        piece: Int,
        part: int,
    ) -> list[Vector]:
        """Go through a unit with every vector of columns that belongs to the same chains."""
        k, kernel, word, cols = self.k, self.kernel, self.word, self.frame.target_cols
        sums = [k.variable(k.zeros(self.number, self.lanes)) for _ in range(self.taps)]
        with k.loop(*images, carry=sums, nonempty=True) as image:
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
                self._walk(sources, grads, sums, piece, part)
        if kernel.cols.step == 1:
            return [total.value for total in sums]
        order = [self.in_place.parted.index(lane) for lane in range(self.lanes)]
        return [k.shuffle(total.value, None, order) for total in sums]

    def _walk(
        self,
        sources: dict[int, Pointer],
        grads: list[Pointer],
        sums: list[Variable[Vector]],
        piece: Int,
        part: int,
    ) -> None:
        """Cover the columns of a tile of rows that are a turn's; the first and the last vector of a row have masks."""
        k, reach, wide = self.k, self.in_place.reach, self.wide

        def tile(q: Int, at_start: bool, at_end: bool) -> None:
            self._tile(sources, grads, sums, q, at_start, at_end, part)

        if self.kernel.target_width:
            tile(k.i64(0), True, True)
            return
        last_piece = (self.kernel.tail - 1) // reach
        last = self.word["groups_w"] + (last_piece * reach - self.kernel.tail)
        begins = piece.equals(0)
        with k.when(begins):
            tile(k.i64(0), True, False)
        start = k.select(begins, k.i64(wide), piece * reach)
        with k.loop(start, last, wide, carry=sums) as q:
            tile(q, False, False)
        with k.when(piece.equals(last_piece)):
            tile(last, False, True)

    def _tile(
        self,
        sources: dict[int, Pointer],
        grads: list[Pointer],
        sums: list[Variable[Vector]],
        q: Int,
        at_start: bool,
        at_end: bool,
        part: int,
    ) -> None:
        k, kernel = self.k, self.kernel
        reach = self.in_place.reach
        width = (kernel.target_width or self.in_place.width) if at_end else reach
        mask = [lane < width for lane in range(reach)]
        if kernel.ahead:
            self._ask_ahead(sources, grads, q)
        values = [self.in_place.load(row.offset(q), part, mask) for row in grads]
        if kernel.cols.step == 2:
            values = [k.shuffle(value, None, self.in_place.parted) for value in values]
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

    def _ask_ahead(self, sources: dict[int, Pointer], grads: list[Pointer], q: Int) -> None:
        """Ask for the lines some rows below: the end of a unit is long, and turns let memory wait."""
        k, kernel, frame = self.k, self.kernel, self.frame
        step = kernel.rows.step
        here = sources[sorted(sources)[min(1, len(sources) - 1)]].offset(q * kernel.cols.step)
        for row in range(_AHEAD, _AHEAD + kernel.height):
            grads[0].offset(q + frame.target_cols * row).prefetch()
            below = frame.source_cols * (_AHEAD * step + row - _AHEAD)
            here.offset(k.i64(below)).prefetch()

    # The end of a unit, and of a slice

    def _close(
        self,
        number: Int,
        levels: Int,
        is_last: Bool,
        m: Int,
        found: list[Vector] | None = None,
    ) -> None:
        """Add the chains of a unit, and put the sums of its taps where the tree wants them."""
        k, lanes = self.k, self.lanes
        bank = self.bank.offset(m * self.size)
        stack = self.stack.offset(m * self.row)
        pitch = self.word["multiplier"] * self.row
        if self.kernel.period:
            self._close_row(number, levels, is_last)
            return

        parts = [min(lanes, self.taps - tap) for tap in range(0, self.taps, lanes)]
        if len(parts) <= _TOGETHER:
            sums = found or [
                self._folded(bank.offset(i * lanes * self.cycle), count)
                for i, count in enumerate(parts)
            ]
            self._plant(sums, number, levels, is_last, stack, pitch)
            return

        def close(tap: Int, count: int) -> None:
            sums = [self._folded(bank.offset(tap * self.cycle), count)]
            self._plant(sums, number, levels, is_last, stack.offset(tap), pitch)

        whole = self.taps - self.taps % lanes
        with k.loop(0, whole, lanes) as tap:
            close(tap, lanes)
        if whole < self.taps:
            close(k.i64(whole), self.taps - whole)

    def _close_row(self, number: Int, levels: Int, is_last: Bool) -> None:
        """Do the same where several channels are in a row: sums are neighbours as in the result."""
        k, lanes, period = self.k, self.lanes, self.kernel.period
        with k.loop(0, self.taps, nonempty=True) as tap:
            here = self.bank.offset(tap * self.cycle)
            starts = range(0, self.cycle, lanes)
            values = [here.offset(start).load(lanes, aligned=True) for start in starts]
            for i, value in enumerate(self._folded_row(values)):
                self.folded.offset(tap * period + i * lanes).store(
                    value
                )  # the next tap covers the rest
        count = self.row // lanes
        together = count if count <= _TOGETHER else 1
        with k.loop(0, self.row, together * lanes, nonempty=True) as first:
            here = self.folded.offset(first)
            sums = [here.offset(i * lanes).load(lanes) for i in range(together)]
            self._plant(sums, number, levels, is_last, self.stack.offset(first), k.i64(self.row))

    def _folded_row(self, values: list[Vector]) -> list[Vector]:
        """Add the chains of all channels of a row, which are vectors one behind the other: halves onto halves."""
        k, lanes, left = self.k, self.lanes, self.cycle
        while left > self.kernel.period:
            left //= 2
            added = []
            for i in range(-(-left // lanes)):
                place, shift = divmod(left + i * lanes, lanes)
                other = values[place]
                if shift:
                    after = values[place + 1] if place + 1 < len(values) else other
                    other = k.shuffle(other, after, range(shift, shift + lanes))
                added.append(values[i] + other)
            values = added
        return values

    def _plant(
        self,
        sums: list[Vector],
        number: Int,
        levels: Int,
        is_last: Bool,
        stack: Pointer,
        pitch: Int,
    ) -> None:
        """Add the sums of a unit to the tree, some vectors of taps."""
        k, lanes = self.k, self.lanes
        totals = [k.variable(each) for each in sums]
        with k.branch(is_last) as end:
            with end.then():
                for i, total in enumerate(totals):
                    finish_tree(k, total, number, stack.offset(i * lanes), pitch)
                    stack.offset(i * lanes).store(total.value)
            with end.otherwise():
                with k.loop(0, levels, carry=totals) as level:
                    there = stack.offset(level * pitch)
                    for i, total in enumerate(totals):
                        total.value = there.offset(i * lanes).load(lanes) + total.value
                there = stack.offset(levels * pitch)
                for i, total in enumerate(totals):
                    there.offset(i * lanes).store(total.value)

    def _folded(self, bank: Pointer, count: int) -> Vector:
        """Return the sums of the chains of some taps, a lane for each tap."""
        parts = 2 if self.kernel.alternate else 1
        found: list[list[Vector]] = [[] for _ in range(parts)]
        for tap in range(count):
            here = bank.offset(tap * self.cycle)
            values = [
                here.offset(turn * self.lanes).load(self.lanes, aligned=True)
                for turn in range(self.turns)
            ]
            for part, each in enumerate(found):
                each.append(self._halves(values[part::parts]))
        folded = [self._lanes_added(each) for each in found]
        return folded[0] + folded[1] if parts == 2 else folded[0]

    def _halves(self, values: list[Vector]) -> Vector:
        """Add vectors, the second half onto the first; those left out are zero."""
        across = self.wide // self.in_place.reach
        while across > 1:
            across //= 2
            pairs = zip(values[:across], values[across:], strict=False)
            values = [*(a + b for a, b in pairs), *values[len(values[across:]) : across]]
        return values[0]

    def _lanes_added(self, values: list[Vector]) -> Vector:
        """Add the lanes of each of some vectors, halves onto halves: lane i of the result is the sum of vector i."""
        k, lanes, left = self.k, self.lanes, self.lanes
        while left > 1:
            left //= 2
            added = []
            for i in range(0, len(values), 2):
                a, b = values[i], values[i + 1] if i + 1 < len(values) else None
                starts = range(0, 2 * lanes, 2 * left)
                low = [start + lane for start in starts for lane in range(left)]
                if b is None:
                    low = [at % lanes for at in low]
                added.append(k.shuffle(a, b, low) + k.shuffle(a, b, [at + left for at in low]))
            values = added
        return values[0]

    def _leave(self, share: Int, c: Int, m: Int) -> None:
        """Store the sums of a slice, in the result or in its row of partial sums."""
        k, outputs = self.k, self.frame.outputs
        element = self.frame.storage if self.kernel.whole else self.number
        period = self.kernel.period or 1
        result = k.arg_pointer(2, element).offset(share * (outputs * (self.taps * period)))
        there = result.offset(c * self.word["multiplier"] + m)
        sums = self.stack.offset(m * self.row)
        with (
            k.loop(0, self.taps, nonempty=True) as tap,
            k.loop(0, period, nonempty=True) as phase,
        ):
            total = k.variable(sums.offset(tap * period + phase).load())
            self._mend(total, share, tap, c, m, phase)
            there.offset(tap * outputs * period + phase).store(total.value)

    def _mend(
        self, total: Variable[Vector], share: Int, tap: Int, c: Int, m: Int, phase: Int
    ) -> None:
        """Compute a sum that is not finite once more, without the padding, in the same order."""
        k, kernel, word, chains = self.k, self.kernel, self.word, self.per_channel
        together = FLAT_BAND if kernel.period else BAND
        period, cell, across = kernel.period or 1, kernel.cell, kernel.cols.across
        finite = total.value - total.value
        wrong = Bool(finite.emitter, finite.compare("une", "", 0.0).text)
        down = tap // kernel.window[1] * kernel.rows.spacing + kernel.rows.lowest
        right = tap % kernel.window[1] * (kernel.cols.spacing // across * cell)
        right = right + kernel.cols.lowest // across * cell + phase // kernel.repeat
        stack = self.chains.offset(self.wide)
        cols = word["target_cols"] // period
        with k.when(wrong), self._units(share, total) as (number, is_last, images, rows):
            self.frame.clear(self.chains, k.i64(self.wide))
            stop = rows.start + rows.count
            with k.loop(*images, nonempty=True) as image:
                plane = image * word["channels"] + c
                source = self.frame.source.offset(plane * self.frame.source_plane)
                target = self.frame.second.offset(
                    (plane * word["multiplier"] + m) * self.frame.target_plane
                )
                with (
                    k.loop(rows.start, stop, together, nonempty=True) as band,
                    k.loop(0, cols, chains, nonempty=True) as piece,
                    k.loop(band, k.min(band + together, stop), nonempty=True) as p,
                ):
                    h = p * kernel.rows.step + down
                    with k.when(h.inside(word["source_rows"])):
                        here = source.offset(h * word["source_cols"])
                        there = target.offset(p * word["target_cols"] + phase)
                        with k.loop(piece, k.min(piece + chains, cols)) as q:
                            w = q * (kernel.cols.step * cell) + right
                            with k.when(w.inside(word["source_cols"])):
                                chain = self.chains.offset(q - piece)
                                x, y = here.offset(w).load(), there.offset(q * period).load()
                                chain.store(k.fma(x, y, chain.load()))
            half = chains // 2
            while half:
                with k.loop(0, half) as i:
                    low = self.chains.offset(i)
                    low.store(low.load() + low.offset(half).load())
                half //= 2
            total.value = self.chains.load()
            levels = carries(k, number)
            with k.branch(is_last) as end:
                with end.then():
                    finish_tree(k, total, number, stack, 1)
                with end.otherwise():
                    with k.loop(0, levels, carry=[total]) as level:
                        total.value = stack.offset(level).load() + total.value
                    stack.offset(levels).store(total.value)
