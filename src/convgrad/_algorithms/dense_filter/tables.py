"""Tables of the dense filter gradient: which pixels a chunk copies, and which pairs of them each tap multiplies.

A chunk is a box of `out_backprop`: images x rows x columns. Along one axis, blocks that meet the padding in the same
way are one class; a shape is a class of rows, a class of columns and a number of images. Everything long hangs on
shapes, so the tables grow neither with the batch nor with the image, but for two words per block of rows and of
columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..._geometry import Axis, tap_span
from ..shared.words import in_order
from .words import BLOCK, RUN, SHAPE

_DENSE = 1.7
"""Cells with holes are copied as one run, holes included, up to this excess."""

_FAR = 2**62

Array = np.ndarray[Any, np.dtype[np.int64]]
Run = tuple[int, int, int]
"""First cell, how many, how far apart."""


@dataclass(frozen=True, eq=False)
class Class:
    """Blocks along an axis that are alike."""

    count: int
    """Outputs of a block."""
    cells: Array
    """Input cells to copy, relative to the block's base."""
    places: tuple[tuple[int, Array], ...]
    """For each tap, the first output that reads a real cell, and for it and its followers where in `cells`."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """An axis of outputs cut into equal blocks, but for the last one."""

    size: int
    blocks: Array
    """A row of words for each block, as `BLOCK` names them."""
    classes: tuple[Class, ...]

    @property
    def most_cells(self) -> int:
        return max(len(each.cells) for each in self.classes)


def blocks(axis: Axis, size: int) -> Blocks:
    """Cut an axis into blocks of `size` outputs."""
    spans = [tap_span(axis, tap) for tap in range(axis.window)]
    bounds = np.array([(span.first, span.last) for span in spans])
    starts = np.arange(0, axis.out, size)
    origins = starts * axis.stride - axis.before
    # Blocks that follow each other are alike but where a tap enters or leaves the image, and at the end. Those few are
    # looked at, and the others are as the one before: 262,144 outputs under 200 taps took 10 s and 0.9 GB.
    turns = np.clip(bounds.reshape(-1), 0, axis.out - 1) // size
    looked = np.unique(np.concatenate([[0, len(starts) - 1], turns, turns + 1]))
    looked = looked[looked < len(starts)]
    counts = np.minimum(size, axis.out - starts[looked])
    # For each block and tap, the outputs of the block that read a real cell.
    met = np.clip(bounds - starts[looked, None, None], 0, counts[:, None, None])
    met[met[..., 0] >= met[..., 1]] = 0
    real = met[..., 0] < met[..., 1]
    shifts = np.arange(axis.window) * axis.dilation
    lows = np.where(real, met[..., 0] * axis.stride + shifts, _FAR).min(axis=1)
    keys = np.column_stack([counts, met.reshape(len(looked), -1)])
    _, firsts, kinds = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    classes = tuple(
        _class(axis, int(counts[at]), met[at].tolist(), int(lows[at])) for at in firsts.tolist()
    )
    like = np.searchsorted(looked, np.arange(len(starts)), "right") - 1
    first_cells = np.where(lows[like] < _FAR, origins + lows[like], 0)
    columns = {"kind": kinds.reshape(-1)[like], "x_first": first_cells, "y_first": starts}
    return Blocks(size, np.column_stack([columns[name] for name in BLOCK]), classes)


def join(pieces: Sequence[tuple[int, Blocks]]) -> Blocks:
    """Return the blocks of pieces of an axis, each with the output it starts at."""
    found: list[Array] = []
    classes: list[Class] = []
    for start, piece in pieces:
        moved = in_order(BLOCK, kind=len(classes), x_first=0, y_first=start)
        found.append(np.add(piece.blocks, moved, dtype=np.int64))
        classes += piece.classes
    return Blocks(pieces[0][1].size, np.concatenate(found), tuple(classes))


def _class(axis: Axis, count: int, met: list[list[int]], low: int) -> Class:
    taps = []
    for tap, (first, last) in enumerate(met):
        taps.append(np.arange(first, last) * axis.stride + (tap * axis.dilation - low))
    cells = np.unique(np.concatenate(taps))
    if axis.window > 1 and len(cells) and cells[-1] + 1 <= _DENSE * len(cells):
        cells = np.arange(cells[-1] + 1)
    places = tuple(
        (first, np.searchsorted(cells, tap)) for (first, _), tap in zip(met, taps, strict=True)
    )
    return Class(count, cells, places)


def runs_of(cells: Array) -> list[Run]:
    """Split rising cells into runs of equal steps.

    >>> runs_of(np.array([0, 1, 2, 9, 11, 13]))
    [(0, 3, 1), (9, 3, 2)]
    """
    runs: list[Run] = []
    at = 0
    while at < len(cells):
        step = int(cells[at + 1] - cells[at]) if at + 1 < len(cells) else 1
        stop = at + 1
        while stop < len(cells) and cells[stop] - cells[stop - 1] == step:
            stop += 1
        runs.append((int(cells[at]), stop - at, step))
        at = stop
    return runs


@dataclass(frozen=True)
class PixelLayout:
    """How an array's pixels lie: its rows and columns, and whether images follow each other without a gap."""

    rows: int
    cols: int
    joined: bool


class Tables:
    """Collects the words of one plan's table."""

    def __init__(
        self,
        rows: Blocks,
        cols: Blocks,
        x: PixelLayout,
        y: PixelLayout,
        unroll: int,
        straight: bool,
    ) -> None:
        self.rows, self.cols, self.x, self.y, self.unroll = rows, cols, x, y, unroll
        self.straight = straight
        self.shapes: list[int] = []
        self.runs: list[int] = []
        self.taps: list[int] = []
        self._pairs: list[tuple[Array, Array]] = []
        self._entries = 0

    def add_shape(self, row: Class, col: Class, images: int) -> None:
        """Describe one shape: its runs, and its lists of pairs, tap by tap."""
        x_cells, y_cells = (row.cells, col.cells), (np.arange(row.count), np.arange(col.count))
        repeat = images
        ranges = []
        joined = all(
            len(cells[0]) == image.rows and len(cells[1]) == image.cols and image.joined
            for cells, image in ((x_cells, self.x), (y_cells, self.y))
        )
        for cells, image in ((x_cells, self.x), (y_cells, self.y)):
            first = len(self.runs) // len(RUN)
            if joined:
                repeat = 1
                count = images * image.rows * image.cols
                self.runs += in_order(RUN, first=0, count=count, apart=1, place=0)
            else:
                for run in _plane_runs(cells[0], cells[1], image.cols):
                    self.runs += run
            ranges.append((first, len(self.runs) // len(RUN)))
        pixels = [len(cells[0]) * len(cells[1]) for cells in (x_cells, y_cells)]
        (x_run, x_run_end), (y_run, y_run_end) = ranges
        self.shapes += in_order(
            SHAPE,
            x_run=x_run,
            x_run_end=x_run_end,
            y_run=y_run,
            y_run_end=y_run_end,
            images=repeat,
            x_pixels=pixels[0],
            y_pixels=pixels[1],
            taps_at=len(self.taps),
        )
        if self.straight:
            self.taps += [0, images * pixels[1]]
            return
        image_numbers = np.arange(images)[:, None, None]
        for first_row, x_rows in row.places:
            for first_col, x_cols in col.places:
                self.taps.append(self._entries)
                if not len(x_rows) or not len(x_cols):
                    continue  # most taps, where a window is larger than the image: 256x256 on 2x2 took 10 s
                y_rows = np.arange(first_row, first_row + len(x_rows))[:, None]
                y_cols = np.arange(first_col, first_col + len(x_cols))
                x = image_numbers * pixels[0] + x_rows[:, None] * len(col.cells) + x_cols
                y = image_numbers * pixels[1] + y_rows * col.count + y_cols
                self._pairs.append((x.ravel(), y.ravel()))
                self._entries += -(-x.size // self.unroll) * self.unroll
        self.taps.append(self._entries)

    def repeat_shape(self) -> None:
        """Describe the last shape once more, by the same lists: half of the table, and of the time to make it."""
        self.shapes += self.shapes[-len(SHAPE) :]

    def lists(self, x_width: int, y_width: int, x_zero: int, y_zero: int) -> Array:
        """Return the lists, each pair in one word, padded with pairs of zero pixels."""
        words = np.empty((self._entries, 2), np.int32)
        words[:, 0], words[:, 1] = x_zero * x_width, y_zero * y_width
        at = 0
        for x, y in self._pairs:
            words[at : at + x.size, 0] = x * x_width
            words[at : at + x.size, 1] = y * y_width
            at += -(-x.size // self.unroll) * self.unroll
        return words.reshape(-1).view(np.int64)


def _plane_runs(rows: Array, cols: Array, pitch: int) -> Iterator[tuple[int, ...]]:
    """Yield the runs of the pixels rows x cols of a plane, as `RUN` names their words."""
    if not len(rows) or not len(cols):
        return
    across = runs_of(cols)
    if across == [(0, pitch, 1)] and all(b - a == 1 for a, b in pairwise(rows.tolist())):
        first = int(rows[0]) * pitch
        yield in_order(RUN, first=first, count=len(rows) * pitch, apart=1, place=0)
        return
    start = 0
    for row in rows.tolist():
        for first, count, step in across:
            yield in_order(RUN, first=row * pitch + first, count=count, apart=step, place=start)
            start += count
