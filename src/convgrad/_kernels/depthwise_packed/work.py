"""What a plan of `depthwise_packed` does, in units that have a price."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._compiler.costs import Work
from ..._compiler.targets import Target
from ..._problem.convolution import Kind, Problem
from ..shared.amounts import kind_of_work, meetings, traffic

_IN_DOUBT = 1.2
"""Handicap: its times are the hardest to predict (one in ten is off by half), and what it is weighed against is fitted
better. Without it picks lose 3% on the depthwise lists."""

if TYPE_CHECKING:
    from .schedule import PackedSizes


def work(
    name: str, problem: Problem, target: Target, it: PackedSizes, items: int, serial: bool
) -> Work:
    """Count products and copies in vectors, and the pieces of rows a tile goes through."""
    batch, across = problem.batch, it.vectors * it.chunks
    met = batch * meetings(problem.rows)
    tiles = -(-it.groups // it.tile)
    taps = sum(phase.count for phase in it.columns.phases)
    loads = (it.tile - 1) * it.columns.step + min(taps, it.columns.highest - it.columns.lowest + 1)
    runs = met * tiles * across * it.planes
    read = min(it.source_rows, it.row_block * it.row_scale + it.ring_rows - 1)
    rows = batch * it.row_blocks * read * it.col_blocks
    if it.to_filter and it.col_blocks == 1:
        rows = batch * it.source_rows  # the ring outlives units
    copied = rows * it.ring_cols * it.planes * across
    if it.to_filter and it.by_channel:
        copied += batch * it.target_rows * it.target_cols * across  # out_backprop too
    stored = 0 if it.to_filter else batch * it.target_rows * it.target_cols * across
    narrow = it.channels < it.lanes
    return Work(
        kind_of_work(name, problem, problem.data_format),
        {
            "products": runs * it.tile * taps,
            "loads": runs * loads,
            "runs": runs * max(1, len(it.columns.phases)),
            "rows": rows * it.chunks * it.planes,
            "copies": copied,
            "narrow copies": copied if narrow else 0,
            "spread copies": copied if it.repeat > 1 else 0,
            "stores": stored,
            "narrow stores": stored if narrow else 0,
            "banks": items * it.taps * it.vectors * it.planes,
            **traffic(problem, target),
        },
        items,
        launches=2 if problem.kind is Kind.FILTER_GRADIENT else 1,
        serial=serial,
        handicap=_IN_DOUBT,
    )
