"""How units of a filter gradient are shared among items: slices of a power of two of them, nodes of one level of the tree.

Slices do not show in the bits, so they may follow what threads and memory want.
"""

from __future__ import annotations

from ..._problem.convolution import Problem
from .reduce import affordable_shares


def slice_units(problem: Problem, units: int, chunks: int, wide: int) -> int:
    """Return the units of a slice, where each of some chunks of channels is cut into slices of their own."""
    most = affordable_shares(problem, wide)
    sizes = [1 << j for j in range(max(1, units).bit_length() + 1)]
    few = [size for size in sizes if -(-units // size) <= most] or sizes[-1:]
    return max(few, key=lambda size: (_balance(units, chunks, size), size))


def _balance(units: int, chunks: int, size: int) -> float:
    """Rate slices: 1 if 8 threads are at least 6 times as fast as one, and 16 at least 10 times."""
    items = chunks * -(-units // size)
    work = units * chunks / min(size, max(1, units))
    return min(1.0, work / -(-items // 8) / 6, work / -(-items // 16) / 10)
