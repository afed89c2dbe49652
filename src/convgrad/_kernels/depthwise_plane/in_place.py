"""Source rows of `depthwise_plane` read where they are, with masks at the borders of the image."""

from __future__ import annotations

from ..._compiler.codegen import Int, Pointer, Vector
from .frame import Frame


class InPlace:
    """Writes the reads."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.k, self.kernel, self.word = frame.k, frame.kernel, frame.word
        self.number, self.lanes = frame.number, frame.lanes
        self.reach = self.lanes * (2 if self.kernel.alternate else 1)
        """Columns that are read together: by one vector, or by two that take them in turn."""
        self.parts = range(self.reach // self.lanes)
        self.width = self.reach
        """Columns of the last vector of a row: one that overlaps the vector before is full."""
        if frame.to_filter and self.kernel.tail:
            self.width = (self.kernel.tail - 1) % self.reach + 1
        self.zero_row = frame.block.offset(self.lanes)
        """Zeros to read instead of rows outside the image."""

    def row_pointers(self, plane: Pointer, group: Int) -> dict[int, Pointer]:
        """Return the source rows under a tile by their offsets; rows outside the image are zeros."""
        k, kernel, cols = self.k, self.kernel, self.frame.source_cols
        if kernel.single:
            return {offset: plane.offset(cols * offset) for offset in self.frame.row_reads}
        # Tiles of a filter gradient are not moved back: the last one may begin at the last group.
        step, last = kernel.rows.step, 0 if self.frame.to_filter else kernel.height - 1
        first = plane.offset(group * step * cols)
        found = {}
        for offset in sorted(self.frame.row_reads):
            here = first.offset(cols * offset)
            if offset < 0 or offset - last * step > kernel.slack[0]:
                exists = (group * step + offset).inside(self.word["source_rows"])
                here = k.select(exists, here, self.zero_row)
            found[offset] = here
        return found

    def load_tap(
        self,
        row: Pointer,
        offset: int,
        at_start: bool,
        at_end: bool,
        seen: dict[int, Vector],
        part: int = 0,
    ) -> Vector | None:
        """Read one vector of a source row in place (direct); None if it lies outside as a whole.

        `part` says which of the vectors that take columns in turn. With a step of two it is every other element of two
        vectors, in the order of `parted`. `seen` keeps the loads of a row.
        """
        lanes, step = self.lanes, self.kernel.cols.step
        if step == 1:
            return self._load_in_place(row, offset, at_start, at_end, part)
        first = offset - (offset - self.kernel.cols.lowest) % 2
        for start in (first, first + lanes):
            if start not in seen:
                value = self._load_in_place(row, start, at_start, at_end)
                seen[start] = self.k.zeros(self.number, lanes) if value is None else value
        picks = [2 * group + offset - first for group in self.parted]
        return self.k.shuffle(seen[first], seen[first + lanes], picks)

    @property
    def parted(self) -> list[int]:
        """Return the order of groups in a vector made of every other element of two vectors: what one shuffle inside
        128-bit parts leaves."""
        half, lanes = 8 // self.number.size, self.lanes
        parts = range(0, lanes // 2, half)
        return [
            group + i for part in parts for group in (part, part + lanes // 2) for i in range(half)
        ]

    def _load_in_place(
        self, row: Pointer, offset: int, at_start: bool, at_end: bool, part: int = 0
    ) -> Vector | None:
        kernel, last = self.kernel, (self.width - 1) * self.kernel.cols.step
        mask = [
            not (at_start and lane + offset < 0)
            and not (at_end and lane - last + offset > kernel.slack[1])
            for lane in range(self.reach)
        ]
        if kernel.target_width:
            mask = [0 <= lane + offset < kernel.source_width for lane in range(self.lanes)]
        return self.load(row.offset(offset), part, mask) if any(mask) else None

    def load(self, place: Pointer, part: int, mask: list[bool] | None) -> Vector:
        """Read one vector of the columns that begin at an address."""
        if self.kernel.alternate:
            return place.load_alternate(self.lanes, part, mask)
        return place.load(self.lanes, mask=mask)
