"""The columns of a depthwise problem as `depthwise_packed` sees them: all of the geometry that shapes its code.

Target column ``spread * q + cell`` reads source columns ``step * q + offset``, one per tap of the phase `cell`. Taps of
a phase are an arithmetic progression in number and in offset, so that a phase is six integers however large the window
is. Taps that lie outside the image for every q do not exist, nor do phases without taps: strides, dilations and pads of
any size stay small here. Rows need nothing of the kind: the kernel works them out as it runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._geometry import Axis
from ..._problem import Kind


@dataclass(frozen=True)
class Phase:
    """Target columns that are read alike; tap i of `count` is number ``tap + i * tap_step``."""

    cell: int
    tap: int
    tap_step: int
    offset: int
    offset_step: int
    """Ascending: never negative."""
    count: int

    @property
    def last_offset(self) -> int:
        return self.offset + (self.count - 1) * self.offset_step


@dataclass(frozen=True)
class Columns:
    """The shape of the windows along the columns."""

    phases: tuple[Phase, ...]
    step: int
    """Source columns from one q to the next."""
    spread: int
    """Target columns from one q to the next."""
    window: int
    """Taps of the filter, those that never meet the image included."""

    @property
    def lowest(self) -> int:
        return min((phase.offset for phase in self.phases), default=0)

    @property
    def highest(self) -> int:
        return max((phase.last_offset for phase in self.phases), default=0)

    @property
    def has_holes(self) -> bool:
        """Whether some target columns are read by no phase."""
        return len(self.phases) < self.spread


def columns(axis: Axis, kind: Kind) -> Columns:
    """Describe the columns of a problem.

    >>> from convgrad._geometry import solve
    >>> columns(solve(14, 3, 1, 2, "SAME"), Kind.FORWARD).phases
    (Phase(cell=0, tap=0, tap_step=1, offset=-2, offset_step=2, count=3),)
    >>> [phase.count for phase in columns(solve(14, 3, 2, 1, "SAME"), Kind.INPUT_GRADIENT).phases]
    [2, 1]
    """
    if kind is Kind.INPUT_GRADIENT:
        step, spread, source, target = 1, axis.stride, axis.out, axis.size
        reached: dict[int, list[tuple[int, int]]] = {}
        for tap in range(axis.window - 1, -1, -1):
            cell = (tap * axis.dilation - axis.before) % spread
            offset = (cell + axis.before - tap * axis.dilation) // spread
            reached.setdefault(cell, []).append((tap, offset))
    else:
        step, spread, source, target = axis.stride, 1, axis.size, axis.out
        reached = {
            0: [(tap, tap * axis.dilation - axis.before) for tap in range(axis.window)],
        }
    phases = []
    for cell, taps in sorted(reached.items()):
        groups = -(-(target - cell) // spread)
        useful = [i for i, (_, offset) in enumerate(taps) if _meets(offset, step, groups, source)]
        if useful:
            taps = taps[useful[0] : useful[-1] + 1]
            (tap, offset), (next_tap, next_offset) = taps[0], taps[min(1, len(taps) - 1)]
            phases.append(Phase(cell, tap, next_tap - tap, offset, next_offset - offset, len(taps)))
    return Columns(tuple(phases), step, spread, axis.window)


def _meets(offset: int, step: int, groups: int, source: int) -> bool:
    """Tell whether ``0 <= step * q + offset < source`` for some q in ``[0, groups)``."""
    first = max(0, -(offset // step))
    return first < groups and step * first + offset < source
