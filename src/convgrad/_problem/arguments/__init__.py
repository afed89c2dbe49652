"""The forms in which callers write strides, dilations, padding, layout and sizes, brought to one form.

Which forms a function accepts is data (`Forms`); the rules are TensorFlow's, stricter where TensorFlow truncates,
ignores or guesses. Everything becomes a Python integer here, so later arithmetic cannot wrap. Arrays, dtypes and shapes
are not looked at: see `_arrays` and `_problem`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..._base.errors import ArgumentError, ArgumentTypeError, shown
from ..._base.laziness import is_lazy
from ..convolution import Settings
from .integers import (
    LARGEST_INT32,
    by_layout,
    counted,
    elements,
    first_of,
    integer,
    is_number,
)
from .padding import PaddingForm, read_padding

DataFormat = Literal["NHWC", "NCHW"]
DATA_FORMATS: tuple[DataFormat, ...] = ("NHWC", "NCHW")
_KERAS = {"CHANNELS_LAST": "NHWC", "CHANNELS_FIRST": "NCHW"}
_LARGEST_SIZE = 2**128
"""Sizes are checked with the shapes; this bound only keeps ints out that Python itself refuses to print."""

Given = tuple[Any, ...]
"""The settings as the caller wrote them: forms, strides, padding, data_format, dilations[, explicit paddings]."""

PairForm = Literal["flexible", "list4", "pair"]
LayoutForm = Literal["tensorflow", "friendly"]


@dataclass(frozen=True, eq=False)
class Forms:
    """What a function accepts for its settings.

    Pairs: `flexible` is an int or 1, 2 or 4 ints; `list4` a list or tuple of 4; `pair` two ints (rows, columns).
    Padding: `tensorflow` is SAME, VALID or 4 pairs; `friendly` takes an int, 2 ints, 2 pairs and lower case as well;
    `raw` is a word that may be EXPLICIT, with 8 flat values beside it.
    Layout: `tensorflow` is NHWC or NCHW; `friendly` takes Keras' words and lower case as well.
    """

    strides: PairForm
    dilations: PairForm
    padding: PaddingForm = "tensorflow"
    layout: LayoutForm = "tensorflow"


FLEXIBLE = Forms("flexible", "flexible")
STRICT = Forms("list4", "list4")
DEPTHWISE = Forms("list4", "pair")
FRIENDLY = Forms("flexible", "flexible", "friendly", "friendly")
RAW = Forms("list4", "list4", "raw")


def settings(
    function: str,
    forms: Forms,
    strides: Any,
    padding: Any,
    data_format: Any,
    dilations: Any,
    explicit_paddings: Any = (),
) -> Settings:
    """Return the settings of a call in canonical form, or raise an error for the first that is wrong.

    They are read from copies: another thread may be changing the caller's lists.
    """
    given = (strides, padding, data_format, dilations, explicit_paddings)
    return read_settings(function, forms, *map(_copied, given))


class NotPlain(Exception):
    """Some argument is not made of exactly ints, strings, lists and tuples."""


_INTS = {int}
_SEQUENCES = ({list}, {tuple}, {list, tuple})


def plain(value: Any) -> Any:
    """Return a key that equal arguments share and others do not; 1, 1.0 and True are equal to Python, not here."""
    kind = type(value)
    if value is None or kind is str or kind is int:
        return value
    if kind is list or kind is tuple:
        kinds = set(map(type, value))
        if kinds == _INTS or not kinds:
            return tuple(value)
        if kinds in _SEQUENCES and all(set(map(type, pair)) == _INTS for pair in value):
            return tuple(map(tuple, value))
    raise NotPlain


def as_written(copy: Any, value: Any) -> Any:
    """Return what `plain` made of a value, with lists where the caller wrote lists, so that messages show them."""
    if type(copy) is not tuple or type(value) not in (list, tuple):
        return copy
    # What is copied stays as long as it was, whatever the caller's list is by now.
    parts = tuple(map(as_written, copy, (*value, *copy)))
    return list(parts) if type(value) is list else parts


def _copied(value: Any) -> Any:
    try:
        return as_written(plain(value), value)
    except NotPlain:
        return value


def read_settings(
    function: str,
    forms: Forms,
    strides: Any,
    padding: Any,
    data_format: Any,
    dilations: Any,
    explicit_paddings: Any = (),
) -> Settings:
    """Return settings that nobody else can change in canonical form, or raise an error for the first that is wrong."""
    layout = read_data_format(function, forms.layout, data_format)
    return Settings(
        strides=_pair(function, "strides", forms.strides, strides, layout),
        dilations=(1, 1)
        if dilations is None
        else _pair(function, "dilations", forms.dilations, dilations, layout),
        padding=read_padding(function, forms.padding, padding, explicit_paddings, layout),
        data_format=layout,
    )


def sizes(function: str, argument: str, value: Any, lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Return a size vector as Python integers; signs are checked with the shapes."""
    if value is None:
        raise ArgumentError(f"{function}: `{argument}` must be a vector of sizes, got None.")
    if isinstance(value, str | bytes):
        raise ArgumentTypeError(f"{function}: `{argument}` must hold integers, got {shown(value)}.")
    items = elements(value)
    if items is None and is_lazy(value):
        raise ArgumentTypeError(
            f"{function}: `{argument}` must be known when the call is made, got an array of Dask; use its `.compute()`."
        )
    if items is None or any(
        isinstance(item, list | tuple) or (isinstance(item, np.ndarray) and item.ndim > 0)
        for item in items
    ):
        raise ArgumentError(f"{function}: `{argument}` must be 1-dimensional, got {shown(value)}.")
    result = tuple(integer(function, argument, item, value) for item in items)
    if len(result) not in lengths:
        wanted = " values or ".join(str(length) for length in lengths)
        raise ArgumentError(
            f"{function}: `{argument}` must hold {wanted} values, got {counted(result)}: {shown(value)}."
        )
    for size in result:
        if abs(size) > _LARGEST_SIZE:
            raise ArgumentError(
                f"{function}: `{argument}` must hold sizes up to 2**128, got {shown(value)}."
            )
    return result


def either(function: str, old_name: str, old: Any, new_name: str, new: Any) -> Any:
    """Return whichever of an old and a new spelling of one argument was given."""
    if old is not None and new is not None:
        raise ArgumentError(f"{function}: Cannot specify both '{old_name}' and '{new_name}'.")
    return new if new is not None else old


def read_data_format(function: str, form: LayoutForm, value: Any) -> DataFormat:
    """Return a layout's name; None means NHWC."""
    if value is None:
        return "NHWC"
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{function}: `data_format` must be a string, got {shown(value)}.")
    word = str.__str__(value)  # exactly a str, for the reason integers are exactly ints
    for name in DATA_FORMATS:
        if word == name:
            return name
    upper = word.upper()
    meant = _KERAS.get(upper, upper)
    hint = ""
    for name in DATA_FORMATS:
        if meant == name:
            if form == "friendly":
                return name
            hint = f"; write {meant!r}"
    raise ArgumentError(
        f"{function}: `data_format` must be 'NHWC' or 'NCHW'{hint}, got {shown(value)}."
    )


def _pair(function: str, argument: str, form: PairForm, value: Any, layout: str) -> tuple[int, int]:
    """Return (rows, columns) from any form the function accepts; None means 1 where `flexible`."""
    numbers = _numbers(function, argument, form, value)
    for number in numbers:
        if number < 1:
            raise ArgumentError(
                f"{function}: `{argument}` must be larger than 0, got {shown(number)} in {shown(value)}."
            )
        if number > LARGEST_INT32:
            raise ArgumentError(
                f"{function}: `{argument}` must be below 2**31, got {shown(number)} in {shown(value)}."
            )
    if len(numbers) == 1:
        return numbers[0], numbers[0]
    if len(numbers) == 2:
        return numbers[0], numbers[1]
    batch, depth, rows, cols = by_layout(numbers, layout)
    if batch != 1 or depth != 1:
        raise ArgumentError(
            f"{function}: `{argument}` in the batch and depth dimensions must be 1 ({layout}), got {shown(value)}."
        )
    return rows, cols


def _numbers(function: str, argument: str, form: PairForm, value: Any) -> tuple[int, ...]:
    lengths: tuple[int, ...]
    if form == "flexible":
        if value is None:
            return (1,)
        if is_number(value):
            return (integer(function, argument, value, value),)
        items, lengths, wanted = (
            elements(value),
            (1, 2, 4),
            "an int, or a sequence of 1, 2 or 4 ints",
        )
    else:
        items = first_of(value) if isinstance(value, list | tuple) else None
        lengths = (4,) if form == "list4" else (2,)
        wanted = "a list or tuple of 4 ints" if form == "list4" else "a list or tuple of 2 ints"
    if items is None:
        raise ArgumentTypeError(f"{function}: `{argument}` must be {wanted}, got {shown(value)}.")
    numbers = tuple(integer(function, argument, item, value) for item in items)
    if len(numbers) not in lengths:
        if form == "flexible":
            rule = "should be of length 1, 2 or 4"
        elif form == "list4":
            rule = "must specify 4 dimensions"
        else:
            rule = "must hold 2 values (rows, columns)"
        raise ArgumentError(
            f"{function}: `{argument}` {rule}, got {counted(numbers)}: {shown(value)}."
        )
    return numbers
