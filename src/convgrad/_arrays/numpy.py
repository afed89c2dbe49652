"""NumPy arrays, nested lists and whatever offers `__array__`, a buffer or DLPack: the adapter that takes the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import dtypes
from .._base.dtypes import AnyArray, DType
from .._base.errors import ArgumentError, ArgumentTypeError, DTypeError, said
from .._base.laziness import is_lazy
from .._runtime.pointers import data_pointer
from .._runtime.results import new_result
from . import torch
from .holding import hold


class Borrowed:
    """An array that has passed the checks, and its dtype's row."""

    __slots__ = ("array", "row")

    def __init__(self, array: AnyArray, row: DType) -> None:
        self.array, self.row = array, row

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.array.shape
        return shape

    def lend(self, function: str, nbytes: int) -> tuple[int, object]:
        """Return the address of the numbers, as kernels want them, and what keeps them there."""
        return lend(function, self.array, self.row, nbytes)


def lend(function: str, array: AnyArray, row: DType, nbytes: int) -> tuple[int, object]:
    """Return the address of an array's numbers, of a copy where kernels cannot read it, and what keeps them there."""
    array, held = hold(function, array)
    ready = contiguous(array, row)
    if ready.nbytes != nbytes:
        raise ArgumentError(
            f"{function}: an array changed its size during the call, from {nbytes} to {ready.nbytes} bytes."
        )
    return data_pointer(ready), (held, ready)


def recognise(value: Any) -> bool:
    """Take everything: what is not an array is refused when it is borrowed."""
    return True


def allocate(shape: tuple[int, ...], row: DType) -> tuple[AnyArray, int]:
    """Return a new array on a 64-byte boundary and its address."""
    result = new_result(shape, row.numpy)
    return result, data_pointer(result)


def reshape(result: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    shaped: AnyArray = result.reshape(shape)
    return shaped


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
    row = check_dtype(function, argument, array.dtype, allowed, like)
    return Borrowed(array[...], row)


def check_dtype(
    function: str,
    argument: str,
    dtype: np.dtype[Any],
    allowed: tuple[DType, ...],
    like: DType | None,
) -> DType:
    """Return the row of a dtype that is allowed and is that of the arrays before it."""
    row = _row(dtype)
    if row is None or row not in allowed:
        names = ", ".join(each.name for each in allowed)
        rule = f"one of the dtypes {names}" if len(allowed) > 1 else f"the dtype {names}"
        raise DTypeError(f"{function}: `{argument}` must have {rule}, got {dtype}.")
    if like is not None and row is not like:
        raise DTypeError(
            f"{function}: `{argument}` must have the dtype of the arrays before it, {like.name}, got {row.name}; "
            f"convert one of them with `.astype()`."
        )
    return row


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
    if array.dtype.kind not in "fiub" and _row(array.dtype) is None:
        raise DTypeError(f"{function}: `{argument}` must hold real numbers, got {array.dtype}.")
    return array[...]


C_ALIGNED = 0x101
"""NumPy's flags of an array that is C-contiguous and aligned."""


def contiguous(array: AnyArray, row: DType) -> AnyArray:
    """Return the array itself if it is C-contiguous, aligned and in native byte order, else a copy that is."""
    if array.dtype is row.numpy and array.flags.num & C_ALIGNED == C_ALIGNED:
        return array
    if _row(array.dtype) is not row:  # it had that dtype when it was checked
        raise DTypeError(f"an array became {array.dtype} while a call was using it as {row.name}.")
    result: AnyArray = np.require(array, dtype=row.numpy, requirements=("C", "A"))
    return result


def _row(dtype: np.dtype[Any]) -> DType | None:
    try:
        return dtypes.find(dtype)
    except TypeError:  # NumPy's variable-width strings have no byte order to ask for
        return None


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
