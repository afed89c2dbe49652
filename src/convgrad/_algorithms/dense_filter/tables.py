"""Tables of the dense filter gradient: which pixels a chunk copies, and which of them each tap meets along each axis.

A chunk is a box of `out_backprop`: images x rows x columns. Along one axis, blocks that meet the padding in the same
way are one class; a shape is a class of rows, a class of columns and a number of images. Everything long hangs on
shapes, so the tables grow neither with the batch nor with the image, but for two words per block of rows and of
columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..._geometry import Axis, tap_span
from ..shared.words import in_order
from .words import BLOCK, RUN, SHAPE, TAP

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
    taps: Array
    """A row of words for each tap, as `TAP` names them."""

    @cached_property
    def runs(self) -> Array:
        """The cells in runs of equal steps: first, how many, how far apart, and how many are in those before it."""
        return _numbered(runs_of(self.cells))

    @cached_property
    def output_runs(self) -> Array:
        return _numbered([(0, self.count, 1)])


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
    taps = [
        np.arange(first, last) * axis.stride + (tap * axis.dilation - low)
        for tap, (first, last) in enumerate(met)
    ]
    cells = np.unique(np.concatenate(taps))
    if len(cells) and cells[-1] + 1 <= (_DENSE if axis.window > 1 else 1) * len(cells):
        cells = np.arange(cells[-1] + 1)
        found = taps
    else:
        found = [np.searchsorted(cells, tap) for tap in taps]
        if any(len(each) > 2 and np.ptp(np.diff(each)) for each in found):
            # Taps that share some cells but not all: each has its own.
            cells = np.concatenate(taps)
            ends = np.cumsum([len(tap) for tap in taps])
            found = [np.arange(end - len(tap), end) for end, tap in zip(ends, taps, strict=True)]
    rows = np.zeros((len(met), len(TAP)), np.int64)
    for (first, _), each, row in zip(met, found, rows, strict=True):
        if len(each):
            step = each[1] - each[0] if len(each) > 1 else 1
            row[:] = in_order(TAP, first=first, count=len(each), start=each[0], step=step)
    return Class(count, cells, rows)


def runs_of(cells: Array) -> list[Run]:
    """Split cells into runs of equal steps.

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

    def __init__(self, rows: Blocks, cols: Blocks, x: PixelLayout, y: PixelLayout) -> None:
        self.rows, self.cols, self.x, self.y = rows, cols, x, y
        self.shapes: list[int] = []
        self.runs: list[Array] = []
        self._runs = 0
        classes = (*rows.classes, *cols.classes)
        self.taps = np.concatenate([each.taps for each in classes])
        """Those of all classes of rows, then of columns."""
        starts = np.cumsum([0, *(len(each.taps) for each in classes)]).tolist()
        self._taps_of = {id(each): start for each, start in zip(classes, starts, strict=False)}

    def add_shape(self, row: Class, col: Class, images: int) -> None:
        """Describe one shape: its runs, and what its lists of pixels are made of."""
        sides = (
            (row.cells, len(col.cells), col.runs, self.x),
            (np.arange(row.count), col.count, col.output_runs, self.y),
        )
        repeat = images
        ranges, pixels = [], []
        joined = all(
            len(rows) == image.rows and cols == image.cols and image.joined
            for rows, cols, _, image in sides
        )
        for rows, cols, across, image in sides:
            runs = _plane_runs(rows, across, image.cols)
            if joined:
                repeat = 1
                count = images * image.rows * image.cols
                runs = np.array([in_order(RUN, first=0, count=count, apart=1, place=0)])
            ranges.append((self._runs, self._runs + len(runs)))
            self.runs.append(runs)
            self._runs += len(runs)
            pixels.append(len(rows) * cols)
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
            x_row=len(col.cells),
            y_row=col.count,
            all_images=images,
            row_taps=self._taps_of[id(row)],
            col_taps=self._taps_of[id(col)],
        )

    def repeat_shape(self) -> None:
        """Describe the last shape once more."""
        self.shapes += self.shapes[-len(SHAPE) :]


def _numbered(runs: list[Run]) -> Array:
    found = np.array(runs, np.int64).reshape(-1, 3)
    return np.column_stack([found, np.cumsum(found[:, 1]) - found[:, 1]])


def _plane_runs(rows: Array, across: Array, pitch: int) -> Array:
    """Return the runs of some rows of a plane, as `RUN` names their words; `across` are those of the columns."""
    if not len(rows) or not len(across):
        return np.empty((0, len(RUN)), np.int64)
    whole = len(across) == 1 and across[0, :3].tolist() == [0, pitch, 1]
    if whole and len(rows) == rows[-1] - rows[0] + 1:
        count = len(rows) * pitch
        return np.array([in_order(RUN, first=int(rows[0]) * pitch, count=count, apart=1, place=0)])
    first, count, apart, before = across.T
    cols = int(count.sum())
    columns = {
        "first": rows[:, None] * pitch + first,
        "count": count,
        "apart": apart,
        "place": np.arange(len(rows))[:, None] * cols + before,
    }
    found = np.empty((len(rows), len(across), len(RUN)), np.int64)
    for number, name in enumerate(RUN):
        found[:, :, number] = columns[name]
    return found.reshape(-1, len(RUN))
