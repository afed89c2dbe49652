"""Dense and grouped convolution and its input gradient: tiles of pixels times panels of the packed filter.

This module offers the candidates. Their sizes are in `sizes`, the plan that is made of them in `plan`, the mechanism in
`kernel` and the geometry in `axis` and `tables`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..._compiler.targets import Target
from ..._problem.convolution import Kind, Problem
from ..shared.gather import MOST_LISTED, listed_taps
from ..shared.table import Candidate
from .plan import plan
from .sizes import DirectSizes, tiles
from .work import work

NAME = "dense_direct"


def why_not(problem: Problem, target: Target) -> str | None:
    """Return why this algorithm cannot compute the problem, or None if it can."""
    if problem.kind is Kind.FILTER_GRADIENT:
        return "only forward and input gradient"
    if (taps := listed_taps(problem)) > MOST_LISTED:
        return f"the lists of taps would have {taps} entries"
    return None


def candidates(problem: Problem, target: Target) -> Sequence[Candidate]:
    """Offer every tile that is no wider than the channels are; blocks and split follow from it by a rule."""
    first = DirectSizes(problem, target, None)
    offered = [first]
    if first.is_free:
        fitting = (tile for tile in tiles(target) if tile.vectors * first.lanes <= first.width)
        offered = [DirectSizes(problem, target, tile) for tile in fitting] or offered
    return [Candidate(work(NAME, it), partial(plan, NAME, it), it.label) for it in offered]
