"""The kernel of `dense_grouped`: convolution and input gradient with as many groups side by side as there are lanes.

``y[n, p, g, j] = sum over taps t and channels c of x[n, p + t, g, c] * f[t, c, g, j]``, a vector holding L groups g.

::

    for each item: images x rows of the target x L groups x some panels of channels:
        turn the pixels it reads into staged[pixel][channel][group]
        list its pixels class by class
        for each panel, class and tile of pixels:
            sums[pixel][channel][group] = products of all taps of the class
        turn the sums back into the target

A lane holds one group, so a product needs no broadcast, and the taps of a row and all their channels are one loop of
plain loads: getting from tap to tap costs nothing. What it costs is turning both images, about 30 shuffles for 64
numbers, against 9 C products for each.
"""

from __future__ import annotations

from ..._compiler.codegen import I32, I64, Int, KernelBuilder, Pointer, arithmetic, element, symbol
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..shared.stage import transposed_copy
from ..shared.words import arguments, load_row
from .geometry import BLOCK
from .tile import LaneTiles
from .turn import Places, pixels_from_lanes, pixels_to_lanes, planes_from_lanes, planes_to_lanes
from .words import WORDS, GroupedKernel


def emit(kernel: GroupedKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    return _GroupedWriter(kernel, target).write()


class _GroupedWriter:
    """Writes one kernel; methods go from the outside in."""

    def __init__(self, kernel: GroupedKernel, target: Target) -> None:
        self.kernel = kernel
        size = f"{kernel.depth}x{kernel.width}"
        name = "grouped_planes" if kernel.planes else "grouped"
        self.k = k = KernelBuilder(symbol(name, kernel.dtype, size, target, kernel), target)
        storage = element(kernel.dtype)
        number = arithmetic(storage)
        self.lanes = k.lanes(number)
        self.source, self.packed = k.arg_pointer(0, storage), k.arg_pointer(1, number)
        self.result = k.arg_pointer(2, storage)
        self.bias = k.arg_pointer(3, storage) if kernel.bias else None
        self.table = k.arg_pointer(3 + kernel.bias, I32)
        self.word = word = arguments(k, 4 + kernel.bias, WORDS)
        self.tiles = LaneTiles(k, kernel, self.table, word["block_runs"])
        self.turned_bias = k.scratch(number, kernel.width * self.lanes if kernel.bias else 0)
        """The bias of a block of lanes, as [channel][group]."""
        self.staged = k.scratch(number, 0)
        self.sums = self.staged.offset(word["sums_at"])
        self.sources = self.staged.offset(word["sources_at"]).as_element(I64)
        self.targets = self.staged.offset(word["targets_at"]).as_element(I64)

    def write(self) -> KernelSource:
        k, word = self.k, self.word
        with k.loop(k.begin, k.end) as item:
            part, rest = item % word["panel_ranges"], item // word["panel_ranges"]
            lane, rest = rest % word["lane_blocks"], rest // word["lane_blocks"]
            row, image = rest % word["row_blocks"], rest // word["row_blocks"] * word["images"]
            images = k.min(word["images"], word["batch"] - image)
            block = load_row(self.table.offset(word["blocks_at"] + row * len(BLOCK)), BLOCK)
            self._stage(image, images, lane, block)
            self._list(images, block)
            if self.bias:
                width = self.kernel.width
                mine = self.bias.offset(lane * (self.lanes * width))
                to = self.turned_bias
                transposed_copy(k, mine, to, self.lanes, width, width, self.lanes)
            panels = -(-self.kernel.width // self.kernel.outputs)
            first = part * word["range_panels"]
            last = k.min(first + word["range_panels"], panels)
            with k.loop(first, last) as panel:
                at = lane * word["packed_block"] + panel * word["packed_panel"]
                self._panel(self.packed.offset(at), panel, images, block)
            self._unstage(image, images, lane, block, first, last)
        return k.finish()

    def _stage(self, image: Int, images: Int, lane: Int, block: dict[str, Int]) -> None:
        """Turn the source rows of a block, image after image."""
        k, word, depth = self.k, self.word, self.kernel.depth
        cols, plane = word["source_cols"], word["source_rows"] * word["source_cols"]
        channels = word["lane_blocks"] * (self.lanes * depth)
        pixels = block["source_count"] * cols
        places = Places(self.staged, [(0, depth, depth)], images * pixels, self.lanes)
        with k.loop(0, images) as number:
            start, first = (image + number) * plane * channels, lane * (self.lanes * depth)
            at = block["source"] * cols
            if self.kernel.planes:
                here = self.source.offset(start + first * plane + at)
                planes_to_lanes(k, here, places, number * pixels, pixels, plane, depth)
            else:
                here = self.source.offset(start + at * channels + first)
                pixels_to_lanes(k, here, places, number * pixels, pixels, channels, depth, depth)

    def _list(self, images: Int, block: dict[str, Int]) -> None:
        """List where each pixel reads and where its sums go, class by class; the last tile of a class is filled up."""
        k, word = self.k, self.word
        at = k.variable(k.i64(0))
        source_pixel, target_pixel = self.tiles.pixel, self.kernel.width * self.lanes
        source_image = block["source_count"] * word["source_cols"]
        target_image = block["count"] * word["target_cols"]
        with (
            k.loop(0, word["row_classes"], carry=[at]) as row_class,
            k.loop(0, word["col_classes"], carry=[at]) as col_class,
        ):
            rows = self._range(block["classes_at"], row_class)
            cols = self._range(word["cols_at"], col_class)
            start = at.value
            with (
                k.loop(0, images, carry=[at]) as image,
                k.loop(*rows, 2, carry=[at]) as row,
                k.loop(*cols, 2, carry=[at]) as col,
            ):
                down, along = self.table.offset(row), self.table.offset(col)
                source = image * source_image + down.load_int() * word["source_cols"]
                target = image * target_image + down.offset(1).load_int() * word["target_cols"]
                source = (source + along.load_int()) * source_pixel
                target = (target + along.offset(1).load_int()) * target_pixel
                self.sources.offset(at.value).store_int(source)
                self.targets.offset(at.value).store_int(target)
                at.value = at.value + 1
            with k.when(at.value > start):
                # A tile that is not full repeats its last pixel; what follows overwrites the rest.
                for places in (self.sources, self.targets):
                    last = places.offset(at.value - 1).load_int()
                    for i in range(self.kernel.pixels - 1):
                        places.offset(at.value).offset(i).store_int(last)
            at.value = start + self._tiles(at.value - start) * self.kernel.pixels

    def _panel(self, weights: Pointer, panel: Int, images: Int, block: dict[str, Int]) -> None:
        """Compute one panel of all pixels of a block."""
        k, word, kernel = self.k, self.word, self.kernel
        at = k.variable(k.i64(0))
        channels = k.min(panel * kernel.outputs, kernel.width - kernel.outputs) * self.lanes
        sums = self.sums.offset(channels)
        bias = self.turned_bias.offset(channels) if kernel.bias else None
        with (
            k.loop(0, word["row_classes"], carry=[at]) as row_class,
            k.loop(0, word["col_classes"], carry=[at]) as col_class,
        ):
            rows = self._range(block["classes_at"], row_class)
            cols = self._range(word["cols_at"], col_class)
            count = images * ((rows[1] - rows[0]) >> 1) * ((cols[1] - cols[0]) >> 1)
            row_taps = self._range(word["row_classes_at"], row_class)
            col_taps = self._range(word["col_classes_at"], col_class)
            # Without columns there are no taps, whatever rows there are.
            none = col_taps[0].equals(col_taps[1])
            row_taps = row_taps[0], k.select(none, row_taps[0], row_taps[1])
            stop = at.value + self._tiles(count) * kernel.pixels
            with k.loop(at.value, stop, kernel.pixels) as first:
                tile = range(kernel.pixels)
                pixels = [
                    self.staged.offset(self.sources.offset(first + i).load_int()) for i in tile
                ]
                targets = [sums.offset(self.targets.offset(first + i).load_int()) for i in tile]
                self.tiles.write(pixels, targets, weights, row_taps, col_taps, bias)
            at.value = stop

    def _unstage(
        self, image: Int, images: Int, lane: Int, block: dict[str, Int], first: Int, last: Int
    ) -> None:
        """Turn the sums of some panels back, image after image."""
        k, word, width = self.k, self.word, self.kernel.width
        cols, plane = word["target_cols"], word["target_rows"] * word["target_cols"]
        channels = word["lane_blocks"] * (self.lanes * width)
        pixels = block["count"] * cols
        begin, end = first * self.kernel.outputs, k.min(last * self.kernel.outputs, width)
        with k.loop(0, images) as number:
            here = self.sums.offset(number * pixels * (width * self.lanes))
            start, left = (image + number) * plane * channels, lane * (self.lanes * width)
            at = block["start"] * cols
            if self.kernel.planes:
                there = self.result.offset(start + left * plane + at)
                planes_from_lanes(k, here, there, pixels, plane, width, begin, end)
            else:
                there = self.result.offset(start + at * channels + left)
                pixels_from_lanes(k, here, there, pixels, channels, width, begin, end)

    def _range(self, at: Int, number: Int) -> tuple[Int, Int]:
        """Read where something of a class starts and ends in the table."""
        place = self.table.offset(at + number * 2)
        return place.load_int(), place.offset(1).load_int()

    def _tiles(self, count: Int) -> Int:
        return (count + (self.kernel.pixels - 1)) // self.kernel.pixels
