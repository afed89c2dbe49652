"""What stands on pins, read as their op demands: operands, settings, initial values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ..._base.dtypes import AnyArray
from ..._base.errors import ArgumentError
from ..graph import dtypes
from ..graph import row as rows
from ..graph.scope import canonical_attributes
from . import setting_texts, tensor_texts
from .page import Value
from .symbols import LITERALS
from .symbols import Pin as SymbolPin

_A_TEXT = "`val` is a text, and texts are not computed here; choose a type for it"
_MISSING = "the numbers of `{}` are missing: the page's .dat file has them"


@lru_cache(maxsize=4096)
def _literal(text: str, dtype: np.dtype[Any] | None) -> AnyArray:
    found = tensor_texts.parse_literal(text, dtype)
    found.flags.writeable = False
    return found


def read_literal(text: str, dtype: np.dtype[Any] | None = None) -> AnyArray:
    """Return a literal; a list may be typed without its braces.

    >>> read_literal("3, 3, 2, 1").tolist(), read_literal("0.5f")
    ([3, 3, 2, 1], array(0.5, dtype=float32))
    """
    bare = text.strip()
    if "," in bare and not bare.startswith(("{", '"')):
        bare = f"{{{bare}}}"
    return _literal(bare, dtype)


def operand(
    pin: rows.Pin,
    told: SymbolPin | None,
    value: Value,
    wanted: np.dtype[Any] | None,
    strict: bool,
) -> Any:
    """Return what stands on an input that is not wired; converted to `wanted` where that loses nothing."""
    if value.missing:
        raise ArgumentError(_MISSING.format(pin.name))
    if told is not None and told.kind == LITERALS:
        return [_converted(each, wanted) for each in tensor_texts.literal_list(value.text)]
    dtype = setting_texts.dtype(told.dtype) if told is not None and told.dtype else None
    return _converted(_array(value, dtype, strict), wanted)


def _converted(array: AnyArray, wanted: np.dtype[Any] | None) -> AnyArray:
    if wanted is None or array.dtype == wanted or array.dtype.kind not in "fi":
        return array
    if wanted in dtypes.FLOATS or (array.dtype.kind == "i" and wanted in dtypes.INTEGERS):
        return array.astype(wanted)
    return array


def _array(value: Value, dtype: np.dtype[Any] | None, strict: bool = False) -> AnyArray:
    """Return the numbers on a pin: stored, typed, or a literal, which enuSpace wants with braces."""
    if value.array is not None:
        return value.array
    if value.type == "string":
        return _literal(value.text, dtype) if strict else read_literal(value.text, dtype)
    return tensor_texts.typed_array(value.text, value.type, value.shape or ())


def initial(value: Value, dtype: np.dtype[Any] | None, strict: bool = False) -> AnyArray:
    """Return a constant; with a dtype, text is read as that.

    enuSpace knows no literals here: the type of the pin or the dtype decides, and its shape counts, not the braces.
    """
    if value.missing:
        raise ArgumentError(_MISSING.format("val"))
    if strict and dtype is not None and dtype.kind != "O" and value.array is None:
        return tensor_texts.typed_array(
            value.text, setting_texts.dtype_name(dtype), value.shape or ()
        )
    if strict and value.array is None and value.type == "string":
        raise ArgumentError(_A_TEXT)
    if dtype is not None and value.array is None and value.type == "string":
        found = read_literal(value.text)
        if value.shape is not None and found.size == _count(value.shape):
            found = found.reshape(value.shape)
    else:
        found = _array(value, None)
    if found.dtype.hasobject:
        raise ArgumentError(_A_TEXT)
    if dtype is None or found.dtype == dtype or value.array is not None:
        return found
    if dtype.kind in "iu" and found.dtype.kind == "f" and (found != np.trunc(found)).any():
        return np.trunc(found).astype(dtype)  # as C reads `2.7` as an int
    return found.astype(dtype)


def _count(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=object)) if shape else 1


def variable(shape: Value, dtype: Value, first: Value, strict: bool) -> AnyArray:
    """Return a Variable's initial value; section 5 of the pages' specification has the four cases."""
    if first.missing:
        raise ArgumentError(_MISSING.format("initvalues"))
    if not strict and first.array is None and first.type == "string" and dtype.text:
        return _typed_variable(shape.text, dtype.text, first.text)
    if first.array is not None or first.type != "string":
        found = _array(first, None)
        if strict and dtype.text and not (first.array is not None and _names(dtype, found)):
            raise ArgumentError(
                "`initvalues` has a type of its own, so `dtype` must be empty: enuSpace does not create it either"
            )
        return found
    if not dtype.text:
        if strict:
            raise ArgumentError(
                "`initvalues` is a text, and texts are not computed here; choose a type for it or fill in `dtype`"
            )
        return read_literal(first.text)
    wanted, sizes = setting_texts.dtype(dtype.text), setting_texts.shape(shape.text)
    found = _literal(first.text, wanted)
    if first.shape and first.shape != found.shape:
        raise ArgumentError(
            f"`initvalues` must have its own shape, {list(first.shape)}, got {list(found.shape)} in braces"
        )
    if found.shape != sizes:
        raise _other_shape(sizes, found)
    return found


def _other_shape(sizes: tuple[int, ...], found: AnyArray) -> ArgumentError:
    return ArgumentError(
        f"`initvalues` must have the shape on the pin `shape`, {list(sizes)}, got {list(found.shape)}"
    )


@lru_cache(maxsize=4096)
def _typed_variable(shape: str, dtype: str, first: str) -> AnyArray:
    """Return an initial value from texts; remembered, as everything that is read after every edit."""
    wanted, sizes = setting_texts.dtype(dtype), setting_texts.shape(shape)
    found = read_literal(first or "0", wanted)
    if found.shape == sizes:
        return found
    if found.size == 1:
        return _repeated(found.reshape(()), sizes)
    raise _other_shape(sizes, found)


@lru_cache(maxsize=4096)
def variable_attributes(
    row: rows.OpRow, rest: str, known: tuple[tuple[str, str], ...], shape: Any, dtype: Any
) -> tuple[dict[str, Any], list[str]]:
    """Return a Variable's attributes in canonical form, and notes; `rest` is on the pin `attrs`."""
    given, notes = _optional(rest, known) if known else ({}, [])
    return canonical_attributes(row, {**given, "shape": shape, "dtype": dtype}), notes


def _repeated(number: AnyArray, sizes: tuple[int, ...]) -> AnyArray:
    """Return a tensor of one number, stored once: a page that is only looked at takes no memory for it."""
    try:
        return np.broadcast_to(number, sizes)
    except ValueError:
        raise ArgumentError(
            f"`shape` must be of a tensor that fits in memory, got {list(sizes)}"
        ) from None


def _names(dtype: Value, array: AnyArray) -> bool:
    return setting_texts.dtype(dtype.text) == array.dtype


def dtype_of(value: Value) -> np.dtype[Any]:
    """Return the dtype a text names."""
    return setting_texts.dtype(value.text)


def bracketed(value: Value) -> tuple[list[int], list[str]]:
    """Return the shape of a RandomNormal_ex, and notes."""
    sizes, notes = setting_texts.bracket_shape(value.text)
    if any(size < 0 for size in sizes):
        raise ArgumentError(f"`shape` must have sizes >= 0, got {value.text!r}")
    return list(sizes), notes


def _setting(attr: rows.Attr, text: str) -> Any:
    """Return a required attribute from the text on its pin."""
    if not text and attr.kind != "shape":
        raise ArgumentError(f"`{attr.name}` is empty")
    try:
        if attr.name == "padding":
            return setting_texts.padding(text, ("SAME", "VALID", "EXPLICIT"))
        return setting_texts.attribute_value(attr.kind, text)
    except ArgumentError as error:
        raise ArgumentError(f"`{attr.name}`: {error}") from None


@lru_cache(maxsize=4096)
def attributes(
    row: rows.OpRow, texts: tuple[str, ...], rest: str, known: tuple[tuple[str, str], ...]
) -> tuple[dict[str, Any], list[str]]:
    """Return all attributes of a node in canonical form, and notes.

    `texts` are of the required ones, `rest` is on the pin `attrs`. Remembered, because a page is read after every edit.
    """
    found = {
        attr.name: _setting(attr, text) for attr, text in zip(row.required, texts, strict=True)
    }
    given, notes = _optional(rest, known) if known else ({}, [])
    return canonical_attributes(row, {**found, **given}), notes


@lru_cache(maxsize=4096)
def _optional(text: str, known: tuple[tuple[str, str], ...]) -> tuple[dict[str, Any], list[str]]:
    kinds = dict(known)
    given, notes = setting_texts.attributes(text, kinds)
    found = {}
    for name, one in given.items():
        try:
            found[name.removesuffix("_")] = setting_texts.attribute_value(kinds[name], one)
        except ArgumentError as error:
            raise ArgumentError(f"attribute `{name}`: {error}") from None
    return found, notes


def optional(text: str, known: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return attributes by the op's names, and notes.

    >>> optional("data_format_ = NCHW", {"data_format_": "string"})
    ({'data_format': 'NCHW'}, [])
    """
    return _optional(text, tuple(known.items()))
