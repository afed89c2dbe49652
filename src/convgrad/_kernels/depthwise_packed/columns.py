"""The columns of a depthwise problem as `depthwise_packed` sees them: all of the geometry that shapes its code.

Target column ``spread * q + cell`` reads source columns ``step * q + offset``, one per tap of the phase `cell`. Taps of
a phase are an arithmetic progression in number and in offset, so that a phase is six integers however large the window
is. Taps that lie outside the image for every q do not exist, nor do phases without taps: strides, dilations and pads of
any size stay small here. Rows need nothing of the kind: the kernel works them out as it runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from ..._compiler.kernel import added_field
from ..._problem.convolution import Kind
from ..._problem.geometry import Axis, taps_inside


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
    place: int = added_field(0)
    """Taps of the phase in front of the first one, which never meet the image."""

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

    >>> from convgrad._problem.geometry import solve
    >>> columns(solve(14, 3, 1, 2, "SAME"), Kind.FORWARD).phases
    (Phase(cell=0, tap=0, tap_step=1, offset=-2, offset_step=2, count=3, place=0),)
    >>> [phase.count for phase in columns(solve(14, 3, 2, 1, "SAME"), Kind.INPUT_GRADIENT).phases]
    [2, 1]
    """
    useful = list(taps_inside(axis))
    if kind is not Kind.INPUT_GRADIENT:
        return Columns(_one_phase(axis, useful), axis.stride, 1, axis.window)
    reached: dict[int, list[int]] = {}
    for taps in reversed(useful):
        for tap in reversed(taps):
            reached.setdefault((tap * axis.dilation - axis.before) % axis.stride, []).append(tap)
    phases = []
    for cell, found in sorted(reached.items()):
        offsets = [(cell + axis.before - tap * axis.dilation) // axis.stride for tap in found[:2]]
        steps = (found[1] - found[0], offsets[1] - offsets[0]) if len(found) > 1 else (0, 0)
        place = (axis.window - 1 - found[0]) // (axis.stride // gcd(axis.stride, axis.dilation))
        phases.append(Phase(cell, found[0], steps[0], offsets[0], steps[1], len(found), place))
    return Columns(tuple(phases), 1, axis.stride, axis.window)


def _one_phase(axis: Axis, useful: list[range]) -> tuple[Phase, ...]:
    """Return all taps from the first useful one to the last: those between them keep the progression."""
    if not useful:
        return ()
    first, last = useful[0][0], useful[-1][-1]
    count = last - first + 1
    steps = (1, axis.dilation) if count > 1 else (0, 0)
    offset = first * axis.dilation - axis.before
    return (Phase(0, first, steps[0], offset, steps[1], count, first),)
