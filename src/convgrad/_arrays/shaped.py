"""An array of a framework that computes by itself, after its checks; and what NumPy takes, given beside such arrays."""

from __future__ import annotations

from typing import Any

from .._base.dtypes import DType
from . import numpy


class Borrowed:
    """An array that has passed the checks, its dtype's row and its shape."""

    __slots__ = ("array", "row", "shape")

    def __init__(self, array: Any, row: DType, shape: tuple[int, ...]) -> None:
        self.array, self.row, self.shape = array, row, shape


def borrow_beside(
    function: str, argument: str, value: Any, allowed: tuple[DType, ...], like: DType | None
) -> Borrowed:
    """Return whatever NumPy takes as an array of NumPy, contiguous and in native byte order."""
    found = numpy.borrow(function, argument, value, allowed, like)
    return Borrowed(numpy.contiguous(found.array, found.row), found.row, found.shape)
