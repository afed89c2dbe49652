"""`Plan`: how a problem will be computed, as data."""

from __future__ import annotations

from dataclasses import dataclass

from ._problem import Problem


@dataclass(frozen=True)
class Plan:
    """The choice of one algorithm for one problem; hashable, holds no data and no code."""

    problem: Problem
    algorithm: str
    """Name of a module of `_algorithms`."""
