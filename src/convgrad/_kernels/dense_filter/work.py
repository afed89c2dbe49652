"""What a plan of `dense_filter` does, in units that have a price.

A few hundred schedules of one problem are ranked, so the amounts are computed as one tuple, in the order of `UNITS`.
"""

from __future__ import annotations

from math import prod
from operator import mul

from ..._compiler.costs import LAUNCH, RANKED, WAKE, Work, prices
from ..._compiler.targets import Target
from ..._problem.convolution import Problem
from ..._problem.geometry import Axis
from ..shared.amounts import MEANT_FOR_OTHERS, kind_of_work, traffic
from .sizes import Sizes

SERIAL_FLOPS = 6_000_000
"""Below about 60 us of work on one thread, another one does not pay."""

UNITS = ("products", "copies of x", "copies of y", "sums", "far sums", "merged", "taps", "chunks")
_SUM, _MERGE = 6.0, 4.0
"""Products that take as long as a vector of sums, at least: a fit takes such small amounts for nothing, and the choice
falls on tiny chunks and many slices then (98 pixels of 14x14x64->384: 78 GFlop/s on one thread, 392: 90)."""
_FEW_FLOPS = 13e6
"""Below these, 4 items are as good as 8."""
_MANY_FLOPS = 1e8
"""Above these, 16 threads should be 12 times as quick as one."""


def kind_of(name: str, problem: Problem) -> str:
    return kind_of_work(name, problem, problem.data_format)


class Ranking:
    """Compares schedules of one problem as `costs.rank` would compare their plans, only quicker."""

    def __init__(self, problem: Problem, target: Target, name: str) -> None:
        known = prices(kind_of(name, problem), target)
        self._prices = tuple(known[unit] for unit in UNITS)
        self._flops = problem.flops
        self._serial = problem.flops < SERIAL_FLOPS
        self._launch = known[LAUNCH] + (0 if self._serial else known[WAKE])
        self._target = target

    def __call__(self, it: Sizes) -> float:
        room = scratch(it)
        found = amounts(it, self._target, room)
        items = _items(it)
        share = 1.0 if self._serial else -(-items // RANKED) / items
        time: float = sum(map(mul, self._prices, found)) * share
        time += self._launch * (1 if it.direct else 2)
        return time * handicap(it, self._target, room, self._flops)


def _items(it: Sizes) -> int:
    return it.group_parts * it.tile_parts * it.panel_parts * it.slices


def amounts(it: Sizes, target: Target, room: int) -> tuple[float, ...]:
    """Return what threads share, in the order of `UNITS`; `room` is the scratch it takes."""
    pixels = it.pixels
    groups, taps, chunks, lanes = it.groups, it.taps, it.chunks, it.lanes
    gradient = it.padded_in * it.padded_out * taps * groups / lanes
    parts = it.group_parts * it.tile_parts * it.panel_parts
    uneven = prod(
        -(-total // count) * count / total
        for total, count in (
            (groups, it.group_parts),
            (it.tiles, it.tile_parts),
            (it.panels, it.panel_parts),
        )
    )
    x = -(-it.panel_parts // it.grain) * it.group_in * density(it)
    y = it.tile_parts * it.group_out
    block = gradient * lanes * it.number / parts
    near = block * min(2, it.levels) + room < 0.9 * target.l2_bytes
    sums = chunks * gradient
    merged = 0.0 if it.direct else float(it.slices * gradient)
    products = pixels * gradient * (0.5 + 0.5 * uneven) * _uneven(it)
    return (
        products + _SUM * sums + _MERGE * merged,
        pixels * groups * x / lanes,
        pixels * groups * y / lanes,
        float(sums),
        0.0 if near else float(sums),
        merged,
        float(chunks * parts * taps),
        float(chunks * parts),
    )


def _uneven(it: Sizes) -> float:
    """Return how much longer the slices are than their mean."""
    return min(it.units, it.chunks) * it.slices / it.chunks


def handicap(it: Sizes, target: Target, room: int, flops: int) -> float:
    """Return how far to put a schedule behind its time: for items too few for many threads, and a crowded cache."""
    crowded = 0.05 if room > 0.86 * target.l2_bytes else 0.0
    if flops < SERIAL_FLOPS:
        return 1 + crowded
    items = _items(it)
    wanted = 8 if flops > _FEW_FLOPS else 4
    few = max(0, wanted - items) / wanted * 0.5
    if flops > _MANY_FLOPS and (quicker := speed_up(it, 16)) < 12:
        few = max(few, 0.1 + 0.5 * (1 - quicker / 12))
    return 1 + 0.06 / items + crowded + few


def speed_up(it: Sizes, threads: int) -> float:
    """Return by how much some threads are quicker than one at best: the largest item, as often as one has to do it."""
    largest = min(it.units, it.chunks) / it.chunks
    for total, parts in (
        (it.groups, it.group_parts),
        (it.tiles, it.tile_parts),
        (it.panels, it.panel_parts),
    ):
        largest *= -(-total // parts) / total
    return 1 / (largest * -(-_items(it) // threads))


def work(name: str, problem: Problem, target: Target, it: Sizes, serial: bool) -> Work:
    """Add up what a schedule does."""
    others = MEANT_FOR_OTHERS if problem.group_in == 1 else 1.0
    room = scratch(it)
    return Work(
        kind_of(name, problem),
        {**dict(zip(UNITS, amounts(it, target, room), strict=True)), **traffic(problem, target)},
        _items(it),
        launches=1 if it.direct else 2,
        serial=serial,
        handicap=handicap(it, target, room, problem.flops) * others,
    )


def at_least(name: str, problem: Problem, target: Target, base: Sizes) -> float:
    """Return microseconds no schedule beats: the products and one copy of both operands, shared evenly.

    `base` has the tile; the rest of it does not count.
    """
    known = prices(kind_of(name, problem), target)
    pixels = base.pixels
    gradient = base.padded_in * base.padded_out * base.taps * base.groups / base.lanes
    skipped = prod(max(1, axis.stride / axis.window) for axis in (problem.rows, problem.cols))
    cost = (pixels + _SUM * base.chunks) * gradient * known["products"]
    cost += pixels * base.groups * base.group_in / base.lanes / skipped * known["copies of x"]
    cost += pixels * base.groups * base.group_out / base.lanes * known["copies of y"]
    cost += base.chunks * gradient * known["sums"]
    cost += sum(known[unit] * lines for unit, lines in traffic(problem, target).items())
    return cost / RANKED / 1e3


def _used(axis: Axis, count: int) -> int:
    """Return how many cells a block of outputs reads, at most and about."""
    step = min(axis.stride, axis.window * axis.dilation)
    if axis.stride >= axis.window * axis.dilation or axis.dilation > count * axis.stride:
        cells = count * axis.window
    else:
        cells = (count - 1) * step + (axis.window - 1) * axis.dilation + 1
    return max(1, min(cells, axis.size))


def density(it: Sizes) -> float:
    """Return input pixels copied per output pixel."""
    rows = _used(it.row_axis, it.unit.rows) / it.unit.rows
    return rows * _used(it.col_axis, it.unit.cols) / it.unit.cols


def scratch(it: Sizes) -> int:
    """Return the bytes of the copies."""
    pixels = prod(it.unit)
    x = it.most_tiles * it.x_width * density(it)
    return int(pixels * (x + it.most_panels * it.vectors * it.lanes) * it.number)
