"""What a plan of `dense_grouped` does, in units that have a price."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._compiler.costs import Work
from ..shared.amounts import kind_of_work, meetings, traffic

if TYPE_CHECKING:
    from .filter_sizes import GroupedFilterSizes
    from .sizes import GroupedSizes

_EDGE_PIXELS = 4
"""Pixels computed in vain in a block, about."""


_NOTHING = dict.fromkeys(
    (
        *("products", "tiles", "turned in", "turned out", "packed", "listed", "items"),
        *("totals", "near weights", "rows", "runs", "unit sums", "stored"),
    ),
    0.0,
)
"""All units, of image passes and of filter gradients."""


def work(name: str, it: GroupedSizes, serial: bool) -> Work:
    """Count products in vectors, what is turned into lanes and back, tiles, and packing."""
    problem, block = it.problem, it.block
    blocks = it.row_blocks * it.image_blocks
    pixels = problem.batch * it.rows.target * it.cols.target
    filled = (pixels + _EDGE_PIXELS * blocks) / pixels
    met = problem.batch * meetings(problem.rows) * meetings(problem.cols)
    channels = it.panels * it.outputs * it.lane_blocks
    products = met * filled * it.depth * channels
    tiles = pixels * filled / it.pixels * it.panels * it.lane_blocks
    # A panel of weights larger than the first cache comes from the second one for every tile.
    far = max(0.0, 1 - it.target.l1_bytes / (it.panel_size * it.number))
    read = problem.batch * it.row_blocks * it.read_rows(block.rows) * it.cols.source
    return Work(
        kind_of_work(name, problem, problem.data_format),
        {
            **_NOTHING,
            "products": products,
            "tiles": tiles,
            "totals": products / it.contract.run if it.contract.levels else 0,
            "near weights": products / it.pixels * far,
            "turned in": read * it.depth * it.lane_blocks * block.ranges,
            "turned out": pixels * it.width * it.lane_blocks,
            "packed": it.filter_size / it.lanes,
            "listed": pixels * it.lane_blocks * block.ranges,
            "items": it.items,
            **traffic(problem, it.target),
        },
        it.items,
        launches=2,
        serial=serial,
    )


def filter_work(name: str, it: GroupedFilterSizes, serial: bool) -> Work:
    """Count products in vectors, the rows and runs they come in, what is turned, and the sums moved."""
    problem, cut = it.problem, it.cut
    met = problem.batch * meetings(problem.rows) * meetings(problem.cols)
    found = it.amounts(cut)
    turned = found.pop("turned x") + found.pop("turned dy")
    products = met * problem.group_in * problem.group_out * it.lane_blocks
    return Work(
        kind_of_work(name, problem, problem.data_format),
        {
            **_NOTHING,
            "products": products,
            "turned in": turned,
            **found,
            **traffic(problem, it.target),
        },
        it.items(cut),
        launches=2 if it.slices(cut) > 1 else 1,
        serial=serial,
    )
