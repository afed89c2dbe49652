"""The sizes of a dense filter gradient: tile, chunks, slices and blocks of channels, and what follows from them.

Chunks and runs are the contract's (`_problem/sums/pixels`): a chunk is a unit. `choice` chooses the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

from ..._problem.convolution import Problem
from ..._problem.geometry import Axis, tap_span
from ..._problem.sums.pixels import PixelBox, PixelContract, even, is_flat
from .tables import Blocks, blocks
from .words import LISTED

_MOST_LISTS = 1 << 16
"""Pairs in the lists of all taps, about: half a megabyte. Larger windows go through a slice's chunks in parts."""


_MOST_SUMS = 128 << 10
"""Bytes of the sums of a tile for all taps, about."""


class Geometry(NamedTuple):
    """Images as the kernel sees them."""

    batch: int
    rows: Axis
    cols: Axis


def flat(problem: Problem) -> Geometry:
    """Return the images of a problem; where each pixel has a window of its own, an image is one row."""
    batch, rows, cols = problem.batch, problem.rows, problem.cols
    if is_flat(problem):
        return Geometry(batch, _one_tap(1), _one_tap(rows.size * cols.size))
    return Geometry(batch, rows, cols)


def _one_tap(size: int) -> Axis:
    return Axis(size, window=1, stride=1, dilation=1, before=0, after=0, out=size)


@dataclass(frozen=True)
class Sizes:
    """All sizes of one plan."""

    number: int
    """Bytes of the compute type."""
    lanes: int
    rows: int
    few: int
    vectors: int
    taps: int
    groups: int
    """After merging."""
    merged: int
    group_in: int
    group_out: int
    row_axis: Axis
    col_axis: Axis
    batch: int
    contract: PixelContract
    by_pixel: bool
    """Whether the layout is NHWC."""
    exact: bool
    """Whether a store to the result rounds nothing."""
    diagonal: int = 1
    """Groups side by side in one vector, of which a tile computes only what stays inside a group."""
    fold: int = 0
    """Input channels of a column where windows' columns are taken as channels, else 0."""
    units: int = 1
    """Chunks of a slice, a power of two: slices are nodes of the tree."""
    tile_parts: int = 1
    panel_parts: int = 1
    group_parts: int = 1

    @cached_property
    def _split(self) -> tuple[int, int]:
        """Big and small tiles that cover the input channels with the least excess, big ones preferred."""
        return (1, 0) if self.diagonal > 1 else _cover(self.group_in, self.rows, self.few)

    @property
    def x_width(self) -> int:
        """Channels of a tile of x."""
        return self.rows * self.diagonal

    @property
    def out_rows(self) -> int:
        """Input channels of a group in the output."""
        return self.group_in // self.diagonal

    @property
    def big_tiles(self) -> int:
        return self._split[0]

    @property
    def tiles(self) -> int:
        return sum(self._split)

    @property
    def padded_in(self) -> int:
        big, small = self._split
        return big * self.rows + small * self.few

    @property
    def panels(self) -> int:
        return -(-self.group_out // (self.vectors * self.lanes))

    @property
    def padded_out(self) -> int:
        return self.panels * self.vectors * self.lanes

    @property
    def unit(self) -> PixelBox:
        """A chunk."""
        return self.contract.unit

    @property
    def image_blocks(self) -> int:
        return -(-self.batch // self.unit.images)

    @property
    def chunks(self) -> int:
        return self.contract.units

    @property
    def slices(self) -> int:
        return -(-self.chunks // self.units)

    @property
    def direct(self) -> bool:
        """Whether the sums of an item are the result."""
        return self.slices == 1 and self.merged == 1

    @property
    def levels(self) -> int:
        """Levels of the tree on which sums of an item wait."""
        return (min(self.units, self.chunks) - 1).bit_length()

    @property
    def stack_pitch(self) -> int:
        """Sums of an item, in whole tiles."""
        groups = -(-self.groups // self.group_parts)
        tiles, panels = -(-self.tiles // self.tile_parts), -(-self.panels // self.panel_parts)
        taps = self.taps if self.straight else self.part_taps
        rows = self.rows if self.big_tiles else self.few
        return groups * tiles * panels * taps * rows * self.vectors * self.lanes

    @property
    def stack_bytes(self) -> int:
        return self.levels * self.stack_pitch * self.number

    @property
    def pitches(self) -> tuple[int, int, int, int]:
        """Distances of slices, groups, taps and rows in the output."""
        if self.direct:
            row = self.groups * self.group_out
            return 0, self.group_out, self.out_rows * row, row
        row = self.padded_out
        tap = self.out_rows * row
        group = self.taps * tap
        return self.groups * group, group, tap, row

    @property
    def partial_bytes(self) -> int:
        return 0 if self.direct else self.slices * self.pitches[0] * self.number

    @property
    def pixels(self) -> int:
        """All outputs."""
        return self.batch * self.row_axis.out * self.col_axis.out

    @cached_property
    def straight(self) -> bool:
        """Whether the pixels of a chunk need no lists: windows have one tap, and it meets a pixel everywhere."""
        axes = (self.row_axis, self.col_axis)
        return (
            not self.fold
            and self.taps == 1
            and all(tap_span(axis, 0)[:2] == (0, axis.out) for axis in axes)
        )

    @property
    def one_run(self) -> bool:
        """Whether the pixels of a chunk follow each other in x and dy at a distance."""
        axes = (self.row_axis, self.col_axis)
        plain = all(axis.stride == 1 and axis.size == axis.out for axis in axes)
        return self.by_pixel and self.straight and plain and not self.fold

    @property
    def prefetch(self) -> int:
        """Lines of the next chunk that a turn asks for: reading is a good part of the time of 1x1 windows."""
        if not self.one_run or self.chunks == self.slices:
            return 0
        line = 64 // self.number
        tiles = -(-self.tiles // self.tile_parts)
        panels = -(-self.panels // self.panel_parts)
        lines = -(-tiles * self.rows // line) + -(-panels * self.vectors * self.lanes // line)
        turns = tiles * panels
        return 1 if 4 * lines <= turns else 2 if 2 * lines <= turns else 4

    @cached_property
    def runs(self) -> int:
        """Runs of a chunk, at most."""
        return prod(
            -(-all_ // each) for all_, each in zip(self.unit, self.contract.run, strict=True)
        )

    @cached_property
    def row_blocks(self) -> Blocks:
        return blocks(self.row_axis, self.unit.rows)

    @cached_property
    def col_blocks(self) -> Blocks:
        return blocks(self.col_axis, self.unit.cols)

    @property
    def part_rows(self) -> int:
        """Rows of taps whose sums are taken at a time: all of them but for large windows."""
        rows, tile = self.row_axis.window, self.rows * self.vectors * self.lanes * self.number
        most = min(_MOST_LISTS // self._row_pairs, _MOST_SUMS // (self.col_axis.window * tile))
        return even(rows, most)

    @property
    def part_taps(self) -> int:
        return self.part_rows * self.col_axis.window

    @property
    def _row_pairs(self) -> int:
        """Entries of the lists of a row of taps, at most."""
        return self.col_axis.window * (prod(self.unit) + self.runs * (LISTED - 1))

    @property
    def pairs(self) -> int:
        """Entries of the lists of pixels, at most."""
        return 0 if self.straight else self.part_rows * self._row_pairs

    @cached_property
    def lists_bytes(self) -> int:
        """Memory for them and their index."""
        index = 0 if self.straight else self.part_taps * self.runs
        return (self.pairs + index + self.runs) * 8

    @property
    def most_tiles(self) -> int:
        return -(-self.groups // self.group_parts) * -(-self.tiles // self.tile_parts)

    @property
    def most_panels(self) -> int:
        return -(-self.groups // self.group_parts) * -(-self.panels // self.panel_parts)

    @property
    def items(self) -> int:
        """Pieces of work: slices of the chunks by parts of groups, tiles and panels."""
        return self.slices * self.group_parts * self.tile_parts * self.panel_parts

    @property
    def keeps_x(self) -> bool:
        """Whether neighbouring items can use one copy of x: their slices are single chunks."""
        return self.chunks == self.slices and self.panel_parts > 1

    @property
    def grain(self) -> int:
        """Items to claim at a time: those that share a copy of x, but at least 8 claims in all."""
        if not self.keeps_x:
            return 1
        return max(n for n in range(1, self.panel_parts + 1) if n == 1 or self.items >= 8 * n)


def _cover(total: int, big: int, small: int) -> tuple[int, int]:
    """Return how many pieces of two sizes cover a total with the least excess, big ones preferred.

    >>> _cover(16, 6, 4), _cover(17, 6, 4), _cover(3, 6, 4)
    ((2, 1), (3, 0), (0, 1))
    """
    choices = []
    for few in range(big + 1):
        left = total - few * small
        many = max(0, -(-left // big))
        choices.append((many * big + few * small, few, many))
        if left <= 0:
            break
    _, few, many = min(choices)
    return many, few
