"""The geometry of `dense_planes`: which source cells a block stages, and how far from a place each tap reads.

Along one axis target cell ``phases * q + f`` reads source cells ``step * q + offset`` (`shared/gather.py`); q is a
*place*. Staged are the cells ``step * (q + shift) + phase`` with ``offset = step * shift + phase``, one run of them per
phase that some tap reads. So neighbouring places read neighbouring staged cells whatever the stride is, and a tap is a
displacement that all places share. What lies beside the image is staged as zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..._problem.convolution import Problem
from ..shared.gather import Gather, gather


@dataclass(frozen=True)
class Lattice:
    """One axis."""

    gather: Gather

    @property
    def step(self) -> int:
        return self.gather.footprint.step

    @property
    def places(self) -> int:
        return self.gather.groups

    @property
    def target_phases(self) -> int:
        return len(self.gather.footprint.phases)

    @cached_property
    def source_phases(self) -> tuple[int, ...]:
        """Phases of the source that a tap reads."""
        return tuple(sorted({offset % self.step for offset in self._offsets}))

    @cached_property
    def lowest(self) -> int:
        """The least shift."""
        return min(offset // self.step for offset in self._offsets)

    @cached_property
    def halo(self) -> int:
        """Staged cells of a phase beyond one per place."""
        return max(offset // self.step for offset in self._offsets) - self.lowest

    @cached_property
    def padded(self) -> bool:
        """Whether a staged cell may lie beside the image."""
        shape = self.gather.footprint
        return shape.lowest < 0 or shape.overhang > 0

    @cached_property
    def _offsets(self) -> tuple[int, ...]:
        return tuple(tap.offset for taps in self.gather.footprint.phases for tap in taps)

    def taps(self, phase: int) -> list[tuple[int, int, int]]:
        """Return the taps of a phase of the target: number, place of the source's phase, and staged cell."""
        found = []
        for tap in self.gather.footprint.phases[phase]:
            shift, rest = divmod(tap.offset, self.step)
            found.append((tap.number, self.source_phases.index(rest), shift - self.lowest))
        return found


def lattices(problem: Problem) -> tuple[Lattice, Lattice]:
    """Return rows and columns of a problem; pixels that are read one by one are a single row of them."""
    rows, cols = (Lattice(gather(axis, problem.kind)) for axis in (problem.rows, problem.cols))
    if is_flat(problem):
        footprint = cols.gather.footprint
        pixels = rows.gather.source * cols.gather.source
        one = Lattice(Gather(footprint, 1, 1))
        return one, Lattice(Gather(footprint, pixels, pixels))
    return rows, cols


def is_flat(problem: Problem) -> bool:
    """Tell whether each pixel of the target reads just the same pixel of the source."""
    return all(
        axis.window == axis.stride == 1 and axis.before == axis.after == 0
        for axis in (problem.rows, problem.cols)
    )


def tap_list(rows: Lattice, cols: Lattice, window_cols: int) -> tuple[list[int], list[int]]:
    """Return the taps in the order they are packed in, and the first of each pair of phases of the target."""
    taps: list[int] = []
    firsts = []
    for down in range(rows.target_phases):
        for along in range(cols.target_phases):
            firsts.append(len(taps))
            for r, _, _ in rows.taps(down):
                taps += [r * window_cols + s for s, _, _ in cols.taps(along)]
    return taps, [*firsts, len(taps)]


def runs_of_taps(rows: Lattice, cols: Lattice, row_runs: int, taps: int) -> list[int]:
    """Return the run of each tap inside a block of channels, in the order of `tap_list`."""
    found = []
    for down in range(rows.target_phases):
        for along in range(cols.target_phases):
            for i in range(len(rows.taps(down))):
                found += [i * row_runs + j // taps for j in range(len(cols.taps(along)))]
    return found


def displacements(rows: Lattice, cols: Lattice, staged_rows: int, staged_cols: int) -> list[int]:
    """Return how far from its place each tap reads, in the order of `tap_list`."""
    found = []
    for down in range(rows.target_phases):
        for along in range(cols.target_phases):
            for _, row_phase, row in rows.taps(down):
                for _, col_phase, col in cols.taps(along):
                    plane = row_phase * len(cols.source_phases) + col_phase
                    found.append((plane * staged_rows + row) * staged_cols + col)
    return found
