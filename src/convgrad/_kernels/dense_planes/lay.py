"""From the workspace to the result: rows of a panel's channels, with the phases of the target's columns joined.

::

    pixels[channel][phase down][phase along][place down][place along] -> result[channel][row][column]
"""

from __future__ import annotations

from ..._compiler.codegen import Int, Pointer
from .frame import Frame, PlaceBlock


class RowWriter:
    """Writes the code that lays a panel's pixels down."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.k, self.word, self.lanes = frame.k, frame.word, frame.lanes

    def size(self) -> Int:
        """Return the numbers that one phase of one channel takes."""
        rounded = self.word["block_rows"] * self.word["staged_cols"] + (self.lanes - 1)
        return rounded // self.lanes * self.lanes

    def write(self, block: PlaceBlock, height: int, channel: Int) -> None:
        """Lay down the channels of a panel, from `channel` on."""
        k, word = self.k, self.word
        down, along = word["phases_down"], word["phases_along"]
        size = self.size()
        left = block.col * along
        cells = k.min(block.cols * along, word["target_cols"] - left)
        with (
            k.loop(0, height) as o,
            k.loop(0, block.rows, nonempty=True) as i,
            k.loop(0, down, nonempty=True) as phase,
        ):
            row = (block.row + i) * down + phase
            with k.when(row < word["target_rows"]):
                at = (o * down + phase) * along * size + i * word["staged_cols"]
                there = (channel + o) * word["target_plane"] + row * word["target_cols"] + left
                self._row(self.frame.pixels.offset(at), self.frame.result.offset(there), cells)

    def _row(self, source: Pointer, target: Pointer, cells: Int) -> None:
        k, lanes, woven = self.k, self.lanes, self.frame.kernel.woven
        if woven not in (1, 2):
            self._cells(source, target, k.i64(0), cells)
            return
        groups = cells // woven
        with k.branch(groups >= lanes) as ways:
            with ways.then():
                with k.loop(0, groups, lanes, nonempty=True) as number:
                    i = k.min(number, groups - lanes)
                    self._vector(source.offset(i), target.offset(i * woven))
                self._cells(source, target, groups * woven, cells)
            with ways.otherwise():
                self._cells(source, target, k.i64(0), cells)

    def _vector(self, source: Pointer, target: Pointer) -> None:
        """Lay down a vector of places."""
        k, lanes = self.k, self.lanes
        low = source.load(lanes)
        if self.frame.kernel.woven == 1:
            target.store(low)
            return
        high = source.offset(self.size()).load(lanes)
        order = [lane // 2 + lanes * (lane % 2) for lane in range(2 * lanes)]
        target.store(k.shuffle(low, high, order[:lanes]))
        target.offset(lanes).store(k.shuffle(low, high, order[lanes:]))

    def _cells(self, source: Pointer, target: Pointer, start: Int, stop: Int) -> None:
        """Lay down cells one by one."""
        along, size = self.word["phases_along"], self.size()
        with self.k.loop(start, stop) as cell:
            at = cell % along * size + cell // along
            target.offset(cell).store(source.offset(at).load())
