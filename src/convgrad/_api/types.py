"""The types in public signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

from .._base.dtypes import AnyArray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike as Array
else:
    Array = Any  # numpy.typing takes a third as long to import as numpy itself

Result = AnyArray
"""A new C-contiguous array that starts on a 64-byte boundary."""
Sizes = Sequence[SupportsIndex] | AnyArray
FlexibleInts = SupportsIndex | Sequence[SupportsIndex] | AnyArray
StrictInts = Sequence[SupportsIndex]
Padding = str | Sequence[Sequence[SupportsIndex]]
FlexiblePadding = Padding | SupportsIndex | Sequence[SupportsIndex]

__all__ = ["Array", "FlexibleInts", "FlexiblePadding", "Padding", "Result", "Sizes", "StrictInts"]
