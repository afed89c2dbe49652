"""The kernel of `dense_direct`: tiles of pixels times panels of channels.

::

    item = (block of the target, range of panels)
      [stage the source cells of the block: converted, channels last, group by group]
      for panel:  [pack the panel]
        for tile of the block:                      # `height` pixels of one class, see `axis`
          acc[height][vectors] = 0
          [for block of channels:]
            for row entry, column entry:            # taps inside the image; neighbours that lie together are one
              [totals += acc, acc = 0 if they belong to another run]
              for k:  acc[i] += broadcast(source[pixel i + displacement + k]) * packed[tap][k]
          store acc + totals [+ bias]
        [NCHW: turn the panel's pixels into planes]

Forward and input gradient are the same sum: source and target change places and the filter is packed transposed. The
code depends on the tile, the dtype and the layout; channels, windows, strides and images are words and tables.
"""

from __future__ import annotations

from ..._compiler.codegen import Int, Pointer
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..shared.stage import copy, transposed_copy
from .frame import Frame, TargetBlock
from .pack import PanelPacker
from .tile import PanelTiles
from .weave import weave
from .words import DirectDenseKernel

_PIXELS = 4
"""Pixels copied at once."""


def emit(kernel: DirectDenseKernel, target: Target) -> KernelSource:
    """Write the kernel: words are source, filter or packed filter, result, bias, table, then `WORDS`."""
    return _Writer(kernel, target).write()


class _Writer:
    """Writes one kernel; methods go from the outermost loop to the tiles."""

    def __init__(self, kernel: DirectDenseKernel, target: Target) -> None:
        self.kernel = kernel
        self.frame = frame = Frame(kernel, target)
        self.k, self.word, self.lanes = frame.k, frame.word, frame.lanes
        self.tiles = PanelTiles(frame)

    def write(self) -> KernelSource:
        k, word, kernel, frame = self.k, self.word, self.kernel, self.frame
        packer = None
        filter_ = k.arg_pointer(1, frame.number)
        if kernel.pack:
            packer = PanelPacker(k, kernel.pack, k.arg_pointer(1, frame.storage), word)
            filter_ = frame.staged.offset(word["panel_at"])
        with k.loop(k.begin, k.end) as item:
            block = frame.block(item // word["panel_ranges"])
            first = item % word["panel_ranges"] * word["panel_range"]
            last = k.min(first + word["panel_range"], word["panels"] * frame.groups)
            if kernel.staged:
                self._stage(block)
            with k.loop(first, last, nonempty=True) as panel:
                group, place = panel // word["panels"], panel % word["panels"]
                start = k.max(k.min(place * frame.panel, frame.width - frame.panel), 0)
                channel = group * frame.width + start
                mine = filter_
                if kernel.in_place:
                    mine = filter_.offset(channel)
                elif packer:
                    with k.loop(0, word["taps"]) as tap:
                        packer.tap(panel, tap, filter_.offset(tap * packer.tap_pitch))
                else:
                    mine = filter_.offset(panel * (frame.depth * frame.panel * word["taps"]))
                self._panel(block, panel - first, group, channel, mine)
        return k.finish()

    def _stage(self, block: TargetBlock) -> None:
        """Copy what a block reads: ``staged[group][image][row][column][channel]``."""
        k, word, depth = self.k, self.word, self.frame.pixel
        pixels = block.source_rows * block.source_cols
        with (
            k.loop(0, self.frame.groups, nonempty=True) as group,
            k.loop(0, block.images, nonempty=True) as n,
        ):
            at = block.source_row * word["source_row"] + block.source_col * word["source_col"]
            image = self.frame.source.offset((block.image + n) * word["source_image"] + at)
            image = image.offset(group * depth * word["source_plane"])
            target = self.frame.staged.offset(group * word["group_size"] + n * pixels * depth)
            # Whole rows follow each other: one long run of pixels.
            joined = block.source_cols.equals(word["source_cols"]) & block.row_list.equals(0)
            rows = k.select(joined, k.i64(1), block.source_rows)
            count = k.select(joined, pixels, block.source_cols)
            with k.loop(0, rows) as row:
                from_row = k.variable(row)
                if not self.kernel.flat:
                    with k.when(block.row_list.differs(0)):
                        listed = self.frame.table.offset(block.row_list + row)
                        from_row.value = listed.load_int()
                here = image.offset(from_row.value * word["source_row"])
                there = target.offset(row * count * depth)
                if self.kernel.woven > 1:
                    weave(self.frame, here, there, count)
                elif self.kernel.planes:
                    transposed_copy(k, here, there, depth, count, word["source_plane"], depth)
                else:
                    self._gather(here, there, count)

    def _gather(self, source: Pointer, target: Pointer, count: Int) -> None:
        """Copy one group's channels of neighbouring pixels."""
        k = self.k
        with k.branch(self.frame.depth.equals(self.word["source_col"])) as ways:
            with ways.then():
                copy(k, source, target, count * self.frame.depth)
            with ways.otherwise():
                self._pieces(source, target, count, [self.lanes, self.lanes // 2])

    def _pieces(self, source: Pointer, target: Pointer, count: Int, sizes: list[int]) -> None:
        """Copy pixels piece by piece: the first of the sizes that divides a group's channels."""
        k, pitch, depth = self.k, self.word["source_col"], self.frame.depth
        if not sizes:
            with k.loop(0, count) as pixel:
                copy(k, source.offset(pixel * pitch), target.offset(pixel * depth), depth)
            return
        size = sizes[0]
        with k.branch((depth % size).equals(0)) as ways:
            with ways.then(), k.loop(0, depth, size, nonempty=True) as channel:
                # One piece of many pixels, and then the next: a loop over a pixel's few would cost more.
                whole = count - count % _PIXELS
                for first, last, step in ((k.i64(0), whole, _PIXELS), (whole, count, 1)):
                    with k.loop(first, last, step) as pixel:
                        here = source.offset(pixel * pitch + channel)
                        there = target.offset(pixel * depth + channel)
                        for i in range(step):
                            value = here.offset(pitch * i).load(size)
                            there.offset(depth * i).store(value)
            with ways.otherwise():
                self._pieces(source, target, count, sizes[1:])

    def _panel(
        self, block: TargetBlock, turn: Int, group: Int, channel: Int, filter_: Pointer
    ) -> None:
        word, frame = self.word, self.frame
        if self.kernel.staged:
            source = frame.staged.offset(group * word["group_size"])
        else:
            at = block.source_row * word["source_row"] + block.source_col * word["source_col"]
            at = block.image * word["source_image"] + at
            source = frame.source.offset(at + group * frame.pixel)
        at = block.target_row * word["target_row"] + block.target_col * word["target_col"]
        target = frame.result.offset(block.image * word["target_image"] + at)
        target = target.offset(channel * word["target_plane"])
        bias = frame.bias.offset(channel) if frame.bias else None
        if self.kernel.planes:
            pixels = frame.staged.offset(word["pixels_at"])
            self.tiles.write(block, source, pixels, filter_, turn, bias)
            self._to_planes(block, pixels, target)
        else:
            self.tiles.write(block, source, target, filter_, turn, bias)

    def _to_planes(self, block: TargetBlock, pixels: Pointer, target: Pointer) -> None:
        """Turn the pixels of a panel into rows of its channels' planes."""
        k, word, pitch = self.k, self.word, self.frame.panel
        channels = self.kernel.narrow or self.frame.panel
        size = block.target_rows * block.target_cols
        with k.loop(0, block.images, nonempty=True) as n:
            source = pixels.offset(n * size * pitch)
            there = target.offset(n * word["target_image"])
            joined = block.target_cols.equals(word["target_cols"])
            rows = k.select(joined, k.i64(1), block.target_rows)
            count = k.select(joined, size, block.target_cols)
            with k.loop(0, rows) as row:
                here = source.offset(row * count * pitch)
                to = there.offset(row * word["target_row"])
                transposed_copy(k, here, to, count, channels, pitch, word["target_plane"])
