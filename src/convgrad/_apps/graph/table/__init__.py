"""The table of ops: one row each, in groups by what they are about."""

from __future__ import annotations

from ..row import OpRow
from . import (
    arithmetic,
    arrays,
    convolutions,
    network,
    pooling,
    reductions,
    sources,
    states,
)

GROUPS: dict[str, tuple[OpRow, ...]] = {
    "convolutions": convolutions.ROWS,
    "sources": sources.ROWS,
    "arrays": arrays.ROWS,
    "arithmetic": arithmetic.ROWS,
    "reductions": reductions.ROWS,
    "network": (*network.ROWS, *pooling.ROWS),
    "training": states.ROWS,
}
"""By a heading people can look under."""

TABLE: dict[str, OpRow] = {row.name: row for rows in GROUPS.values() for row in rows}
CONST = TABLE["Const"]
