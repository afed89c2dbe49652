"""The table of a plan of `dense_direct`: blocks, their pieces along each axis, and the taps of each class.

The geometry is worked out in `axis`. Distances along rows are in rows and along columns in columns, because how far a
row is from the next may depend on the block; only the places of taps along a row of the source are in elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from ..._problem.sums.gather import GatherContract
from ..shared.words import FARTHEST, in_order, narrow
from .axis import AxisTable

PIECE = ("first", "last", "count", "source", "source_step", "target", "target_step")
"""What the table says of a piece: where its entries are, its cells, the first one and how far it is to the next."""
ROW_ENTRY = 3
"""Numbers of an entry of a row: its place in the filter, its displacement in the source in rows, its first run."""
COL_ENTRY = 4
"""Numbers of an entry of a column: place in the filter, displacement in the source, products, run in the row."""


@dataclass(frozen=True)
class Taps:
    """How the taps of a filter lie in the packed one, and columns in the source."""

    row: int
    """Elements from one row of taps to the next."""
    col: int
    cols: int
    depth: int
    """Channels of one tap."""
    woven: int
    """Groups whose channels alternate in a staged pixel."""
    reversed: bool
    """Whether columns are packed last first, so that an input gradient too walks its source forwards."""
    source_col: int
    """Elements from one column of the source to the next."""
    contract: GatherContract
    rows: int
    """Of the window."""


class BlockTables:
    """All tables of one plan, in one list of numbers with the places where each starts."""

    def __init__(self, rows: AxisTable, cols: AxisTable, taps: Taps) -> None:
        self._taps = taps
        # A list at 0 is none.
        self.numbers: list[int] = [0] if any(used is not None for used in rows.used) else []
        lists = [0 if used is None else self._place(used.tolist()) for used in rows.used]
        shared = _SharedEntries(self.numbers, ROW_ENTRY, 1)
        self.rows_at = self._axis(rows, lambda taps: shared.find(self._rows(taps)), lists)
        others = _SharedEntries(self.numbers, COL_ENTRY, taps.source_col)
        none = [0] * len(cols.used)
        self.cols_at = self._axis(cols, lambda taps: others.find(self._cols(taps)), none)

    @cached_property
    def far(self) -> bool:
        """Whether the numbers need 64 bits: in filters and rows of more than two billion elements."""
        return max(map(abs, self.numbers), default=0) > FARTHEST

    @cached_property
    def data(self) -> bytes:
        return np.array(self.numbers, np.int64).tobytes() if self.far else narrow(self.numbers)

    def _place(self, numbers: list[int]) -> int:
        """Append to the table and return where."""
        start = len(self.numbers)
        self.numbers += numbers
        return start

    def _axis(
        self,
        axis: AxisTable,
        entries_of: Callable[[list[tuple[int, int]]], tuple[int, int, int]],
        lists: list[int],
    ) -> int:
        """Write entries, pieces and blocks of an axis and return where the blocks are."""
        pieces = []
        for span in axis.examples:
            words: list[int] = []
            found = axis.pieces(span)
            known: dict[int, tuple[int, int, int]] = {}
            # The longest lists first: those of windows that the edges cut are parts of them.
            classes = {each.number for each in found}
            for number in sorted(classes, key=lambda n: (-len(axis.entries[n]), n)):
                known[number] = entries_of(axis.entries_of(span, number))
            for each in found:
                first, last, before = known[each.number]
                words += in_order(
                    PIECE,
                    first=first,
                    last=last,
                    count=each.cells,
                    source=each.source - before,
                    source_step=each.source_step,
                    target=each.target,
                    target_step=each.target_step,
                )
            start = self._place(words)
            pieces.append((start, len(self.numbers)))
        return self._place(axis.words(pieces, lists))

    def _rows(self, taps: list[tuple[int, int]]) -> list[tuple[int, ...]]:
        it = self._taps
        found: list[tuple[int, ...]] = []
        for tap, moved in reversed(taps) if it.reversed else taps:
            place = (it.rows - 1 - tap) // it.contract.row_spacing if it.reversed else tap
            found.append((tap * it.row, moved, place * it.contract.row_runs))
        return found

    def _cols(self, taps: list[tuple[int, int]]) -> list[tuple[int, ...]]:
        """Return the columns of a class; neighbours that read neighbours are one entry if nothing lies between."""
        it = self._taps
        contract = it.contract
        together = it.source_col == it.depth * it.woven and contract.blocks == 1
        together = together and it.depth % contract.chains == 0
        entries: list[tuple[int, ...]] = []
        for tap, moved in reversed(taps) if it.reversed else taps:
            place = (it.cols - 1 - tap if it.reversed else tap) * it.col
            number = (it.cols - 1 - tap) // contract.col_spacing if it.reversed else tap
            run = number // contract.taps if contract.levels else 0
            displacement = moved * it.source_col
            if together and entries:
                first, from_, length, before = entries[-1]
                count = length // it.depth
                wanted = (first + count * it.col, from_ + length * it.woven, before)
                if (place, displacement, run) == wanted:
                    entries[-1] = (first, from_, length + it.depth, run)
                    continue
            entries.append((place, displacement, it.depth, run))
        return entries


class _SharedEntries:
    """Lists of entries, each written once; what is part of a list that is there already is not written again."""

    def __init__(self, numbers: list[int], size: int, unit: int) -> None:
        """`size` are the numbers of an entry, `unit` is what a displacement by one cell is in them."""
        self._numbers, self._size, self._unit = numbers, size, unit
        self._known: dict[tuple[int, ...], list[int]] = {}
        """Where entries stand, by all of them but their displacement."""

    def find(self, entries: list[tuple[int, ...]]) -> tuple[int, int, int]:
        """Return where entries start and end, and by how many cells they are displaced there."""
        numbers, size = self._numbers, self._size
        if not entries:
            return 0, 0, 0
        for at in self._known.get(_but_displacement(entries[0]), ()):
            shift = numbers[at + 1] - entries[0][1]
            wanted = [*chain.from_iterable(entries)]
            wanted[1::size] = [displacement + shift for displacement in wanted[1::size]]
            if numbers[at : at + len(wanted)] == wanted:
                return at, at + len(wanted), shift // self._unit
        start = len(numbers)
        for i, entry in enumerate(entries):
            numbers += entry
            self._known.setdefault(_but_displacement(entry), []).append(start + i * size)
        return start, len(numbers), 0


def _but_displacement(entry: tuple[int, ...]) -> tuple[int, ...]:
    return entry[:1] + entry[2:]
