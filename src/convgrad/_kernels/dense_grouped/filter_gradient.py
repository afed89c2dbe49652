"""The kernel of grouped filter gradients: both images with groups in the lanes, sums over pixels in registers.

``df[t, c, g, j] = sum over images n and pixels p of x[n, p + t, g, c] * dy[n, p, g, j]``, a vector holding L groups g.

::

    for each item: L groups x some channels c x a share of the units (images x rows):
        for each unit:
            turn what it reads into x[tile][pixel][c][group] and dy[tile][pixel][j][group]
            for each tile of c and j, and each tap:
                bank[tap][c][j] += sums over the unit's pixels the tap meets, in runs
        turn the bank back into the result, or into partial sums

No product is broadcast: a tile of 4 x 3 channels loads 7 vectors for 12 products of a pixel. Sums are added in runs of
about 48 products, runs to a unit's total and units to the bank; shares are added in float64 by `shared.reduce`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from ..._compiler.codegen import (
    I32,
    Int,
    KernelBuilder,
    Pointer,
    Variable,
    Vector,
    arithmetic,
    element,
    symbol,
)
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..shared.stage import fill_zeros
from ..shared.words import arguments, load_row
from .turn import Places, pixels_from_lanes, pixels_to_lanes, planes_to_lanes

WORDS = (
    "source_rows",
    "source_cols",
    "target_rows",
    "target_cols",
    "row_stride",
    "col_stride",
    "window_rows",
    "window_cols",
    "lane_blocks",
    "row_blocks",
    "images",  # of a unit
    "batch",
    "units",
    "shares",
    "row_run",  # rows and columns of a run of products
    "col_run",
    "tap_rows_at",  # places in the table
    "tap_cols_at",
    "blocks_at",
    "grads_at",  # elements of scratch in front of dy
    "bank_at",  # ... and in front of the bank
    "share_pitch",  # elements of partial sums from share to share
)
"""The run-time words behind the four pointers: input, out_backprop, result or partial sums, table."""

TAP = ("first", "last", "shift")
"""What the table says of a tap along an axis: the outputs it meets, and where output 0 would read."""
UNIT = ("source", "source_count", "start", "count")
"""What it says of the rows of a unit."""


_ROWS = 2
"""Rows whose products are added side by side: the end of a row costs as much as three of its pixels."""


@dataclass(frozen=True)
class GroupedFilterKernel:
    """Identity of a kernel: all that shapes its code besides the target."""

    dtype: str
    result: str
    """Type of what is written: that of the partial sums, or the dtype."""
    group_in: int
    group_out: int
    channels: int
    """Input channels of an item."""
    tile: tuple[int, int]
    """Most channels of x and of dy in a tile."""
    planes: bool
    """Whether images are NCHW."""


def emit(kernel: GroupedFilterKernel, target: Target) -> KernelSource:
    """Write the kernel for a target."""
    return _FilterWriter(kernel, target).write()


class _Turned(NamedTuple):
    """An image and where it goes."""

    source: Pointer
    target: Pointer
    group: int
    """Channels of a group, ..."""
    channels: int
    """... and how many of them are taken."""
    tile: int
    """Channels that lie together, at most."""
    words: str
    """How the words of its sizes begin."""


class _FilterWriter:
    """Writes one kernel; methods go from the outside in."""

    def __init__(self, kernel: GroupedFilterKernel, target: Target) -> None:
        self.kernel = kernel
        size = f"{kernel.group_in}x{kernel.group_out}"
        self.k = k = KernelBuilder(
            symbol("grouped_filter", kernel.dtype, size, target, kernel), target
        )
        storage = element(kernel.dtype)
        self.number = arithmetic(storage)
        self.lanes = k.lanes(self.number)
        self.x, self.dy = k.arg_pointer(0, storage), k.arg_pointer(1, storage)
        self.result, self.table = k.arg_pointer(2, element(kernel.result)), k.arg_pointer(3, I32)
        self.word = arguments(k, 4, WORDS)
        self.totals = k.scratch(self.number, kernel.tile[0] * kernel.tile[1] * self.lanes)
        self.inputs = k.scratch(self.number, 0)
        self.grads = self.inputs.offset(self.word["grads_at"])
        self.bank = self.inputs.offset(self.word["bank_at"])
        self.taps = self.word["window_rows"] * self.word["window_cols"]

    def write(self) -> KernelSource:
        k, word, kernel = self.k, self.word, self.kernel
        parts = kernel.group_in // kernel.channels
        with k.loop(k.begin, k.end) as item:
            part, rest = item % parts, item // parts
            lane, share = rest % word["lane_blocks"], rest // word["lane_blocks"]
            fill_zeros(k, self.bank, self.taps * (kernel.channels * kernel.group_out * self.lanes))
            first = share * word["units"] // word["shares"]
            last = (share + 1) * word["units"] // word["shares"]
            with k.loop(first, last) as unit:
                self._unit(unit, lane, part * kernel.channels)
            self._store(share, lane, part * kernel.channels)
        return k.finish()

    def _unit(self, unit: Int, lane: Int, channel: Int) -> None:
        """Add the products of some images' rows to the bank."""
        k, word = self.k, self.word
        image = unit // word["row_blocks"] * word["images"]
        images = k.min(word["images"], word["batch"] - image)
        at = word["blocks_at"] + unit % word["row_blocks"] * len(UNIT)
        rows = load_row(self.table.offset(at), UNIT)
        self._stage(image, images, lane, channel, rows)
        across, up = self.kernel.group_out, self.kernel.channels
        for first, last, height in pieces(up, self.kernel.tile[0]):
            for begin, end, width in pieces(across, self.kernel.tile[1]):
                with k.loop(first, last, height) as c, k.loop(begin, end, width) as j:
                    self._taps(images, rows, c, j, height, width)

    def _stage(
        self, image: Int, images: Int, lane: Int, channel: Int, rows: dict[str, Int]
    ) -> None:
        """Turn the rows of both images that a unit reads."""
        kernel = self.kernel
        x = _Turned(self.x, self.inputs, kernel.group_in, kernel.channels, kernel.tile[0], "source")
        self._turn(x, image, images, lane, channel, rows["source"], rows["source_count"])
        dy = _Turned(
            self.dy, self.grads, kernel.group_out, kernel.group_out, kernel.tile[1], "target"
        )
        self._turn(dy, image, images, lane, self.k.i64(0), rows["start"], rows["count"])

    def _turn(
        self,
        it: _Turned,
        image: Int,
        images: Int,
        lane: Int,
        channel: Int,
        first: Int,
        count: Int,
    ) -> None:
        k, cols = self.k, self.word[f"{it.words}_cols"]
        plane = self.word[f"{it.words}_rows"] * cols
        channels = self.word["lane_blocks"] * (self.lanes * it.group)
        left = lane * (self.lanes * it.group) + channel
        pixels = count * cols
        cut = pieces(it.channels, it.tile)
        places = Places(it.target, cut, images * pixels, self.lanes)
        with k.loop(0, images) as number:
            start, begin = (image + number) * plane * channels, number * pixels
            if self.kernel.planes:
                here = it.source.offset(start + left * plane + first * cols)
                planes_to_lanes(k, here, places, begin, pixels, plane, it.group)
            else:
                here = it.source.offset(start + first * cols * channels + left)
                pixels_to_lanes(k, here, places, begin, pixels, channels, it.channels, it.group)

    def _taps(
        self, images: Int, rows: dict[str, Int], c: Int, j: Int, height: int, width: int
    ) -> None:
        """Add the products of one tile of channels, tap by tap."""
        k, word, kernel = self.k, self.word, self.kernel
        with k.loop(0, word["window_rows"]) as tap_row:
            down = load_row(self.table.offset(word["tap_rows_at"] + tap_row * len(TAP)), TAP)
            first = k.max(down["first"], rows["start"])
            last = k.min(down["last"], rows["start"] + rows["count"])
            with k.loop(0, word["window_cols"]) as tap_col:
                at = word["tap_cols_at"] + tap_col * len(TAP)
                along = load_row(self.table.offset(at), TAP)
                tap = tap_row * word["window_cols"] + tap_col
                bank = self.bank.offset(
                    ((tap * kernel.channels + c) * kernel.group_out + j) * self.lanes
                )
                place = (down["shift"] - rows["source"]) * word["source_cols"] + along["shift"]
                pixels = images * rows["source_count"] * word["source_cols"]
                x = self.inputs.offset((c * pixels + place * height) * self.lanes)
                place = rows["start"] * word["target_cols"]
                pixels = images * rows["count"] * word["target_cols"]
                dy = self.grads.offset((j * pixels - place * width) * self.lanes)
                with k.when((first < last) & (along["first"] < along["last"])):
                    totals = self._sums(
                        images,
                        rows,
                        x,
                        dy,
                        (first, last),
                        (along["first"], along["last"]),
                        height,
                        width,
                    )
                    for i in range(height):
                        for n in range(width):
                            there = bank.offset((i * kernel.group_out + n) * self.lanes)
                            before = there.load(self.lanes, aligned=True)
                            value = totals[i * width + n].load(self.lanes, aligned=True)
                            there.store(before + value, aligned=True)

    def _sums(
        self,
        images: Int,
        rows: dict[str, Int],
        x: Pointer,
        dy: Pointer,
        row_range: tuple[Int, Int],
        col_range: tuple[Int, Int],
        height: int,
        width: int,
    ) -> list[Pointer]:
        """Add the products of one tile and one tap over a unit's pixels, run by run; return where the totals are."""
        k, word = self.k, self.word
        zero = k.zeros(self.number, self.lanes)
        totals = [self.totals.offset(i * self.lanes) for i in range(height * width)]
        for total in totals:
            total.store(zero, aligned=True)
        x_pixel, dy_pixel = height * self.lanes, width * self.lanes
        x_step = word["col_stride"] * x_pixel
        x_row = word["row_stride"] * word["source_cols"] * x_pixel
        x_image = rows["source_count"] * word["source_cols"] * x_pixel
        dy_row = word["target_cols"] * dy_pixel
        dy_image = rows["count"] * dy_row
        with k.loop(0, images, nonempty=True) as image:
            top = k.variable(row_range[0])
            blocks = (row_range[1] - row_range[0] + word["row_run"] - 1) // word["row_run"]
            with k.loop(0, blocks, carry=[top]):
                bottom = k.min(top.value + word["row_run"], row_range[1])
                left = k.variable(col_range[0])
                runs = (col_range[1] - col_range[0] + word["col_run"] - 1) // word["col_run"]
                with k.loop(0, runs, carry=[left]):
                    right = k.min(left.value + word["col_run"], col_range[1])
                    acc = [k.variable(zero) for _ in totals]
                    paired = bottom - (bottom - top.value) % _ROWS
                    for begin, end, rows_ in ((top.value, paired, _ROWS), (paired, bottom, 1)):
                        with k.loop(begin, end, rows_, carry=acc) as row:
                            at = image * x_image + row * x_row + left.value * x_step
                            to = image * dy_image + row * dy_row + left.value * dy_pixel
                            a, b = k.variable(x.offset(at)), k.variable(dy.offset(to))
                            carry: list[Variable[Any]] = [*acc, a, b]
                            with k.loop(left.value, right, carry=carry, nonempty=True):
                                for i in range(rows_):
                                    ours = a.value.offset(x_row) if i else a.value
                                    theirs = b.value.offset(dy_row) if i else b.value
                                    self._products(acc, ours, theirs, height, width)
                                a.value = a.value.offset(x_step)
                                b.value = b.value.offset(dy_pixel)
                    for sum_, total in zip(acc, totals, strict=True):
                        before = total.load(self.lanes, aligned=True)
                        total.store(before + sum_.value, aligned=True)
                    left.value = right
                top.value = bottom
        return totals

    def _products(
        self, acc: list[Variable[Vector]], x: Pointer, dy: Pointer, height: int, width: int
    ) -> None:
        """Add the products of a pixel: the smaller side stays in registers, the other comes one by one."""
        k, lanes = self.k, self.lanes
        sides = (x, height, width), (dy, width, 1)
        (few, count, one), (many, others, other) = sorted(sides, key=lambda side: side[1])
        held = [few.offset(i * lanes).load(lanes, aligned=True) for i in range(count)]
        for n in range(others):
            value = many.offset(n * lanes).load(lanes, aligned=True)
            for i, each in enumerate(held):
                sum_ = acc[i * one + n * other]
                sum_.value = k.fma(each, value, sum_.value)

    def _store(self, share: Int, lane: Int, channel: Int) -> None:
        """Turn the bank back: ``[tap][channel][group][output]``."""
        k, word, kernel = self.k, self.word, self.kernel
        width, row = kernel.group_out, word["lane_blocks"] * (self.lanes * kernel.group_out)
        with k.loop(0, self.taps) as tap:
            here = self.bank.offset(tap * (kernel.channels * width * self.lanes))
            at = (tap * kernel.group_in + channel) * row + lane * (self.lanes * width)
            there = self.result.offset(share * word["share_pitch"] + at)
            count = k.i64(kernel.channels)
            pixels_from_lanes(k, here, there, count, row, width, k.i64(0), k.i64(width))


def pieces(total: int, most: int) -> list[tuple[int, int, int]]:
    """Cut channels into pieces of at most `most`, of two neighbouring sizes: (from, to, size) of each size.

    >>> pieces(8, 3)
    [(0, 6, 3), (6, 8, 2)]
    """
    count = -(-total // most)
    size, larger = divmod(total, count)
    cut = larger * (size + 1)
    found = [(0, cut, size + 1)] if larger else []
    return [*found, (cut, total, size)]
