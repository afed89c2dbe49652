"""Rows of few channels, pixel by pixel: parted into sub-rows, one per column of a step, and woven together again.

A pixel is less than a vector, so it is copied by a vector that covers it and a part of its successor, which is written
next. The last pixels of a row have no successor and are copied exactly.
"""

from __future__ import annotations

from ..._compiler.codegen import Int, Pointer, Vector
from ..shared.edges import load_first, store_first
from .frame import Frame


class Pixels:
    """Writes the copies."""

    def __init__(self, frame: Frame) -> None:
        self.k, self.kernel, self.frame, self.lanes = frame.k, frame.kernel, frame, frame.lanes
        self.cell = frame.kernel.cell
        self.width = _power_above(self.cell)
        """Elements of the vector that covers a pixel."""

    def part_row(self, here: Pointer, there: Pointer) -> None:
        """Copy every step-th pixel to a sub-row of its own, each channel as often as it is repeated."""
        k, step, pitch = self.k, self.kernel.cols.step, self.kernel.pitch
        count = self.frame.source_cols // self.cell
        groups = k.max(count // step - 1, 0)
        across = self.cell * self.kernel.copies
        with k.loop(0, groups) as group:
            first, place = here.offset(group * (step * self.cell)), there.offset(group * across)
            for i in range(step):
                pixel = first.offset(i * self.cell).load(self.width)
                self._spread(pixel, place.offset(i * pitch), exact=False)
        with k.loop(groups * step, count, nonempty=True) as col:
            pixel = load_first(k, here.offset(col * self.cell), self.cell, self.width)
            place = there.offset(col % step * pitch + col // step * across)
            self._spread(pixel, place, exact=True)

    def _spread(self, pixel: Vector, place: Pointer, exact: bool) -> None:
        """Write the channels of a pixel, each as often as it is repeated."""
        repeat = self.kernel.copies
        across = self.cell * repeat
        size = min(self.lanes, _power_above(across))
        for start in range(0, across, size):
            picks = [min((start + i) // repeat, self.cell - 1) for i in range(size)]
            part = pixel if picks == [*range(pixel.lanes)] else self.k.shuffle(pixel, None, picks)
            if exact:
                store_first(place.offset(start), part, min(size, across - start))
            else:
                place.offset(start).store(part)

    def weave_row(self, sub_rows: Pointer, target: Pointer) -> None:
        """Write the pixels of as many sub-rows as there are phases in turn."""
        k, phases, pitch = self.k, len(self.kernel.cols.phases), self.kernel.pitch
        cols: Int = self.frame.target_cols
        count = cols // self.cell
        groups = (count - 1) // phases
        with k.loop(0, groups) as group:
            first = target.offset(group * (phases * self.cell))
            here = sub_rows.offset(group * self.cell)
            for i in range(phases):
                first.offset(i * self.cell).store(here.offset(i * pitch).load(self.width))
        with k.loop(groups * phases, count, nonempty=True) as col:
            here = sub_rows.offset(col % phases * pitch + col // phases * self.cell)
            # Behind the last sub-row the workspace may end.
            pixel = load_first(k, here, self.cell, self.width)
            store_first(target.offset(col * self.cell), pixel, self.cell)


def _power_above(count: int) -> int:
    return 1 << (count - 1).bit_length()
