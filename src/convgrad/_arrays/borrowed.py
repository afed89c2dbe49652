"""An array that has passed the checks of its kind and dtype, whatever framework it is of."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._base.dtypes import DType
from .._base.errors import DTypeError


class Borrowed(NamedTuple):
    """What an adapter found behind an argument."""

    array: Any
    """In the framework's own type."""
    row: DType
    """Its dtype."""
    shape: Any
    """A tuple of ints. Where a graph is being built, a size that is not known yet is None, and so may be the whole."""


def check_row(
    function: str,
    argument: str,
    row: DType | None,
    got: object,
    allowed: tuple[DType, ...],
    like: DType | None,
    convert: str,
) -> DType:
    """Return the row of a dtype that is allowed and is that of the arrays before it.

    `got` is the dtype as the framework has it; it is spelled only in messages, since NumPy takes 4 us for that.
    `convert` is what the framework converts with.
    """
    if row is None or row not in allowed:
        names = ", ".join(each.name for each in allowed)
        rule = f"one of the dtypes {names}" if len(allowed) > 1 else f"the dtype {names}"
        raise DTypeError(f"{function}: `{argument}` must have {rule}, got {got}.")
    if like is not None and row is not like:
        raise DTypeError(
            f"{function}: `{argument}` must have the dtype of the arrays before it, {like.name}, got {row.name}; "
            f"convert one of them with `{convert}`."
        )
    return row
