"""The choice of a dense filter gradient's sizes: the cheapest of a few hundred.

The problem and the target decide, never the number of threads; of all choices only slices and chunks show in the bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from heapq import nsmallest
from operator import itemgetter

from ..._compiler.codegen import arithmetic, element
from ..._compiler.targets import Target
from ..._problem.convolution import Problem
from ..._problem.geometry import Axis
from .sizes import MOST_PIXELS, Sizes, flat
from .work import SERIAL_FLOPS, Ranking, scratch

_MOST_ITEMS = 32
_MOST_SCRATCH = 1 << 20
_MOST_LISTS = 1 << 17
"""Pairs in all lists, about: a megabyte."""
_MOST_PARTIAL = 8 << 20
_FOLDED = 8
"""Input channels up to which a window's columns are taken as channels."""


NAME = "dense_filter"

Passes = tuple[Sizes, ...]
"""One, or two whose sums are added up."""

OFFERED = 3
"""Schedules that are offered: the cheapest ones."""


@lru_cache(maxsize=64)
def schedules(problem: Problem, target: Target) -> tuple[Passes, ...]:
    """Return the cheapest schedules, best first; of two passes the first one varies.

    With few input channels a tile is mostly empty, so the columns of a window are taken as channels: outputs whose
    windows lie inside the image read window x channels neighbours. The first pass has those, the second one the outputs
    at the edges, tap by tap as usual. Small problems are done before two more launches are, so tap by tap throughout is
    weighed as well.
    """
    base = tile(problem, target)
    ways = [[base]]
    inside = folds(problem)
    if inside is not None:
        start, stop = inside
        cols = problem.cols
        wide = _shifted(cols, start, stop)._replace(window=1)
        folded = replace(
            base,
            taps=problem.rows.window,
            group_in=problem.group_in * cols.window,
            col_axes=((start, wide),),
            fold=problem.group_in,
        )
        sides = ((0, _shifted(cols, 0, start)), (stop, _shifted(cols, stop, cols.out)))
        edges = tuple((start, axis) for start, axis in sides if axis.out)
        if not edges:
            ways = [[folded]]
        elif problem.flops < SERIAL_FLOPS:
            ways.append([replace(folded, alone=False), replace(base, col_axes=edges, alone=False)])
        else:
            ways = [[replace(folded, alone=False), replace(base, col_axes=edges, alone=False)]]
    found: list[tuple[float, Passes]] = []
    for passes in ways:
        ranking = Ranking(problem, target, NAME, len(passes))
        first, *rest = (nsmallest(OFFERED, _candidates(it, target), key=ranking) for it in passes)
        others = tuple(some[0] for some in rest)
        more = sum(map(ranking, others))
        found += [(ranking(it) + more, (it, *others)) for it in first]
    return tuple(passes for _, passes in nsmallest(OFFERED, found, key=itemgetter(0)))


def folds(problem: Problem) -> tuple[int, int] | None:
    """Return the columns of outputs for which a window's columns are taken as channels, or None."""
    few = problem.groups == 1 and problem.group_in <= _FOLDED
    return _inside(problem.cols) if few else None


def _inside(axis: Axis) -> tuple[int, int] | None:
    """Return the outputs whose whole windows lie inside the image, if those are most of them."""
    if axis.window == 1 or axis.dilation > 1:
        return None
    start = -(-axis.before // axis.stride)
    stop = min(axis.out, (axis.size + axis.before - axis.window) // axis.stride + 1)
    return (start, stop) if 2 * (stop - start) > axis.out else None


def _shifted(axis: Axis, start: int, stop: int) -> Axis:
    """Return the axis of some of its outputs."""
    return axis._replace(before=axis.before - start * axis.stride, out=stop - start)


def tile(problem: Problem, target: Target) -> Sizes:
    """Choose the register tile, and merge groups that fill no vector."""
    number = arithmetic(element(problem.dtype.short)).size
    lanes = target.lanes(number)
    geometry = flat(problem)
    groups, group_in, group_out = problem.groups, problem.group_in, problem.group_out
    merged = 1
    for some in range(2, lanes // group_out + 1):
        if groups % some == 0:
            merged = some
    diagonal = 1
    powers = {group_in * merged, group_in} <= {1, 2, 4, 8, 16}
    if merged > 1 and group_out * merged == lanes and powers and group_in * merged <= lanes:
        # 56x56x128 in groups of 4: 12.1 -> 7.0 ms on one thread against computing all pairs of merged groups.
        diagonal, merged = merged, 1
    many = target.vector_registers >= 32
    vectors = -(-group_out * diagonal * merged // lanes)
    if diagonal > 1:
        rows, few, width = group_in, group_in, 1
    elif vectors == 1:
        rows, few, width = 8, 4, 1
    elif vectors % 2 == 0 or vectors > 7:
        rows, few, width = (14, 8, 2) if many else (6, 4, 2)
    elif vectors == 3:
        # 4 x 3 would need all of 16 registers and spills.
        rows, few, width = (8, 4, 3) if many else (3, 3, 3)
    else:
        rows, few, width = (8, 4, 2) if many else (6, 4, 2)
    return Sizes(
        number=number,
        lanes=lanes,
        rows=rows,
        few=few,
        vectors=width,
        taps=problem.rows.window * problem.cols.window,
        groups=groups // merged // diagonal,
        merged=merged,
        group_in=group_in * merged * diagonal,
        group_out=group_out * merged * diagonal,
        diagonal=diagonal,
        row_axis=geometry.rows,
        col_axes=((0, geometry.cols),),
        batch=geometry.batch,
        by_pixel=problem.data_format == "NHWC",
        exact=number == problem.dtype.itemsize,
    )


def _cut(base: Sizes, pixels: int) -> Sizes:
    """Cut the outputs into chunks of at most so many pixels: whole images, else rows, else pieces of a row."""
    rows, cols = base.row_axis.out, max(axis.out for _, axis in base.col_axes)
    if rows * cols <= pixels:
        return replace(
            base,
            images=_even(base.batch, pixels // (rows * cols)),
            block_rows=rows,
            block_cols=cols,
        )
    if cols <= pixels:
        return replace(base, images=1, block_rows=_even(rows, pixels // cols), block_cols=cols)
    return replace(base, images=1, block_rows=1, block_cols=_even(cols, pixels))


def _even(total: int, most: int) -> int:
    """Return the size of equal pieces of at most `most`."""
    pieces = -(-total // most)
    return -(-total // pieces)


def _candidates(base: Sizes, target: Target) -> Iterator[Sizes]:
    """Yield the schedules to weigh; at least one."""
    total = base.batch * base.row_axis.out * base.cols
    few_lists = max(1, _MOST_LISTS // (base.taps * 4))
    budgets = (0.34, 0.45) if base.taps == 1 else (0.34, 0.62, 0.84)
    yielded = False
    for most_items in (_MOST_ITEMS, 16 * _MOST_ITEMS, 1 << 20):
        seen = set()
        for groups in _counts(base.groups, most_items):
            for tiles in _counts(base.tiles, most_items // groups):
                for panels in _counts(base.panels, most_items // groups // tiles):
                    part = replace(base, group_parts=groups, tile_parts=tiles, panel_parts=panels)
                    rooms = (int(budget * target.l2_bytes) for budget in budgets)
                    sizes = {min(_pixels(part, room), few_lists) for room in rooms}
                    if total <= MOST_PIXELS:
                        sizes.add(min(total, few_lists))
                    for pixels in sorted(sizes):
                        cut = _cut(part, pixels)
                        key = (groups, tiles, panels, cut.images, cut.block_rows, cut.block_cols)
                        if key in seen or scratch(cut) > _MOST_SCRATCH:
                            continue
                        seen.add(key)
                        for slices in (1, 2, 4, 8, 16):
                            items = groups * tiles * panels * slices
                            if slices > cut.chunks or items > most_items:
                                break
                            it = replace(cut, slices=slices)
                            if slices > 1 and it.partial_bytes > _MOST_PARTIAL:
                                break
                            yielded = True
                            yield it
        if yielded:
            return
    yield replace(
        _cut(base, 1),
        group_parts=base.groups,
        tile_parts=base.tiles,
        panel_parts=base.panels,
    )


def _counts(total: int, most: int) -> list[int]:
    """Return the numbers of parts to try."""
    return [n for n in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 512) if n <= min(total, most)]


def _pixels(it: Sizes, room: int) -> int:
    """Return how many pixels of a chunk fit a room."""
    across = it.col_axes[0][1].stride if it.taps > 1 and not it.fold else 1
    stride = it.row_axis.stride * across if it.taps > 1 else 1
    x = it.most_tiles * it.x_width * stride
    y = it.most_panels * it.vectors * it.lanes
    return max(96, min(MOST_PIXELS, room // it.number // (x + y)))
