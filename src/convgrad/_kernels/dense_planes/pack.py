"""The filter of a problem in panels of few channels: ``packed[group][panel][tap][k][channel]``, in the compute type.

Where the channels do not fill the last panel it starts earlier and repeats some of the one before.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    transpose,
)
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..shared.words import arguments

WORDS = (
    "depth",  # channels summed over, of one group: K
    "width",  # channels produced, of one group: N
    "groups",
    "taps",
    "panels",  # of one group
    "high_panels",  # those of `high` channels; the others have `low`
    "group_size",  # numbers of one group's panels
    "flags_at",  # where the panels' flags lie behind the panels, in numbers
)
"""The words of a packed filter. Its table lists the taps in the order they are packed in."""

_AHEAD = 24
"""Rows asked for ahead of the one being copied."""


@dataclass(frozen=True)
class PlanesPackKernel:
    """Writes a filter in panels of few channels: ``packed[group][panel][tap][k][channel]``; items are panels."""

    dtype: str
    high: int
    """Channels of a panel."""
    low: int
    """Channels of the last panels, where the others' do not fit; else 0."""
    transposed: bool
    """Whether the filter's last axis is summed over: for an input gradient."""
    flagged: bool
    """Whether each panel has a flag behind the panels: 0, or a NaN if one of its numbers is not finite."""


def emit(kernel: PlanesPackKernel, target: Target) -> KernelSource:
    """Write the kernel: words are filter, packed, table, then `WORDS`."""
    return _Writer(kernel, target).write()


def pieces(count: int) -> list[tuple[int, int]]:
    """Cut some lanes into powers of two: first lane and length of each.

    >>> pieces(6)
    [(0, 4), (4, 2)]
    """
    found, start = [], 0
    while start < count:
        length = 1 << ((count - start).bit_length() - 1)
        found.append((start, length))
        start += length
    return found


class _Writer:
    """Writes one kernel."""

    def __init__(self, kernel: PlanesPackKernel, target: Target) -> None:
        self.kernel = kernel
        size = f"{kernel.high}_{kernel.low}"
        name = "planes_pack_t" if kernel.transposed else "planes_pack"
        self.k = k = KernelBuilder(symbol(name, kernel.dtype, size, target, kernel), target)
        self.storage = element(kernel.dtype)
        self.number = arithmetic(self.storage)
        self.lanes = k.lanes(self.number)
        self.filter = k.arg_pointer(0, self.storage)
        self.packed = k.arg_pointer(1, self.number)
        self.table = k.arg_pointer(2, I32)
        self.word = arguments(k, 3, WORDS)

    def write(self) -> KernelSource:
        k, word, kernel = self.k, self.word, self.kernel
        with k.loop(k.begin, k.end) as item:
            group, panel = item // word["panels"], item % word["panels"]
            flag = self.packed.offset(word["flags_at"] + item)
            if kernel.low:
                self._either(group, panel, flag)
            else:
                self._panel(kernel.high, group, panel * kernel.high, flag)
        return k.finish()

    def _either(self, group: Int, panel: Int, flag: Pointer) -> None:
        """Pack a panel of one of two heights."""
        k, kernel, high = self.k, self.kernel, self.word["high_panels"]
        with k.branch(panel < high) as ways:
            with ways.then():
                self._panel(kernel.high, group, panel * kernel.high, flag)
            with ways.otherwise():
                place = high * kernel.high + (panel - high) * kernel.low
                self._panel(kernel.low, group, place, flag)

    def _panel(self, height: int, group: Int, place: Int, flag: Pointer) -> None:
        """Pack all taps of a panel whose first channel would be `place` if there were channels enough."""
        k, word = self.k, self.word
        start = k.min(place, word["width"] - height)
        size = word["depth"] * word["taps"]
        to = self.packed.offset(group * word["group_size"] + place * size)
        sums = [k.variable(k.zeros(self.number, n)) for _, n in pieces(height)]
        carry = sums if self.kernel.flagged else []
        with k.loop(0, word["taps"], carry=carry) as number:
            tap = self.table.offset(number).load_int()
            there = to.offset(number * word["depth"] * height)
            if self.kernel.transposed:
                self._turned(height, group, start, tap, there, carry)
            else:
                self._rows(height, group, start, tap, there, carry)
        if carry:
            total = k.zeros(self.number, 1)
            for each in sums:
                total = total + each.value.sum()
            flag.store(total)

    def _rows(
        self,
        height: int,
        group: Int,
        start: Int,
        tap: Int,
        to: Pointer,
        sums: list[Variable[Vector]],
    ) -> None:
        k, word = self.k, self.word
        pitch = word["groups"] * word["width"]
        source = self.filter.offset(tap * word["depth"] * pitch + group * word["width"] + start)
        with k.loop(0, word["depth"], carry=sums, nonempty=True) as row:
            here, there = source.offset(row * pitch), to.offset(row * height)
            # Rows lie a page or so apart, where no hardware looks ahead.
            here.offset(pitch * _AHEAD).prefetch()
            for i, (first, length) in enumerate(pieces(height)):
                self._put(there.offset(first), here.offset(first).load(length), sums, i)

    def _put(self, to: Pointer, values: Vector, sums: list[Variable[Vector]], piece: int) -> None:
        """Store a piece; infinities and NaNs times zero show in the sums."""
        to.store(values)
        if sums:
            sums[piece].value = sums[piece].value + values * 0

    def _turned(
        self,
        height: int,
        group: Int,
        start: Int,
        tap: Int,
        to: Pointer,
        sums: list[Variable[Vector]],
    ) -> None:
        k, word, depth = self.k, self.word, self.word["depth"]
        pitch = word["groups"] * depth
        source = self.filter.offset((tap * word["width"] + start) * pitch + group * depth)
        done = k.variable(k.i64(0))
        if height <= self.lanes:
            done.value = depth - depth % self.lanes
            with k.loop(0, done.value, self.lanes, carry=sums) as first:
                here = source.offset(first)
                rows = [here.offset(pitch * o).load(self.lanes) for o in range(height)]
                rows += [rows[-1]] * (self.lanes - height)
                for i, turned in enumerate(transpose(rows)):
                    there = to.offset((first + i) * height)
                    for piece, (at, length) in enumerate(pieces(height)):
                        self._put(there.offset(at), turned.part(at, length), sums, piece)
        with k.loop(done.value, depth, carry=sums) as row:
            for piece, (at, length) in enumerate(pieces(height)):
                for i in range(at, at + length):
                    value = source.offset(pitch * i).offset(row).load()
                    to.offset(row * height + i).store(value)
                if sums:
                    whole = to.offset(row * height + at).load(length)
                    sums[piece].value = sums[piece].value + whole * 0
