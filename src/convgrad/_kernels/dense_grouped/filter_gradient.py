"""The kernel of grouped filter gradients: both images with groups in the lanes, sums over pixels in registers.

``df[t, c, g, j] = sum over images n and pixels p of x[n, p + t, g, c] * dy[n, p, g, j]``, a vector holding L groups g.

::

    for each item: L groups x some channels c x a slice of the units:
        for each unit (images, rows and columns):
            turn what it reads into x[tile][pixel][c][group] and dy[tile][pixel][j][group]
            for each tile of c and j, and each tap:
                sum = the unit's pixels the tap meets, in runs
                for the nodes of the tree that end with this unit:  sum = bank[level][tap][c][j] + sum
                bank[next level][tap][c][j] = sum
        turn the last sums back into the result, or into partial sums

No product is broadcast: a tile of 4 x 3 channels loads 7 vectors for 12 products of a pixel. Units, runs and the tree
are those of `_problem/sums/pixels.py`, so neither slices nor tiles show in the bits; `shared.reduce` adds the slices.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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
from ..shared.reduce import carries
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
    "row_blocks",  # units are images x row blocks x column blocks
    "col_blocks",
    "images",  # of a unit
    "batch",
    "units",
    "slice_units",  # a power of two
    "levels",  # of the tree of a slice, below its root
    "run_images",
    "run_rows",
    "run_cols",
    "tap_rows_at",  # places in the table
    "tap_cols_at",
    "row_blocks_at",
    "col_blocks_at",
    "grads_at",  # elements of scratch in front of dy
    "totals_at",  # ... in front of the sums of a unit's taps
    "bank_at",  # ... and in front of the banks
    "slice_pitch",  # elements of partial sums from slice to slice
)
"""The run-time words behind the four pointers: input, out_backprop, result or partial sums, table."""

TAP = ("first", "last", "shift")
"""What the table says of a tap along an axis: the outputs it meets, and where output 0 would read."""
UNIT = ("source", "source_count", "start", "count")
"""What it says of the rows and of the columns of a unit."""


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
    chains: int
    """Of a run: one, or two that take turns."""


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


class _Box(NamedTuple):
    """A unit."""

    image: Int
    images: Int
    rows: dict[str, Int]
    cols: dict[str, Int]


class _Nodes(NamedTuple):
    """What a unit's sums are added to."""

    bits: Int
    """Levels of the tree."""
    levels: Int
    """How many of the bits count."""
    place: Int
    """The level whose node the sum becomes."""


class _Steps(NamedTuple):
    """Elements from pixel to pixel, from row to row and from image to image of the outputs, in x and in dy."""

    x: Int
    x_row: Int
    x_image: Int
    dy: Int
    dy_row: Int
    dy_image: Int


_Run = tuple[tuple[Int, Int], Int, Int]
"""Images from and to, rows, columns."""


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
        self.inputs = k.scratch(self.number, 0)
        self.totals = self.inputs.offset(self.word["totals_at"])
        self.grads = self.inputs.offset(self.word["grads_at"])
        self.bank = self.inputs.offset(self.word["bank_at"])
        self.taps = self.word["window_rows"] * self.word["window_cols"]
        self._most = 12 if target.vector_registers < 32 else 24
        """Sums in registers."""

    def write(self) -> KernelSource:
        k, word, kernel = self.k, self.word, self.kernel
        parts = kernel.group_in // kernel.channels
        with k.loop(k.begin, k.end) as item:
            part, rest = item % parts, item // parts
            lane, number = rest % word["lane_blocks"], rest // word["lane_blocks"]
            first = number * word["slice_units"]
            last = k.min(first + word["slice_units"], word["units"])
            with k.loop(first, last, nonempty=True) as unit:
                self._unit(unit, self._nodes(unit - first, last - first), lane, part)
            self._store(number, lane, part * kernel.channels)
        return k.finish()

    def _nodes(self, number: Int, count: Int) -> _Nodes:
        """Return which nodes of the tree a unit ends, of so many: behind the last one, all that are left."""
        k, ends = self.k, carries(self.k, number)
        last = (number + 1).equals(count)
        low = (number ^ (number + 1)) >> 1
        levels = k.select(last, self.word["levels"], ends)
        return _Nodes(k.select(last, number, low), levels, k.select(last, k.i64(0), ends))

    def _unit(self, unit: Int, nodes: _Nodes, lane: Int, part: Int) -> None:
        """Add the products of a unit to the tree."""
        k, word = self.k, self.word
        above, col_block = unit // word["col_blocks"], unit % word["col_blocks"]
        image = above // word["row_blocks"] * word["images"]
        at = word["row_blocks_at"] + above % word["row_blocks"] * len(UNIT)
        box = _Box(
            image,
            k.min(word["images"], word["batch"] - image),
            load_row(self.table.offset(at), UNIT),
            load_row(self.table.offset(word["col_blocks_at"] + col_block * len(UNIT)), UNIT),
        )
        self._stage(box, lane, part * self.kernel.channels)
        across, up = self.kernel.group_out, self.kernel.channels
        for first, last, height in pieces(up, self.kernel.tile[0]):
            for begin, end, width in pieces(across, self.kernel.tile[1]):
                with k.loop(first, last, height) as c, k.loop(begin, end, width) as j:
                    self._tile(box, nodes, c, j, height, width)

    def _stage(self, box: _Box, lane: Int, channel: Int) -> None:
        """Turn what a unit reads of both images."""
        kernel = self.kernel
        x = _Turned(self.x, self.inputs, kernel.group_in, kernel.channels, kernel.tile[0], "source")
        self._turn(x, box, lane, channel, ("source", "source_count"))
        dy = _Turned(
            self.dy, self.grads, kernel.group_out, kernel.group_out, kernel.tile[1], "target"
        )
        self._turn(dy, box, lane, self.k.i64(0), ("start", "count"))

    def _turn(
        self, it: _Turned, box: _Box, lane: Int, channel: Int, names: tuple[str, str]
    ) -> None:
        k, cols = self.k, self.word[f"{it.words}_cols"]
        plane = self.word[f"{it.words}_rows"] * cols
        channels = self.word["lane_blocks"] * (self.lanes * it.group)
        left = lane * (self.lanes * it.group) + channel
        (top, height), (first, width) = [
            [axis[name] for name in names] for axis in (box.rows, box.cols)
        ]
        pixels = height * width
        places = Places(it.target, pieces(it.channels, it.tile), box.images * pixels, self.lanes)
        # Rows that are read as a whole follow each other.
        whole = width.equals(cols)
        lines = k.select(whole, k.i64(1), height)
        line = k.select(whole, pixels, width)
        with k.loop(0, box.images) as number, k.loop(0, lines) as row:
            start = (box.image + number) * plane * channels
            begin = number * pixels + row * width
            pixel = (top + row) * cols + first
            if self.kernel.planes:
                here = it.source.offset(start + left * plane + pixel)
                planes_to_lanes(k, here, places, begin, line, plane, it.group)
            else:
                here = it.source.offset(start + pixel * channels + left)
                pixels_to_lanes(k, here, places, begin, line, channels, it.channels, it.group)

    def _tile(self, box: _Box, nodes: _Nodes, c: Int, j: Int, height: int, width: int) -> None:
        """Add the products of one tile of channels to the tree."""
        k, kernel, size = self.k, self.kernel, height * width * self.lanes
        bank_size = self.taps * (kernel.channels * kernel.group_out * self.lanes)
        fill_zeros(k, self.totals, self.taps * size)
        self._runs(box, c, j, height, width)
        with k.loop(0, self.taps, nonempty=True) as tap:
            bank = self.bank.offset(
                ((tap * kernel.channels + c) * kernel.group_out + j) * self.lanes
            )
            places = [
                bank.offset((i * kernel.group_out + n) * self.lanes)
                for i in range(height)
                for n in range(width)
            ]
            found = self._totals(tap, height * width)
            totals = [k.variable(each.load(self.lanes, aligned=True)) for each in found]
            bits = k.variable(nodes.bits)
            with k.loop(0, nodes.levels, carry=[*totals, bits]) as level:
                with k.when((bits.value & 1).differs(0)):
                    for total, place in zip(totals, places, strict=True):
                        before = place.offset(level * bank_size).load(self.lanes, aligned=True)
                        total.value = before + total.value
                bits.value = bits.value >> 1
            for total, place in zip(totals, places, strict=True):
                place.offset(nodes.place * bank_size).store(total.value, aligned=True)

    def _totals(self, tap: Int, count: int) -> list[Pointer]:
        """Return where the sums of a tap over a unit are."""
        first = self.totals.offset(tap * (count * self.lanes))
        return [first.offset(i * self.lanes) for i in range(count)]

    def _runs(self, box: _Box, c: Int, j: Int, height: int, width: int) -> None:
        """Add the products of one tile to the totals, run by run: what a run reads stays near for all taps."""
        k, word = self.k, self.word
        x = self.inputs.offset(
            c * (box.images * box.rows["source_count"] * box.cols["source_count"]) * self.lanes
        )
        dy = self.grads.offset(
            j * (box.images * box.rows["count"] * box.cols["count"]) * self.lanes
        )
        top, left = box.rows["start"], box.cols["start"]
        bottom, right = top + box.rows["count"], left + box.cols["count"]
        dy = dy.offset((top * box.cols["count"] + left) * (-width * self.lanes))
        with (
            self._steps(k.i64(0), box.images, "run_images") as image,
            self._steps(top, bottom, "run_rows") as row,
            self._steps(left, right, "run_cols") as col,
        ):
            images = (image, k.min(image + word["run_images"], box.images))
            below = k.min(row + word["run_rows"], bottom)
            behind = k.min(col + word["run_cols"], right)
            with k.loop(0, word["window_rows"], nonempty=True) as tap_row:
                at = word["tap_rows_at"] + tap_row * len(TAP)
                down = load_row(self.table.offset(at), TAP)
                # What the tap meets of the run's box.
                rows = (k.max(down["first"], row), k.min(down["last"], below))
                line = (down["shift"] - box.rows["source"]) * box.cols["source_count"]
                line = line - box.cols["source"]
                with k.when(rows[0] < rows[1]), k.loop(0, word["window_cols"]) as tap_col:
                    at = word["tap_cols_at"] + tap_col * len(TAP)
                    along = load_row(self.table.offset(at), TAP)
                    cols = (k.max(along["first"], col), k.min(along["last"], behind))
                    with k.when(cols[0] < cols[1]):
                        here = x.offset((line + along["shift"]) * (height * self.lanes))
                        sums = self._run(box, here, dy, images, rows, cols, height, width)
                        tap = tap_row * word["window_cols"] + tap_col
                        for sum_, total in zip(
                            sums, self._totals(tap, height * width), strict=True
                        ):
                            total.store(total.load(self.lanes, aligned=True) + sum_, aligned=True)

    @contextmanager
    def _steps(self, begin: Int, end: Int, size: str) -> Iterator[Int]:
        """Walk from `begin` to below `end` by steps of a word."""
        step = self.word[size]
        with self.k.loop(0, (end - begin + (step - 1)) // step, nonempty=True) as number:
            yield begin + number * step

    def _run(
        self,
        box: _Box,
        x: Pointer,
        dy: Pointer,
        images: tuple[Int, Int],
        rows: tuple[Int, Int],
        cols: tuple[Int, Int],
        height: int,
        width: int,
    ) -> list[Vector]:
        """Return the sums of a run."""
        k, word, count = self.k, self.word, cols[1] - cols[0]
        x_line = box.cols["source_count"] * (height * self.lanes)
        dy_row = box.cols["count"] * (width * self.lanes)
        steps = _Steps(
            word["col_stride"] * (height * self.lanes),
            word["row_stride"] * x_line,
            box.rows["source_count"] * x_line,
            k.i64(width * self.lanes),
            dy_row,
            box.rows["count"] * dy_row,
        )
        a = x.offset(rows[0] * steps.x_row + cols[0] * steps.x)
        b = dy.offset(rows[0] * steps.dy_row + cols[0] * steps.dy)
        box_ = (images, rows[1] - rows[0], count)
        if self.kernel.chains == 1:
            return self._chain(a, b, steps, box_, height, width)
        if 2 * height * width <= self._most:
            return self._pair(a, b, steps, box_, height, width)
        one, two = (self._turns(a, b, steps, box_, height, width, turn) for turn in range(2))
        return [left + right for left, right in zip(one, two, strict=True)]

    def _fresh(self, count: int) -> list[Variable[Vector]]:
        return [self.k.variable(self.k.zeros(self.number, self.lanes)) for _ in range(count)]

    def _chain(
        self, x: Pointer, dy: Pointer, by: _Steps, box: _Run, height: int, width: int
    ) -> list[Vector]:
        """Add all pixels. A loop's end costs as much as three of them, so rows are one: their last steps further."""
        k, (images, rows, count) = self.k, box
        chain = self._fresh(height * width)
        x_next, dy_next = by.x_row - (count - 1) * by.x, by.dy_row - (count - 1) * by.dy
        with k.loop(*images, carry=chain, nonempty=True) as image:
            a, b = (
                k.variable(x.offset(image * by.x_image)),
                k.variable(dy.offset(image * by.dy_image)),
            )
            left = k.variable(count)
            with k.loop(0, rows * count, carry=[*chain, a, b, left], nonempty=True):
                self._products(chain, a.value, b.value, height, width)
                end = left.value.equals(1)
                a.value = a.value.offset(k.select(end, x_next, by.x))
                b.value = b.value.offset(k.select(end, dy_next, by.dy))
                left.value = k.select(end, count, left.value - 1)
        return [each.value for each in chain]

    def _pair(
        self, x: Pointer, dy: Pointer, by: _Steps, box: _Run, height: int, width: int
    ) -> list[Vector]:
        """Add all pixels to two chains in turn, both in registers."""
        k, (images, rows, count) = self.k, box
        chains = [self._fresh(height * width) for _ in range(2)]
        carry: list[Variable[Any]] = [each for chain in chains for each in chain]
        with k.loop(*images, carry=carry, nonempty=True) as image:
            a, b = (
                k.variable(x.offset(image * by.x_image)),
                k.variable(dy.offset(image * by.dy_image)),
            )
            with k.loop(0, rows, carry=[*carry, a, b], nonempty=True):
                line, other = a.value, b.value
                with k.loop(0, count // 2, carry=[*carry, a, b]):
                    for chain in chains:
                        self._products(chain, a.value, b.value, height, width)
                        a.value, b.value = a.value.offset(by.x), b.value.offset(by.dy)
                with k.when((count & 1).differs(0)):
                    self._products(chains[0], a.value, b.value, height, width)
                    # The next pixel is the other chain's: which of them is added to which does not show.
                    for one, two in zip(*chains, strict=True):
                        one.value, two.value = two.value, one.value
                a.value, b.value = line.offset(by.x_row), other.offset(by.dy_row)
        return [one.value + two.value for one, two in zip(*chains, strict=True)]

    def _turns(
        self, x: Pointer, dy: Pointer, by: _Steps, box: _Run, height: int, width: int, turn: int
    ) -> list[Vector]:
        """Add every other pixel from number `turn` on: registers hold one of two chains."""
        k, (images, rows, count) = self.k, box
        chain, skip = self._fresh(height * width), k.variable(k.i64(turn))
        with k.loop(*images, carry=[*chain, skip], nonempty=True) as image:
            line = k.variable(x.offset(image * by.x_image))
            other = k.variable(dy.offset(image * by.dy_image))
            with k.loop(0, rows, carry=[*chain, skip, line, other], nonempty=True):
                a = k.variable(line.value.offset(skip.value * by.x))
                b = k.variable(other.value.offset(skip.value * by.dy))
                with k.loop(0, (count - skip.value + 1) // 2, carry=[*chain, a, b]):
                    self._products(chain, a.value, b.value, height, width)
                    a.value, b.value = a.value.offset(by.x * 2), b.value.offset(by.dy * 2)
                skip.value = (skip.value + count) & 1
                line.value, other.value = line.value.offset(by.x_row), other.value.offset(by.dy_row)
        return [each.value for each in chain]

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

    def _store(self, number: Int, lane: Int, channel: Int) -> None:
        """Turn the first bank back: ``[tap][channel][group][output]``."""
        k, word, kernel = self.k, self.word, self.kernel
        width, row = kernel.group_out, word["lane_blocks"] * (self.lanes * kernel.group_out)
        with k.loop(0, self.taps) as tap:
            here = self.bank.offset(tap * (kernel.channels * width * self.lanes))
            at = (tap * kernel.group_in + channel) * row + lane * (self.lanes * width)
            there = self.result.offset(number * word["slice_pitch"] + at)
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
