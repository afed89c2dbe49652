"""What is right, and by how much a kernel may be off.

With u the rounding unit of float32 (float64 for float64) and M values per channel, a sum in any order may be off by
``(min(M, 8*sqrt(M)) + 64) * u`` times the sum of its magnitudes: the limit of convolutions, for the same reasons. A few
operations in a row may be off by ``16 * u`` times the magnitudes of their operands, an activation by as much times its
argument. Errors of statistics are carried on into what is computed from them. The result's own rounding comes on top.

So a variance from sums of squares fails on mean 1000 and deviation 1, where it loses six digits, and everything that is
off by 0.1% does in float32 and float64. In bfloat16 a rounding is 0.4%.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .... import reference
from ...._base.dtypes import AnyArray, DType, accumulator
from .case import BACKWARD, RESULTS, Arrays, NormCase

_STEPS = 16
_STEEPEST = 1.5
"""The largest derivative of an activation: hardswish's, close to 3."""
_BENT = 0.9
"""The largest second derivative of an activation away from its kinks: gelu's are 0.8."""


class Right(NamedTuple):
    """One result."""

    name: str
    exact: AnyArray
    allowed: AnyArray
    row: DType
    """Its dtype."""


def exact(case: NormCase, arrays: Arrays, **changed: Any) -> list[AnyArray]:
    """Return the results of the oracle, with some of the arguments changed."""
    found = case.call(getattr(reference, case.op), arrays, **changed)
    return [each for each in found if each is not None]


def truth(case: NormCase, arrays: Arrays) -> list[Right]:
    """Return all results of a case with their limits."""
    with np.errstate(all="ignore"):
        found = exact(case, arrays)
        limits = _backward(case, arrays) if case.op == BACKWARD else _forward(case, arrays, found)
    parameter = accumulator(case.row)
    rights = []
    for name, values, limit in zip(RESULTS[case.op], found, limits, strict=False):
        row = case.row if values.ndim == 4 else parameter
        rounding = 1.0001 * row.unit * np.abs(values) + row.underflow
        rights.append(Right(name, values, limit + rounding, row))
    return rights


class _Channel(NamedTuple):
    """What all limits need, as images or as columns that meet them."""

    unit: float
    sums: float
    """Units a sum may be off by."""
    x: AnyArray
    mean: AnyArray
    inverse: AnyArray
    steep: AnyArray
    """Magnitude of scale times inverse."""
    terms: AnyArray
    """Sum of the magnitudes that make the activation's argument."""


def _channel(case: NormCase, arrays: Arrays, mean: AnyArray, variance: AnyArray) -> _Channel:
    wide = {name: each.astype(np.float64) for name, each in arrays.items()}
    ones, zeros = np.ones(case.channels), np.zeros(case.channels)
    inverse = case.column(1 / np.sqrt(variance + case.epsilon))
    steep = np.abs(case.column(wide.get("scale", ones))) * inverse
    centre = case.column(mean)
    terms = steep * (np.abs(wide["input"]) + np.abs(centre))
    terms = terms + np.abs(case.column(wide.get("offset", zeros)))
    if case.residual == "before":
        terms = terms + np.abs(wide["residual"])
    sums = min(case.values, 8 * case.values**0.5) + 64
    return _Channel(accumulator(case.row).unit, sums, wide["input"], centre, inverse, steep, terms)


def _forward(case: NormCase, arrays: Arrays, found: list[AnyArray]) -> list[AnyArray]:
    y, mean, variance = found
    c = _channel(case, arrays, mean, variance)
    off_mean, off_variance = np.zeros((2, case.channels))
    if case.is_training and case.values:
        off_mean = c.sums * c.unit * np.abs(c.x).mean(axis=case.spread)
        off_variance = c.sums * c.unit * variance + off_mean**2
    # By the argument's own roundings, by the mean's error, and by that of the root.
    off = _STEPS * c.unit * c.terms + c.steep * case.column(off_mean)
    off += c.steep * np.abs(c.x - c.mean) * case.column(off_variance) / 2 * c.inverse**2
    off = _slope(case) * off + _STEPS * c.unit * c.terms
    if case.residual == "after":
        off = off + _STEPS * c.unit * (np.abs(y) + np.abs(arrays["residual"].astype(np.float64)))
    return [off, off_mean, off_variance]


def _slope(case: NormCase) -> float:
    return max(_STEEPEST, abs(case.negative_slope))


def _backward(case: NormCase, arrays: Arrays) -> list[AnyArray]:
    mean, variance = (arrays[name].astype(np.float64) for name in ("mean", "variance"))
    c = _channel(case, arrays, mean, variance)
    size = np.abs(arrays["out_backprop"].astype(np.float64)) * _slope(case)
    off_g = size * c.unit * _STEPS
    if case.activation != "none":
        off_g = off_g * (1 + c.terms) + size * c.unit * _BENT * _STEPS * c.terms
    away = np.abs(c.x - c.mean) * c.inverse
    summed = off_g + c.sums * c.unit * size
    off_offset, off_scale = (each.sum(axis=case.spread) for each in (summed, summed * away))
    off = off_g + _STEPS * c.unit * size
    if case.is_training and case.values:
        offset, scale = ((size * each).sum(axis=case.spread) for each in (1, away))
        far = (np.abs(c.x) + np.abs(c.mean)) * c.inverse
        off = off + case.column(off_offset + _STEPS * c.unit * offset) / case.values
        off = off + away * case.column(off_scale) / case.values
        off = off + _STEPS * c.unit * far * case.column(scale) / case.values
    limits = [c.steep * off, off_scale, off_offset]
    return [*limits, off_g] if case.residual else limits


def judge(rights: list[Right], results: list[AnyArray]) -> tuple[str | None, float]:
    """Return what is wrong in words, or None, and the worst error in units of the limits of right results."""
    worst = 0.0
    for right, got in zip(rights, results, strict=True):
        if got.shape != right.exact.shape:
            wanted = list(right.exact.shape)
            return f"{right.name}: shape {list(got.shape)} instead of {wanted}", 0.0
        if got.dtype != right.row.numpy:
            return f"{right.name}: dtype {got.dtype} instead of {right.row.numpy}", 0.0
        wide = got.astype(np.float64)
        here, there = np.isfinite(wide), np.isfinite(right.exact)
        if (here & ~there).any():
            lost = int((here & ~there).sum())
            return f"{right.name}: NaN or infinity lost in {lost} of {wide.size} numbers", 0.0
        if (there & ~here).any():
            spread = int((there & ~here).sum())
            words = f"NaN or infinity in {spread} of {wide.size} numbers where none belongs"
            return f"{right.name}: {words}", 0.0
        error = np.abs(wide[there] - right.exact[there])
        off = int((error > right.allowed[there]).sum())
        if off:
            return f"{right.name}: {off} of {wide.size} numbers wrong", 0.0
        if error.size:
            worst = max(worst, float((error / right.allowed[there]).max()))
    return None, worst


def adds_up(case: NormCase, arrays: Arrays, dx: AnyArray) -> str | None:
    """Say by how much dx does not add up to 0 in some channel, within what roundings with random signs leave."""
    mean, variance = (arrays[name].astype(np.float64) for name in ("mean", "variance"))
    c = _channel(case, arrays, mean, variance)
    largest = np.abs(c.steep * arrays["out_backprop"].astype(np.float64)).max(axis=case.spread)
    total = np.abs(dx.astype(np.float64).sum(axis=case.spread))
    allowed = largest * (c.sums * c.unit + 8 * case.values**0.5 * case.row.unit)
    # The statistics themselves are rounded: deviations from a rounded mean do not add up to 0 either.
    allowed = allowed + case.values * c.unit * largest * _STEPS
    if (total <= allowed).all():
        return None
    at = int((total - allowed).argmax())
    return f"input: adds up to {total[at]:.3g} in channel {at}, not to 0"
