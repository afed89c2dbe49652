"""Names of element types: TensorFlow's `DT_*`, NumPy's, and how one becomes the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._base.dtypes import FLOATING, accumulator
from ..._base.errors import ArgumentError, ArgumentTypeError, DTypeError, shown

Dtype = np.dtype[Any]

BY_NAME: dict[str, Dtype] = {
    **{f"DT_{row.tensorflow_name.upper()}": row.numpy for row in FLOATING},
    "DT_INT8": np.dtype(np.int8),
    "DT_INT16": np.dtype(np.int16),
    "DT_INT32": np.dtype(np.int32),
    "DT_INT64": np.dtype(np.int64),
    "DT_UINT8": np.dtype(np.uint8),
    "DT_UINT16": np.dtype(np.uint16),
    "DT_UINT32": np.dtype(np.uint32),
    "DT_UINT64": np.dtype(np.uint64),
    "DT_BOOL": np.dtype(np.bool_),
}
_NAMES = {dtype: name for name, dtype in BY_NAME.items()}
_SHORT = {row.tensorflow_name: f"DT_{row.tensorflow_name.upper()}" for row in FLOATING}
_SUMS = {row.numpy: accumulator(row).numpy for row in FLOATING}

FLOATS = frozenset(row.numpy for row in FLOATING)
INTEGERS = frozenset(dtype for dtype in _NAMES if dtype.kind in "iu")
NUMBERS = FLOATS | INTEGERS
ANY = NUMBERS | {BY_NAME["DT_BOOL"]}
INDICES = frozenset((BY_NAME["DT_INT32"], BY_NAME["DT_INT64"]))
CONVOLVED = FLOATS | {BY_NAME["DT_INT32"]}
INT32, INT64, BOOL = BY_NAME["DT_INT32"], BY_NAME["DT_INT64"], BY_NAME["DT_BOOL"]


def read(function: str, argument: str, value: Any) -> Dtype:
    """Return an element type from TensorFlow's name, NumPy's name or type, or a Python type.

    >>> read("Cast", "DstT", "DT_BFLOAT16"), read("Cast", "DstT", "half"), read("Cast", "DstT", np.float64)
    (dtype(bfloat16), dtype('float16'), dtype('float64'))
    """
    found: Dtype | None
    if isinstance(value, str):
        found = BY_NAME.get(_SHORT.get(value, value))
        if found is None and value.isprintable():  # NumPy reads "\\0" as the type of number 0
            try:
                found = np.dtype(value)
            except (TypeError, ValueError, SyntaxError):  # NumPy reads lists of fields, too
                found = None
    else:
        try:
            found = None if value is None else np.dtype(value)
        except TypeError:
            raise ArgumentTypeError(
                f"{function}: `{argument}` must be a dtype, got {shown(value)}."
            ) from None
    native: Dtype | None = None if found is None else found.newbyteorder("=")
    if native is not None and native in _NAMES:
        return native
    raise ArgumentError(
        f"{function}: `{argument}` must be one of {', '.join(BY_NAME)} (or NumPy's name of it), got {shown(value)}."
    )


def name(dtype: Dtype) -> str:
    """Return TensorFlow's name.

    >>> name(np.dtype("float32"))
    'DT_FLOAT'
    """
    return _NAMES[dtype]


def listed(dtypes: frozenset[Dtype]) -> str:
    """Return names for a message, in the order of the table."""
    return ", ".join(dtype.name for dtype in BY_NAME.values() if dtype in dtypes)


def wide(dtype: Dtype) -> Dtype:
    """Return the type sums are kept in: float32 for half and bfloat16, else the type itself."""
    return _SUMS.get(dtype, dtype)


def array(
    function: str, argument: str, value: Any, dtype: Dtype | None
) -> np.ndarray[Any, np.dtype[Any]]:
    """Return a value as an array: arrays keep their dtype, Python's floats are float32 and its ints int32.

    With `dtype`, Python's numbers take it, and an array must have it.
    """
    try:
        found = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise ArgumentError(
            f"{function}: `{argument}` must be an array or nested lists of numbers, got {shown(value)} ({error})."
        ) from None
    ours = found.dtype.newbyteorder("=")
    if ours not in _NAMES:
        raise ArgumentTypeError(
            f"{function}: `{argument}` must hold numbers or truth values, got dtype {found.dtype}."
        )
    if isinstance(value, np.ndarray | np.generic):
        if dtype is not None and ours != dtype:
            raise DTypeError(
                f"{function}: `{argument}` must have dtype {dtype.name}, got {ours.name}."
            )
        return np.asarray(found, ours)
    wanted = dtype
    if wanted is None:
        wanted = {"f": BY_NAME["DT_FLOAT"], "i": INT32, "u": INT32}.get(ours.kind, ours)
        if found.size == 0:
            wanted = BY_NAME["DT_FLOAT"]
    return _python_numbers(function, argument, value, found, wanted)


def _python_numbers(
    function: str,
    argument: str,
    value: Any,
    found: np.ndarray[Any, np.dtype[Any]],
    wanted: Dtype,
) -> np.ndarray[Any, np.dtype[Any]]:
    if wanted.kind in "iu" and found.size:
        whole = found.dtype.kind in "iub"
        range_ = np.iinfo(wanted)
        if not whole or int(found.min()) < range_.min or int(found.max()) > range_.max:
            raise ArgumentError(
                f"{function}: `{argument}` must hold numbers that {wanted.name} can hold, got {shown(value)}."
            )
    with np.errstate(all="ignore"):
        return found.astype(wanted)
