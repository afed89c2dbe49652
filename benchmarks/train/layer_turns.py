"""Each distinct convolution of a network of `networks`, native and ours in turns; a framework says what the two are.

A backward pass asks for all gradients at once, as a training step does.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from convgrad._base.dtypes import AnyArray

from .drafts import Convolution, Draft

WARM_UP = 2
"""Calls before the first that is timed: the framework and we compile in the first."""

Computation = Callable[[], Sequence[Any]]
"""Runs to its end and returns the results, as something NumPy takes."""


class Side(NamedTuple):
    """One of the two that are compared."""

    forward: Computation
    backward: Computation


Sides = Callable[[Convolution, AnyArray, AnyArray, AnyArray], tuple[Side, Side]]
"""Returns native and ours for an image, a filter and the output's gradient."""


def compare(of: Draft, repeats: int, sides: Sides) -> list[dict[str, Any]]:
    """Return a row per distinct convolution, in the order in which the model runs them."""
    return [
        {**each.row(), "count": count, **_compared(each, repeats, sides)}
        for each, count in of.convolutions.items()
    ]


def _compared(convolution: Convolution, repeats: int, sides: Sides) -> dict[str, Any]:
    random = np.random.default_rng(0)
    shapes = (convolution.input, convolution.filter, convolution.output)
    both = sides(convolution, *(random.standard_normal(shape, np.float32) for shape in shapes))
    parts = {name: [getattr(side, name) for side in both] for name in Side._fields}
    errors, times = [], {}
    for name, (native, ours) in parts.items():
        for _ in range(WARM_UP):
            results = native(), ours()
        errors += [_difference(*pair) for pair in zip(*results, strict=True)]
        took: dict[Computation, list[float]] = {native: [], ours: []}
        for number in range(repeats):
            for call in (native, ours) if number % 2 else (ours, native):
                began = time.perf_counter()
                call()
                took[call].append(time.perf_counter() - began)
        times[name] = {
            "native_ms": statistics.median(took[native]) * 1e3,
            "ours_ms": statistics.median(took[ours]) * 1e3,
        }
    return {**times, "error": max(errors)}


def _difference(native: Any, ours: Any) -> float:
    one, other = np.asarray(native, np.float64), np.asarray(ours, np.float64)
    return float(np.linalg.norm(one - other) / np.linalg.norm(one))
