"""What a plan of `dense_planes` does, in units that have a price."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._compiler.costs import Work
from ..shared.amounts import kind_of_work, traffic
from ..shared.levels import in_blocks

_FEW_PIXELS = 64
_SMALL = 1.25
_GROUPED = 1.25

if TYPE_CHECKING:
    from .schedule import PlanesSizes


def work(name: str, it: PlanesSizes, serial: bool) -> Work:
    """Count products and copies in vectors, and the tiles and runs a kernel goes through."""
    problem = it.problem
    rows, cols = it.block()
    blocks, _, ranges = it.items()
    tiles = blocks * -(-it.block_vectors(rows, cols) // it.vectors)
    tapped = tiles * it.taps
    """Tiles of one channel and one panel, by the taps of all phases together."""
    steps = tapped * it.depth
    rounds = it.contract.blocks if in_blocks(it.contract, it.taps) else 1
    products = steps * it.vectors * it.computed
    down, along = rows + it.rows.halo, cols + it.cols.halo
    cells = blocks * ranges * it.depth * it.source_phases * down * along
    quick = it.cols.step in (1, 2, 4) and it.cols.step <= it.lanes
    laid = 0 if it.direct else blocks * rows * along * it.phases * it.computed
    joined = it.cols.target_phases in (1, 2)
    filter_bytes = it.group_size * problem.groups * it.number
    far = filter_bytes > it.target.l2_bytes // 2
    return Work(
        kind_of_work(name, problem),
        {
            "products": products if it.source == "tiled" or it.is_listed else 0,
            "products of rows": 0 if it.source == "tiled" or it.is_listed else products,
            "runs": 0 if it.is_listed else tapped * it.panels * rounds,
            "listed": steps * it.panels if it.is_listed else 0,
            "tiles": tiles * it.panels * it.phases,
            "copies": cells / it.lanes if quick else 0,
            "copied cells": 0 if quick else cells,
            "rows copied": cells / along,
            "laid": laid / it.lanes if joined else 0,
            "laid cells": 0 if joined else laid,
            "packed": filter_bytes / it.number / it.high,
            "far weights": blocks * filter_bytes / problem.groups / 64 if far else 0,
            "blocks": blocks * ranges,
            **traffic(problem, it.target),
        },
        blocks * ranges,
        launches=2,
        serial=serial,
        handicap=_handicap(it),
    )


def _handicap(it: PlanesSizes) -> float:
    """Return by how much to stand back where few vectors are full, and for groups, which were hardly measured."""
    small = it.rows.gather.target * it.cols.gather.target < _FEW_PIXELS
    return (_SMALL if small else 1.0) * (_GROUPED if it.problem.groups > 1 else 1.0)
