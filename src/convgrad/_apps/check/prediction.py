"""What a wrong kernel would return, by the oracle's own sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..._base.dtypes import AnyArray
from ..._problem import oracle
from ..._problem.convolution import Problem
from .problems import Case

Predict = Callable[[Case, AnyArray, AnyArray], Iterator[AnyArray]]
"""Yields predictions in float64, one per variant; none where the mistake cannot show."""


def compute(problem: Problem, first: AnyArray, second: AnyArray) -> AnyArray:
    return oracle.compute(problem, first.astype(np.float64), second.astype(np.float64))
