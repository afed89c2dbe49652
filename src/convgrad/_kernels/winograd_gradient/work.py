"""What a plan of the filter gradient by F(3,2) does, in units that have a price."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._compiler.costs import Work
from ..shared.amounts import kind_of_work, traffic
from ..shared.winograd_scheme import F2

if TYPE_CHECKING:
    from .schedule import GradientSizes


def work(name: str, it: GradientSizes, serial: bool) -> Work:
    """Count products, transforms of both sides and the sums that are merged, all in vectors."""
    lanes, tiles = it.target.lanes(4), it.tiles
    pairs = it.block_in * it.in_blocks * it.block_out * it.out_blocks / lanes
    sums = F2.frequencies * pairs
    far = it.slice_bytes > it.target.l2_bytes
    return Work(
        kind_of_work(name, it.problem),
        {
            "products": tiles * sums,
            "inputs": tiles * it.in_blocks * it.block_in * it.out_blocks / lanes,
            "gradients": tiles * it.out_blocks * it.block_out * it.in_blocks / lanes,
            "sums": it.slices * sums,
            "far sums": it.slices * sums if far else 0,
            "taps": sums,
            **traffic(it.problem, it.target),
        },
        it.items,
        launches=2,
        serial=serial,
    )
