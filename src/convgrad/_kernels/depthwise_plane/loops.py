"""Long windows of `depthwise_plane` as loops: some taps are written out, and met again further along the window.

Taps of a phase run evenly in offset and in number. So those that follow are the first ones seen from elsewhere: a
constant distance along the source, and a constant distance in the bank of weights.
"""

from __future__ import annotations

from dataclasses import dataclass

from .words import Phases, Windows


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
