"""`Plan`: how a problem will be computed, as data: which kernels, over how many items, with which words.

A plan is a pure function of the problem and the target. It holds no code and no pointers, so it can be remembered,
compared and explained.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Literal

from .._problem.convolution import Problem

Operand = Literal["first", "second", "result", "bias", "places", "partial", "packed", "table"]
"""Whose pointer a kernel gets: a place of what is asked (the two operands in the order the operation names them, the
result, the bias, which a filter gradient writes), the addresses of all places, memory for
partial sums, memory for an operand in another order, or the step's own table."""


@dataclass(frozen=True)
class Step:
    """One launch of one kernel."""

    kernel: Hashable
    """Identity of the kernel: a frozen dataclass whose repr says all that shapes the code besides the target."""
    operands: tuple[Operand, ...]
    """The first words of the kernel's arguments: pointers."""
    words: tuple[int, ...]
    """The words behind them: run-time geometry."""
    items: int
    """Independent pieces of work, claimed by threads in any order."""
    grain: int = 1
    """How many items are claimed at a time."""
    scratch_bytes: int = 0
    """Workspace of one thread."""
    table: bytes = field(default=b"", repr=False)
    """Constant numbers the kernel looks up: geometry that is too long for words."""
    least: int = 0
    """How few items are claimed at a time where there are more threads than claims of `grain`; 0: no fewer."""


@dataclass(frozen=True)
class Plan:
    """The choice of one algorithm for one problem."""

    problem: Problem
    algorithm: str
    """Name of a row of `_kernels.ALGORITHMS`."""
    steps: tuple[Step, ...] = ()
    """Launches in order; each sees all that the one before wrote. None for the reference."""
    partial_bytes: int = 0
    """Memory for partial sums, shared by the steps."""
    packed_bytes: int = 0
    """Memory for an operand in the order a kernel wants it, shared by the steps."""
    serial: bool = False
    """Whether the work is too little to share with other threads."""
    story: tuple[tuple[str, str], ...] = ()
    """What was chosen and why, in pairs of a name and a value, for people."""
