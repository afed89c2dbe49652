"""What a plan of `dense_direct` does, in units that have a price."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._compiler.costs import Work
from ..shared.amounts import MEANT_FOR_OTHERS, kind_of_work, meetings, traffic
from ..shared.gather import Gather
from ..shared.levels import in_blocks

_ODD_TILE = 1.06
"""Handicap of the tiles that are not a target's first: near a tie the first is as good, and fewer kernels are made."""

if TYPE_CHECKING:
    from .sizes import DirectSizes


def work(name: str, it: DirectSizes) -> Work:
    """Count products, copies and packing in vectors, and the tiles and taps a kernel goes through.

    Pixels computed in vain are those that fill the last tile of a block. Pixels beside the edges of an image, whose
    tiles are less full, are not looked at: that would take as long as planning.
    """
    problem, tile, panels = it.problem, it.tile, it.panels * it.groups
    images, rows, cols = it.block()
    down, along = -(-it.rows.target // rows), -(-it.cols.target // cols)
    blocks = -(-it.batch // images) * down * along
    tiles = blocks * -(-images * rows * cols // tile.height)
    runs = problem.batch * meetings(problem.rows) * meetings(problem.cols) / tile.height
    runs *= tiles * tile.height / it.pixels * panels
    chains = it.contract.chains
    steps = runs * (-(-it.depth // chains) * (chains // it.lanes) if it.dot else it.depth)
    products = steps * tile.vectors * tile.height
    weights = it.filter_bytes / it.number / it.lanes
    far = blocks * it.filter_bytes / 64 if it.filter_bytes > it.target.l2_bytes // 2 else 0
    packed = 0 if it.in_place else weights * (blocks if it.packs(blocks) else 1)
    in_place = weights * tiles if it.in_place else 0
    loads, panel = steps * tile.vectors, it.taps * it.tap_size * it.number
    copied = 0.0
    if it.staged:
        across = down * _cells(it.rows, rows) * along * _cells(it.cols, cols)
        copied = it.batch * across * it.channels / it.lanes
    elif it.turned:
        copied = it.source_bytes / it.number / it.lanes
    kind = "dot" if it.dot else "woven" if it.woven > 1 else problem.data_format
    if not it.dot and it.woven == 1:
        kind += " groups" if it.groups > 1 else " flat" if it.taps == 1 else ""
    handicap = MEANT_FOR_OTHERS if problem.group_in == 1 else 1.0
    handicap *= _ODD_TILE if it.is_odd else 1.0
    return Work(
        kind_of_work(name, problem, kind),
        {
            **{
                f"products in {n}": 0 if it.dot or n != tile.vectors else products
                for n in (1, 2, 3)
            },
            "dot products": products if it.dot else 0,
            "reads": steps * (tile.vectors + tile.height),
            "runs": runs * (it.contract.blocks if in_blocks(it.contract, it.taps) else 1),
            "tiles": tiles * panels,
            "near weights": loads if panel > it.target.l1_bytes // 2 else 0,
            "panels too large": loads if panel > it.target.l2_bytes // 2 else 0,
            "packed": packed,
            "packed pieces": packed / tile.vectors,
            "weights in place": in_place,
            "pieces in place": in_place / tile.vectors,
            "far weights": far,
            "copies": copied,
            "blocks": blocks,
            "planes": it.pixels * panels * tile.vectors if it.planes else 0,
            **traffic(problem, it.target),
        },
        blocks * -(-panels // it.panel_range(blocks)),
        launches=1 + it.turned + (not it.in_place and not it.packs(blocks)),
        serial=it.serial,
        handicap=handicap,
    )


def _cells(axis: Gather, count: int) -> int:
    """Return how many cells of the source some neighbouring cells of the target read along an axis, about."""
    shape = axis.footprint
    groups = -(-count // len(shape.phases))
    return min(axis.source, (groups - 1) * shape.step + shape.highest - shape.lowest + 1)
