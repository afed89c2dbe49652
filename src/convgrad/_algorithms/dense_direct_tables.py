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

from .gather import Gather

Numbers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Span:
    """A block along one axis."""

    start: int
    """First target cell."""
    count: int
    source: int
    """First source cell that any of its cells reads."""
    source_count: int
    structure: int
    """Blocks with the same number differ only in where they start."""


class AxisTable:
    """One axis, cut into blocks of `step` target cells."""

    def __init__(self, gather: Gather, step: int) -> None:
        self.step = step
        phases = gather.footprint.phases
        cells = np.arange(gather.target)
        window = 1 + max((tap.number for taps in phases for tap in taps), default=-1)
        source = np.full((gather.target, window), -1, np.int64)
        for phase, taps in enumerate(phases):
            mine = cells[phase :: len(phases)]
            for tap in taps:
                at = mine // len(phases) * gather.footprint.step + tap.offset
                inside = (at >= 0) & (at < gather.source)
                source[mine[inside], tap.number] = at[inside]
        valid = source >= 0
        packed = np.packbits(valid, axis=1) if window else np.zeros((len(cells), 1), np.uint8)
        keys, first, classes = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        self.classes: Numbers = classes.reshape(-1).astype(np.int64)
        """Class of each target cell."""
        self.base: Numbers = np.where(
            valid.any(1), source[cells, valid.argmax(1)] if window else 0, -1
        )
        """The source cell its first tap reads, -1 without taps."""
        self.entries: list[list[tuple[int, int]]] = []
        """Of each class: taps with their displacements from the first one."""
        for cell in first[: len(keys)]:
            taps_of = np.nonzero(valid[cell])[0]
            self.entries.append([(int(t), int(source[cell, t] - self.base[cell])) for t in taps_of])
        self.spans: list[Span] = []
        self._structures: dict[bytes, int] = {}
        self.examples: list[Span] = []
        """One span of each structure."""
        highest = source.max(1) if window else np.full(len(cells), -1)
        lowest = np.where(valid, source, np.iinfo(np.int64).max).min(1) if window else highest
        for start in range(0, gather.target, step):
            self._add(start, min(step, gather.target - start), lowest, highest)

    def _add(self, start: int, count: int, lowest: Numbers, highest: Numbers) -> None:
        cut = slice(start, start + count)
        reads = highest[cut] >= 0
        first = int(lowest[cut][reads].min()) if reads.any() else 0
        last = int(highest[cut].max()) if reads.any() else -1
        relative = np.where(reads, self.base[cut] - first, -1)
        key = self.classes[cut].tobytes() + relative.tobytes()
        new = len(self._structures)
        structure = self._structures.setdefault(key, new)
        span = Span(start, count, first, last - first + 1, structure)
        if structure == new:
            self.examples.append(span)
        self.spans.append(span)

    def words(self) -> list[int]:
        """Return four numbers per block: source start and count, target start and count; and the structure."""
        return [
            number
            for span in self.spans
            for number in (
                span.source,
                span.source_count,
                span.start,
                span.count,
                span.structure,
            )
        ]


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
        self.rows_at = self._place(rows.words())
        self.cols_at = self._place(cols.words())
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

    def _place(self, numbers: list[int]) -> int:
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
        known: dict[int, list[tuple[int, int]]] = {}
        tap_pitch = taps.row if of_rows else taps.col
        reach = 0 if of_rows else source.col

        def find(row: Span, col: Span) -> list[tuple[int, int]]:
            step = pitch if pitch is not None else col.source_count * source.col
            if step not in known:
                known[step] = []
                for found in axis.entries:
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
                    known[step].append((start, start + len(entries)))
            return known[step]

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
                    at_row = self.rows.base[row.start + pp] - row.source
                    at_col = self.cols.base[col.start + qq] - col.source
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
