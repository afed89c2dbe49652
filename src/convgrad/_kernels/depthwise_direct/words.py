"""What the kernel of `depthwise_direct` is told: its identity when it is written, its words when it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..._compiler.kernel import added_field
from ..._problem.convolution import Kind
from ..shared.gather import Footprint

WORDS = (
    "source_rows",
    "source_cols",
    "target_rows",
    "target_cols",
    "groups_h",
    "groups_w",
    "channels",
    "chunk",
    "chunks",
    "row_block",
    "row_blocks",
    "units",
)
"""The run-time words behind the pointers, three and a bias."""


@dataclass(frozen=True)
class Tile:
    """How much of the target is held in registers, and in which order its window is walked."""

    rows: int
    """Groups of rows."""
    cols: int
    """Groups of columns."""
    vectors: int = 1
    """Vectors of channels."""
    prefetch: int = 0
    """Elements ahead in the same row to ask for, only in rows new to the window; 0 for none."""
    order: Literal["rows", "resident"] = "rows"
    """Filter gradient: which sums are in registers: those of one source row, or all."""


@dataclass(frozen=True)
class DirectKernel:
    """Identity of a kernel: all that shapes its code besides the target."""

    kind: Kind
    dtype: str
    rows: Footprint
    cols: Footprint
    window: tuple[int, int]
    tile: Tile
    single: bool
    """Whether one tile spans all columns, so that both borders lie in it."""
    channels: int = 0
    """The number of channels if it is part of the code, else 0. Addresses that are known make filter gradients, which
    have the most of them, 2 to 17% faster; forward passes and input gradients gain 5% and are compiled less often."""
    alternate: bool = False
    """bfloat16 only: a vector holds every other channel of twice as many, which are cheaper to convert than neighbours.
    The two vectors are computed one after the other, so that the tile needs no more registers."""
    pieces: bool = added_field(False)
    """Filter gradient: whether a row has several runs or units."""
    bias: bool = added_field(False)
    """Whether a bias is added to the result, or out_backprop added up besides: that sum is one more tap."""
    row_runs: bool = added_field(False)
    """Filter gradient: whether every row is one run, begun by a tile at the left border and ended by one at the right.
    Then sums need not be cleared, and go from the last tile to their unit: 28x28x240 with 5x5 takes 6 to 10% less."""
