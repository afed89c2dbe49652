"""The kernel of `depthwise_packed`: tiles of columns over zero-padded rows that were copied into scratch.

::

    item (forward, input gradient) = (unit, chunk of channels); unit = (image, block of rows, part of the columns)
      weights of the chunk -> bank[vector][plane][tap][lane]
      for block of columns:  for target row y:
        copy source rows that are new to the window into the ring of rows, pads and all
        list the kernel rows whose source row exists: (its place in the ring, its place in the bank)
        for phase:  for tile of T columns:  for vector of channels:
          acc[T] = 0;  for (x, w) in list:  for column j, tap: acc[i] += x[j] * w[tap];  [totals += acc];  store acc

    item (filter gradient) = (slice of the units, chunk of channels)
      for unit:  for run:  bank[vector][tap][lane] = 0
          ... the same nest over the run's rows and columns, with y[T] = out_backprop: bank[tap] += x[j] * y[i]
          total += bank
        total joins its neighbours in the tree of units
      sums of the slice -> partial[slice][tap][channel]

Units, runs and the tree are those of `_problem.sums.pixels`. The ring outlives a unit: the next one goes on below.

The list is what makes rows cheap: strides, dilations, phases, pads, the ring and the planes of a multiplier are all
worked out once per row, and the innermost loop knows none of them. So the code depends on the columns and the tile
only, and one kernel serves any window height, stride and dilation of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..._compiler.codegen import (
    I64,
    Int,
    KernelBuilder,
    Pointer,
    Vector,
    arithmetic,
    element,
    symbol,
)
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..._problem.convolution import Kind
from ..._problem.sums.gather import RUN
from ..shared import units
from ..shared.words import arguments
from .columns import Phase
from .rows import Chunk, Image, RowCopies
from .tile import Body, ColumnTiles
from .words import RING_WORDS, WORDS, PackedKernel, entry_words


def emit(kernel: PackedKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    return _Writer(kernel, target).write()


@dataclass(frozen=True)
class _Strip:
    """One pass over rows: a block of columns."""

    first: Int
    """The block's q range."""
    stop: Int
    origin: Int
    """The q whose leftmost column the ring's rows start with; tiles moved left may lie before `first`."""


class _Ring:
    """What the ring of a filter gradient holds: it outlives units."""

    def __init__(self, k: KernelBuilder) -> None:
        self.packed = k.variable(k.i64(0))
        """Source rows that have been packed, but for those above the first window."""
        self.place = k.variable(k.i64(-1))
        """The image and the column they begin at."""
        self.variables = [self.packed, self.place]


class _Writer:
    """Writes one kernel; methods go from the outermost loop to the innermost body."""

    def __init__(self, kernel: PackedKernel, target: Target) -> None:
        self.kernel = kernel
        self.columns = kernel.columns
        size = f"{kernel.tile}x{kernel.vectors}"
        title = symbol(f"depthwise_packed_{kernel.kind.short}", kernel.dtype, size, target, kernel)
        self.k = k = KernelBuilder(title, target)
        self.storage = element(kernel.dtype)
        self.number = arithmetic(self.storage)
        self.lanes = k.lanes(self.number)
        self.chunk = kernel.vectors * self.lanes
        self.to_filter = kernel.kind is Kind.FILTER_GRADIENT
        self.to_input = kernel.kind is Kind.INPUT_GRADIENT
        self.planes = kernel.multiplier if self.to_input else 1
        self.repeat = 1 if self.to_input else kernel.multiplier
        self.by_channel = kernel.data_format == "NCHW"
        self.bias = k.arg_pointer(3, self.storage) if kernel.bias and not self.to_filter else None
        words = (*WORDS, *RING_WORDS, *units.WORDS) if self.to_filter else WORDS
        self.word = arguments(k, 4 if self.bias else 3, words)
        self.channels = self.word["channels"]
        self.rows = RowCopies(
            k, self.storage, self.chunk, self.channels, kernel.small, self.by_channel
        )
        self.list = k.scratch(I64, 0)
        """The kernel rows of a target row: pairs of a place in the ring and a place in the bank."""
        self.slots = self._scratch("slots_at").as_element(I64)
        """For every source row of a unit, where in the ring: division is slow, so it is done once per row."""
        self.bank = self._scratch("bank_at")
        """Weights, or the running sums of the filter gradient, as [vector][plane][tap][lane]."""
        self.ring = self._scratch("ring_at")
        self.plane = self._scratch("plane_at")
        """NCHW: the block of rows that is written, or the row of out_backprop, as [pixel][channel]."""
        self.taps = self.word["window_rows"] * self.columns.window
        self.bank_rows = self.taps + 1 if self.to_filter and kernel.bias else self.taps
        """Vectors of the bank for one of channels: behind the sums of the taps, that of out_backprop itself."""
        self.tiles = ColumnTiles(
            k, self.number, self.chunk, self.columns, kernel.image, self.list, kernel.levels
        )

    def write(self) -> KernelSource:
        k = self.k
        with k.loop(k.begin, k.end) as item:
            first = item % self.word["chunks"] * self.chunk
            rest = item // self.word["chunks"]
            if not self.kernel.small:
                first = k.min(first, self.channels - self.lanes)
            chunk = Chunk(first, k.min(self.channels - first, self.chunk))
            if self.to_filter:
                self._slice(rest, chunk)
            else:
                self._pack_weights(chunk)
                self._unit(rest, chunk)
        return k.finish()

    def _scratch(self, word: str) -> Pointer:
        return self.k.scratch(I64, 0).offset(self.word[word] // 8).as_element(self.number)

    @contextmanager
    def _vectors(self, chunk: Chunk) -> Iterator[tuple[Int, Int]]:
        """Loop over the vectors of a chunk: their number times lanes, and where they start."""
        with self.k.loop(0, chunk.width, self.lanes, nonempty=True) as c:
            yield c, self.rows.place(c, chunk)

    # Before and after the rows

    def _pack_weights(self, chunk: Chunk) -> None:
        k = self.k
        weights = k.arg_pointer(1, self.storage)
        plane = self.taps * self.lanes
        with self._vectors(chunk) as (c, at), k.loop(0, self.taps, nonempty=True) as tap:
            source = weights.offset((tap * self.channels + chunk.first + at) * self.planes)
            place = self.bank.offset(c * self.taps * self.planes + tap * self.lanes)
            for value in self.rows.split(source, self.planes):
                place.store(value, aligned=True)
                place = place.offset(plane)

    def _slice(self, number: Int, chunk: Chunk) -> None:
        """Add up the units of one slice, and leave the sums in its row of partial sums."""
        k, rows, ring = self.k, self.bank_rows, _Ring(self.k)
        totals, zero = self._scratch("sums_at"), k.zeros(self.number, self.lanes)
        size = (chunk.width + (self.lanes - 1)) // self.lanes * self.lanes * rows
        with k.loop(0, size, self.lanes, nonempty=True) as i:
            self.bank.offset(i).store(zero, aligned=True)
            totals.offset(i).store(zero, aligned=True)
        begin = number * self.word["slice_units"]
        end = k.min(begin + self.word["slice_units"], self.word["units"])

        def leave(finished: Callable[[Int], Vector]) -> None:
            partial = k.arg_pointer(2, self.number).offset(number * (self.channels * rows))
            with self._vectors(chunk) as (c, at), k.loop(0, rows, nonempty=True) as tap:
                place = partial.offset(tap * self.channels + chunk.first + at)
                self.rows.store(place, finished(c * rows + tap * self.lanes))

        ends = (self.word["target_rows"], self.word["target_cols"])
        with k.loop(begin, end, carry=ring.variables, nonempty=True) as unit:
            with units.runs(k, self.word, ends, unit, ring.variables) as (images, down, cols):
                with (
                    k.loop(*images, carry=ring.variables, nonempty=True) as image,
                    k.loop(*down, carry=ring.variables, nonempty=True) as row,
                ):
                    self._row_products(image, row, cols, ring, chunk)
                units.add_run(k, self.bank, totals, size, zero)
            last = (unit + 1).equals(end)
            pitch = rows * self.chunk
            units.end_unit(k, unit - begin, last, totals, pitch, size, zero, leave)

    def _row_products(
        self, image: Int, row: Int, cols: tuple[Int, Int], ring: _Ring, chunk: Chunk
    ) -> None:
        """Add the products of some columns of a row of out_backprop."""
        k, word = self.k, self.word
        whole = word["col_block"] >= word["target_cols"]
        first = k.select(whole, k.i64(0), cols[0])
        strip = _Strip(first, k.select(whole, word["target_cols"], cols[1]), first)
        place = image * word["target_cols"] + first
        top, bottom = self._needed(row)
        packed = k.select(place.equals(ring.place.value), ring.packed.value, k.i64(0))
        source = self._image(0, "source", image, self.channels // self.repeat * self.planes)
        target = self._image(1, "target", image, self.channels)
        with k.loop(k.max(packed, top), bottom) as new:
            self._pack_row(source, new, self.slots, strip, chunk)
        ring.packed.value, ring.place.value = k.max(packed, bottom), place
        entries = self._list(row, self.slots)
        run = _Strip(cols[0], cols[1], first)
        if self.by_channel:
            self.rows.pack(target, row, cols[0], cols[1] - cols[0], self.plane, chunk)
            grads = self.plane.offset(cols[0] * -self.chunk)
        else:
            grads = target.at.offset(row * (word["target_cols"] * self.channels) + chunk.first)
        for phase in self.columns.phases:
            self._phase(phase, run, entries, grads, chunk)

    # Rows

    def _unit(self, unit: Int, chunk: Chunk) -> None:
        """Go through one block of rows of one image, block of columns by block of columns."""
        k, word = self.k, self.word
        parts, part = word["col_parts"], unit % word["col_parts"]
        image = unit // parts // word["row_blocks"]
        block = unit // parts % word["row_blocks"]
        source = self._image(0, "source", image, self.channels // self.repeat * self.planes)
        target = self._image(2, "target", image, self.channels)
        start = block * word["row_block"]
        stop = k.min(start + word["row_block"], word["target_rows"])
        spread, tile = self.columns.spread, self.kernel.tile
        groups = (word["target_cols"] + (spread - 1)) // spread
        begin, end = part * word["col_blocks"] // parts, (part + 1) * word["col_blocks"] // parts
        with k.loop(begin, end, nonempty=True) as index:
            first = index * word["col_block"]
            origin = k.max(k.min(first, word["target_cols"] // spread - tile), 0)
            strip = _Strip(first, k.min(first + word["col_block"], groups), origin)
            slots = self.slots.offset(-self._needed(start)[0])
            packed = k.variable(k.i64(0))
            with k.loop(start, stop, carry=[packed], nonempty=True) as row:
                top, bottom = self._needed(row)
                with k.loop(k.max(packed.value, top), bottom) as new:
                    self._pack_row(source, new, slots, strip, chunk)
                packed.value = k.max(packed.value, bottom)
                entries = self._list(row, slots)
                if self.by_channel:
                    place = self.plane.offset((row - start) * word["target_cols"] * self.chunk)
                else:
                    pitch = word["target_cols"] * self.channels
                    place = target.at.offset(row * pitch + chunk.first)
                if self.columns.has_holes:
                    self._clear(place, strip, chunk)
                for phase in self.columns.phases:
                    self._phase(phase, strip, entries, place, chunk)
        if self.by_channel:
            pixels = (stop - start) * word["target_cols"]
            self.rows.unpack(target, start, pixels, self.plane, chunk)

    def _image(self, pointer: int, side: str, index: Int, channels: Int) -> Image:
        rows, cols = self.word[f"{side}_rows"], self.word[f"{side}_cols"]
        at = self.k.arg_pointer(pointer, self.storage)
        return Image(at.offset(index * (rows * cols * channels)), rows, cols, channels)

    def _needed(self, row: Int) -> tuple[Int, Int]:
        """Return the range of source rows that the window of a target row spans inside the image."""
        k, word = self.k, self.word
        near = row * word["row_scale"] + word["row_start"]
        far = near + (word["window_rows"] - 1) * word["row_step"]
        if self.to_input:
            near, far = far, near
        if not self.kernel.strided:
            return k.max(near, 0), k.min(far + 1, word["source_rows"])
        stride = word["row_stride"]
        begin = (k.max(near, 0) + (stride - 1)) // stride
        return begin, k.min((far + stride) // stride, word["source_rows"])

    def _list(self, row: Int, slots: Pointer) -> Int:
        """List the kernel rows that meet the image, plane by plane; return how many entries there are."""
        k, word = self.k, self.word
        near = row * word["row_scale"] + word["row_start"]
        count = k.variable(k.i64(0))
        with (
            k.loop(0, self.planes, carry=[count], nonempty=True) as plane,
            k.loop(0, word["window_rows"], carry=[count], nonempty=True) as number,
        ):
            # By ascending source rows.
            tap = (
                word["window_rows"] - 1 - number
                if self.kernel.kind is Kind.INPUT_GRADIENT
                else number
            )
            source = near + tap * word["row_step"]
            meets = source >= 0
            if self.kernel.strided:
                meets = meets & (source % word["row_stride"]).equals(0)
                source = source // word["row_stride"]
            with k.when(meets & (source < word["source_rows"])):
                x = self._slot(slots, source).load_int()
                w = tap * (self.columns.window * self.lanes)
                place = self.list.offset(count.value * entry_words(self.kernel.levels))
                place.store_int(x + word["plane_pitch"] * plane)
                place.offset(1).store_int(w + plane * (self.taps * self.lanes))
                if self.kernel.levels > 1:
                    before = plane * word["window_rows"] + number // word["row_spacing"]
                    place.offset(2).store_int(before * -(-self.columns.window // RUN))
                count.value = count.value + 1
        return count.value

    def _slot(self, slots: Pointer, row: Int) -> Pointer:
        """Return where it is written which place of the ring a source row has."""
        return slots.offset(row & self.word["slot_mask"] if self.to_filter else row)

    def _pack_row(
        self, image: Image, row: Int, slots: Pointer, strip: _Strip, chunk: Chunk
    ) -> None:
        """Copy a source row into the ring, with zeros where the windows reach past the image."""
        k, columns = self.k, self.columns
        slot = row % self.word["ring_rows"] * self.word["ring_pitch"]
        self._slot(slots, row).store_int(slot)
        place = self.ring.offset(slot)
        start = strip.origin * columns.step + columns.lowest
        span = columns.highest - columns.lowest + 1
        count = (strip.stop - 1 - strip.origin) * columns.step + span
        lead = k.min(k.max(-start, 0), count)
        stop = k.min(k.max(image.cols - start, lead), count)
        plane = self.word["plane_pitch"]
        self.rows.pack(
            *(image, row, start + lead, stop - lead, place.offset(lead * self.chunk), chunk),
            *(self.repeat, self.planes, plane, self.kernel.prefetch),
        )
        with k.loop(0, self.planes) as index:
            self.rows.zero(place.offset(plane * index), k.i64(0), lead)
            self.rows.zero(place.offset(plane * index), stop, count)

    def _clear(self, place: Pointer, strip: _Strip, chunk: Chunk) -> None:
        """Fill a block of a target row, of which the phases will not write all columns, with zeros or the bias."""
        k, spread = self.k, self.columns.spread
        stop = k.min(strip.stop * spread, self.word["target_cols"])
        with k.loop(strip.first * spread, stop) as col, self._vectors(chunk) as (_, at):
            empty, bias = k.zeros(self.number, self.lanes), self._bias(chunk, at)
            there = place.offset(self._target_pitch * col + at)
            self._store(there, empty + bias if bias else empty)

    def _bias(self, chunk: Chunk, at: Int) -> Vector | None:
        """Return the bias of a vector of channels, if there is one."""
        return self.rows.load(self.bias.offset(chunk.first + at)) if self.bias else None

    @property
    def _target_pitch(self) -> Int:
        return self.k.i64(self.chunk) if self.by_channel else self.channels

    # Columns

    def _phase(self, phase: Phase, strip: _Strip, entries: Int, row: Pointer, chunk: Chunk) -> None:
        """Cover the columns of one phase with tiles."""
        k, tile = self.k, self.kernel.tile

        def write(q: Int, width: int, start: int | None = None) -> None:
            self._tile(phase, width, start, q, strip, entries, row, chunk)

        if self.kernel.tiles:
            for start, width in self.kernel.tiles:
                write(k.i64(start), width, start)
            return
        spread = self.columns.spread
        groups = (self.word["target_cols"] + (spread - 1 - phase.cell)) // spread
        stop = k.min(strip.stop, groups)
        if self.to_filter:
            whole = stop - (stop - strip.first) % tile
            with k.loop(strip.first, whole, tile) as q:
                write(q, tile)
            if tile > 1:
                with k.loop(whole, stop) as q:
                    write(q, 1)
        else:
            # The last tile is moved left; columns computed twice get the same bits.
            with k.loop(strip.first, stop, tile) as q:
                write(k.min(q, groups - tile), tile)

    def _tile(
        self,
        phase: Phase,
        width: int,
        start: int | None,
        q: Int,
        strip: _Strip,
        entries: Int,
        row: Pointer,
        chunk: Chunk,
    ) -> None:
        """Walk the channels of one tile."""
        spread, step = self.columns.spread, self.columns.step
        source = self.ring.offset((q - strip.origin) * (step * self.chunk))
        target = row.offset((q * spread + phase.cell) * self._target_pitch)
        with self._vectors(chunk) as (c, at):
            pointers, here = [], target.offset(at)
            for _ in range(width):
                pointers.append(here)
                here = here.offset(self._target_pitch * spread)
            bank = self.bank.offset(c * self.bank_rows * self.planes)
            body = Body(phase, width, start, source.offset(at), bank, entries)
            if self.to_filter:
                grads = [self._load(pointer) for pointer in pointers]
                if self.kernel.bias:
                    there = bank.offset(self.taps * self.lanes)
                    total = there.load(self.lanes, aligned=True)
                    for grad in grads:
                        total = total + grad
                    there.store(total, aligned=True)
                self.tiles.sum_products(body, grads)
            else:
                sums = self.tiles.gather_products(body)
                bias = self._bias(chunk, at)
                for pointer, total in zip(pointers, sums, strict=True):
                    self._store(pointer, total + bias if bias else total)

    def _load(self, pointer: Pointer) -> Vector:
        return pointer.load(self.lanes) if self.by_channel else self.rows.load(pointer)

    def _store(self, pointer: Pointer, value: Vector) -> None:
        if self.by_channel:
            pointer.store(value)
        else:
            self.rows.store(pointer, value)
