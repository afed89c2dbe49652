"""Integers out of whatever callers write them in: each exactly an int, so that later arithmetic cannot wrap."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from ..._base.errors import ArgumentTypeError, shown
from ..._base.laziness import is_lazy

LARGEST_INT32 = 2**31 - 1


def is_number(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 0
    return not isinstance(value, str | bytes) and (
        np.isscalar(value) or (hasattr(value, "__index__") and not hasattr(value, "__array__"))
    )


def elements(value: Any) -> tuple[Any, ...] | None:
    """Return the elements of a sequence or 1-D array, or None if it is neither."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview):
        return first_of(value)
    if not isinstance(value, np.ndarray):
        try:
            if hasattr(value, "as_list"):  # a TensorShape, which is not a sequence
                found = value.as_list()
                return first_of(found) if isinstance(found, list) else None
            if not hasattr(value, "__array__") or is_lazy(value):
                return None
            value = np.asarray(value)
        except Exception:
            return None
    return tuple(value[: _MOST_ITEMS + 1].tolist()) if value.ndim == 1 else None


_MOST_ITEMS = 64
"""Elements looked at. No argument has more than 8, and `range(10**9)` and its like must not be spelled out."""


def first_of(value: Iterable[Any]) -> tuple[Any, ...]:
    """Return the elements, or so many that there are too many."""
    return tuple(islice(value, _MOST_ITEMS + 1))


def counted(found: Sequence[Any]) -> str:
    return str(len(found)) if len(found) <= _MOST_ITEMS else f"more than {_MOST_ITEMS}"


def integer(function: str, argument: str, item: Any, value: Any) -> int:
    if isinstance(item, bool | np.bool_):
        raise ArgumentTypeError(f"{function}: `{argument}` must hold integers, got {shown(value)}.")
    try:
        # Exactly an int: a subclass might compare as it likes.
        return int.__index__(operator.index(item))
    except TypeError:
        raise ArgumentTypeError(
            f"{function}: `{argument}` must hold integers, got {shown(item)} in {shown(value)}."
        ) from None


def by_layout(four: Sequence[Any], layout: str) -> tuple[Any, Any, Any, Any]:
    """Return (batch, depth, rows, columns)."""
    if layout == "NHWC":
        return four[0], four[3], four[1], four[2]
    return four[0], four[1], four[2], four[3]
