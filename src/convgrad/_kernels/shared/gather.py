"""An axis of any of the three operations, seen as a gather: what a kernel needs to know of it.

Along one axis, target cell ``phases * q + f`` reads source cells ``step * q + offset``, one per tap of phase f:

* forward and filter gradient: one phase, ``step = stride``, ``offset = tap * dilation - before``; the source is the
  input and the target the output (for the filter gradient, `out_backprop` stands at the target).
* input gradient: ``stride`` phases, ``step = 1``. Output p and tap t meet input ``p * stride + t * dilation - before``,
  so cell ``stride * q + f`` meets the taps with ``(f + before - t * dilation) % stride == 0``, and those read output
  ``q + (f + before - t * dilation) / stride``. Every cell is written once, nothing is scattered.

`Footprint` is what shapes code: taps, offsets, and how far the last windows reach past the end. The sizes themselves
stay run-time numbers, so one kernel serves every image it fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..._problem.convolution import Kind, Problem
from ..._problem.geometry import Axis


class Tap(NamedTuple):
    """A tap of one phase: its number, and the source cell it reads relative to ``step * q``."""

    number: int
    offset: int


@dataclass(frozen=True)
class Footprint:
    """The shape of the windows along an axis."""

    phases: tuple[tuple[Tap, ...], ...]
    """Taps of each phase, by ascending offset."""
    step: int
    overhang: int
    """By how much the last group's largest offset passes the last source cell; 0 if it does not."""
    ragged: int
    """Target cells in the last group if it is not full, else 0."""

    @property
    def lowest(self) -> int:
        return min((tap.offset for taps in self.phases for tap in taps), default=0)

    @property
    def highest(self) -> int:
        return max((tap.offset for taps in self.phases for tap in taps), default=0)

    @property
    def before(self) -> int:
        """Groups at the start with a tap in front of the source."""
        return max(0, -(self.lowest // self.step))

    @property
    def after(self) -> int:
        """Groups at the end with a tap behind the source, or with missing phases."""
        return max(-(-self.overhang // self.step), 1 if self.ragged else 0)

    def past_end(self, offset: int, from_last: int) -> bool:
        """Tell whether an offset lies behind the source for the group `from_last` before the last one."""
        return offset - from_last * self.step > self.highest - self.overhang


@dataclass(frozen=True)
class Gather:
    """One axis of one problem."""

    footprint: Footprint
    source: int
    """Cells of the array that is read through windows."""
    target: int
    """Cells of the array that is written (for the filter gradient: of `out_backprop`)."""

    @property
    def groups(self) -> int:
        """Groups of `phases` neighbouring target cells: the range of q."""
        return -(-self.target // len(self.footprint.phases))


def gather(axis: Axis, kind: Kind) -> Gather:
    """Describe an axis as a gather.

    >>> from convgrad._problem.geometry import solve
    >>> gather(solve(14, 3, 2, 1, "SAME"), Kind.INPUT_GRADIENT).footprint.phases
    ((Tap(number=2, offset=-1), Tap(number=0, offset=0)), (Tap(number=1, offset=0),))
    """
    if kind is Kind.INPUT_GRADIENT:
        source, target, step = axis.out, axis.size, 1
        phases = tuple(_phase(axis, f) for f in range(axis.stride))
    else:
        source, target, step = axis.size, axis.out, axis.stride
        taps = (Tap(tap, tap * axis.dilation - axis.before) for tap in range(axis.window))
        phases = (tuple(taps),)
    groups = -(-target // len(phases))
    highest = max((tap.offset for taps in phases for tap in taps), default=0)
    overhang = max(0, (groups - 1) * step + highest - (source - 1))
    return Gather(Footprint(phases, step, overhang, target % len(phases)), source, target)


def _phase(axis: Axis, phase: int) -> tuple[Tap, ...]:
    reached = ((tap, phase + axis.before - tap * axis.dilation) for tap in range(axis.window))
    taps = [Tap(tap, cell // axis.stride) for tap, cell in reached if cell % axis.stride == 0]
    return tuple(sorted(taps, key=lambda tap: tap.offset))


MOST_LISTED = 1 << 17
"""Taps listed along an axis, at most. A window of 362 rows under SAME has that many, and planning takes half a second;
time grows with the square of the window, and 4096 rows took minutes before any work was done."""


def listed_taps(problem: Problem) -> int:
    """Return how many taps a list of all distinct windows has along the longer axis.

    There is one window in the middle, and one for each cell near an edge whose window is cut short. An input gradient
    has a list for each phase besides, used or not: a stride of 2**31 on 5 pixels has two thousand million of them.
    """
    return max(_listed(problem.kind, axis) for axis in (problem.rows, problem.cols))


def _listed(kind: Kind, axis: Axis) -> int:
    if kind is Kind.INPUT_GRADIENT:
        return axis.window * max(axis.stride, 1 + min(axis.size, 2 * axis.window))
    return axis.window * (1 + min(axis.out, axis.before + axis.after))
