"""The choice of a dense filter gradient's sizes: the cheapest of a few hundred.

The problem and the target decide, never the number of threads; no choice shows in the bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from heapq import nsmallest

from ..._compiler.codegen import arithmetic, element
from ..._compiler.targets import Target
from ..._problem.convolution import Problem
from ..._problem.geometry import Axis
from ..._problem.sums.pixels import pixel_contract
from .sizes import Sizes, flat
from .work import Ranking, scratch

_MOST_ITEMS = 32
_MOST_SCRATCH = 1 << 20
"""For a unit's copies."""
_MOST_WORKSPACE = 1920 << 10
"""For these, the lists of pixels, and what waits for its other half of a node."""
_ROOM = 0.84
"""Of the second cache: where a unit's copies take more, blocks of channels are smaller."""
_MOST_SLICES = 16
"""More make items that are small already: 1x1 56x56 64->256 took 16% longer with 32."""
_MOST_PARTIAL = 8 << 20
_FOLDED = 8
"""Input channels up to which a window's columns are taken as channels."""


NAME = "dense_filter"

OFFERED = 3
"""Schedules that are offered: the cheapest ones."""


@lru_cache(maxsize=64)
def schedules(problem: Problem, target: Target) -> tuple[Sizes, ...]:
    """Return the cheapest schedules, best first.

    With few input channels a tile is mostly empty, so the columns of a window are taken as channels: an output reads
    window x channels neighbours. That changes nothing in the order of sums.
    """
    base = tile(problem, target)
    if folds(problem):
        base = replace(
            base,
            taps=problem.rows.window,
            group_in=problem.group_in * problem.cols.window,
            col_axis=_padded(problem.cols),
            fold=problem.group_in,
        )
    if not base.big_tiles:
        # Without the other kind of tiles the kernel is half as long.
        base = replace(base, rows=base.few)
    ranking = Ranking(problem, target, NAME)
    return tuple(nsmallest(OFFERED, _candidates(base, target), key=ranking))


def folds(problem: Problem) -> bool:
    """Tell whether a window's columns are taken as channels."""
    few = problem.groups == 1 and problem.group_in <= _FOLDED
    return few and _mostly_inside(problem.cols)


def _mostly_inside(axis: Axis) -> bool:
    """Tell whether most windows lie inside the image: the others are copied number by number."""
    if axis.window == 1 or axis.dilation > 1:
        return False
    start = -(-axis.before // axis.stride)
    stop = min(axis.out, (axis.size + axis.before - axis.window) // axis.stride + 1)
    return 2 * (stop - start) > axis.out


def _padded(axis: Axis) -> Axis:
    """Return the axis of the starts of windows, counted from the first one's."""
    size = (axis.out - 1) * axis.stride + axis.window
    return Axis(size, window=1, stride=axis.stride, dilation=1, before=0, after=0, out=axis.out)


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
    contract = pixel_contract(problem)
    many = target.vector_registers >= 32
    vectors = -(-group_out * diagonal * merged // lanes)
    if diagonal > 1:
        rows, few, width = group_in, group_in, 1
    elif contract.chains > 1:
        rows, few, width = (8, 4, 1) if many else (4, 4, 1)
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
        col_axis=geometry.cols,
        batch=geometry.batch,
        contract=contract,
        by_pixel=problem.data_format == "NHWC",
        exact=number == problem.dtype.itemsize,
    )


def _candidates(base: Sizes, target: Target) -> Iterator[Sizes]:
    """Yield the schedules to weigh; at least one."""
    yielded = False
    room = min(int(_ROOM * target.l2_bytes), _MOST_SCRATCH)
    for most_items in (_MOST_ITEMS, 16 * _MOST_ITEMS, 1 << 20):
        for groups in _counts(base.groups, most_items):
            for tiles in _counts(base.tiles, most_items // groups):
                for panels in _counts(base.panels, most_items // groups // tiles):
                    part = replace(base, group_parts=groups, tile_parts=tiles, panel_parts=panels)
                    if scratch(part) > room:
                        continue
                    for it in _slices(part, most_items):
                        yielded = True
                        yield it
        if yielded:
            return
    finest = replace(base, group_parts=base.groups, tile_parts=base.tiles, panel_parts=base.panels)
    yield min(
        _slices(finest, 1 << 20, bounded=False), key=lambda it: it.partial_bytes + it.stack_bytes
    )


def _slices(part: Sizes, most_items: int, bounded: bool = True) -> Iterator[Sizes]:
    """Yield schedules with fewer and fewer slices: nodes of the tree."""
    for level in range((part.chunks - 1).bit_length() + 1):
        it = replace(part, units=1 << level)
        if bounded:
            large = it.slices > 1 and it.partial_bytes > _MOST_PARTIAL
            if (
                large
                or it.slices > _MOST_SLICES
                or it.items > most_items
                or workspace(it) > _MOST_WORKSPACE
            ):
                continue
        yield it


def workspace(it: Sizes) -> int:
    """Return the bytes a thread needs, about."""
    return scratch(it) + it.lists_bytes + it.stack_bytes


def _counts(total: int, most: int) -> list[int]:
    """Return the numbers of parts to try."""
    return [n for n in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 512) if n <= min(total, most)]
