"""Padding, in every form a function may accept it: words, pairs of pads, and the raw operations' flat list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from .._errors import ArgumentError, ArgumentTypeError, shown
from .._geometry import Pads
from .integers import LARGEST_INT32, by_layout, counted, first_of, integer

PaddingForm = Literal["tensorflow", "friendly", "raw"]


def read_padding(
    function: str, form: PaddingForm, value: Any, explicit: Any, layout: str
) -> Literal["SAME", "VALID"] | tuple[Pads, Pads]:
    if form == "raw":
        return _raw_padding(function, value, explicit, layout)
    if isinstance(value, str):
        word = str.upper(value) if form == "friendly" else str.__str__(value)
        if word == "SAME" or word == "VALID":
            return "SAME" if word == "SAME" else "VALID"
        hint = "; give the list of pairs itself" if word == "EXPLICIT" else ""
        raise ArgumentError(
            f"{function}: `padding` must be 'SAME', 'VALID' or a list of pairs{hint}, got {shown(value)}."
        )
    if isinstance(value, np.ndarray):
        raise ArgumentError(
            f"{function}: `padding` must be a list or tuple of pairs, not an array; use `.tolist()`, "
            f"got {shown(value)}."
        )
    if not isinstance(value, list | tuple):
        raise ArgumentTypeError(
            f"{function}: `padding` must be 'SAME', 'VALID' or a list of pairs, got {shown(value)}."
        )
    pairs = [_pad_pair(function, element, value) for element in first_of(value)]
    if form == "friendly" and len(pairs) == 2:
        return pairs[0], pairs[1]
    if len(pairs) != 4:
        also = " or 2 pairs (rows, columns)" if form == "friendly" else ""
        raise ArgumentError(
            f"{function}: `padding` must hold 4 pairs in {layout} order{also}, got {counted(pairs)}: {shown(value)}."
        )
    return _spatial_pads(function, "padding", pairs, value, layout)


def _raw_padding(
    function: str, value: Any, explicit: Any, layout: str
) -> Literal["SAME", "VALID"] | tuple[Pads, Pads]:
    if not isinstance(value, str):
        raise ArgumentTypeError(
            f"{function}: `padding` must be 'SAME', 'VALID' or 'EXPLICIT', got {shown(value)}."
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
    if value not in ("SAME", "VALID"):
        raise ArgumentError(
            f"{function}: `padding` must be 'SAME', 'VALID' or 'EXPLICIT', got {shown(value)}."
        )
    if flat:
        raise ArgumentError(
            f"{function}: `explicit_paddings` must be empty with padding {shown(value)}, got {shown(explicit)}."
        )
    return "SAME" if value == "SAME" else "VALID"


def _pad_pair(function: str, element: Any, value: Any) -> Pads:
    numbers = first_of(element) if isinstance(element, list | tuple) else ()
    if len(numbers) != 2:
        raise ArgumentError(
            f"{function}: each element of `padding` must be a list of size 2 (before, after), "
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
