"""Source rows of `depthwise_plane` copied to scratch, with zeros around them: no read needs a mask."""

from __future__ import annotations

from ..._compiler.codegen import Int, Pointer
from ..shared.edges import load_first
from .frame import BlockRows, Frame
from .pixels import Pixels


class Padded:
    """Writes the copies, and says where a tap reads in them."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.k, self.kernel, self.word = frame.k, frame.kernel, frame.word
        self.number, self.lanes = frame.number, frame.lanes
        self.pixels = Pixels(frame)

    def column(self, offset: int) -> int:
        """Return where a tap of this offset reads in a padded row, for the first group of columns."""
        cols = self.kernel.cols
        sub_row = offset // cols.across % cols.step
        return sub_row * self.kernel.pitch + cols.before + cols.place(offset)

    def copy_source(self, plane: Int, rows: BlockRows, block: Pointer) -> None:
        """Copy the rows of a block that exist; what is around them is zero already."""
        k, kernel, cols = self.k, self.kernel, self.frame.source_cols
        source = self.frame.source.offset(plane * self.frame.source_plane + rows.top * cols)
        with k.loop(rows.low, rows.high) as row:
            here = source.offset(row * cols)
            there = block.offset(row * self.frame.row_pitch + kernel.cols.before)
            if kernel.parts_pixels:
                self.pixels.part_row(here, there)
            elif kernel.cols.step == 1:
                self.copy_row(here, there, cols, kernel.source_width)
            else:
                self._part_row(here, there)

    def copy_row(self, here: Pointer, there: Pointer, cols: Int, width: int) -> None:
        k, lanes = self.k, self.lanes
        if width:
            there.store(load_first(k, here, width, lanes))
            return
        with k.loop(0, cols, lanes, nonempty=True) as col:
            col = k.min(col, cols - lanes)
            there.offset(col).store(here.offset(col).load(lanes))

    def _part_row(self, here: Pointer, there: Pointer) -> None:
        """Copy even and odd columns to sub-rows of their own."""
        k, lanes, width = self.k, self.lanes, self.kernel.source_width
        odd = there.offset(self.kernel.pitch)
        if width:
            low = load_first(k, here, min(width, lanes), lanes)
            high = k.zeros(self.number, lanes)
            if width > lanes:
                high = load_first(k, here.offset(lanes), width - lanes, lanes)
            there.store(k.shuffle(low, high, range(0, 2 * lanes, 2)))
            odd.store(k.shuffle(low, high, range(1, 2 * lanes, 2)))
            return
        cols = self.word["source_cols"]
        pairs = cols >> 1
        with k.loop(0, pairs, lanes, nonempty=True) as pair:
            pair = k.min(pair, pairs - lanes)
            low = here.offset(pair * 2).load(lanes)
            high = here.offset(pair * 2 + lanes).load(lanes)
            there.offset(pair).store(k.shuffle(low, high, range(0, 2 * lanes, 2)))
            odd.offset(pair).store(k.shuffle(low, high, range(1, 2 * lanes, 2)))
        with k.when((cols & 1).differs(0)):
            there.offset(pairs).store(here.offset(cols - 1).load())
