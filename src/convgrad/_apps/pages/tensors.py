"""Tensors inside JSON: a dtype, a shape, and numbers one by one or as bytes in base64."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import numpy as np

from ..._base import dtypes
from ..._base.dtypes import AnyArray
from ..._base.errors import ArgumentError, shown
from .loading import is_number, kind_of
from .setting_texts import DTYPES, VAR_TYPES, dtype_name, nearest
from .tensor_texts import elements, real_text

MOST_SPELT = 64
"""Elements of a tensor that is written number by number; a larger one is written as bytes."""

_TYPES = {dtype: name for name, dtype in VAR_TYPES.items()}


class Misfit(Exception):
    """What is wrong with a tensor; the message begins with the place inside it."""


def tensor_from_json(
    name: str, shape: tuple[int, ...], form: str, content: Any
) -> tuple[AnyArray, str]:
    """Return an array and its type on a pin; `Misfit` if dtype, shape and numbers do not agree.

    The form is `data`, numbers, or `base64`, bytes.

    >>> tensor_from_json("DT_FLOAT", (2,), "data", [1, 2.5])
    (array([1. , 2.5], dtype=float32), 'float')
    """
    if name not in DTYPES:
        raise Misfit(
            f".dtype must be one of {', '.join(DTYPES)}, got {shown(name)}{nearest(name.upper(), DTYPES)}"
        )
    dtype = DTYPES[name]
    try:
        count = elements(shape)
    except ArgumentError as error:
        raise Misfit(f".shape: {error}") from None
    array = (_listed if form == "data" else _decoded)(content, dtype, count)
    return array.reshape(shape), _TYPES.get(dtype, name)


def _decoded(encoded: Any, dtype: np.dtype[Any], count: int) -> AnyArray:
    if dtype.kind == "O":
        raise Misfit(".base64: texts are written in `data`")
    if not isinstance(encoded, str):
        raise Misfit(f".base64 must be a text, got {kind_of(encoded)}")
    wanted = count * dtype.itemsize
    if len(encoded) != (wanted + 2) // 3 * 4:  # before anything is decoded
        needed = f"{(wanted + 2) // 3 * 4} characters for {count} elements of {dtype}"
        raise Misfit(f".base64 must have {needed}, got {len(encoded)}")
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise Misfit(".base64 is not valid base64") from None
    if len(data) != wanted:
        raise Misfit(f".base64 must hold {wanted} bytes, got {len(data)}")
    if dtype.kind == "b":
        return np.frombuffer(data, np.uint8).astype(bool)
    words = np.frombuffer(data, f"<u{dtype.itemsize}")
    return words.astype(f"=u{dtype.itemsize}").view(dtype)


def _listed(data: Any, dtype: np.dtype[Any], count: int) -> AnyArray:
    if not isinstance(data, list):
        raise Misfit(f".data must be a list of {shown(count)} items, got {kind_of(data)}")
    if len(data) != count:
        raise Misfit(f".data must have {shown(count)} items for its shape, got {len(data)}")
    if dtype.kind == "O":
        _all(data, lambda each: isinstance(each, str), "a text")
        texts = np.empty(count, object)
        texts[:] = data
        return texts
    if dtype.kind == "b":
        _all(data, lambda each: each in (0, 1) and not isinstance(each, float), "true or false")
        return np.array(data, bool)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        low, high = int(limits.min), int(limits.max)
        _all(data, lambda each: type(each) is int and low <= each <= high, f"an {dtype.name}")
        return np.array(data, dtype)
    _all(data, is_number, "a number")
    row = dtypes.find(dtype)
    assert row is not None, dtype  # every dtype of fractions has one
    array = dtypes.round_once(np.array(data, np.float64), row)
    bad = ~np.isfinite(array.astype(np.float64))
    if bad.any():
        at = int(bad.argmax())
        raise Misfit(f".data[{at}] must fit in {dtype.name}, got {shown(data[at])}")
    return array


def _all(data: list[Any], right: Any, expected: str) -> None:
    for at, each in enumerate(data):
        if not right(each):
            got = kind_of(each) if isinstance(each, dict | list) else shown(each)
            raise Misfit(f".data[{at}] must be {expected}, got {got}")


def all_finite(array: AnyArray) -> bool:
    """Tell whether no number is infinite or NaN; a signalling NaN makes NumPy warn where it is only looked at."""
    with np.errstate(invalid="ignore"):
        return bool(np.isfinite(array).all())


def tensor_json(array: AnyArray) -> dict[str, Any]:
    """Return what JSON holds for an array: the reverse of `tensor_from_json`.

    >>> tensor_json(np.array([0.1, 2], np.float32))
    {'dtype': 'DT_FLOAT', 'shape': [2], 'data': [0.1, 2.0]}
    >>> tensor_json(np.array(np.nan))
    {'dtype': 'DT_DOUBLE', 'shape': [], 'base64': 'AAAAAAAA+H8='}
    """
    found: dict[str, Any] = {"dtype": dtype_name(array.dtype), "shape": list(array.shape)}
    native = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(-1)
    kind = native.dtype.kind
    if kind in "Ob":
        found["data"] = native.tolist()
    elif native.size <= MOST_SPELT and kind in "iu":
        found["data"] = [int(each) for each in native]
    elif native.size <= MOST_SPELT and all_finite(native):
        # The digits of the narrow number: 0.1 of float32, not the double next to it.
        found["data"] = [float(real_text(float(each), native.dtype).rstrip("f")) for each in native]
    else:
        size = native.dtype.itemsize
        words = native.view(f"=u{size}").astype(f"<u{size}")
        found["base64"] = base64.b64encode(words.tobytes()).decode("ascii")
    return found
