"""Long windows of `depthwise_plane` as loops: some taps are written out, and met again further along the window.

Taps of a phase run evenly in offset and in number. So those that follow are the first ones seen from elsewhere: a
constant distance along the source, and a constant distance in the bank of weights.
"""

from __future__ import annotations

from dataclasses import dataclass

from .frame import Frame, Reads
from .words import Phases, Windows

_LINE = 64
WRITTEN = 8
"""Taps of a phase that are written out; of more, a piece and what is left."""


@dataclass(frozen=True)
class TapLoop:
    """The windows along an axis, cut into `count` equal pieces and a rest."""

    count: int
    piece: Windows
    """What of each phase is written out once."""
    distance: int
    """From piece to piece along the source."""
    numbers: int
    """From piece to piece in numbers of taps."""
    rest: Windows | None


def tap_loop(windows: Windows, size: int, parted: int = 1) -> TapLoop:
    """Cut windows into pieces of `size` taps per phase; cells of the source are parted into sub-rows.

    Pieces are seen from each other in the same sub-row only: any other size leaves the window whole.

    >>> from ..shared.gather import Tap
    >>> found = tap_loop(Windows((tuple(Tap(t, t - 3) for t in range(7)),), 2), 2, parted=2)
    >>> found.count, found.distance, found.numbers, found.rest.phases
    (3, 1, 2, ((Tap(number=6, offset=3),),))
    """
    phases, step = windows.phases, windows.step
    shortest = min((taps for taps in phases if taps), key=len, default=())
    count = len(shortest) // size
    if len(shortest) <= size or size % parted:
        return TapLoop(1, windows, 0, 0, None)
    first, later = shortest[0], shortest[size]
    piece: Phases = tuple(taps[:size] for taps in phases)
    rest: Phases = tuple(taps[count * size :] for taps in phases)
    return TapLoop(
        count,
        Windows(piece, step, windows.across),
        (later.offset - first.offset) // parted,
        later.number - first.number,
        Windows(rest, step, windows.across) if any(rest) else None,
    )


def piece_size(count: int, unit: int = 1) -> int:
    """Return how many taps to write out of a phase of `count`, a multiple of `unit` if not all.

    >>> [piece_size(count) for count in (7, 9, 13, 31)], piece_size(11, 2)
    ([7, 4, 6, 6], 4)
    """
    if count <= WRITTEN:
        return count
    sizes = range(unit, WRITTEN + 1, unit)
    return max(size for size in sizes if size == unit or size + count % size <= WRITTEN)


def moments(found: Reads, windows: Windows, together: int) -> list[Reads]:
    """Part source rows by when they are read: `together` groups of target rows read one at the same time.

    Groups further apart are as far in their windows, and share its weights.
    """
    parts: dict[int, Reads] = {}
    for row, uses in sorted(found.items()):
        for cell, tap in uses:
            group = cell // len(windows.phases)
            moment = row - group // together * together * windows.step
            parts.setdefault(moment, {}).setdefault(row, []).append((cell, tap))
    return [part for _, part in sorted(parts.items())]


def rows_together(frame: Frame) -> int:
    """Return how many groups of rows should read a source row at the same time: the number with the fewest loads.

    Vectors as long as a line lie in two lines wherever they begin, which are read one after the other.
    """
    kernel = frame.kernel
    weight = kernel.vectors if kernel.period else 1
    vector = kernel.vectors * (2 if frame.lanes * frame.number.size >= _LINE else 1)

    def loads(together: int) -> int:
        found = moments(frame.row_reads, kernel.rows, together)
        weights = [len({tap for uses in part.values() for _, tap in uses}) for part in found]
        return vector * sum(map(len, found)) + weight * sum(weights)

    return min(range(1, kernel.height + 1), key=loads)
