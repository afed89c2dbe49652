"""Whatever becomes an array of NumPy: its arrays, nested lists, and what offers `__array__`, a buffer or DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import dtypes
from .._base.dtypes import AnyArray, DType
from .._base.errors import ArgumentError, ArgumentTypeError, DTypeError, said
from .._base.laziness import is_lazy
from . import torch
from .borrowed import Borrowed, check_row
from .holding import contiguous


def borrow(
    function: str, argument: str, value: Any, allowed: tuple[DType, ...], like: DType | None
) -> Borrowed:
    """Return `value` as an array of an allowed dtype.

    A nested list or a Python number takes the dtype of the array before it (`like`), else float32, or int32 if all its
    numbers are ints. An array must already have the dtype `like`: mixing dtypes is refused, never converted.

    What is returned is a view of our own: another thread may give its array a new shape or dtype between the checks.
    """
    if type(value) is np.ndarray:
        array = value
    elif isinstance(value, list | tuple | int | float | complex) and not isinstance(
        value, np.generic
    ):
        array = _from_list(function, argument, value, like)
    else:
        array = _from_object(function, argument, value)
    if array.dtype.kind == "O":
        raise _no_numbers(function, argument, array)
    kind = array.dtype
    row = check_row(function, argument, dtypes.find(kind), kind, allowed, like, ".astype()")
    array = array[...]
    return Borrowed(array, row, array.shape)


def check_dtype(
    function: str,
    argument: str,
    dtype: np.dtype[Any],
    allowed: tuple[DType, ...],
    like: DType | None,
) -> DType:
    """Return the row of a dtype that is allowed and is that of the arrays before it."""
    row = dtypes.find(dtype)
    return check_row(function, argument, row, dtype, allowed, like, ".astype()")


def borrow_beside(
    function: str, argument: str, value: Any, allowed: tuple[DType, ...], like: DType | None
) -> Borrowed:
    """Return what is given beside an array of a framework as an array of NumPy, contiguous and in native byte order."""
    found = borrow(function, argument, value, allowed, like)
    return found._replace(array=contiguous(found.array, found.row))


def borrow_any(function: str, argument: str, value: Any) -> AnyArray:
    """Return `value` as an array of real numbers of any dtype."""
    array: AnyArray
    if type(value) is np.ndarray:
        array = value
    elif isinstance(value, list | tuple):
        array = _rectangular(function, argument, value)
    else:
        array = _from_object(function, argument, value)
    if array.dtype.kind == "O":
        raise _no_numbers(function, argument, array)
    if array.dtype.kind not in "fiub" and dtypes.find(array.dtype) is None:
        raise DTypeError(f"{function}: `{argument}` must hold real numbers, got {array.dtype}.")
    return array[...]


def _rectangular(function: str, argument: str, value: Any) -> AnyArray:
    try:
        array: AnyArray = np.asarray(value)
    except OverflowError:
        array = np.asarray(value, dtype=object)
    except MemoryError:
        raise
    except Exception as error:
        raise ArgumentError(
            f"{function}: `{argument}` must be a rectangular array of numbers, got a list that is not ({said(error)})."
        ) from None
    return array


def _from_list(function: str, argument: str, value: Any, like: DType | None) -> AnyArray:
    array = _rectangular(function, argument, value)
    kind = array.dtype.kind
    if kind not in "iuf":
        return array
    target = like or (dtypes.FLOAT if kind == "f" else dtypes.INT32)
    if target.is_integer and array.size:
        if kind == "f":
            raise DTypeError(
                f"{function}: `{argument}` must hold ints, as the array before it is {target.name}, "
                f"got a list with floats."
            )
        if array.min() < -(2**31) or array.max() >= 2**31:
            raise ArgumentError(
                f"{function}: `{argument}` must hold ints that fit int32, got a list from {array.min()} "
                f"to {array.max()}."
            )
    with np.errstate(all="ignore"):  # too large for the dtype is infinity, too small is 0
        return array.astype(target.numpy)


def _from_object(function: str, argument: str, value: Any) -> AnyArray:
    if value is None:
        raise ArgumentError(f"{function}: `{argument}` must be an array, got None.")
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentTypeError(
            f"{function}: `{argument}` must not be a masked array, because its mask would be lost; "
            f"use `.filled(value)` or `.data`."
        )
    if is_lazy(value):
        raise ArgumentTypeError(
            f"{function}: `{argument}` must be an array, got {type(value).__name__}, which would be computed here and "
            f"now; give the array of Dask that it holds, or make one with `dask.array.from_delayed`."
        )
    try:
        if torch.recognise(value):
            return torch.as_ndarray(value)
        lends = hasattr(value, "__dlpack__") and not hasattr(value, "__array__")
        array: AnyArray = np.from_dlpack(value) if lends else np.asarray(value)
    except MemoryError:
        raise
    except Exception as error:
        raise ArgumentTypeError(
            f"{function}: `{argument}` must be an array, got {type(value).__name__}, "
            f"which cannot become one ({said(error)})."
        ) from error
    return array


def _no_numbers(function: str, argument: str, array: AnyArray) -> ArgumentError:
    return ArgumentError(
        f"{function}: `{argument}` must be an array of numbers, got Python objects of shape {list(array.shape)}."
    )
