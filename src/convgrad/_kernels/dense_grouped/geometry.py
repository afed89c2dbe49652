"""The geometry of `dense_grouped`: which taps of which source cells a target cell reads, axis by axis.

Cells along an axis whose windows keep the same taps inside the image form a *class*: from the first tap on they walk
the source by the same displacements. A pixel's class is the pair of its row's and its column's, and a tile holds pixels
of one class, so that nothing outside the image is read or multiplied. The table has a few numbers per row and per
column of the target; kernels make the list of a block's pixels from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..._problem.sums.gather import GatherContract
from ..shared.gather import Gather


class _Step(NamedTuple):
    """A tap that a cell reads."""

    tap: int
    """Its place in the packed filter."""
    moved: int
    """Cells from the first of them."""
    number: int
    """Among the taps of its phase, those beside the image included."""


_Walk = tuple[_Step, ...]

ROW_ENTRY = 3
"""Numbers of an entry of a class of rows: place in the packed filter, displacement in the staged source, first run."""
COL_ENTRY = 4
"""Numbers of an entry of columns: place, displacement, products, and run in the row. Neighbouring taps may be one."""


@dataclass(frozen=True)
class RowBlock:
    """Neighbouring rows of the target, and the rows of the source they read."""

    start: int
    count: int
    source: int
    source_count: int


class AxisClasses:
    """One axis: the class of each target cell, and the source cell its first tap reads."""

    def __init__(self, gather: Gather) -> None:
        shape = gather.footprint
        taps = [tap.number for phase in shape.phases for tap in phase]
        # Taps of a phase lie together, in the order their cells do: neighbours are one run of products.
        self.order = taps
        """The taps in the order of the packed filter; each belongs to one phase."""
        place = {tap: i for i, tap in enumerate(taps)}
        self.walks: list[_Walk] = []
        self.classes: list[int] = []
        self.base: list[int] = []
        self.last: list[int] = []
        """The last source cell of each target cell; -1 where it reads none."""
        known: dict[_Walk, int] = {}
        for cell in range(gather.target):
            q, phase = divmod(cell, len(shape.phases))
            at = [
                _Step(place[tap], shape.step * q + offset, number)
                for number, (tap, offset) in enumerate(shape.phases[phase])
            ]
            inside = [step for step in at if 0 <= step.moved < gather.source]
            first = inside[0].moved if inside else 0
            walk = tuple(step._replace(moved=step.moved - first) for step in inside)
            self.classes.append(known.setdefault(walk, len(known)))
            self.base.append(first)
            self.last.append(inside[-1].moved if inside else -1)
        self.walks = list(known)

    def block(self, start: int, count: int) -> RowBlock:
        """Return a range of the target with what it reads."""
        cells = [i for i in range(start, start + count) if self.last[i] >= 0]
        first = min((self.base[i] for i in cells), default=0)
        last = max((self.last[i] for i in cells), default=0)
        return RowBlock(start, count, first, last - first + 1)


BLOCK = ("source", "source_count", "start", "count", "classes_at")
"""What the table says of a block of rows: a `RowBlock`, and where the rows of each class are listed."""


class BlockTable:
    """All tables of a plan, in one list of numbers with the places where each starts.

    A list of cells has two numbers for each: where its first tap reads, and where its sums go.
    """

    def __init__(
        self,
        rows: AxisClasses,
        cols: AxisClasses,
        block_rows: int,
        *,
        source_cols: int,
        contract: GatherContract,
        weights: int,
    ) -> None:
        """`weights` numbers of the packed filter go with each product."""
        self.numbers: list[int] = []
        row_taps = contract.depth * weights * len(cols.order)
        self.row_classes_at = self._classes(
            [
                [
                    (tap * row_taps, moved * source_cols, number * contract.row_runs)
                    for tap, moved, number in walk
                ]
                for walk in rows.walks
            ]
        )
        self.col_classes_at = self._classes(
            [_joined(walk, contract, weights) for walk in cols.walks]
        )
        everything = range(len(cols.classes))
        self.cols_at = self._cells(cols, everything, 0, 0)
        self.blocks = [
            rows.block(start, min(block_rows, len(rows.classes) - start))
            for start in range(0, len(rows.classes), block_rows)
        ]
        listed = [
            self._cells(rows, range(each.start, each.start + each.count), each.source, each.start)
            for each in self.blocks
        ]
        self.blocks_at = len(self.numbers)
        for each, at in zip(self.blocks, listed, strict=True):
            self.numbers += [each.source, each.source_count, each.start, each.count, at]

    def _classes(self, entries: list[list[tuple[int, ...]]]) -> int:
        """Write the entries of all classes; return where the ranges of each class stand."""
        ranges = []
        for each in entries:
            first = len(self.numbers)
            for entry in each:
                self.numbers += entry
            ranges += [first, len(self.numbers)]
        at = len(self.numbers)
        self.numbers += ranges
        return at

    def _cells(self, axis: AxisClasses, cells: Sequence[int], source: int, target: int) -> int:
        """Write the cells of each class; return where the ranges of each class stand."""
        lists: list[list[int]] = [[] for _ in axis.walks]
        for cell in cells:
            base = axis.base[cell] - source if axis.last[cell] >= 0 else 0
            lists[axis.classes[cell]] += [base, cell - target]
        ranges = []
        for each in lists:
            ranges += [len(self.numbers), len(self.numbers) + len(each)]
            self.numbers += each
        at = len(self.numbers)
        self.numbers += ranges
        return at


def _joined(walk: _Walk, contract: GatherContract, weights: int) -> list[tuple[int, ...]]:
    """Return the entries of a class of columns: taps of one run, neighbours in source and filter, are one."""
    found: list[list[int]] = []
    for tap, moved, number in walk:
        run = number // contract.taps if contract.levels else 0
        if found and contract.blocks == 1:
            first, from_, taps, before = found[-1]
            if (tap, moved, run) == (first + taps, from_ + taps, before):
                found[-1][2] += 1
                continue
        found.append([tap, moved, 1, run])
    depth = contract.depth
    return [(tap * depth * weights, moved, taps * depth, run) for tap, moved, taps, run in found]
