"""Winograd's identities: which problems are computed by them, and in which order their products are added.

Their numbers are not those of plain sums, so a problem has one numerical class, whatever is quicker on some machine. A
class is called as the one algorithm that computes it; `SUMS` is that of all others.

Forward and input gradient (F(2,3), F(4,3)): a frequency is a sum over channels, in runs of 32, the last of 32 to 63. A
run of float32 adds chains of 8 in order, a chain being ``a = fma(v, u, a)`` from +0; of half and bfloat16 a run is one
chain. Runs are added in order. Filter gradient (F(3,2)): a frequency is a sum over tiles in the order of images, rows
and columns, cut into `Slices`. A slice adds chains of 32 tiles in order; slices are added in order.

A number that is not finite is computed again as the plain sum in float64: taps in order, then channels.
"""

from __future__ import annotations

from ..convolution import Kind, Problem
from ..geometry import Axis

SUMS = "sums"
F2 = "winograd"
F4 = "winograd_fast"
F2_FILTER = "winograd_filter_gradient"

CHAIN = 8
"""Channels of a chain: as many as there are chains in a run, about. Errors on N8 28x28x64-64, N2 14x14x256-256 and N1
14x14x512-512 in units of 2^-24: see docs/accuracy.md; by fours they are the same within 3%."""
RUN = 32
"""Channels of a run."""
FEWEST = 32
"""Channels of a group on either side: below, the transforms take what the products save."""
LEAST = 8
"""Rows and columns of what is written, of every phase of a dilated window: below, too much of the tiles is waste."""
MOST = 8192
"""Channels summed over times the dilation of columns: that many numbers of each row are kept at hand."""
CHUNK = 32
"""Tiles of a chain of a filter gradient."""
SLICE = 64
"""Tiles of a slice, at least."""
BLOCK = 64
"""Channels on either side of a block; blocks times slices are `ITEMS` about."""
ITEMS = 16
MOST_BYTES = 18_000_000
"""Of the sums of all slices: 16/9 of the filter, each. 512 channels on both sides still fit."""


def numerical_class(problem: Problem, switch: str) -> str:
    """Return the class of a problem with the switch `winograd` at a value: "off", "auto" or "fast"."""
    if switch == "off" or problem.is_empty:
        return SUMS
    if switch == "fast":
        for name, reason in ((F4, refusal(problem)), (F2_FILTER, filter_refusal(problem))):
            if reason is None:
                return name
    return F2 if is_winograd(problem) else SUMS


def is_winograd(problem: Problem) -> bool:
    """Tell whether a forward pass or an input gradient is computed by F(2,3)."""
    return refusal(problem) is None


def refusal(problem: Problem) -> str | None:
    """Return why a problem is not computed by F(2,3) or F(4,3), which take the same, or None."""
    if problem.depthwise:
        return "only dense problems"
    if problem.kind is Kind.FILTER_GRADIENT:
        return "no filter gradients"
    reason = _refusal(problem)
    if reason is not None:
        return reason
    if min(problem.group_in, problem.group_out) < FEWEST:
        return f"fewer than {FEWEST} channels in a group"
    cells = [_cells(axis, problem.kind) for axis in (problem.rows, problem.cols)]
    if min(cells) < LEAST:
        return f"fewer than {LEAST} rows or columns for each cell of the dilation"
    forward = problem.kind is Kind.FORWARD
    depth = problem.group_in if forward else problem.group_out
    if depth * problem.cols.dilation > MOST:
        return f"more than {MOST} channels of all cells of the dilation"
    return None


def filter_refusal(problem: Problem) -> str | None:
    """Return why a filter gradient is not computed by F(3,2), or None."""
    if problem.depthwise or problem.groups != 1:
        return "only dense problems of one group"
    if problem.kind is not Kind.FILTER_GRADIENT:
        return "only filter gradients"
    reason = _refusal(problem)
    if reason is not None:
        return reason
    if problem.data_format != "NHWC":
        return "only NHWC"
    if problem.is_empty:
        return "nothing to add up"
    if min(problem.in_c, problem.out_c) < FEWEST:
        return f"fewer than {FEWEST} channels"
    if _slice_bytes(problem) > MOST_BYTES:
        return f"the transformed filter needs {_slice_bytes(problem) // 10**6} MB"
    return None


def slices(problem: Problem, tiles: int) -> int:
    """Return the slices of the tiles of a filter gradient: number i has ``i * tiles // slices`` and what follows."""
    blocks = -(-problem.in_c // BLOCK) * -(-problem.out_c // BLOCK)
    wanted = -(-ITEMS // blocks)
    return max(1, min(wanted, tiles // SLICE, MOST_BYTES // _slice_bytes(problem)))


def _slice_bytes(problem: Problem) -> int:
    """Return the bytes of the 16 frequencies of a filter."""
    return 4 * 16 * problem.in_c * problem.out_c


def _refusal(problem: Problem) -> str | None:
    """Return what all identities refuse."""
    rows, cols = problem.rows, problem.cols
    if problem.dtype.accumulator != "f32":
        return f"not exact enough for {problem.dtype.name}"
    if (rows.window, cols.window) != (3, 3):
        return "only 3x3 windows"
    if (rows.stride, cols.stride) != (1, 1):
        return "only stride 1"
    return None


def _cells(axis: Axis, kind: Kind) -> int:
    """Return the cells that are written along an axis, of the shortest phase."""
    written = axis.out if kind is Kind.FORWARD else axis.size
    return written // axis.dilation
