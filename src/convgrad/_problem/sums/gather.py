"""Forward passes and input gradients: blocks of channels, rows of taps, taps, channels, from the outside in.

A *chain* is ``a = fma(x, w, a)``, one product after the other from +0. A *run* is the longest chain, a *total* adds
runs in order, the *grand total* adds totals in order. Runs are numbered by position and never by counting, so a tap
that lies in the padding has its place, and adds nothing. The sum is ``grand + (total + run)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from ..convolution import Kind, Problem

RUN = 48
"""Products of one chain, at most. 64 would break the bounds of docs/accuracy.md."""
GROUP = 16
"""Numbers of runs whose sums make one total."""
SHORT = 160
"""Sums of at most so many products are one chain."""
LINE = 64
"""Bytes of the chains of a result with several: 16 in float32, 8 in float64."""
FEW = 4
"""Channels written up to which a result has several chains."""


def sum_bytes(problem: Problem) -> int:
    """Return the bytes of the numbers that products are added in."""
    return 8 if problem.dtype.accumulator == "f64" else 4


def is_coarse(problem: Problem) -> bool:
    """Tell whether a result is rounded more coarsely than its sums, which need no levels then."""
    return sum_bytes(problem) != problem.dtype.itemsize


@dataclass(frozen=True)
class GatherContract:
    """The order in which the products of one result are added."""

    depth: int
    """Channels summed over."""
    chains: int
    """Chains of a result: channel d of a block belongs to chain d % chains. In the end they are added halves onto
    halves."""
    block: int
    """Channels of a block."""
    blocks: int
    taps: int
    """Taps of one run, where a block is all channels."""
    row_runs: int
    """Numbers of runs of a row of taps."""
    block_runs: int
    """Numbers of runs of a block."""
    levels: bool
    """Whether runs are added up apart; if not, all is one chain."""
    row_spacing: int
    col_spacing: int
    """Distance of the taps of one phase."""

    @property
    def run(self) -> int:
        """Products of a run, at most."""
        return self.block * self.taps


def gather_contract(problem: Problem) -> GatherContract:
    """Return how the products of a forward pass or an input gradient are added."""
    forward = problem.kind is Kind.FORWARD
    depth, width = problem.group_in, problem.group_out
    if not forward:
        depth, width = width, depth
    chains = _chains(problem, depth, width)
    blocks = max(1, -(-depth // (RUN * chains)))
    equal = -(-depth // blocks)
    block = -(-equal // 16) * 16 if blocks > 1 else depth
    blocks = max(1, -(-depth // block)) if depth else 1
    if not forward and problem.groups > 1 and width == 1:
        # The outputs of a depthwise multiplier, one after the other.
        block, blocks = 1, max(1, depth)
    rows, cols = problem.rows, problem.cols
    taps = max(1, RUN * chains // max(1, block)) if blocks == 1 or block == 1 else 1
    taps = min(taps, max(1, cols.window))
    row_runs = -(-cols.window // taps)
    long = rows.window * cols.window * depth > SHORT * chains
    return GatherContract(
        depth=depth,
        chains=chains,
        block=block,
        blocks=blocks,
        taps=taps,
        row_runs=row_runs,
        block_runs=rows.window * row_runs,
        levels=long and not is_coarse(problem) and not problem.dtype.is_integer,
        row_spacing=1 if forward else rows.stride // gcd(rows.stride, rows.dilation),
        col_spacing=1 if forward else cols.stride // gcd(cols.stride, cols.dilation),
    )


def _chains(problem: Problem, depth: int, width: int) -> int:
    """Return the chains of a result: several where few channels are written side by side."""
    chains = LINE // sum_bytes(problem)
    few = problem.groups == 1 and width <= FEW and depth >= chains
    several = few and problem.data_format == "NHWC" and not problem.dtype.is_integer
    return chains if several else 1
