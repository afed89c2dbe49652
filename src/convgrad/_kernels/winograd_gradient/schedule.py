"""The dense filter gradient of 3x3 windows of stride 1 by F(3,2), 16 products per tile and pair of channels, not 36.

F(2,3) computes ``y = A^T ((G w G^T) * (B^T x B)) A`` for 2x2 outputs of a 3x3 filter, so the same matrices give its
gradient: ``dw = G^T (sum over tiles of (A dy A^T) * (B^T x B)) G``, from 2x2 tiles of dy and 4x4 patches of x. Summed
over tiles each frequency is a product of matrices. Two launches: `kernel` adds up slices of the
tiles, `merge` adds the slices and transforms. This module holds the schedule.

Only where asked for (``convgrad.options(winograd="fast")``): a frequency is a sum over all taps, most of which cancels
in the last transform, so errors are relative to the largest tap of a pair of channels, not to each tap's own products.
On normal data they are 4.0 units of 2^-24 in float32 (N8 28x28x64-64, relative Frobenius), against 2.4 of
`dense_filter`; half and bfloat16 results do not show it. Where pixels differ by orders of magnitude a small tap beside
a large one keeps fewer digits: with 3% of the pixels 10^4 times larger, errors are up to 230 units of the sum of a
tap's own products without their signs, against 5, but 8 of that of the largest tap, against 3. Whole numbers are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..._compiler.targets import Target
from ..._problem.convolution import Problem
from ..._problem.sums.winograd import BLOCK, CHUNK, F2_FILTER, filter_refusal, slices
from ..plan import Operand, Plan, Step
from ..shared.table import Candidate
from ..shared.winograd_scheme import F2
from ..shared.winograd_tiles import tiles_along
from ..shared.words import in_order
from .merge import TapsKernel
from .words import GradientKernel, words_of
from .work import work

NAME = F2_FILTER
WINOGRAD = "fast"
"""The least value of the switch that allows it."""

_VECTORS = 2
_SERIAL_FLOPS = 6_000_000
"""As in `dense_filter`."""


def why_not(problem: Problem, target: Target) -> str | None:
    """Return why this algorithm cannot compute the problem, or None if it can."""
    return filter_refusal(problem)


def candidates(problem: Problem, target: Target) -> Sequence[Candidate]:
    """Offer the blocks of channels and the slices that a rule chooses."""
    it = GradientSizes(problem, target)
    done = work(NAME, it, problem.flops < _SERIAL_FLOPS)
    return (Candidate(done, lambda: _plan(problem, it)),)


def _plan(problem: Problem, it: GradientSizes) -> Plan:
    dtype = problem.dtype.short
    operands: tuple[Operand, ...] = ("first", "second", "partial", "result")
    words = in_order(words_of(it.dilated), **it.words)
    main = Step(it.kernel, operands, words, it.items)
    grain = max(1, 1024 // (problem.out_c * it.slices))
    merge = Step(TapsKernel(dtype, it.dilated), operands, words, problem.in_c, grain)
    return Plan(
        problem,
        NAME,
        (main, merge),
        partial_bytes=it.slices * it.slice_bytes,
        serial=problem.flops < _SERIAL_FLOPS,
        story=(
            (
                "scheme",
                "F(3,2): 3x3 taps from 2x2 tiles of the gradient and 4x4 patches of the input",
            ),
            ("tile", f"{it.rows} x {it.width} channels"),
            ("tiles per chunk", str(CHUNK)),
            ("items", f"{it.slices} slices x {it.in_blocks * it.out_blocks} blocks of channels"),
            ("scratch", f"{it.kernel.scratch_bytes >> 10} KB per thread"),
            ("partial sums", f"{it.slices * it.slice_bytes >> 10} KB"),
        ),
    )


def _blocks(channels: int, unit: int, most: int) -> tuple[int, int]:
    """Return into how many blocks of how many channels they go: equal ones, of whole units, `most` at most."""
    units = -(-channels // unit)
    count = -(-units // (most // unit))
    return count, -(-units // count) * unit


@dataclass(frozen=True)
class GradientSizes:
    """All sizes of one plan."""

    problem: Problem
    target: Target

    @property
    def dilated(self) -> bool:
        return (self.problem.rows.dilation, self.problem.cols.dilation) != (1, 1)

    @property
    def rows(self) -> int:
        """Input channels in registers: with a broadcast and two vectors of dy they fill 16 registers."""
        return 6 if self.target.vector_registers < 32 else 8

    @property
    def width(self) -> int:
        return _VECTORS * self.target.lanes(4)

    @property
    def most_in(self) -> int:
        return -(-BLOCK // self.rows) * self.rows

    @property
    def kernel(self) -> GradientKernel:
        sizes = (self.rows, _VECTORS, self.most_in, BLOCK, CHUNK)
        return GradientKernel(self.problem.dtype.short, *sizes, self.dilated)

    @property
    def in_blocks(self) -> int:
        return _blocks(self.problem.in_c, self.rows, self.most_in)[0]

    @property
    def block_in(self) -> int:
        return _blocks(self.problem.in_c, self.rows, self.most_in)[1]

    @property
    def out_blocks(self) -> int:
        return _blocks(self.problem.out_c, self.width, BLOCK)[0]

    @property
    def block_out(self) -> int:
        return _blocks(self.problem.out_c, self.width, BLOCK)[1]

    @property
    def tile_rows(self) -> int:
        rows = self.problem.rows
        return tiles_along(rows.out, F2.outputs, rows.dilation)

    @property
    def tile_cols(self) -> int:
        cols = self.problem.cols
        return tiles_along(cols.out, F2.outputs, cols.dilation)

    @property
    def tiles(self) -> int:
        return self.problem.batch * self.tile_rows * self.tile_cols

    @property
    def slice_bytes(self) -> int:
        blocks = self.in_blocks * self.out_blocks
        return 4 * F2.frequencies * blocks * self.block_in * self.block_out

    @property
    def slices(self) -> int:
        return slices(self.problem, self.tiles)

    @property
    def items(self) -> int:
        return self.slices * self.in_blocks * self.out_blocks

    @property
    def words(self) -> dict[str, int]:
        p = self.problem
        words = {
            "in_c": p.in_c,
            "out_c": p.out_c,
            "block_in": self.block_in,
            "block_out": self.block_out,
            "in_blocks": self.in_blocks,
            "out_blocks": self.out_blocks,
            "slices": self.slices,
            "tiles": self.tiles,
            "tile_rows": self.tile_rows,
            "tile_cols": self.tile_cols,
            "batch": p.batch,
            "before_rows": p.rows.before,
            "before_cols": p.cols.before,
        }
        if self.dilated:
            words |= {"dilation_rows": p.rows.dilation, "dilation_cols": p.cols.dilation}
        for what, rows, cols, channels in (
            ("source", p.rows.size, p.cols.size, p.in_c),
            ("target", p.rows.out, p.cols.out, p.out_c),
        ):
            words[f"{what}_rows"], words[f"{what}_cols"] = rows, cols
            words[f"{what}_image"] = rows * cols * channels
            words[f"{what}_row"], words[f"{what}_col"] = cols * channels, channels
        return words
