"""What a plan by Winograd's F(2,3) or F(4,3) does, in units that have a price."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._compiler.costs import Work
from ..shared.amounts import kind_of_work, traffic

if TYPE_CHECKING:
    from .sizes import WinogradSizes


_DIVIDES_BADLY = 1.1
"""Handicap: two threads do not show what many would lose."""
_APART_FLOPS = 40_000_000
_TOO_SMALL = 2.0
"""Handicap of a launch of its own for the input of smaller problems: 4x4x128, one image, took 157 us instead of 79."""


def work(name: str, it: WinogradSizes, serial: bool) -> Work:
    """Count products, transforms and what is read of the transformed filter in vectors, shared V in lines."""
    problem, frequencies = it.problem, it.scheme.frequencies
    tiles = it.blocks * -(-it.block_tiles // it.rows) * it.rows * problem.groups
    across = it.panels * it.width // it.lanes
    weights = problem.groups * frequencies * it.panels * it.filter_pitch // it.lanes
    far = 4 * weights * it.lanes > it.target.l3_bytes // 4
    near = not far and 4 * weights * it.lanes > it.target.l2_bytes // 2
    return Work(
        kind_of_work(name, problem, problem.data_format, *(["bundled"] if it.bundle > 1 else [])),
        {
            "products": tiles * frequencies * it.sums * across,
            "inputs": tiles * (1 if it.apart else it.parts) * frequencies * -(-it.sums // it.lanes),
            "outputs": tiles * frequencies * across,
            "runs": tiles * frequencies * across * it.runs,
            "weights": 0 if far else weights,
            "far weights": weights if far else 0,
            "near weights": weights * it.blocks if near else 0,
            "far weights again": weights * it.blocks if far else 0,
            "converted": tiles * (it.sums + it.columns) if problem.dtype.itemsize < 4 else 0,
            "shared": it.shared_bytes / 64,
            **traffic(problem, it.target),
        },
        it.items,
        launches=3 if it.apart else 2,
        serial=serial,
        handicap=(_DIVIDES_BADLY if it.divides_badly else 1.0)
        * (_TOO_SMALL if it.apart and problem.flops < _APART_FLOPS else 1.0),
    )
