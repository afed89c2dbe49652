"""The geometry of `dense_direct`, as tables: which source cells a target cell reads, worked out when a plan is made.

Along one axis every target cell has a tuple of taps that lie inside the image. Cells with equal tuples form a *class*:
from the first tap on, all its cells walk the source by the same displacements. A pixel's class is the pair of its row's
and its column's. Tiles hold pixels of one class, so a kernel needs no masks and reads no padding, and the phases of a
strided input gradient are classes like any other.

The target is cut into *blocks* of images, rows and columns. Blocks of equal structure share their tiles: offsets are
relative to the block, so tables do not grow with the batch or with the image.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..shared.gather import Gather
from ..shared.words import in_order

Numbers = np.ndarray[Any, np.dtype[np.int64]]

_FAR = 2**62
_NOWHERE = -_FAR
"""Offset of a tap that a phase does not have: in front of every source, wherever it is added to."""


@dataclass(frozen=True)
class Span:
    """A block along one axis."""

    start: int
    """First target cell."""
    count: int
    source: int
    """First source cell that any of its cells reads."""
    source_count: int
    """Source cells from the first to the last one read; of a sparse axis, those that are read."""
    structure: int
    """Blocks with the same number differ only in where they start."""


class AxisTable:
    """One axis, cut into blocks of `step` target cells."""

    def __init__(self, gather: Gather, step: int, sparse: bool = False) -> None:
        """With `sparse`, source cells between taps that no cell of a block reads are left out of it."""
        self.step, self.sparse = step, sparse
        self._gather = gather
        phases, walk = gather.footprint.phases, gather.footprint.step
        taps = [(phase, tap) for phase, each in enumerate(phases) for tap in each]
        window = 1 + max((tap.number for _, tap in taps), default=-1)
        self._offsets = np.full((len(phases), window), _NOWHERE)
        for phase, tap in taps:
            self._offsets[phase, tap.number] = tap.offset
        # Cells of a phase that follow each other read the same taps but where one enters or leaves the image. Those few
        # are looked at, and the others follow: a million cells of 101 taps were 1.7 GB and 9 s.
        groups, cells = gather.groups, np.arange(gather.target)
        turns = [phase * groups for phase in range(min(len(phases), gather.target))]
        for phase, tap in taps:
            enters, leaves = -(tap.offset // walk), (gather.source - 1 - tap.offset) // walk + 1
            last = (gather.target - 1 - phase) // len(phases)
            turns += [phase * groups + q for q in (enters, leaves) if 0 < q <= last]
        known = np.unique(np.array(turns, np.int64))
        phase_of, group_of = np.divmod(known, groups)
        source = self._reads(group_of * len(phases) + phase_of)
        valid = source >= 0
        first, kinds = _classes(valid)
        lowest = np.where(valid, source, _FAR).min(1, initial=_FAR)
        highest = source.max(1, initial=-1)
        base = source[np.arange(len(known)), valid.argmax(1)] if window else highest
        self.entries: list[list[tuple[int, int]]] = []
        """Of each class: taps with their displacements from the first one."""
        for at in first:
            taps_of = np.nonzero(valid[at])[0]
            self.entries.append([(int(t), int(source[at, t] - base[at])) for t in taps_of])
        q, own_phase = np.divmod(cells, len(phases))
        follows = np.searchsorted(known, own_phase * groups + q, "right") - 1
        moved = (q - group_of[follows]) * walk
        self.classes: Numbers = kinds[follows]
        """Class of each target cell."""
        reads = highest[follows] >= 0
        self.base: Numbers = np.where(reads, base[follows] + moved, -1)
        """The source cell its first tap reads, -1 without taps."""
        lowest, highest = lowest[follows] + moved, np.where(reads, highest[follows] + moved, -1)
        self.spans: list[Span] = []
        self._structures: dict[bytes, int] = {}
        self.examples: list[Span] = []
        """One span of each structure."""
        self.used: list[Numbers | None] = []
        """Of each structure, the cells it reads, relative to the first; None if it reads all in between."""
        for start in range(0, gather.target, step):
            self._add(start, min(step, gather.target - start), lowest, highest)

    def _reads(self, cells: Numbers) -> Numbers:
        """Return the source cell each tap of some target cells reads, -1 where it reads none."""
        group, phase = np.divmod(cells, len(self._offsets))
        at = (group * self._gather.footprint.step)[:, None] + self._offsets[phase]
        found: Numbers = np.where((at >= 0) & (at < self._gather.source), at, -1)
        return found

    def _add(self, start: int, count: int, lowest: Numbers, highest: Numbers) -> None:
        cut = slice(start, start + count)
        reads = highest[cut] >= 0
        first = int(lowest[cut][reads].min()) if reads.any() else 0
        last = int(highest[cut].max()) if reads.any() else -1
        relative = np.where(reads, self.base[cut] - first, -1)
        key = self.classes[cut].tobytes() + relative.tobytes()
        new = len(self._structures)
        structure = self._structures.setdefault(key, new)
        if structure == new:
            self.used.append(self._used(cut, first, last) if self.sparse else None)
        used = self.used[structure]
        span = Span(start, count, first, last - first + 1 if used is None else len(used), structure)
        if structure == new:
            self.examples.append(span)
        self.spans.append(span)

    def _used(self, cut: slice, first: int, last: int) -> Numbers | None:
        """Return the cells a block reads, if leaving out the others keeps the walk of each class the same."""
        source = self._reads(np.arange(cut.start, cut.stop))
        cells = np.unique(source)
        cells = cells[cells >= 0]
        if len(cells) == last - first + 1:
            return None
        for number in np.unique(self.classes[cut]):
            mine = source[self.classes[cut] == number]
            ranks = np.searchsorted(cells, mine[:, [tap for tap, _ in self.entries[number]]])
            if ranks.size and (ranks - ranks[:, :1] != ranks[:1] - ranks[:1, :1]).any():
                return None
        relative: Numbers = cells - first
        return relative

    def place(self, span: Span, cell: int | Numbers) -> Any:
        """Return where in a block's source a cell stands."""
        used = self.used[span.structure]
        return cell - span.source if used is None else np.searchsorted(used, cell - span.source)

    def entries_of(self, span: Span, number: int) -> list[tuple[int, int]]:
        """Return the taps of a class with their displacements inside a block."""
        if self.used[span.structure] is None or not self.entries[number]:
            return self.entries[number]
        cut = slice(span.start, span.start + span.count)
        mine = np.nonzero(self.classes[cut] == number)[0]
        if not len(mine):
            return []
        taps = [tap for tap, _ in self.entries[number]]
        ranks = self.place(span, self._reads(span.start + mine[:1])[0, taps])
        return [(tap, int(rank - ranks[0])) for tap, rank in zip(taps, ranks, strict=True)]

    def words(self, lists: list[int]) -> list[int]:
        """Return the words of each block; `lists` says where the cells each structure reads are listed, or 0."""
        return [
            number
            for span in self.spans
            for number in in_order(SPAN, **vars(span), list_at=lists[span.structure])
        ]


SPAN = ("source", "source_count", "start", "count", "structure", "list_at")
"""What the table says of a block along one axis: a `Span`, and where its source cells are listed, or 0."""


def _classes(valid: np.ndarray[Any, np.dtype[np.bool_]]) -> tuple[Numbers, Numbers]:
    """Return the first row of each kind, and each row's kind."""
    window = valid.shape[1]
    if window <= 62:
        # One number per row: sorting a million of those takes 0.1 s, of rows 3 s.
        codes = valid @ (1 << np.arange(window, dtype=np.int64))
        _, first, kinds = np.unique(codes, return_index=True, return_inverse=True)
    else:
        packed = np.packbits(valid, axis=1)
        _, first, kinds = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    return first, kinds.reshape(-1).astype(np.int64)


@dataclass(frozen=True)
class Pitches:
    """Elements from one image, row and column to the next; an image or a row of None is as long as the block's."""

    image: int | None
    row: int | None
    col: int


ENTRY = 3
"""Numbers of an entry: place in the filter, displacement in the source, and products."""


@dataclass(frozen=True)
class Taps:
    """How the taps of a filter lie in the packed one."""

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


class BlockTables:
    """All tables of one plan, in one list of 64-bit numbers with the places where each starts."""

    def __init__(
        self,
        rows: AxisTable,
        cols: AxisTable,
        images: list[int],
        height: int,
        source: Pitches,
        target: Pitches,
        taps: Taps,
    ) -> None:
        """`images` are the numbers of images of blocks, the usual one first; `height` the pixels of a tile."""
        self.rows, self.cols, self.height = rows, cols, height
        self.numbers: list[int] = []
        lists = [0 if used is None else self._place(used.tolist(), 1) for used in rows.used]
        self.rows_at = self._place(rows.words(lists))
        self.cols_at = self._place(cols.words([0] * len(cols.used)))
        if len(self.numbers) % ENTRY:
            self.numbers += [0] * (ENTRY - len(self.numbers) % ENTRY)
        entry_rows = self._entries(rows, source.row, source, taps, of_rows=True)
        entry_cols = self._entries(cols, source.col, source, taps, of_rows=False)
        structures: list[int] = []
        tiles: list[Numbers] = []
        count = 0
        for number in images:
            for row in rows.examples:
                for col in cols.examples:
                    block = self._tiles(
                        number, row, col, source, target, entry_rows(row, col), entry_cols(row, col)
                    )
                    structures += [count, len(block)]
                    count += len(block)
                    tiles.append(block)
        self.structures_at = self._place(structures)
        self.tiles_at = self._place(np.concatenate(tiles).reshape(-1).tolist())

    @cached_property
    def data(self) -> bytes:
        return np.array(self.numbers, np.int64).tobytes()

    def _place(self, numbers: list[int], least: int = 0) -> int:
        """Append to the table and return where, at `least` there."""
        self.numbers += [0] * (least - len(self.numbers))
        start = len(self.numbers)
        self.numbers += numbers
        return start

    def _entries(
        self, axis: AxisTable, pitch: int | None, source: Pitches, taps: Taps, of_rows: bool
    ) -> Any:
        """Write each class's taps: their place in the filter, their displacement in the source, and their length.

        Where a staged row is as long as the block's, displacements depend on the block's columns. Neighbouring columns
        of the filter that read neighbouring pixels are one entry, if nothing lies between the pixels.
        """
        known: dict[tuple[int, int], list[tuple[int, int]]] = {}
        tap_pitch = taps.row if of_rows else taps.col
        reach = 0 if of_rows else source.col

        def find(row: Span, col: Span) -> list[tuple[int, int]]:
            step = pitch if pitch is not None else col.source_count * source.col
            span = row if of_rows else col
            key = (step, -1 if axis.used[span.structure] is None else span.structure)
            if key not in known:
                known[key] = []
                for number in range(len(axis.entries)):
                    found = axis.entries_of(span, number)
                    entries: list[list[int]] = []
                    for tap, moved in found if of_rows or not taps.reversed else found[::-1]:
                        place = tap if of_rows or not taps.reversed else taps.cols - 1 - tap
                        entry = [place * tap_pitch, moved * step, taps.depth]
                        last = entries[-1] if entries else None
                        if (
                            last
                            and reach == taps.depth * taps.woven
                            and entry[0] == last[0] + last[2] // taps.depth * tap_pitch
                            and entry[1] == last[1] + last[2] * taps.woven
                        ):
                            last[2] += taps.depth
                        else:
                            entries.append(entry)
                    start = len(self.numbers) // ENTRY
                    for entry in entries:
                        self.numbers += entry
                    known[key].append((start, start + len(entries)))
            return known[key]

        return find

    def _tiles(
        self,
        images: int,
        row: Span,
        col: Span,
        source: Pitches,
        target: Pitches,
        entry_rows: list[tuple[int, int]],
        entry_cols: list[tuple[int, int]],
    ) -> Numbers:
        """Return the tiles of a block: ranges of row and column entries, then source and target offsets."""
        source_row = source.row
        if source_row is None:
            source_row = col.source_count * source.col
        source_image = source.image if source.image is not None else row.source_count * source_row
        target_row = target.row if target.row is not None else col.count * target.col
        target_image = target.image if target.image is not None else row.count * target_row
        row_classes = self.rows.classes[row.start : row.start + row.count]
        col_classes = self.cols.classes[col.start : col.start + col.count]
        n = np.arange(images)
        found: list[Numbers] = []
        order: list[Numbers] = []
        for a in np.unique(row_classes):
            p = np.nonzero(row_classes == a)[0]
            for b in np.unique(col_classes):
                q = np.nonzero(col_classes == b)[0]
                nn, pp, qq = (each.reshape(-1) for each in np.meshgrid(n, p, q, indexing="ij"))
                fill = -len(nn) % self.height
                if fill:
                    # The last pixel again: the same number is stored twice.
                    nn, pp, qq = (np.append(each, np.full(fill, each[-1])) for each in (nn, pp, qq))
                here = nn * source_image
                reads = entry_rows[a][0] < entry_rows[a][1] and entry_cols[b][0] < entry_cols[b][1]
                if reads:
                    at_row = self.rows.place(row, self.rows.base[row.start + pp])
                    at_col = self.cols.place(col, self.cols.base[col.start + qq])
                    here = here + at_row * source_row + at_col * source.col
                there = nn * target_image + pp * target_row + qq * target.col
                tiles = len(nn) // self.height
                ranges = (*entry_rows[a], *entry_cols[b]) if reads else (0, 0, 0, 0)
                head = np.broadcast_to(np.array(ranges, np.int64), (tiles, 4))
                body = (each.reshape(tiles, self.height) for each in (here, there))
                found.append(np.concatenate([head, *body], axis=1))
                order.append(((nn * row.count + pp) * col.count + qq)[:: self.height])
        # In the order of their first pixels, so that neighbours in the image are neighbours in time.
        return np.concatenate(found)[np.argsort(np.concatenate(order), kind="stable")]
