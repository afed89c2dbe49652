"""How `dense_grouped` cuts a filter gradient: its tile, the units its sums are added in, and who adds them."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from ..._compiler.codegen import arithmetic, element
from ..._compiler.targets import Target
from ..._problem.convolution import Problem
from ..shared import reduce
from ..shared.gather import Gather, gather
from .filter_gradient import pieces
from .sizes import LARGE_FLOPS, THREADS, is_busy

_UNIT_SHARE = 0.4
"""Part of the second cache for what a unit stages."""
_RUN = 48
"""Products of a running sum, about: longer ones cost digits, shorter ones time."""
_MOST_PARTIAL = 64 << 20


class Cut(NamedTuple):
    """Units are images x rows of the target; an item adds a share of them for some of the input channels."""

    images: int
    rows: int
    channels: int
    shares: int


class GroupedFilterSizes:
    """The sizes of a filter gradient."""

    def __init__(self, problem: Problem, target: Target) -> None:
        self.problem, self.target = problem, target
        self.number = arithmetic(element(problem.dtype.short)).size
        self.lanes = target.lanes(self.number)
        self.lane_blocks = problem.groups // self.lanes
        self.rows: Gather = gather(problem.rows, problem.kind)
        self.cols: Gather = gather(problem.cols, problem.kind)
        self.taps = problem.rows.window * problem.cols.window
        self.planes = problem.data_format == "NCHW"
        self.tile = (4, 3) if target.vector_registers < 32 else (6, 4)
        self.wide = element(reduce.partial_type(problem.dtype.short)).size
        self.cut = min(self._cuts(), key=self.cost)

    @property
    def exact(self) -> bool:
        """Whether the length of a running sum shows in the result."""
        return self.problem.dtype.itemsize == self.number

    def runs(self, cut: Cut) -> tuple[int, int]:
        """Return rows and columns of a running sum."""
        rows, cols = cut.rows, self.cols.target
        if not self.exact:
            return rows, cols
        if cols > _RUN * 4 // 3:
            return 1, -(-cols // -(-cols // _RUN))
        return -(-rows // max(1, round(rows * cols / _RUN))), cols

    def row_blocks(self, cut: Cut) -> int:
        return -(-self.rows.target // cut.rows)

    def units(self, cut: Cut) -> int:
        return -(-self.problem.batch // cut.images) * self.row_blocks(cut)

    def items(self, cut: Cut) -> int:
        return cut.shares * self.lane_blocks * (self.problem.group_in // cut.channels)

    def read_rows(self, rows: int) -> int:
        """Return how many rows of the input some neighbouring rows of the output read, about and at most."""
        shape = self.rows.footprint
        return min(self.rows.source, (rows - 1) * shape.step + shape.highest - shape.lowest + 1)

    def unit_pixels(self, cut: Cut) -> tuple[int, int]:
        """Return the pixels of both images that a unit stages."""
        x = cut.images * self.read_rows(cut.rows) * self.cols.source
        return x, cut.images * cut.rows * self.cols.target

    def unit_bytes(self, cut: Cut) -> int:
        x, dy = self.unit_pixels(cut)
        return (x * cut.channels + dy * self.problem.group_out) * self.lanes * self.number

    def bank_bytes(self, cut: Cut) -> int:
        return self.taps * cut.channels * self.problem.group_out * self.lanes * self.number

    def partial_bytes(self, cut: Cut) -> int:
        size = prod(self.problem.filter_shape) * self.wide
        return size * cut.shares if cut.shares > 1 else 0

    def _cuts(self) -> Iterator[Cut]:
        """Offer cuts whose units fit the cache, and the one with the smallest."""
        batch, whole, depth = self.problem.batch, self.rows.target, self.problem.group_in
        channels = [depth]
        if depth % self.lanes == 0:
            channels += [n for n in range(self.lanes, depth, self.lanes) if depth % n == 0]
        yield Cut(1, 1, min(channels), 1)
        room = self.target.l2_bytes * _UNIT_SHARE
        sizes = {-(-whole // parts) for parts in range(1, 33)}
        for rows in sizes:
            for images in {1, 2, 4, 8} if rows == whole else {1}:
                for count in channels:
                    cut = Cut(images, rows, count, 1)
                    if images > batch or (rows > 1 and self.unit_bytes(cut) > room):
                        continue
                    units = self.units(cut)
                    for shares in {1, 2, 3, 4, 6, 8, 12, 16, 32}:
                        if shares <= units:
                            yield cut._replace(shares=shares)

    def amounts(self, cut: Cut) -> dict[str, float]:
        """Count what a cut makes a kernel do, in vectors."""
        problem = self.problem
        units, across = self.units(cut), self.lane_blocks
        parts = problem.group_in // cut.channels
        x, dy = self.unit_pixels(cut)
        height, width = (
            sum((last - first) // size for first, last, size in pieces(total, most))
            for total, most in zip((cut.channels, problem.group_out), self.tile, strict=True)
        )
        tiles = self.taps * height * parts * width * across
        row_run, col_run = self.runs(cut)
        runs = -(-cut.rows // row_run) * -(-self.cols.target // col_run) * cut.images
        filter_ = self.taps * problem.group_in * problem.group_out * across
        return {
            "rows": tiles * units * cut.images * cut.rows,
            "runs": tiles * units * runs,
            "unit sums": units * filter_,
            "turned x": units * x * problem.group_in * across,
            "turned dy": units * dy * problem.group_out * parts * across,
            "stored": cut.shares * filter_,
            "items": self.items(cut),
        }

    def cost(self, cut: Cut) -> float:
        """Return what a cut costs, about, in products, and on as many threads as a large problem should keep busy."""
        found = self.amounts(cut)
        problem = self.problem
        products = problem.flops / 2 / self.lanes
        cost = products + 10 * found["rows"] + 40 * found["runs"] + 3 * found["unit sums"]
        cost += 8 * (found["turned x"] + found["turned dy"]) + 20 * found["stored"]
        cost += 4000 * found["items"]
        items = self.items(cut)
        cost *= -(-items // 2) * 2 / items
        if problem.flops > LARGE_FLOPS and not is_busy(items, THREADS):
            cost *= 100
        return cost * (100 if self.partial_bytes(cut) > _MOST_PARTIAL else 1)
