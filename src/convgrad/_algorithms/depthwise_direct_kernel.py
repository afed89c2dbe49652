"""The kernel of `depthwise_direct`: register tiles over channels-last images, straight from and to the caller's memory.

One tile is R groups of rows x T groups of columns x `vectors` vectors of channels. Every source row of its window is
read once. Rows that can fall outside the image are guarded by one branch each; columns never are: tiles at the left
and right border have bodies of their own in which the taps outside the image do not exist. So the code depends on the
windows (`Footprint`) and the tile, while batch, rows, columns and channels are run-time words.

::

    item (forward, input gradient) = (image, block of rows, chunk of channels)
      weights of the chunk -> scratch[vector][tap][lane]
      for q in rows step R:  for tile of columns:  for vector of channels:
        for source row r of the window (guarded):  for source column j:  x = load
          acc[row, column] += x * w[tap]          for every (row, column, tap) that reads (r, j)
        store acc

    item (filter gradient) = (share of the units, chunk of channels); unit = (image, block of rows)
      sums[vector][tap][lane] = 0;  for unit:  acc[vector][tap][lane] = 0
        for q, tile, vector: y = tile of out_backprop in registers
          for source row, column: x = load;  acc[tap] += x * y[row, column]
        sums += acc
      sums -> partial[share][tap][channel]

Filter gradients are summed in levels, so that no chain of additions is long: the products of a tile, the tiles of a
unit (a few hundred pixels), and the units in a wider type (`partial_type`). The first level costs nothing: it starts
with a product instead of loading a sum, and the sum comes in by an addition from memory.

Channels are covered by whole vectors; the last one is moved back to end at the last channel, and what it shares with
its neighbour is computed twice, with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal

from .._codegen import (
    Bool,
    Element,
    Int,
    IntLike,
    KernelBuilder,
    Pointer,
    Vector,
    compute,
    element,
    symbol,
)
from .._kernel import KernelSource
from .._problem import Kind
from .._targets import Target
from .gather import Footprint
from .reduce import partial_type

WORDS = (
    "source_rows",
    "source_cols",
    "target_rows",
    "target_cols",
    "groups_h",
    "groups_w",
    "channels",
    "chunk",
    "chunks",
    "row_block",
    "row_blocks",
    "units",
    "shares",
)
"""The run-time words behind the three pointers; units and shares are those of the filter gradient."""


_INDEXED = 4
"""Columns of a row reached by index; see `_along`."""


@dataclass(frozen=True)
class Tile:
    """How much of the target is held in registers, and in which order its window is walked."""

    rows: int
    """Groups of rows."""
    cols: int
    """Groups of columns."""
    vectors: int = 1
    """Vectors of channels."""
    prefetch: int = 0
    """Elements ahead in the same row to ask for, only in rows new to the window; 0 for none."""
    order: Literal["rows", "columns", "resident"] = "rows"
    """Filter gradient: which sums are in registers: those of one source row, those of one source column, or all."""


@dataclass(frozen=True)
class DirectKernel:
    """Identity of a kernel: all that shapes its code besides the target."""

    kind: Kind
    dtype: str
    rows: Footprint
    cols: Footprint
    window: tuple[int, int]
    tile: Tile
    single: bool
    """Whether one tile spans all columns, so that both borders lie in it."""


def emit(kernel: DirectKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    return _Writer(kernel, target).write()


@dataclass(frozen=True)
class _Columns:
    """One position of a tile relative to the image borders."""

    at_start: bool
    at_end: bool
    width: int
    """Groups of columns."""


class _Writer:
    """Writes one kernel; methods go from the outermost loop to the innermost body."""

    def __init__(self, kernel: DirectKernel, target: Target) -> None:
        self.kernel = kernel
        self.tile = tile = kernel.tile
        name = {
            Kind.FORWARD: "fwd",
            Kind.INPUT_GRADIENT: "bwd_input",
            Kind.FILTER_GRADIENT: "bwd_filter",
        }
        size = f"{tile.rows}x{tile.cols}x{tile.vectors}"
        title = symbol(f"depthwise_direct_{name[kernel.kind]}", kernel.dtype, size, target, kernel)
        self.k = k = KernelBuilder(title, target)
        self.storage: Element = element(kernel.dtype)
        self.number: Element = compute(self.storage)
        self.lanes = k.lanes(self.number)
        self.to_filter = kernel.kind is Kind.FILTER_GRADIENT
        self.taps = kernel.window[0] * kernel.window[1]
        # The second pointer is the filter or, for the filter gradient, out_backprop, which stands at the target.
        self.source = k.arg_pointer(0, self.storage)
        self.filter = k.arg_pointer(1, self.storage)
        self.target = k.arg_pointer(1 if self.to_filter else 2, self.storage)
        self.word = {word: k.arg_i64(3 + i) for i, word in enumerate(WORDS)}
        self.channels = self.word["channels"]
        self.source_pitch = self.word["source_cols"] * self.channels
        self.target_pitch = self.word["target_cols"] * self.channels
        self.multiples: dict[int, Int] = {}
        self.bank = k.scratch(self.number, 0)
        """Weights, or the running sums of the filter gradient, as [vector][tap][lane]."""

    def write(self) -> KernelSource:
        k = self.k
        with k.loop(k.begin, k.end) as item:
            chunk = item % self.word["chunks"]
            rest = item // self.word["chunks"]
            first = chunk * self.word["chunk"]
            # The chunk's channels, rounded up to whole vectors.
            left = (self.channels + (self.lanes - 1)) // self.lanes * self.lanes - first
            width = k.min(left, self.word["chunk"])
            if self.to_filter:
                self._share(rest, first, width)
            else:
                self._pack_weights(first, width)
                blocks = self.word["row_blocks"]
                self._rows(rest // blocks, rest % blocks, first, width)
        return k.finish()

    # The filter gradient's frame

    def _share(self, share: Int, first: Int, width: Int) -> None:
        """Add up the units of one share, block by block, and leave the sums in its row of partial sums."""
        k, units, shares = self.k, self.word["units"], self.word["shares"]
        size = width * self.taps
        wide = element(partial_type(self.kernel.dtype))
        sums = self.bank.offset(self.word["chunk"] * self.taps).as_element(wide)
        zero = k.zeros(self.number, self.lanes)
        with k.loop(0, size, self.lanes, nonempty=True) as i:
            sums.offset(i).store(k.zeros(wide, self.lanes))
        begin, end = share * units // shares, (share + 1) * units // shares
        with k.loop(begin, end, nonempty=True) as unit:
            with k.loop(0, size, self.lanes, nonempty=True) as i:
                self.bank.offset(i).store(zero, aligned=True)
            blocks = self.word["row_blocks"]
            self._rows(unit // blocks, unit % blocks, first, width)
            with k.loop(0, size, self.lanes, nonempty=True) as i:
                block = self.bank.offset(i).load(self.lanes, aligned=True)
                if wide is not self.number:
                    block = block.cast("fpext", wide)
                sums.offset(i).store(sums.offset(i).load(self.lanes) + block)
        partial = k.arg_pointer(2, wide).offset(share * (self.channels * self.taps) + first)
        with k.loop(0, width, self.lanes, nonempty=True) as c:
            place = self._clamped(c, first)
            for tap in range(self.taps):
                value = sums.offset(c * self.taps + tap * self.lanes).load(self.lanes)
                partial.offset(self.channels * tap + place).store(value)

    # Forward and input gradient

    def _pack_weights(self, first: Int, width: Int) -> None:
        k = self.k
        with k.loop(0, width, self.lanes, nonempty=True) as c:
            place = self._clamped(c, first) + first
            for tap in range(self.taps):
                value = self.filter.offset(self.channels * tap + place).load(self.lanes)
                self.bank.offset(c * self.taps + tap * self.lanes).store(value, aligned=True)

    def _clamped(self, c: Int, first: Int) -> Int:
        """Return where vector `c` of the chunk starts: the last one ends at the last channel."""
        return self.k.min(c, self.channels - self.lanes - first)

    # Rows and columns

    def _rows(self, image: Int, block: Int, first: Int, width: Int) -> None:
        k, groups = self.k, self.word["groups_h"]
        source = self.source.offset(image * (self.word["source_rows"] * self.source_pitch) + first)
        target = self.target.offset(image * (self.word["target_rows"] * self.target_pitch) + first)
        start = block * self.word["row_block"]
        stop = k.min(start + self.word["row_block"], groups)
        with k.loop(start, stop, self.tile.rows) as row:
            # The last tile is moved up; rows computed twice get the same bits. The filter gradient must not
            # count twice: its plan has whole tiles only.
            q = row if self.to_filter else k.min(row, groups - self.tile.rows)
            source_row = q * self.kernel.rows.step
            strip = _Strip(
                q=q,
                source_row=source_row,
                source=source.offset(source_row * self.source_pitch),
                target=target.offset(q * (len(self.kernel.rows.phases)) * self.target_pitch),
                first=first,
                width=width,
                inside=self._row_guards(source_row),
            )
            self._columns(strip)

    def _row_guards(self, source_row: Int) -> dict[int, Bool]:
        """Return, for every source row of the window that may lie outside, whether it lies inside."""
        rows, size = self.kernel.rows, self.tile.rows
        return {
            offset: (source_row + offset).inside(self.word["source_rows"])
            for offset in self._reads(rows, size, _Columns(False, False, size))
            if offset < 0 or rows.past_end(offset, size - 1)
        }

    def _columns(self, strip: _Strip) -> None:
        """Cover the columns: a tile at the left border, tiles inside, a tile at the right border."""
        k, cols, size = self.k, self.kernel.cols, self.tile.cols
        groups = self.word["groups_w"]
        if self.kernel.single:
            self._tile(strip, k.i64(0), _Columns(True, True, size))
            return
        inner: IntLike = 0
        if cols.before:
            self._tile(strip, k.i64(0), _Columns(True, False, size))
            inner = size
        stop = groups - size if cols.after else groups
        inside = _Columns(False, False, size)
        if self.to_filter:
            whole = stop - (stop - inner) % size
            with k.loop(inner, whole, size) as q:
                self._tile(strip, q, inside)
            if size > 1:
                with k.loop(whole, stop) as q:
                    self._tile(strip, q, _Columns(False, False, 1))
        else:
            last = groups - (cols.after + size)
            with k.loop(inner, stop, size) as q:
                self._tile(strip, k.min(q, last), inside)
        if cols.after:
            self._tile(strip, groups - size, _Columns(False, True, size))

    def _tile(self, strip: _Strip, q: Int, columns: _Columns) -> None:
        """Walk the channels of one tile of columns."""
        k = self.k
        source = strip.source.offset(q * self.kernel.cols.step * self.channels)
        target = strip.target.offset(q * len(self.kernel.cols.phases) * self.channels)
        reads = self._reads(
            self.kernel.rows, self.tile.rows, _Columns(False, False, self.tile.rows)
        )
        rows = {offset: source.offset(self.source_pitch * offset) for offset in sorted(reads)}
        targets = [
            target.offset(self.target_pitch * row)
            for row in range(self.tile.rows * len(self.kernel.rows.phases))
        ]
        lanes = self.lanes * self.tile.vectors
        with k.loop(0, strip.width, lanes, nonempty=True) as c:
            place = self._clamped(c, strip.first) if self.tile.vectors == 1 else c
            body = _Body(
                strip=strip,
                columns=columns,
                rows={offset: pointer.offset(place) for offset, pointer in rows.items()},
                targets=[pointer.offset(place) for pointer in targets],
                bank=self.bank.offset(c * self.taps),
                row_reads=reads,
                col_reads=self._reads(self.kernel.cols, columns.width, columns),
            )
            self._prefetch(body)
            if self.to_filter:
                self._sum_products(body)
            else:
                self._gather_products(body)

    def _reads(
        self, axis: Footprint, size: int, where: _Columns
    ) -> dict[int, list[tuple[int, int]]]:
        """Map each source offset of a tile to the (target cell of the tile, tap) pairs that read it.

        Taps known to lie outside the image at a border are left out.
        """
        reads: dict[int, list[tuple[int, int]]] = {}
        for group in range(size):
            for phase, taps in enumerate(axis.phases):
                if where.at_end and axis.ragged and group == size - 1 and phase >= axis.ragged:
                    continue
                for tap in taps:
                    offset = group * axis.step + tap.offset
                    if where.at_start and offset < 0:
                        continue
                    if where.at_end and axis.past_end(tap.offset, size - 1 - group):
                        continue
                    cell = group * len(axis.phases) + phase
                    reads.setdefault(offset, []).append((cell, tap.number))
        return reads

    def _cells(self, columns: _Columns) -> list[int]:
        """Return the target columns of a tile that exist."""
        phases, ragged = len(self.kernel.cols.phases), self.kernel.cols.ragged
        count = columns.width * phases
        return list(range(count - phases + ragged if columns.at_end and ragged else count))

    def _along(self, pointer: Pointer, wanted: list[int]) -> dict[int, Pointer]:
        """Return pointers to the wanted columns of a row.

        A few columns are reached by index, which an x86 address holds; that was worth 4% of a 4x2 tile. For many,
        stepping from one to the next keeps one address live instead of one per column.
        """
        if len(wanted) <= _INDEXED:
            return {column: pointer.offset(self._multiple(column)) for column in wanted}
        found: dict[int, Pointer] = {}
        at, here = 0, pointer
        for column in sorted(wanted):
            here = here.offset(self.channels * (column - at))
            at, found[column] = column, here
        return found

    def _multiple(self, columns: int) -> Int:
        """Return the elements in some columns, computed once at the top of the kernel."""
        if columns not in self.multiples:
            text = self.channels.text
            name = self.k.emitter.once(f"mul i64 {text}, {columns}")
            self.multiples[columns] = Int(self.k.emitter, name)
        return self.multiples[columns] if columns else self.k.i64(0)

    def _prefetch(self, body: _Body) -> None:
        ahead = self.tile.prefetch
        if not ahead:
            return
        new = sorted(body.rows)[-self.tile.rows * self.kernel.rows.step :]
        for offset in new:
            columns = range(body.columns.width * self.kernel.cols.step)
            for pointer in self._along(body.rows[offset], list(columns)).values():
                pointer.offset(ahead).prefetch()
        if self.to_filter:
            for target in body.targets:
                for pointer in self._along(target, self._cells(body.columns)).values():
                    pointer.offset(ahead).prefetch()

    # The innermost bodies

    def _gather_products(self, body: _Body) -> None:
        """Forward and input gradient: all sums in registers, source rows outermost."""
        k, tile = self.k, self.tile
        cells = self._cells(body.columns)
        zero = k.zeros(self.number, self.lanes)
        sums = {
            (row, cell, z): k.variable(zero)
            for row in range(len(body.targets))
            for cell in cells
            for z in range(tile.vectors)
        }

        def one_row(offset: int) -> None:
            weights: dict[tuple[int, int], Vector] = {}
            sources = self._along(body.rows[offset], list(body.col_reads))
            for column, uses in sorted(body.col_reads.items()):
                for z in range(tile.vectors):
                    x = sources[column].offset(z * self.lanes).load(self.lanes)
                    for row, tap_h in body.row_reads[offset]:
                        for cell, tap_w in uses:
                            tap = tap_h * self.kernel.window[1] + tap_w
                            if (tap, z) not in weights:
                                weights[tap, z] = self._bank(body, tap, z).load(
                                    self.lanes, aligned=True
                                )
                            total = sums[row, cell, z]
                            total.value = k.fma(x, weights[tap, z], total.value)

        self._guarded_rows(body, one_row)
        for row, pointer in enumerate(body.targets):
            with self._row_exists(body, row):
                for cell, place in self._along(pointer, cells).items():
                    for z in range(tile.vectors):
                        place.offset(z * self.lanes).store(sums[row, cell, z].value)

    def _sum_products(self, body: _Body) -> None:
        """Filter gradient: the tile of out_backprop in registers, sums loaded from and stored to L1."""
        k, tile = self.k, self.tile
        grads: dict[tuple[int, int, int], Vector] = {}
        for row, pointer in enumerate(body.targets):
            for cell, place in self._along(pointer, self._cells(body.columns)).items():
                for z in range(tile.vectors):
                    grads[row, cell, z] = place.offset(z * self.lanes).load(self.lanes)

        def add(offsets: list[int], columns: list[int]) -> None:
            """Add the products of some source rows and columns, columns outermost."""
            live: dict[tuple[int, int], Vector] = {}
            last = {tap: column for column in columns for _, tap in body.col_reads[column]}
            sources = {offset: self._along(body.rows[offset], columns) for offset in offsets}
            for column in columns:
                for offset in offsets:
                    for z in range(tile.vectors):
                        x = sources[offset][column].offset(z * self.lanes).load(self.lanes)
                        for row, tap_h in body.row_reads[offset]:
                            for cell, tap_w in body.col_reads[column]:
                                tap = tap_h * self.kernel.window[1] + tap_w
                                y = grads[row, cell, z]
                                live[tap, z] = (
                                    k.fma(x, y, live[tap, z]) if (tap, z) in live else x * y
                                )
                for tap, z in list(live):
                    if last[tap % self.kernel.window[1]] == column:
                        place = self._bank(body, tap, z)
                        total = place.load(self.lanes, aligned=True) + live.pop((tap, z))
                        place.store(total, aligned=True)

        columns = sorted(body.col_reads)
        if tile.order == "columns" and columns:
            sure = [offset for offset in body.rows if offset not in body.strip.inside]
            if sure:
                add(sure, columns)
            for offset, inside in body.strip.inside.items():
                with k.when(inside):
                    add([offset], columns)
        elif tile.order == "rows" and columns:
            self._guarded_rows(body, lambda offset: add([offset], columns))
        else:
            self._sum_resident(body, grads)

    def _sum_resident(self, body: _Body, grads: dict[tuple[int, int, int], Vector]) -> None:
        """Filter gradient of a small tile: all sums stay in registers from the first row to the last."""
        k = self.k
        sums = {
            (tap, z): k.variable(self._bank(body, tap, z).load(self.lanes, aligned=True))
            for tap in range(self.taps)
            for z in range(self.tile.vectors)
        }

        def one_row(offset: int) -> None:
            sources = self._along(body.rows[offset], list(body.col_reads))
            for column, uses in sorted(body.col_reads.items()):
                for z in range(self.tile.vectors):
                    x = sources[column].offset(z * self.lanes).load(self.lanes)
                    for row, tap_h in body.row_reads[offset]:
                        for cell, tap_w in uses:
                            total = sums[tap_h * self.kernel.window[1] + tap_w, z]
                            total.value = k.fma(x, grads[row, cell, z], total.value)

        self._guarded_rows(body, one_row)
        for (tap, z), total in sums.items():
            self._bank(body, tap, z).store(total.value, aligned=True)

    def _bank(self, body: _Body, tap: int, z: int) -> Pointer:
        return body.bank.offset((z * self.taps + tap) * self.lanes)

    def _guarded_rows(self, body: _Body, one_row: Callable[[int], None]) -> None:
        for offset in sorted(body.rows):
            if offset in body.strip.inside:
                with self.k.when(body.strip.inside[offset]):
                    one_row(offset)
            else:
                one_row(offset)

    def _row_exists(self, body: _Body, row: int) -> AbstractContextManager[None]:
        """Guard the phases that the last group of rows does not have."""
        rows = self.kernel.rows
        if rows.ragged and row % len(rows.phases) >= rows.ragged:
            here = body.strip.q * len(rows.phases) + row
            return self.k.when(here < self.word["target_rows"])
        return nullcontext()


@dataclass(frozen=True)
class _Strip:
    """One pass over the columns: R groups of rows."""

    q: Int
    source_row: Int
    source: Pointer
    target: Pointer
    first: Int
    width: Int
    inside: dict[int, Bool]


@dataclass(frozen=True)
class _Body:
    """One tile at one vector of channels."""

    strip: _Strip
    columns: _Columns
    rows: dict[int, Pointer]
    targets: list[Pointer]
    bank: Pointer
    row_reads: dict[int, list[tuple[int, int]]]
    col_reads: dict[int, list[tuple[int, int]]]
