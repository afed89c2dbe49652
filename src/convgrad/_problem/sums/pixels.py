"""Filter gradients and the gradients of a bias: sums over the pixels of all images, added up as a tree.

Outputs are cut into *units*, boxes of at most 400 pixels, and these into *runs* of at most 64, both in the order n, p,
q. A run is one chain over its pixels, a unit adds its runs in order. Units are the leaves of a binary tree: unit 2i and
unit 2i + 1 make node i of the next level, and so on; a node without a right half is its left half. So work may be cut at
every node, among any number of threads, and pairs of sums of equal length keep errors small without wider numbers.
"""

from __future__ import annotations

from typing import NamedTuple

from ..convolution import Problem
from ..geometry import Axis
from .gather import is_coarse

UNIT = 400
"""Pixels of a unit, at most: a multiple of 7 x 7, 14 x 14, 28 x 28 and 56 x 56 lies just below."""
PIXELS = 64
"""Pixels of a run, at most."""
NARROW = 8
"""Channels of a group up to which a result has two chains: pixels take turns."""
FLAT = 1 << 20
"""Pixels of an image that are seen as one row, at most, where each has a window of its own."""


class PixelBox(NamedTuple):
    """Images, rows and columns of outputs."""

    images: int
    rows: int
    cols: int


class PixelContract(NamedTuple):
    """The order in which the products of one result of a filter gradient are added."""

    out: PixelBox
    """All outputs, as they are cut."""
    unit: PixelBox
    run: PixelBox
    chains: int
    """Chains of a run: pixels take turns, those whose tap lies in the padding not counted. Added first to last."""

    @property
    def units(self) -> int:
        """Leaves of the tree."""
        counts = [-(-all_ // each) for all_, each in zip(self.out, self.unit, strict=True)]
        return counts[0] * counts[1] * counts[2]


def pixel_contract(problem: Problem) -> PixelContract:
    """Return how the products of a filter gradient are added."""
    out = PixelBox(problem.batch, problem.rows.out, problem.cols.out)
    if is_flat(problem):
        out = PixelBox(problem.batch, 1, out.rows * out.cols)
    unit = box(out, UNIT)
    run = unit if is_coarse(problem) else box(unit, PIXELS)
    narrow = problem.groups > 1 and max(problem.group_in, problem.group_out) <= NARROW
    return PixelContract(out, unit, run, 2 if narrow and not problem.depthwise else 1)


def is_flat(problem: Problem) -> bool:
    """Tell whether the pixels of an image are one row: each has a window of its own."""
    axes = (problem.rows, problem.cols)
    return all(map(_plain, axes)) and problem.rows.out * problem.cols.out <= FLAT


def one_row(problem: Problem) -> tuple[Axis, Axis]:
    """Return rows and columns of an image that is seen as one row: see `is_flat`."""
    rows, cols = problem.rows, problem.cols
    pixels = rows.out * cols.out
    return rows._replace(size=1, out=1), cols._replace(size=pixels, out=pixels)


def _plain(axis: Axis) -> bool:
    return axis.window == axis.stride == 1 and axis.size == axis.out


def box(out: PixelBox, most: int) -> PixelBox:
    """Cut outputs into equal boxes of at most `most`: whole images, else whole rows, else pieces of a row."""
    images, rows, cols = out
    if rows * cols <= most:
        return PixelBox(even(images, most // max(1, rows * cols)), rows, cols)
    if cols <= most:
        return PixelBox(1, even(rows, most // cols), cols)
    return PixelBox(1, 1, even(cols, most))


def even(total: int, most: int) -> int:
    """Return the size of equal pieces of at most `most`."""
    pieces = max(1, -(-total // max(1, most)))
    return max(1, -(-total // pieces))
