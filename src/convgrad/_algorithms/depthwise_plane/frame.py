"""What the kernels of `depthwise_plane` and `depthwise_flat` share: their identity, their words, and the padded rows.

The mathematics is told in `kernel`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from ..._codegen import Element, Int, KernelBuilder, Pointer, Vector, compute, element, symbol
from ..._problem import Kind
from ..._targets import Target
from ..shared.edges import load_first
from ..shared.gather import Tap
from ..shared.words import arguments

WORDS = (
    "source_rows",
    "source_cols",
    "target_rows",
    "target_cols",
    "groups_h",
    "groups_w",
    "channels",
    "multiplier",
    "chunk",
    "chunks",
    "row_blocks",
    "units",
    "shares",
    "batch",
    "images",
    "image_parts",
    "bank",
    "block_rows",
    "grad_rows",
)
"""The run-time words behind the three pointers. Columns are elements of a row. `bank` counts the elements of the
workspace in front of the rows, `block_rows` the source rows of a block, `grad_rows` the rows of out_backprop that
stand beside them (filter gradient), filled up to whole tiles."""

Phases = tuple[tuple[Tap, ...], ...]


@dataclass(frozen=True)
class Windows:
    """The windows along an axis: what of a `Footprint` shapes code here. Offsets are in elements."""

    phases: Phases
    step: int

    @property
    def lowest(self) -> int:
        return min((tap.offset for taps in self.phases for tap in taps), default=0)

    @property
    def highest(self) -> int:
        return max((tap.offset for taps in self.phases for tap in taps), default=0)

    @property
    def spacing(self) -> int:
        """Distance from tap to tap of the only phase."""
        (taps,) = self.phases
        return (self.highest - self.lowest) // max(1, len(taps) - 1)

    @property
    def before(self) -> int:
        """Elements of padding in front of a row, per sub-row."""
        return max(0, -(self.lowest // self.step))


@dataclass(frozen=True)
class PlaneKernel:
    """Identity of a kernel: all that shapes its code besides the target."""

    kind: Kind
    dtype: str
    rows: Windows
    cols: Windows
    window: tuple[int, int]
    height: int
    """Groups of rows of a tile."""
    vectors: int
    """Vectors of columns of a tile (forward and input gradient)."""
    tap_cols: int
    """Tap columns whose sums are in registers together (filter gradient)."""
    pitch: int
    """Elements from sub-row to sub-row."""
    source_width: int
    """Columns of the source if they are too few for a vector, else 0: known only at run time."""
    target_width: int
    """The same of the target."""
    direct: bool
    """Whether source rows are read in place, with masks at the borders, instead of padded copies of them."""
    single: int
    """Rows of the source if one tile covers all rows, else 0. Taps outside are then not even written."""
    slack: tuple[int, int]
    """What a tap may add to the last group of rows, and of columns, without leaving the source (direct)."""
    reserve: int
    """Groups by which a vector must stay before the last one to need no mask (direct)."""
    together: int
    """Images of one block of rows that are added up in one go (direct filter gradient)."""
    tail: int
    """Columns that the last vector does not share with the one before (direct filter gradient)."""
    ragged: tuple[bool, bool]
    """Whether the last group of rows, and of columns, misses some of its phases."""
    several: bool
    """Whether the multiplier is not 1."""
    period: int = 0
    """Channels that alternate along the row, or 0."""
    whole: bool = True
    """Filter gradient: whether one share makes the result."""


@dataclass(frozen=True)
class Rows:
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


def reads(windows: Windows, groups: int) -> dict[int, list[tuple[int, int]]]:
    """Map each source offset of some groups to the (target cell, tap) pairs that read it."""
    found: dict[int, list[tuple[int, int]]] = {}
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
        self.number: Element = compute(self.storage)
        self.lanes = k.lanes(self.number)
        self.to_filter = kernel.kind is Kind.FILTER_GRADIENT
        self.taps = kernel.window[0] * kernel.window[1]
        self.source = k.arg_pointer(0, self.storage)
        self.second = k.arg_pointer(1, self.storage)
        """The filter or, for the filter gradient, out_backprop, which stands at the target."""
        self.word = arguments(k, 3, WORDS)
        self.row_pitch = kernel.pitch * kernel.cols.step
        self.bank = k.scratch(self.number, 0)
        """Weights as [m][tap][lane], or the sums of the filter gradient."""
        self.block = self.bank.offset(self.word["bank"])
        """The padded rows: of one plane, or of all that an input gradient adds up."""
        self.block_size = self.word["block_rows"] * self.row_pitch
        self.grads = self.block.offset(self.block_size)
        """Rows of out_backprop, at the same pitch."""
        self.row_reads = reads(kernel.rows, kernel.height)
        if kernel.single:
            inside = range(kernel.single)
            self.row_reads = {r: uses for r, uses in self.row_reads.items() if r in inside}
        self.source_cols = k.i64(kernel.source_width or self.word["source_cols"])
        self.target_cols = k.i64(kernel.target_width or self.word["target_cols"])
        self.source_plane = self.source_cols * self.word["source_rows"]
        self.target_plane = self.target_cols * self.word["target_rows"]
        self.outputs = self.word["channels"] * self.word["multiplier"]
        self.zero_row = self.block.offset(self.lanes)
        """Zeros to read instead of rows outside the image (direct)."""

    def rows(self, block: Int) -> Rows:
        """Say which rows a block has; blocks differ by one at most, so none is smaller than a tile."""
        k, word, windows = self.k, self.word, self.kernel.rows
        start, count = k.i64(0), k.i64(self.kernel.height)
        if not self.kernel.single:
            start = block * word["groups_h"] // word["row_blocks"]
            count = (block + 1) * word["groups_h"] // word["row_blocks"] - start
        top = start * windows.step + windows.lowest
        low = k.min(k.max(-top, 0), word["block_rows"])
        high = k.max(k.min(word["source_rows"] - top, word["block_rows"]), low)
        return Rows(start, count, top, low, high)

    def each_multiple(self) -> AbstractContextManager[Int]:
        """Walk the outputs of one input channel."""
        return self.k.loop(0, self.word["multiplier"] if self.kernel.several else 1, nonempty=True)

    def row_pointers(self, plane: Pointer, group: Int) -> dict[int, Pointer]:
        """Return the source rows under a tile by their offsets; rows outside the image are zeros."""
        k, kernel, cols = self.k, self.kernel, self.source_cols
        if kernel.single:
            return {offset: plane.offset(cols * offset) for offset in self.row_reads}
        # Tiles of a filter gradient are not moved back: the last one may begin at the last group.
        step, last = kernel.rows.step, 0 if self.to_filter else kernel.height - 1
        first = plane.offset(group * step * cols)
        found = {}
        for offset in sorted(self.row_reads):
            here = first.offset(cols * offset)
            if offset < 0 or offset - last * step > kernel.slack[0]:
                exists = (group * step + offset).inside(self.word["source_rows"])
                here = k.select(exists, here, self.zero_row)
            found[offset] = here
        return found

    def load_tap(
        self, row: Pointer, offset: int, at_start: bool, at_end: bool, seen: dict[int, Vector]
    ) -> Vector | None:
        """Read one vector of a source row in place (direct); None if it lies outside as a whole.

        With a step of two it is every other element of two vectors, in the order of `parted`. `seen` keeps the loads
        of a row.
        """
        lanes, step = self.lanes, self.kernel.cols.step
        if step == 1:
            return self._load_in_place(row, offset, at_start, at_end)
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
        self, row: Pointer, offset: int, at_start: bool, at_end: bool
    ) -> Vector | None:
        kernel, last = self.kernel, (self.lanes - 1) * self.kernel.cols.step
        mask = [
            not (at_start and lane + offset < 0)
            and not (at_end and lane - last + offset > kernel.slack[1])
            for lane in range(self.lanes)
        ]
        if kernel.target_width:
            mask = [0 <= lane + offset < kernel.source_width for lane in range(self.lanes)]
        return row.offset(offset).load(self.lanes, mask=mask) if any(mask) else None

    def column(self, offset: int) -> int:
        """Return where a tap of this offset reads in a padded row, for the first group of columns."""
        step = self.kernel.cols.step
        return offset % step * self.kernel.pitch + self.kernel.cols.before + offset // step

    # Copies

    def clear(self, start: Pointer, size: Int) -> None:
        """Zero whole vectors."""
        zero = self.k.zeros(self.number, self.lanes)
        with self.k.loop(0, size, self.lanes) as i:
            start.offset(i).store(zero, aligned=True)

    def copy_source(self, plane: Int, rows: Rows, block: Pointer) -> None:
        """Copy the rows of a block that exist; what is around them is zero already."""
        k, kernel, cols = self.k, self.kernel, self.source_cols
        source = self.source.offset(plane * self.source_plane + rows.top * cols)
        with k.loop(rows.low, rows.high) as row:
            here = source.offset(row * cols)
            there = block.offset(row * self.row_pitch + kernel.cols.before)
            if kernel.cols.step == 1:
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
