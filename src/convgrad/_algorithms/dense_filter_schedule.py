"""The schedule of the dense filter gradient: tile, chunks, slices and blocks of channels, as numbers.

The cheapest of a few hundred candidates by a count of cycles (Zen 3, AVX2, 2 cores). The problem and the target decide,
never the number of threads; of all choices only slices and chunks show in the bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import prod

from .._codegen import compute, element
from .._geometry import Axis
from .._problem import Problem
from .._targets import Target
from .dense_filter_tables import Blocks, blocks, join

_MOST_ITEMS = 32
_MOST_SCRATCH = 1 << 20
_MOST_LISTS = 1 << 17
"""Pairs in all lists, about: a megabyte."""
_MOST_PIXELS = 512
"""Pixels of a chunk: more would make the sums of runs long, and was no faster where tried (28x28, 56x56 3x3)."""
_MOST_PARTIAL = 8 << 20
_FOLDED = 8
"""Input channels up to which a window's columns are taken as channels."""


@dataclass(frozen=True)
class Schedule:
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
    col_axes: tuple[tuple[int, Axis], ...]
    """Pieces of the columns of outputs: where each starts, and its own axis."""
    batch: int
    by_pixel: bool
    """Whether the layout is NHWC."""
    exact: bool
    """Whether a store to the result rounds nothing."""
    diagonal: int = 1
    """Groups side by side in one vector, of which a tile computes only what stays inside a group."""
    alone: bool = True
    """Whether no other pass adds to the same sums."""
    fold: int = 0
    """Input channels of a column where windows' columns are taken as channels, else 0."""
    images: int = 1
    block_rows: int = 1
    block_cols: int = 1
    slices: int = 1
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
    def image_blocks(self) -> int:
        return -(-self.batch // self.images)

    @property
    def chunks(self) -> int:
        rows = -(-self.row_axis.out // self.block_rows)
        cols = sum(-(-axis.out // self.block_cols) for _, axis in self.col_axes)
        return self.image_blocks * rows * cols

    @property
    def direct(self) -> bool:
        """Whether the sums of an item are the result."""
        if self.slices > 1 or self.merged > 1 or self.group_out % self.lanes or not self.alone:
            return False
        return self.exact or self.chunks == 1

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
    def cols(self) -> int:
        """Columns of outputs."""
        return sum(axis.out for _, axis in self.col_axes)

    @property
    def prefetch(self) -> bool:
        """Whether chunks are prefetched: reading them is a good part of the time of 1x1 windows."""
        axes = (self.row_axis, self.col_axes[0][1])
        plain = all(axis.stride == 1 and axis.size == axis.out for axis in axes)
        again = self.chunks > self.slices
        return self.by_pixel and self.taps == 1 and plain and again and not self.fold

    @property
    def run(self) -> int:
        """Products of a running sum: long ones cost digits, short ones time.

        In runs of l, chunks of c pixels and d chunks of a slice a sum errs by about 0.44 u times the root of (l + c / l
        + d) / 2: 2.4 u for runs of 48 on 28x28x64, and 6 % faster than runs of 32 (none at all: another 5 %). Under the
        rounding to 16 bits none of that shows.
        """
        return 48 if self.exact else _MOST_PIXELS

    @cached_property
    def row_blocks(self) -> Blocks:
        return blocks(self.row_axis, self.block_rows)

    @cached_property
    def col_blocks(self) -> Blocks:
        return join([(start, blocks(axis, self.block_cols)) for start, axis in self.col_axes])

    @property
    def pairs(self) -> int:
        """Entries of the lists of pixels, at most."""
        kinds = len(self.row_blocks.classes) * len(self.col_blocks.classes)
        images = 1 if self.batch % self.images == 0 else 2
        pixels = -(-self.images * self.block_rows * self.block_cols // 4) * 4
        return kinds * images * self.taps * pixels

    @property
    def most_tiles(self) -> int:
        return -(-self.groups // self.group_parts) * -(-self.tiles // self.tile_parts)

    @property
    def most_panels(self) -> int:
        return -(-self.groups // self.group_parts) * -(-self.panels // self.panel_parts)

    @cached_property
    def items(self) -> list[tuple[int, ...]]:
        """Return what each item covers: ranges of chunks, tiles, panels and groups, its slice, its copy of x."""
        found: list[tuple[int, ...]] = []
        copies = 0
        for number, chunks in enumerate(_parts(self.chunks, self.slices)):
            for groups in _parts(self.groups, self.group_parts):
                for tiles in _parts(self.tiles, self.tile_parts):
                    copies += 1
                    for panels in _parts(self.panels, self.panel_parts):
                        key = copies if self.keeps_x else 0
                        found.append((*chunks, *tiles, *panels, *groups, number, key))
        return found

    @property
    def keeps_x(self) -> bool:
        """Whether neighbouring items can use one copy of x: their slices are single chunks."""
        return self.chunks == self.slices and self.panel_parts > 1

    @property
    def grain(self) -> int:
        """Items to claim at a time: those that share a copy of x, but at least 8 claims in all."""
        items = self.slices * self.group_parts * self.tile_parts * self.panel_parts
        if not self.keeps_x:
            return 1
        return max(n for n in range(1, self.panel_parts + 1) if n == 1 or items >= 8 * n)


@lru_cache(maxsize=4096)
def schedule(problem: Problem, target: Target) -> tuple[Schedule, ...]:
    """Return the cheapest schedules: of one pass, or of two whose sums are added up.

    With few input channels a tile is mostly empty, so the columns of a window are taken as channels: outputs whose
    windows lie inside the image read window x channels neighbours. The first pass has those, the second one the outputs
    at the edges, tap by tap as usual.
    """
    base = _tile(problem, target)
    passes = [base]
    inside = _inside(problem.cols)
    if problem.groups == 1 and problem.group_in <= _FOLDED and inside is not None:
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
        passes = [folded]
        if edges:
            passes = [replace(folded, alone=False), replace(base, col_axes=edges, alone=False)]
    return tuple(min(_candidates(it, target), key=lambda it: _cost(it, target)) for it in passes)


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


def _parts(total: int, parts: int) -> Iterator[tuple[int, int]]:
    """Cut a range into parts that differ by one at most."""
    for part in range(parts):
        yield total * part // parts, total * (part + 1) // parts


def _cover(total: int, big: int, small: int) -> tuple[int, int]:
    """Return how many pieces of two sizes cover a total with the least excess, big ones preferred.

    >>> _cover(16, 6, 4), _cover(17, 6, 4), _cover(3, 6, 4)
    ((2, 1), (3, 0), (0, 1))
    """
    most = -(-total // big)
    choices = []
    for few in range(big + 1):
        left = total - few * small
        many = max(0, -(-left // big))
        choices.append((many * big + few * small, few, many))
        if left <= 0:
            break
    assert most >= 0
    _, few, many = min(choices)
    return many, few


def _tile(problem: Problem, target: Target) -> Schedule:
    """Choose the register tile, and merge groups that fill no vector."""
    number = compute(element(problem.dtype.short)).size
    lanes = target.lanes(number)
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
    return Schedule(
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
        row_axis=problem.rows,
        col_axes=((0, problem.cols),),
        batch=problem.batch,
        by_pixel=problem.data_format == "NHWC",
        exact=number == problem.dtype.itemsize,
    )


def _cut(base: Schedule, pixels: int) -> Schedule:
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


def _used(axis: Axis, count: int) -> int:
    """Return how many cells a block of outputs reads, at most and about."""
    step = min(axis.stride, axis.window * axis.dilation)
    if axis.stride >= axis.window * axis.dilation or axis.dilation > count * axis.stride:
        cells = count * axis.window
    else:
        cells = (count - 1) * step + (axis.window - 1) * axis.dilation + 1
    return max(1, min(cells, axis.size))


def _candidates(base: Schedule, target: Target) -> Iterator[Schedule]:
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
                    if total <= _MOST_PIXELS:
                        sizes.add(min(total, few_lists))
                    for pixels in sorted(sizes):
                        cut = _cut(part, pixels)
                        key = (groups, tiles, panels, cut.images, cut.block_rows, cut.block_cols)
                        if key in seen or _scratch(cut) > _MOST_SCRATCH:
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


def _density(it: Schedule) -> float:
    """Return input pixels copied per output pixel."""
    rows = _used(it.row_axis, it.block_rows) / it.block_rows
    return rows * _used(it.col_axes[0][1], it.block_cols) / it.block_cols


def _pixels(it: Schedule, room: int) -> int:
    """Return how many pixels of a chunk fit a room."""
    across = it.col_axes[0][1].stride if it.taps > 1 and not it.fold else 1
    stride = it.row_axis.stride * across if it.taps > 1 else 1
    x = it.most_tiles * it.x_width * stride
    y = it.most_panels * it.vectors * it.lanes
    return max(96, min(_MOST_PIXELS, room // it.number // (x + y)))


def _scratch(it: Schedule) -> int:
    pixels = it.images * it.block_rows * it.block_cols
    x = it.most_tiles * it.x_width * _density(it)
    return int(pixels * (x + it.most_panels * it.vectors * it.lanes) * it.number)


def _cost(it: Schedule, target: Target) -> float:
    """Return a count of cycles of all threads together; it ranks, it does not predict."""
    pixels = it.batch * it.row_axis.out * it.cols
    density = _density(it)
    groups, taps, chunks = it.groups, it.taps, it.chunks
    gradient = it.padded_in * it.padded_out * taps * groups
    products = pixels * gradient / (2 * it.lanes)
    items = it.group_parts * it.tile_parts * it.panel_parts * it.slices
    blocks_of_channels = items // it.slices
    wanted = 8 if products > 4e5 else 4
    uneven = prod(
        -(-total // parts) * parts / total
        for total, parts in (
            (it.groups, it.group_parts),
            (it.tiles, it.tile_parts),
            (it.panels, it.panel_parts),
        )
    )
    per = -(-chunks // it.slices)
    scratch = _scratch(it)
    block = gradient * it.number / blocks_of_channels
    cost = products * (0.5 + 0.5 * uneven) * (per * it.slices / chunks)
    cost *= (
        1
        + 0.06 / items
        + (0.05 if scratch > 0.86 * target.l2_bytes else 0)
        + max(0, wanted - items) / wanted * 0.5
    )
    x = -(-it.panel_parts // it.grain) * it.group_in * density * 0.6
    y = it.tile_parts * it.group_out * 0.35
    cost += pixels * groups * (x + y)
    near = block + scratch < 0.9 * target.l2_bytes
    cost += chunks * gradient * (0.5 if near else 0.8)
    cost += 0 if it.direct else it.slices * gradient * 0.6
    cost += chunks * blocks_of_channels * (taps * 20 + 300)
    return cost
