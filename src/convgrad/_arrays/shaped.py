"""What NumPy takes, given beside arrays of a framework that computes by itself."""

from __future__ import annotations

from typing import Any

from .._base.dtypes import DType
from . import numpy
from .borrowed import Borrowed
from .holding import contiguous


def borrow_beside(
    function: str, argument: str, value: Any, allowed: tuple[DType, ...], like: DType | None
) -> Borrowed:
    """Return whatever NumPy takes as an array of NumPy, contiguous and in native byte order."""
    found = numpy.borrow(function, argument, value, allowed, like)
    return found._replace(array=contiguous(found.array, found.row))
