"""The geometry of `dense_direct`, as tables: which source cells a target cell reads, worked out when a plan is made.

Along one axis every target cell has a tuple of taps that lie inside the image. Cells with equal tuples form a *class*:
from the first tap on, all its cells walk the source by the same displacements. A pixel's class is the pair of its row's
and its column's. Tiles hold pixels of one class, so a kernel needs no masks and reads no padding, and the phases of a
strided input gradient are classes like any other.

The target is cut into *blocks* of images, rows and columns. Along one axis a block is a few *pieces*: cells of one
class that lie at equal distances, in the target and in the source. A kernel goes through all pairs of a piece of rows
and a piece of columns and computes where their pixels lie. Blocks of equal structure share their pieces, and classes
the lists of their taps, so that tables grow neither with the batch nor with the image.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

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


class AxisPiece(NamedTuple):
    """Cells of a block along one axis that have one class and lie at equal distances."""

    number: int
    """The class."""
    cells: int
    source: int
    """Where in the block's source the first cell's first tap stands."""
    source_step: int
    target: int
    target_step: int


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
            moves = source[at, taps_of] - base[at]
            self.entries.append([*zip(taps_of.tolist(), moves.tolist(), strict=True)])
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

    def pieces(self, span: Span) -> list[AxisPiece]:
        """Return a block's cells as few sequences of one class each, at equal distances."""
        cells = np.arange(span.count)
        classes = self.classes[span.start : span.start + span.count]
        found: list[AxisPiece] = []
        for number in np.unique(classes).tolist():
            mine = cells[classes == number]
            if self.entries[number]:
                source = self.place(span, self.base[span.start + mine])
                found += _sequences(number, mine, source)
                continue
            # Cells that read nothing may belong to several phases: each of those is a sequence.
            phase = (span.start + mine) % len(self._offsets)
            for each in np.unique(phase):
                part = mine[phase == each]
                found += _sequences(number, part, np.zeros(len(part), np.int64))
        return found

    def words(self, pieces: list[tuple[int, int]], lists: list[int]) -> list[int]:
        """Return the words of each block, given where each structure's pieces and the cells it reads are listed."""
        return [
            number
            for span in self.spans
            for number in in_order(
                SPAN,
                source=span.source,
                source_count=span.source_count,
                start=span.start,
                count=span.count,
                first_piece=pieces[span.structure][0],
                last_piece=pieces[span.structure][1],
                list_at=lists[span.structure],
            )
        ]


def _sequences(number: int, target: Numbers, source: Numbers) -> list[AxisPiece]:
    """Cut cells of one class into sequences with equal distances on both sides."""
    found = []
    first = 0
    while first < len(target):
        last = len(target)
        steps = [0, 0]
        if last - first > 1:
            moves = np.stack([np.diff(target[first:]), np.diff(source[first:])])
            other = np.nonzero((moves != moves[:, :1]).any(0))[0]
            last = first + 1 + int(other[0]) if len(other) else last
            steps = moves[:, 0].tolist()
        found.append(
            AxisPiece(
                number,
                last - first,
                int(source[first]),
                steps[1],
                int(target[first]),
                steps[0],
            )
        )
        first = last
    return found


SPAN = ("source", "source_count", "start", "count", "first_piece", "last_piece", "list_at")
"""What the table says of a block along one axis: a `Span`, where its pieces are listed, and its source cells, or 0."""


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
