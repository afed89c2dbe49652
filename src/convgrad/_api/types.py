"""The types in public signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy.typing as npt

Array = npt.ArrayLike
"""A NumPy array of any layout, a nested list, or an object that NumPy can turn into an array."""
Result = npt.NDArray[Any]
"""A new C-contiguous array that starts on a 64-byte boundary."""
Sizes = Sequence[SupportsIndex] | npt.NDArray[Any]
FlexibleInts = SupportsIndex | Sequence[SupportsIndex] | npt.NDArray[Any]
StrictInts = Sequence[SupportsIndex]
Padding = str | Sequence[Sequence[SupportsIndex]]

__all__ = ["Array", "FlexibleInts", "Padding", "Result", "Sizes", "StrictInts"]
