"""The same by F(4,3): tiles of 4x4 outputs from 6x6 inputs, 4 times fewer multiplications than the plain sum.

Only where asked for (``convgrad.options(winograd="fast")``): its matrices divide by 24 and weigh neighbours by up to 5,
so errors are relative to the largest numbers of a tile, not of a window. On normal data they are 16 units of 2^-24 in
float32 (N8 28x28x64-64, relative Frobenius), against 2.4 of F(2,3) and 7.1 of PyTorch's plain sums; half and bfloat16
results do not show it. Where 3% of the pixels are 10^4 times as large as the rest, results next to them, whose own
windows hold none, are off by up to 0.4% of what they are summed from. Whole numbers are not exact.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._compiler.targets import Target
from ..._problem.convolution import Problem
from ..._problem.sums.winograd import F4, refusal
from ..shared.table import Candidate
from . import schedule

NAME = F4
WINOGRAD = "fast"
"""The least value of the switch that allows it."""


def why_not(problem: Problem, target: Target) -> str | None:
    """Return why this algorithm cannot compute the problem, or None if it can."""
    return refusal(problem)


def candidates(problem: Problem, target: Target) -> Sequence[Candidate]:
    """Offer the block of tiles and the split of the panels that a rule chooses."""
    return schedule.offered(problem, target, 4, NAME)
