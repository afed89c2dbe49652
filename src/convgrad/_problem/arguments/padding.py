"""Padding, in every form a function may accept it: words, pairs of pads, and the raw operations' flat list.

The top level also takes PyTorch's ints, which mean one thing only. TensorFlow's own
doors refuse them, as TensorFlow does, and say how to write the same there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ..._base.errors import ArgumentError, ArgumentTypeError, ConvgradError, shown
from ..geometry import Pads
from .integers import LARGEST_INT32, by_layout, counted, first_of, integer, is_number

PaddingForm = Literal["tensorflow", "friendly", "raw"]


def read_padding(
    function: str, form: PaddingForm, value: Any, explicit: Any, layout: str
) -> Literal["SAME", "VALID"] | tuple[Pads, Pads]:
    """Return the word, or the pads of rows and of columns."""
    if form == "raw":
        return _raw_padding(function, value, explicit, layout)
    kind = form == "friendly"
    ints = ", an int, 2 ints (rows, columns)" if kind else ""
    if isinstance(value, str):
        word = str.upper(value)
        if word in _WORDS and (kind or word == str.__str__(value)):
            return "SAME" if word == "SAME" else "VALID"
        hint = f"; write {word!r}" if word in _WORDS else ""
        hint = "; give the list of pairs itself" if word == "EXPLICIT" else hint
        raise ArgumentError(
            f"{function}: `padding` must be 'SAME', 'VALID'{ints} or a list of pairs{hint}, got {shown(value)}."
        )
    if isinstance(value, np.ndarray):
        raise ArgumentError(
            f"{function}: `padding` must be a list or tuple of pairs, not an array; use `.tolist()`, "
            f"got {shown(value)}."
        )
    hint = "" if kind else _hint(function, value, layout)
    if kind:
        short = _short_form(function, value)
        if short is not None:
            return short
    if not isinstance(value, list | tuple):
        raise ArgumentTypeError(
            f"{function}: `padding` must be 'SAME', 'VALID'{ints} or a list of pairs{hint}, got {shown(value)}."
        )
    given = first_of(value)
    if kind and given and all(map(is_number, given)):
        raise ArgumentError(
            f"{function}: `padding` must be 1 int, 2 ints (rows, columns) or a list of pairs (before, after), "
            f"got {counted(given)} ints: {shown(value)}."
        )
    pairs = [_pad_pair(function, element, value, hint) for element in given]
    if len(pairs) == 2:
        rows, cols = pairs
        if kind:
            return rows, cols
        hint = f"; write {_four(rows, cols, layout)}"
    if len(pairs) != 4:
        also = " or 2 pairs (rows, columns)" if kind else ""
        raise ArgumentError(
            f"{function}: `padding` must hold 4 pairs in {layout} order{also}{hint}, got {counted(pairs)}: "
            f"{shown(value)}."
        )
    return _spatial_pads(function, "padding", pairs, value, layout)


_WORDS = ("SAME", "VALID")


def _short_form(function: str, value: Any) -> tuple[Pads, Pads] | None:
    """Read PyTorch's forms, an int for all sides or 2 ints for rows and columns; None if it is neither."""
    if isinstance(value, list | tuple):
        given = first_of(value)
        if len(given) != 2 or not all(map(is_number, given)):
            return None
    elif is_number(value) and hasattr(value, "__index__") and not isinstance(value, _BOOLS):
        given = (value, value)
    else:
        return None
    rows, cols = (integer(function, "padding", number, value) for number in given)
    _check_pads(function, "padding", (rows, cols), value)
    return (rows, rows), (cols, cols)


_BOOLS = (bool, np.bool_)


def _hint(function: str, value: Any, layout: str, raw: bool = False) -> str:
    """Return how a function without the short forms wants to have one written."""
    try:
        short = _short_form(function, value)
    except ConvgradError:
        return ""
    if short is None:
        return ""
    four = _four(*short, layout)
    if raw:
        return f"; write 'EXPLICIT' with explicit_paddings={[pad for pair in four for pad in pair]}"
    return f"; write {four}"


def _four(rows: Pads, cols: Pads, layout: str) -> list[list[int]]:
    """Write the pads of rows and columns in TensorFlow's form."""
    spatial = [list(rows), list(cols)]
    return [[0, 0], *spatial, [0, 0]] if layout == "NHWC" else [[0, 0], [0, 0], *spatial]


def _raw_padding(
    function: str, value: Any, explicit: Any, layout: str
) -> Literal["SAME", "VALID"] | tuple[Pads, Pads]:
    if not isinstance(value, str):
        hint = _hint(function, value, layout, raw=True)
        raise ArgumentTypeError(
            f"{function}: `padding` must be 'SAME', 'VALID' or 'EXPLICIT'{hint}, got {shown(value)}."
        )
    value = str.__str__(value)
    if not isinstance(explicit, list | tuple):
        raise ArgumentTypeError(
            f"{function}: `explicit_paddings` must be a flat list of 8 ints, got {shown(explicit)}."
        )
    flat = [integer(function, "explicit_paddings", item, explicit) for item in first_of(explicit)]
    if value == "EXPLICIT":
        if len(flat) != 8:
            raise ArgumentError(
                f"{function}: `explicit_paddings` must contain 8 values with padding 'EXPLICIT', "
                f"got {counted(flat)}: {shown(explicit)}."
            )
        pairs = [(flat[2 * i], flat[2 * i + 1]) for i in range(4)]
        for pair in pairs:
            _check_pads(function, "explicit_paddings", pair, explicit)
        return _spatial_pads(function, "explicit_paddings", pairs, explicit, layout)
    if value not in _WORDS:
        upper = str.upper(value)
        hint = f"; write {upper!r}" if upper in (*_WORDS, "EXPLICIT") else ""
        raise ArgumentError(
            f"{function}: `padding` must be 'SAME', 'VALID' or 'EXPLICIT'{hint}, got {shown(value)}."
        )
    if flat:
        raise ArgumentError(
            f"{function}: `explicit_paddings` must be empty with padding {shown(value)}, got {shown(explicit)}."
        )
    return "SAME" if value == "SAME" else "VALID"


def _pad_pair(function: str, element: Any, value: Any, hint: str) -> Pads:
    numbers = first_of(element) if isinstance(element, list | tuple) else ()
    if len(numbers) != 2:
        raise ArgumentError(
            f"{function}: each element of `padding` must be a list of size 2 (before, after){hint}, "
            f"got {shown(element)} in {shown(value)}."
        )
    before, after = (integer(function, "padding", number, value) for number in numbers)
    _check_pads(function, "padding", (before, after), value)
    return before, after


def _check_pads(function: str, argument: str, pair: Pads, value: Any) -> None:
    for pad in pair:
        if pad < 0:
            raise ArgumentError(
                f"{function}: all elements of `{argument}` must be nonnegative, got {shown(pad)} in {shown(value)}."
            )
        if pad > LARGEST_INT32:
            raise ArgumentError(
                f"{function}: all elements of `{argument}` must be below 2**31, got {shown(pad)} in {shown(value)}."
            )


def _spatial_pads(
    function: str, argument: str, pairs: Sequence[Pads], value: Any, layout: str
) -> tuple[Pads, Pads]:
    batch, depth, rows, cols = by_layout(pairs, layout)
    if batch != (0, 0) or depth != (0, 0):
        raise ArgumentError(
            f"{function}: `{argument}` in the batch and depth dimensions must be 0 ({layout}), got {shown(value)}."
        )
    return rows, cols
