"""A tensor in few numbers: what a block shows before anybody asks for all of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._base.dtypes import AnyArray
from ..graph import dtypes

BINS = 24
"""Of a histogram."""
FIRST = 64
"""Numbers that a summary lists."""
_PIECE = 1 << 20
"""Elements that are looked at together: a copy in float64 of a whole tensor might not fit."""


def number(value: Any) -> float | int | None:
    """Return a number for JSON: None if it is not finite.

    >>> number(np.float32(1.5)), number(np.int32(3)), number(np.inf)
    (1.5, 3, None)
    """
    if isinstance(value, bool | np.bool_):
        return int(value)
    if isinstance(value, int | np.integer):
        return int(value)
    found = float(value)
    return found if math.isfinite(found) else None


def summary(array: AnyArray) -> dict[str, Any]:
    """Summarise a tensor; statistics and histogram are of its finite elements."""
    flat = array.reshape(-1)
    least, most, count, total, nan, inf = math.inf, -math.inf, 0, 0.0, 0, 0
    for piece, finite in _pieces(flat):
        missing = int(np.isnan(piece).sum())
        nan += missing
        inf += piece.size - finite.size - missing
        if finite.size:
            least, most = min(least, float(finite.min())), max(most, float(finite.max()))
            count += finite.size
            total += float(finite.sum())
    mean = total / count if count else None
    spread, counts, edges = 0.0, np.zeros(BINS, np.int64), _edges(least, most)
    if mean is not None and math.isfinite(mean):
        with np.errstate(all="ignore"):
            for _, finite in _pieces(flat):
                spread += float(np.square(finite - mean).sum())
                if edges:
                    counts += np.histogram(finite, edges)[0]
    return {
        "dtype": dtypes.name(array.dtype),
        "shape": list(array.shape),
        "min": number(least),
        "max": number(most),
        "mean": None if mean is None else number(mean),
        "std": number(math.sqrt(spread / count)) if count and spread < math.inf else None,
        "nan": nan,
        "inf": inf,
        "histogram": {"edges": edges, "counts": counts.tolist() if edges else []},
        "values": [number(each) for each in flat[:FIRST]],
    }


def _pieces(flat: AnyArray) -> Any:
    """Yield pieces in float64, and their finite elements."""
    for start in range(0, flat.size, _PIECE):
        piece = flat[start : start + _PIECE].astype(np.float64)
        yield piece, piece[np.isfinite(piece)]


def _edges(least: float, most: float) -> list[float]:
    """Return the edges of a histogram; a width of nothing gets one of 1."""
    if not math.isfinite(most - least):
        return []
    if least == most:
        least, most = least - 0.5, most + 0.5
    edges = np.linspace(least, most, BINS + 1)
    if not (np.diff(edges) > 0).all():  # numbers so close or so large that bins vanish
        return []
    found: list[float] = edges.tolist()
    return found


def as_float32(array: AnyArray) -> bytes:
    """Return all elements as little-endian float32 in C order."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(array, "<f4").tobytes()
