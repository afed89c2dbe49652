"""How `dense_grouped` cuts a problem: what an image pass has in a tile, in a block and in an item."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..._compiler.codegen import arithmetic, element
from ..._compiler.targets import Target
from ..._problem.convolution import Kind, Problem
from ..._problem.sums.gather import gather_contract
from ..shared.gather import Gather, gather

_BLOCK_SHARE = 0.5
"""Part of the second cache for the staged source of a block and its sums."""
_ONE_TAP_SHARE = 0.06
"""The same for one tap on NHWC: nothing is read twice, and what is staged stays in the first cache."""
THREADS = 16
"""Threads that a large problem should keep busy, ..."""
_BUSY = 0.75
"""... to this part of their time at least; and what a large problem is, in operations."""
LARGE_FLOPS = 100_000_000
_BORDER = 4
"""Pixels computed in vain in a block, about: its corners and edges leave tiles that are not full."""


class GroupedBlock(NamedTuple):
    """What an item works on."""

    images: int
    rows: int
    """Of the target."""
    ranges: int
    """Parts the panels of a group are cut into."""


class GroupedSizes:
    """The sizes of a forward pass or an input gradient."""

    def __init__(self, problem: Problem, target: Target) -> None:
        self.problem, self.target = problem, target
        self.forward = problem.kind is Kind.FORWARD
        self.number = arithmetic(element(problem.dtype.short)).size
        self.lanes = target.lanes(self.number)
        self.depth, self.width = problem.group_in, problem.group_out
        if not self.forward:
            self.depth, self.width = self.width, self.depth
        self.lane_blocks = problem.groups // self.lanes
        self.rows: Gather = gather(problem.rows, problem.kind)
        self.cols: Gather = gather(problem.cols, problem.kind)
        self.taps = problem.rows.window * problem.cols.window
        self.planes = problem.data_format == "NCHW"
        self.pixels, self.outputs = _tile(target, self.width)
        self.panels = -(-self.width // self.outputs)
        self.contract = gather_contract(problem)
        self.block = min(self._blocks(), key=self._cost)
        self.row_blocks = -(-self.rows.target // self.block.rows)
        self.image_blocks = -(-problem.batch // self.block.images)
        self.items = self._items(self.block)

    @property
    def filter_size(self) -> int:
        """Elements of the packed filter."""
        return self.lane_blocks * self.panels * self.panel_size

    @property
    def panel_size(self) -> int:
        return self.taps * self.depth * self.outputs * self.lanes

    def read_rows(self, rows: int) -> int:
        """Return how many rows of the source some neighbouring rows of the target read, about and at most."""
        shape = self.rows.footprint
        groups = -(-rows // len(shape.phases))
        return min(self.rows.source, (groups - 1) * shape.step + shape.highest - shape.lowest + 1)

    def block_bytes(self, block: GroupedBlock) -> int:
        """Return the bytes of what a block stages and of its sums."""
        source = self.read_rows(block.rows) * self.cols.source * self.depth
        target = block.rows * self.cols.target * self.width
        return block.images * (source + target) * self.lanes * self.number

    def _blocks(self) -> Iterator[GroupedBlock]:
        """Offer blocks that fit the cache, and the smallest there is."""
        few = self.taps == 1 and not self.planes
        room = self.target.l2_bytes * (_ONE_TAP_SHARE if few else _BLOCK_SHARE)
        period = len(self.rows.footprint.phases)
        whole = self.rows.target
        most = 1
        if self.width % self.lanes == 0 and self.lanes % self.outputs == 0:
            most = self.width // self.lanes
        ranges = [n for n in range(1, most + 1) if most % n == 0]
        smallest = GroupedBlock(1, min(whole, period), 1)
        yield from (smallest._replace(ranges=n) for n in ranges)
        groups = self.rows.groups
        sizes = {min(whole, -(-groups // parts) * period) for parts in range(1, 33)}
        for rows in sizes:
            for images in {1, 2, 3, 4, 6, 8, self.problem.batch} if rows == whole else {1}:
                block = GroupedBlock(images, rows, 1)
                if images <= self.problem.batch and self.block_bytes(block) <= room:
                    yield from (block._replace(ranges=n) for n in ranges)

    def _items(self, block: GroupedBlock) -> int:
        across = -(-self.problem.batch // block.images) * -(-self.rows.target // block.rows)
        return across * self.lane_blocks * block.ranges

    def _cost(self, block: GroupedBlock) -> float:
        """Return what a block costs per pixel, about, in products: turning a vector takes as long as eight."""
        pixels = block.images * block.rows * self.cols.target
        read = block.images * self.read_rows(block.rows) * self.cols.source
        products = self.taps * self.depth * self.width / len(self.rows.footprint.phases) ** 2
        turned = 8 * (read * self.depth * block.ranges + pixels * self.width)
        cost = ((pixels + _BORDER) * products + turned + 500 * block.ranges) / pixels
        items = self._items(block)
        cost *= -(-items // 2) * 2 / items
        if self.problem.flops > LARGE_FLOPS:
            cost *= 1 if is_busy(items, THREADS) else 100
        return cost


def is_busy(items: int, threads: int) -> bool:
    """Tell whether equal items keep threads busy for most of the time."""
    return items >= _BUSY * -(-items // threads) * threads


def _tile(target: Target, width: int) -> tuple[int, int]:
    """Return pixels and channels of a tile: sums, pixels and a weight fit the registers."""
    registers = target.vector_registers
    outputs = min(4, width)
    return max(1, (registers - 1) // (outputs + 1)), outputs
