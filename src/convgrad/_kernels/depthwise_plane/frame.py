"""What the kernels of `depthwise_plane` and `depthwise_flat` share: arguments, workspace, and blocks of rows.

The mathematics is told in `kernel`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from ..._compiler.codegen import (
    Element,
    Int,
    KernelBuilder,
    Pointer,
    Vector,
    arithmetic,
    element,
    symbol,
)
from ..._compiler.targets import Target
from ..._problem.convolution import Kind
from ..shared.words import arguments
from .words import WORDS, PlaneKernel, Windows


@dataclass(frozen=True)
class BlockRows:
    """The rows of a block."""

    start: Int
    """First group of target rows."""
    count: Int
    top: Int
    """Source row that stands first in the block; it may lie in front of the image."""
    low: Int
    """First row of the block that exists in the source."""
    high: Int
    """One past the last."""


Reads = dict[int, list[tuple[int, int]]]
"""The (target cell, tap) pairs that read a source cell, by its offset."""


def reads(windows: Windows, groups: int) -> Reads:
    """Map each source offset of some groups to the (target cell, tap) pairs that read it."""
    found: Reads = {}
    for group in range(groups):
        for phase, taps in enumerate(windows.phases):
            for tap in taps:
                cell = group * len(windows.phases) + phase
                found.setdefault(group * windows.step + tap.offset, []).append((cell, tap.number))
    return found


class Frame:
    """The kernel being written, its arguments and its workspace."""

    def __init__(self, kernel: PlaneKernel, target: Target) -> None:
        self.kernel = kernel
        family = "depthwise_flat" if kernel.period else "depthwise_plane"
        size = f"{kernel.height}x{kernel.vectors}p{kernel.pitch}"
        title = symbol(f"{family}_{kernel.kind.short}", kernel.dtype, size, target, kernel)
        self.k = k = KernelBuilder(title, target)
        self.storage: Element = element(kernel.dtype)
        self.number: Element = arithmetic(self.storage)
        self.lanes = k.lanes(self.number)
        self.to_filter = kernel.kind is Kind.FILTER_GRADIENT
        self.taps = kernel.window[0] * kernel.window[1]
        self.source = k.arg_pointer(0, self.storage)
        self.second = k.arg_pointer(1, self.storage)
        """The filter or, for the filter gradient, out_backprop, which stands at the target."""
        self.bias = k.arg_pointer(3, self.storage) if kernel.bias else None
        self.word = arguments(k, 4 if kernel.bias else 3, WORDS)
        self.row_pitch = kernel.pitch * kernel.cols.step
        self.bank = k.scratch(self.number, 0)
        """Weights as [m][tap][lane], or the sums of the filter gradient."""
        self.block = self.bank.offset(self.word["bank"])
        """The padded rows: of one plane, or of all that an input gradient adds up."""
        self.block_size = self.word["block_rows"] * self.row_pitch
        copies = self.word["multiplier"] if kernel.kind is Kind.INPUT_GRADIENT else 1
        self.grads = self.block.offset(self.block_size * copies)
        """Rows of out_backprop, or of the target where phases are woven."""
        self.row_reads = reads(kernel.rows, kernel.height)
        if kernel.single:
            inside = range(kernel.single)
            self.row_reads = {r: uses for r, uses in self.row_reads.items() if r in inside}
        self.source_cols = k.i64(kernel.source_width or self.word["source_cols"])
        self.target_cols = k.i64(kernel.target_width or self.word["target_cols"])
        self.source_plane = self.source_cols * self.word["source_rows"]
        self.target_plane = self.target_cols * self.word["target_rows"]
        self.outputs = self.word["channels"] * self.word["multiplier"]

    def rows(self, block: Int) -> BlockRows:
        """Say which rows a block has; blocks differ by one at most, so none is smaller than a tile.

        Those of a filter gradient are units: the last one may be smaller.
        """
        k, word, windows = self.k, self.word, self.kernel.rows
        start, count = k.i64(0), k.i64(self.kernel.height)
        if not self.kernel.single:
            if self.to_filter:
                start = block * word["unit_rows"]
                count = k.min(word["unit_rows"], word["groups_h"] - start)
            else:
                start = block * word["groups_h"] // word["row_blocks"]
                count = (block + 1) * word["groups_h"] // word["row_blocks"] - start
        top = start * windows.step + windows.lowest
        low = k.min(k.max(-top, 0), word["block_rows"])
        high = k.max(k.min(word["source_rows"] - top, word["block_rows"]), low)
        return BlockRows(start, count, top, low, high)

    def place(self, q: Int) -> Int:
        """Return where in a padded row stands what column q reads: vectors are spread from single elements."""
        return q // self.kernel.repeat if self.kernel.spread else q

    def load(self, place: Pointer) -> Vector:
        """Read what a vector of columns reads in a padded row."""
        return place.broadcast(self.lanes) if self.kernel.spread else place.load(self.lanes)

    def each_multiple(self) -> AbstractContextManager[Int]:
        """Walk the outputs of one input channel."""
        return self.k.loop(0, self.word["multiplier"] if self.kernel.several else 1, nonempty=True)

    def clear(self, start: Pointer, size: Int) -> None:
        """Zero whole vectors."""
        zero = self.k.zeros(self.number, self.lanes)
        with self.k.loop(0, size, self.lanes) as i:
            start.offset(i).store(zero, aligned=True)
