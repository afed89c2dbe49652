"""How a grouped filter gradient is cut: units as the contract of sums has them, in slices, channels at a time."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from ..._compiler.codegen import arithmetic, element
from ..._compiler.targets import Target
from ..._problem.convolution import Problem
from ..._problem.geometry import Axis
from ..._problem.sums.pixels import is_flat, pixel_contract
from ..shared.gather import Gather, gather
from .filter_gradient import pieces
from .sizes import LARGE_FLOPS, THREADS, is_busy

_MOST_PARTIAL = 64 << 20


class Cut(NamedTuple):
    """An item adds a slice of ``2**levels`` units for some of the input channels."""

    channels: int
    levels: int


class GroupedFilterSizes:
    """The sizes of a filter gradient."""

    def __init__(self, problem: Problem, target: Target) -> None:
        self.problem, self.target = problem, target
        self.contract = pixel_contract(problem)
        self.number = arithmetic(element(problem.dtype.short)).size
        self.lanes = target.lanes(self.number)
        self.lane_blocks = problem.groups // self.lanes
        self.row_axis, self.col_axis = problem.rows, problem.cols
        if is_flat(problem):
            pixels = problem.rows.out * problem.cols.out
            self.row_axis = Axis(1, 1, 1, 1, 0, 0, 1)
            self.col_axis = Axis(pixels, 1, 1, 1, 0, 0, pixels)
        self.rows: Gather = gather(self.row_axis, problem.kind)
        self.cols: Gather = gather(self.col_axis, problem.kind)
        self.taps = problem.rows.window * problem.cols.window
        self.planes = problem.data_format == "NCHW"
        self.tile = (4, 3) if target.vector_registers < 32 else (6, 4)
        self.units = self.contract.units
        self.cut = min(self.cuts(), key=self.cost)

    def slices(self, cut: Cut) -> int:
        return -(-self.units >> cut.levels)

    def items(self, cut: Cut) -> int:
        return self.slices(cut) * self.lane_blocks * (self.problem.group_in // cut.channels)

    @property
    def unit_pixels(self) -> tuple[int, int]:
        """Pixels of both images that a unit stages, at most."""
        unit, x = self.contract.unit, self.contract.unit.images
        for axis, size in ((self.rows, unit.rows), (self.cols, unit.cols)):
            shape = axis.footprint
            reach = (size - 1) * shape.step + shape.highest - shape.lowest + 1
            x *= min(axis.source, reach)
        return x, unit.images * unit.rows * unit.cols

    def unit_bytes(self, cut: Cut) -> int:
        x, dy = self.unit_pixels
        return (x * cut.channels + dy * self.problem.group_out) * self.lanes * self.number

    def bank_size(self, cut: Cut) -> int:
        """Sums of one node of the tree."""
        return self.taps * cut.channels * self.problem.group_out * self.lanes

    def bank_bytes(self, cut: Cut) -> int:
        """Return the bytes of the nodes that wait for another one."""
        return max(1, cut.levels) * self.bank_size(cut) * self.number

    def partial_bytes(self, cut: Cut) -> int:
        size = prod(self.problem.filter_shape) * self.number
        return size * self.slices(cut) if self.slices(cut) > 1 else 0

    def cuts(self) -> Iterator[Cut]:
        """Offer all slices, with all input channels and with some vectors of them."""
        depth = self.problem.group_in
        channels = [depth]
        if depth % self.lanes == 0:
            channels += [n for n in range(self.lanes, depth, self.lanes) if depth % n == 0]
        for count in channels:
            for levels in range((self.units - 1).bit_length() + 1):
                yield Cut(count, levels)

    def amounts(self, cut: Cut) -> dict[str, float]:
        """Count what a cut makes a kernel do, in vectors."""
        problem, contract = self.problem, self.contract
        units, across = self.units, self.lane_blocks
        parts = problem.group_in // cut.channels
        x, dy = self.unit_pixels
        height, width = (
            sum((last - first) // size for first, last, size in pieces(total, most))
            for total, most in zip((cut.channels, problem.group_out), self.tile, strict=True)
        )
        tiles = self.taps * height * parts * width * across
        runs = prod(
            -(-all_ // each) for all_, each in zip(contract.unit, contract.run, strict=True)
        )
        filter_ = self.taps * problem.group_in * problem.group_out * across
        ends = (
            contract.run.images if contract.chains == 1 else contract.run.images * contract.run.rows
        )
        return {
            "rows": tiles * units * runs * (ends - 1),
            "runs": tiles * units * runs,
            "unit sums": units * filter_,
            "turned x": units * x * problem.group_in * across,
            "turned dy": units * dy * problem.group_out * parts * across,
            "stored": self.slices(cut) * filter_,
            "items": self.items(cut),
        }

    def cost(self, cut: Cut) -> float:
        """Return what a cut costs, about, in products, and on as many threads as a large problem should keep busy."""
        found = self.amounts(cut)
        problem = self.problem
        products = problem.flops / 2 / self.lanes
        # Sums of a unit come from the second cache, or from behind it; half of the nodes have just been used.
        near = self.unit_bytes(cut) + 2 * self.bank_size(cut) * self.number < self.target.l2_bytes
        cost = products + 10 * found["rows"] + 40 * found["runs"]
        cost += (3 if near else 8) * found["unit sums"]
        cost += 8 * (found["turned x"] + found["turned dy"]) + 20 * found["stored"]
        cost += 4000 * found["items"]
        items = self.items(cut)
        cost *= -(-items // 2) * 2 / items
        if problem.flops > LARGE_FLOPS and not is_busy(items, THREADS):
            # Units may be too few for that; then those come first that keep most of them busy.
            cost *= 100 * THREADS * -(-items // THREADS) / items
        return cost * (100 if self.partial_bytes(cut) > _MOST_PARTIAL else 1)
