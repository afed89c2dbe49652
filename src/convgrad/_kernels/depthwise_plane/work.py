"""What a plan of planes does, in units that have a price."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._compiler.costs import Work
from ..._problem.convolution import Kind
from ..._problem.sums.gather import SHORT
from ..shared.amounts import kind_of_work, traffic

if TYPE_CHECKING:
    from .schedule import PlaneShape, PlaneSplit

_NARROW = 1.3
"""How much longer a product takes where a tile is one vector wide: 14 x 14, 5x5 and 7x7, ..."""
_NARROW_AND_FEW = 2.0
"""... and with 16 registers, which do not hold sums, vectors and weights of as many rows."""

_LONG = 1.5
"""The same for windows whose sums have totals, which do not fit the registers: 56 x 56, 31x31."""


def work(name: str, shape: PlaneShape, split: PlaneSplit, serial: bool) -> Work:
    """Count products and copies in vectors, and tiles and blocks of rows."""
    problem = shape.problem
    blocks = problem.batch * split.planes * split.row_blocks
    rows = -(-shape.rows.groups // split.row_blocks)
    down = -(-rows // shape.height)
    along = -(-shape.groups_w // shape.lanes)
    tiles = blocks * down * along * shape.multiplier
    taps = problem.rows.window * problem.cols.window
    to_input = problem.kind is Kind.INPUT_GRADIENT
    row = shape.pitch * shape.cols.footprint.step / shape.lanes
    copied = blocks * split.block_rows * row * (shape.multiplier if to_input else 1)
    copied += blocks * split.grad_rows * shape.grad_pitch / shape.lanes
    narrow = shape.short_target
    pixels = 0
    apart = problem.cols.stride > (1 if shape.period else 2)
    if apart and to_input:
        pixels = blocks * rows * problem.rows.stride * problem.cols.size
    elif apart or (shape.repeat > 1 and not shape.spread):
        pixels = blocks * split.block_rows * problem.cols.size
        pixels *= -(-shape.col_windows.across // shape.lanes)
    products: float = tiles * shape.height * taps
    if not shape.few_taps and problem.kind is not Kind.FILTER_GRADIENT:
        if shape.vectors == 1:
            # A weight is read for few products.
            products *= _NARROW if shape.target.vector_registers >= 32 else _NARROW_AND_FEW
        elif taps > SHORT:
            products *= _LONG
    return Work(
        kind_of_work(name, problem, "in place" if shape.direct else "copied"),
        {
            "products": products,
            "tiles": tiles,
            "narrow tiles": tiles if narrow else 0,
            "strided tiles": tiles if problem.cols.stride > 1 else 0,
            "rows": tiles * shape.height,
            "copies": 0 if shape.direct else copied,
            "pixels": pixels,
            "blocks": blocks,
            "converted": copied if problem.dtype.itemsize != shape.number else 0,
            **traffic(problem, shape.target),
        },
        split.items,
        launches=2 if split.shares > 1 else 1,
        serial=serial,
    )
