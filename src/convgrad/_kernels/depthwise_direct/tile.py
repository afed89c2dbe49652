"""One register tile of `depthwise_direct`: R groups of rows x T groups of columns x some vectors of channels.

The frame around it (items, rows, columns, weights and sums) is in `kernel`. Here are the bodies: which
source cells a tile reads, and the products of each with the taps that want it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from ..._compiler.codegen import (
    Bool,
    Int,
    KernelBuilder,
    Pointer,
    Variable,
    Vector,
    arithmetic,
    element,
)
from ..._problem.convolution import Kind
from ..shared.gather import Footprint
from .words import DirectKernel

_INDEXED = 4
"""Columns of a row reached by index; see `_along`."""


@dataclass(frozen=True)
class TilePosition:
    """One position of a tile relative to the image borders."""

    at_start: bool
    at_end: bool
    width: int
    """Groups of columns."""


@dataclass(frozen=True)
class Strip:
    """One pass over the columns: R groups of rows."""

    q: Int
    source_row: Int
    source: Pointer
    target: Pointer
    first: Int
    width: Int
    inside: dict[int, Bool]
    banks: tuple[Pointer, ...] = ()
    """Filter gradient: the sums of the run that each of its rows belongs to; behind them those of the unit, where the
    tile at the right border ends a run."""


@dataclass(frozen=True)
class _Body:
    """One tile at one vector of channels."""

    strip: Strip
    columns: TilePosition
    rows: dict[int, Pointer]
    targets: list[Pointer]
    banks: tuple[Pointer, ...]
    """Weights, or the sums of each row's run."""
    bias: Pointer | None
    row_reads: dict[int, list[tuple[int, int]]]
    col_reads: dict[int, list[tuple[int, int]]]


class TileWriter:
    """Writes tiles of one kernel."""

    def __init__(
        self,
        k: KernelBuilder,
        kernel: DirectKernel,
        word: dict[str, Int],
        bank: Pointer,
        bias: Pointer | None,
    ) -> None:
        self.k, self.kernel, self.tile, self.word, self.bank = k, kernel, kernel.tile, word, bank
        self.bias = bias
        self.number = arithmetic(element(kernel.dtype))
        self.lanes = k.lanes(self.number)
        self.reach = self.lanes * (2 if kernel.alternate else 1)
        """Channels from the first lane of a vector to the last."""
        self.to_filter = kernel.kind is Kind.FILTER_GRADIENT
        self.taps = kernel.window[0] * kernel.window[1]
        self.bank_rows = self.taps + (self.to_filter and kernel.bias)
        """Vectors of the bank for one of channels: behind the sums of the taps, that of out_backprop itself."""
        self.channels = k.i64(kernel.channels) if kernel.channels else word["channels"]
        self.source_pitch = word["source_cols"] * self.channels
        self.target_pitch = word["target_cols"] * self.channels
        self.multiples: dict[int, Int] = {}

    def write(self, strip: Strip, q: Int, columns: TilePosition) -> None:
        """Walk the channels of one tile of columns."""
        k = self.k
        source = strip.source.offset(q * self.kernel.cols.step * self.channels)
        target = strip.target.offset(q * len(self.kernel.cols.phases) * self.channels)
        reads = self.reads(
            self.kernel.rows, self.tile.rows, TilePosition(False, False, self.tile.rows)
        )
        rows = {offset: source.offset(self.source_pitch * offset) for offset in sorted(reads)}
        targets = [
            target.offset(self.target_pitch * row)
            for row in range(self.tile.rows * len(self.kernel.rows.phases))
        ]
        step = max(self.reach, self.lanes * self.tile.vectors)
        with k.loop(0, strip.width, step, nonempty=True) as c:
            place = self.clamped(c, strip.first) if self.tile.vectors == 1 else c
            body = _Body(
                strip=strip,
                columns=columns,
                rows={offset: pointer.offset(place) for offset, pointer in rows.items()},
                targets=[pointer.offset(place) for pointer in targets],
                banks=tuple(
                    bank.offset(c * self.bank_rows) for bank in strip.banks or (self.bank,)
                ),
                bias=self.bias.offset(strip.first + place) if self.bias else None,
                row_reads=reads,
                col_reads=self.reads(self.kernel.cols, columns.width, columns),
            )
            self._prefetch(body)
            if self.to_filter:
                self._sum_products(body)
            else:
                self._gather_products(body)

    def clamped(self, c: Int, first: Int) -> Int:
        """Return where vector `c` of the chunk starts: the last one ends at the last channel."""
        return self.k.min(c, self.channels - self.reach - first)

    # Rows and columns

    def reads(
        self, axis: Footprint, size: int, where: TilePosition
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

    def _cells(self, columns: TilePosition) -> list[int]:
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
        if self.channels.value is not None:
            return self.channels * columns
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
        """Forward and input gradient: compute a tile and store it."""
        vectors = list(range(self.tile.vectors))
        sums = self._gathered(body, vectors)
        if self.kernel.alternate and vectors == [0]:
            sums |= self._gathered(body, [1])
        for total in sums.values():
            # A sum that underflows may end with -0, or with +0 where a zero beside the image is added to it.
            total.value = total.value + self.k.zeros(self.number, self.lanes)
        if body.bias:
            added = {z: self.load(body.bias, z) for z in {z for _, _, z in sums}}
            for (_, _, z), total in sums.items():
                total.value = total.value + added[z]
        for row, pointer in enumerate(body.targets):
            with self._row_exists(body, row):
                for cell, place in self._along(pointer, self._cells(body.columns)).items():
                    if self.kernel.alternate:
                        place.store_alternate(sums[row, cell, 0].value, sums[row, cell, 1].value)
                        continue
                    for z in vectors:
                        place.offset(z * self.lanes).store(sums[row, cell, z].value)

    def _gathered(
        self, body: _Body, vectors: list[int]
    ) -> dict[tuple[int, int, int], Variable[Vector]]:
        """Return the sums of a tile by row, column and vector: all in registers, source rows outermost."""
        k = self.k
        cells = self._cells(body.columns)
        zero = k.zeros(self.number, self.lanes)
        sums = {
            (row, cell, z): k.variable(zero)
            for row in range(len(body.targets))
            for cell in cells
            for z in vectors
        }

        def one_row(offset: int) -> None:
            weights: dict[tuple[int, int], Vector] = {}
            sources = self._along(body.rows[offset], list(body.col_reads))
            for column, uses in sorted(body.col_reads.items()):
                for z in vectors:
                    x = self.load(sources[column], z)
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
        return sums

    def load(self, pointer: Pointer, z: int) -> Vector:
        """Read one vector of the channels that begin at an address."""
        if self.kernel.alternate:
            return pointer.load_alternate(self.lanes, z)
        return pointer.offset(z * self.lanes).load(self.lanes)

    def _sum_products(self, body: _Body) -> None:
        """Filter gradient: the tile of out_backprop in registers, sums loaded from and stored to L1.

        Each row of the tile belongs to a run of its own, and its columns come in order: a sum goes on where the tile
        before left it.
        """
        tile = self.tile
        grads: dict[tuple[int, int, int], Vector] = {}
        for row, pointer in enumerate(body.targets):
            for cell, place in self._along(pointer, self._cells(body.columns)).items():
                for z in range(tile.vectors):
                    grads[row, cell, z] = place.offset(z * self.lanes).load(self.lanes)
        if self.kernel.bias:
            for row in range(tile.rows):
                for z in range(tile.vectors):
                    total = self._begun(body, self.taps, z, row)
                    for (at, _, each), value in grads.items():
                        total = total + value if (at, each) == (row, z) else total
                    self._leave(body, self.taps, z, row, total)
        if tile.order == "resident" or not (body.col_reads or self.kernel.row_runs):
            self._sum_resident(body, grads)
        else:
            self._guarded_rows(body, lambda offset: self._sum_row(body, grads, offset))

    def _sum_row(self, body: _Body, grads: dict[tuple[int, int, int], Vector], offset: int) -> None:
        """Add the products of one source row."""
        live: dict[tuple[int, int, int], Vector] = {}
        across = self.kernel.window[1]
        last = {
            tap: column for column in sorted(body.col_reads) for _, tap in body.col_reads[column]
        }
        sources = self._along(body.rows[offset], list(body.col_reads))
        for column, uses in sorted(body.col_reads.items()):
            for z in range(self.tile.vectors):
                x = sources[column].offset(z * self.lanes).load(self.lanes)
                for row, tap_h in body.row_reads[offset]:
                    for cell, tap_w in uses:
                        key = (row, tap_h * across + tap_w, z)
                        if key not in live:
                            live[key] = self._begun(body, key[1], z, row)
                        live[key] = self.k.fma(x, grads[row, cell, z], live[key])
            for row, tap, z in list(live):
                if last[tap % across] == column:
                    self._leave(body, tap, z, row, live.pop((row, tap, z)))
        if self._begins(body) or self._ends(body):
            for row, tap_h in body.row_reads[offset]:
                for tap in (tap_h * across + tap_w for tap_w in range(across)):
                    for z in range(self.tile.vectors if tap % across not in last else 0):
                        self._leave(body, tap, z, row, self._begun(body, tap, z, row))

    def _begins(self, body: _Body) -> bool:
        """Tell whether a tile is the first of a run, which is a row."""
        return self.kernel.row_runs and body.columns.at_start

    def _ends(self, body: _Body) -> bool:
        return self.kernel.row_runs and body.columns.at_end

    def _begun(self, body: _Body, tap: int, z: int, row: int) -> Vector:
        """Return a sum of a run as the tile before left it."""
        if self._begins(body):
            return self.k.zeros(self.number, self.lanes)
        return self._bank(body, tap, z, row).load(self.lanes, aligned=True)

    def _leave(self, body: _Body, tap: int, z: int, row: int, total: Vector) -> None:
        """Store a sum for the next tile; the last tile of a run adds it to those of the unit."""
        there = self._bank(body, tap, z, row)
        if self._ends(body):
            there = self._bank(body, tap, z, len(body.banks) - 1)
            total = there.load(self.lanes, aligned=True) + total
        there.store(total, aligned=True)

    def _sum_resident(self, body: _Body, grads: dict[tuple[int, int, int], Vector]) -> None:
        """Filter gradient of a small tile: all sums stay in registers from the first row to the last."""
        k = self.k
        sums = {
            (row, tap, z): k.variable(self._bank(body, tap, z, row).load(self.lanes, aligned=True))
            for row in range(self.tile.rows)
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
                            total = sums[row, tap_h * self.kernel.window[1] + tap_w, z]
                            total.value = k.fma(x, grads[row, cell, z], total.value)

        self._guarded_rows(body, one_row)
        for (row, tap, z), total in sums.items():
            self._bank(body, tap, z, row).store(total.value, aligned=True)

    def _bank(self, body: _Body, tap: int, z: int, row: int = 0) -> Pointer:
        return body.banks[row].offset((z * self.bank_rows + tap) * self.lanes)

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
