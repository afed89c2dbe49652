"""An array that has passed the checks of its kind and dtype, whatever framework it is of."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._base.dtypes import DType


class Borrowed(NamedTuple):
    """What an adapter found behind an argument."""

    array: Any
    """In the framework's own type."""
    row: DType
    """Its dtype."""
    shape: Any
    """A tuple of ints. Where a graph is being built, a size that is not known yet is None, and so may be the whole."""
