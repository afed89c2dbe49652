"""What a plan of `depthwise_direct` does, in units that have a price."""

from __future__ import annotations

from ..._compiler.codegen import arithmetic, element
from ..._compiler.costs import Work
from ..._compiler.targets import Target
from ..._problem.convolution import Kind, Problem
from ..shared.amounts import kind_of_work, traffic
from ..shared.gather import Gather
from .words import Tile

_ALIASING = 1024
"""Columns a multiple of this many bytes apart compete for the same lines of the first cache: 14x14x512 forward took
0.88 ms, with rows packed 0.29 (one thread of Zen 3)."""


def work(
    name: str,
    problem: Problem,
    target: Target,
    tile: Tile,
    rows: Gather,
    cols: Gather,
    items: int,
    serial: bool,
) -> Work:
    """Count products and loads in vectors, and tiles; loads that aliasing columns make miss are counted again."""
    number = arithmetic(element(problem.dtype.short)).size
    across = -(-problem.in_c // target.lanes(number))
    down, along = -(-rows.groups // tile.rows), -(-cols.groups // tile.cols)
    tiles = problem.batch * down * along * -(-across // tile.vectors)
    taps = problem.rows.window * problem.cols.window
    cells = _cells(rows, tile.rows) * _cells(cols, tile.cols) * tile.vectors
    loads = tiles * cells
    to_filter = problem.kind is Kind.FILTER_GRADIENT
    products = tiles * tile.rows * tile.cols * tile.vectors * taps
    aliased = problem.in_c * problem.dtype.itemsize % _ALIASING == 0
    moved = traffic(problem, target)
    return Work(
        kind_of_work(name, problem),
        {
            "products": products,
            "loads": loads,
            "tiles": tiles,
            "weights": tiles * taps * tile.vectors,
            "aliased loads": loads if aliased and not tile.prefetch else 0,
            "aliased streams": loads if aliased and tile.prefetch else 0,
            "converted loads": loads if problem.dtype.itemsize != number else 0,
            **moved,
        },
        items,
        launches=2 if to_filter else 1,
        serial=serial,
    )


def _cells(axis: Gather, size: int) -> int:
    """Return how many different cells of the source some neighbouring groups read along an axis."""
    shape = axis.footprint
    offsets = {tap.offset for taps in shape.phases for tap in taps}
    return len({shape.step * q + offset for q in range(size) for offset in offsets})
