"""How far a result may be from the exact one: one rounding, plus the summation error of the accumulator."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases import ACCUMULATOR_UNITS, UNITS, Case, Data, run


def bound(case: Case, kind: str, data: Data, algorithm: str = "") -> tuple[Any, Any]:
    """Return the float64 result and the error allowed for each of its numbers.

    A sum of t products in precision a errs by at most t * a * sum|products| to first order; rounding it to precision u
    adds u * |result|, and the smallest subnormal where the result underflows. Winograd's algorithms mix the pixels of a
    tile: a window that lies in the padding has an exact sum of zero and its neighbours' error, so each number may err
    by as much as any other of its channel.
    """
    exact = run(case, kind, data, "reference")
    magnitudes = run(
        case, kind, Data(*(np.abs(each) for each in (data.x, data.f, data.g))), "reference"
    )
    terms = case.terms(kind) + 1
    tiny = 2.0**-24 if case.dtype == "half" else 2.0**-133
    allowed = UNITS[case.dtype] * np.abs(exact) * 1.0001
    allowed = allowed + terms * ACCUMULATOR_UNITS[case.dtype] * magnitudes + tiny
    if algorithm.startswith("winograd") and kind != "filter":
        pixels = (1, 2) if case.data_format == "NHWC" else (2, 3)
        allowed = np.broadcast_to(allowed.max(pixels, keepdims=True), allowed.shape)
    return exact, allowed


def assert_close(case: Case, kind: str, data: Data, got: Any, algorithm: str = "") -> None:
    exact, allowed = bound(case, kind, data, algorithm)
    error = np.abs(got.astype(np.float64) - exact)
    assert got.shape == exact.shape, (case, kind, got.shape)
    assert (error <= allowed).all(), (case, kind, float(error.max()), float(allowed.max()))
