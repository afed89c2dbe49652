"""The table of the dense filter gradient: which cells a chunk copies, and which of them each tap meets, axis by axis.

A chunk is a box of `out_backprop`: images x rows x columns. Along one axis, blocks that meet the padding in the same
way are one class, and neighbours of one class are a span. All else of a chunk follows from its class of rows, its class
of columns and its number of images, and the kernel works that out. So tables grow neither with the batch nor with the
image nor with the number of chunks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..._problem.geometry import Axis, tap_span
from ..shared.words import in_order, narrow
from .words import CLASS, RUN, SPAN, TAP

_DENSE = 1.7
"""Cells with holes are copied as one run, holes included, up to this excess."""

_FAR = 2**62

Array = np.ndarray[Any, np.dtype[np.int64]]
CellRun = tuple[int, int, int]
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
    def runs(self) -> list[CellRun]:
        """The cells in runs of equal steps."""
        return runs_of(self.cells)


@dataclass(frozen=True, eq=False)
class Blocks:
    """An axis of outputs cut into equal blocks, but for the last one."""

    count: int
    """How many there are."""
    spans: Array
    """A row of words for each span of blocks, as `SPAN` names them."""
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
    kinds = kinds.reshape(-1)
    fresh = np.concatenate([[True], kinds[1:] != kinds[:-1]])
    columns = {
        "first": looked,
        "kind": kinds,
        "x_first": np.where(lows < _FAR, origins[looked] + lows, 0),
        "y_first": starts[looked],
    }
    return Blocks(len(starts), np.column_stack([columns[name] for name in SPAN])[fresh], classes)


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


def runs_of(cells: Array) -> list[CellRun]:
    """Split cells into runs of equal steps.

    >>> runs_of(np.array([0, 1, 2, 9, 11, 13]))
    [(0, 3, 1), (9, 3, 2)]
    """
    runs: list[CellRun] = []
    at = 0
    while at < len(cells):
        step = int(cells[at + 1] - cells[at]) if at + 1 < len(cells) else 1
        stop = at + 1
        while stop < len(cells) and cells[stop] - cells[stop - 1] == step:
            stop += 1
        runs.append((int(cells[at]), stop - at, step))
        at = stop
    return runs


def table(rows: Blocks, cols: Blocks, row_cells: int, listed: bool) -> tuple[bytes, dict[str, int]]:
    """Return the table of a plan, and the words that say where its parts are.

    `row_cells` are the cells of a whole row of x; taps are left out where no lists of pixels are `listed`.
    """
    classes: list[tuple[int, ...]] = []
    taps: list[Array] = []
    runs: list[tuple[int, ...]] = []
    met = 0
    for axis, whole in ((rows, None), (cols, row_cells)):
        for each in axis.classes:
            start, place = len(runs), 0
            for first, count, apart in each.runs:
                runs.append(in_order(RUN, first=first, count=count, apart=apart, place=place))
                place += count
            solid = len(each.runs) == 1 and each.runs[0][2] == 1
            if whole is not None:
                solid = each.runs == [(0, whole, 1)]
            classes.append(
                in_order(
                    CLASS,
                    x_run=start,
                    x_run_end=len(runs),
                    cells=len(each.cells),
                    solid=int(solid),
                    count=each.count,
                    taps=met,
                )
            )
            if listed:
                taps.append(each.taps)
                met += len(each.taps)
    # One numbering for the classes of both axes.
    moved = in_order(SPAN, first=0, kind=len(rows.classes), x_first=0, y_first=0)
    parts = {
        "": rows.spans,
        "col_spans_at": np.add(cols.spans, moved, dtype=np.int64),
        "classes_at": np.array(classes, np.int64),
        "taps_at": np.concatenate(taps) if taps else np.empty(0, np.int64),
        "runs_at": np.array(runs, np.int64),
    }
    places: dict[str, int] = {"row_spans": len(rows.spans), "col_spans": len(cols.spans)}
    at = 0
    for name, part in parts.items():
        if name:
            places[name] = at
        at += part.size
    return narrow(np.concatenate([part.reshape(-1) for part in parts.values()])), places
