"""The forms in which callers write strides, dilations, padding, layout and sizes, brought to one form.

Which forms a function accepts is data (`Forms`); the rules are TensorFlow's, stricter where TensorFlow truncates,
ignores or guesses. Everything becomes a Python integer here, so later arithmetic cannot wrap. Arrays, dtypes and shapes
are not looked at: see `_arrays` and `_problem`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import numpy as np

from ._errors import ArgumentError, ArgumentTypeError, ConvgradError, shown
from ._geometry import Pads
from ._problem import Settings

DATA_FORMATS = ("NHWC", "NCHW")
_LARGEST_INT32 = 2**31 - 1
_LARGEST_SIZE = 2**128
"""Sizes are checked with the shapes; this bound only keeps ints out that Python itself refuses to print."""

PairForm = Literal["flexible", "list4", "pair"]
PaddingForm = Literal["tensorflow", "friendly", "raw"]


@dataclass(frozen=True, eq=False)
class Forms:
    """What a function accepts for its settings.

    Pairs: `flexible` is an int or 1, 2 or 4 ints; `list4` a list or tuple of 4; `pair` two ints (rows, columns).
    Padding: `tensorflow` is SAME, VALID or 4 pairs; `friendly` takes 2 pairs and lower case as well; `raw` is a word
    that may be EXPLICIT, with 8 flat values beside it.
    """

    strides: PairForm
    dilations: PairForm
    padding: PaddingForm = "tensorflow"


FLEXIBLE = Forms("flexible", "flexible")
STRICT = Forms("list4", "list4")
DEPTHWISE = Forms("list4", "pair")
FRIENDLY = Forms("flexible", "flexible", "friendly")
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
    """Return the settings of a call in canonical form, or raise what the first bad one deserves.

    Settings written in plain ints, strings, lists and tuples are remembered: a repeated call finds them in 2 us.
    """
    given = (strides, padding, data_format, dilations, explicit_paddings)
    try:
        frozen = tuple(map(_plain, given))
    except _NotPlain:
        return _settings(function, forms, *given)
    key = (function, forms, *frozen)
    found = _remembered.get(key)
    if found is None:
        try:
            # Of the copies: another thread may be changing the caller's lists.
            found = _settings(function, forms, *frozen)
        except ConvgradError:
            return _settings(function, forms, *given)  # the same again, in the caller's spelling
        if len(_remembered) >= _MOST_REMEMBERED:
            _remembered.clear()
        _remembered[key] = found
    return found


class _NotPlain(Exception):
    """Some argument is not made of exactly ints, strings, lists and tuples."""


_INTS = {int}
_SEQUENCES = ({list}, {tuple}, {list, tuple})
_remembered: dict[tuple[Any, ...], Settings] = {}
_MOST_REMEMBERED = 1024


def _plain(value: Any) -> Any:
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
    raise _NotPlain


def _settings(
    function: str,
    forms: Forms,
    strides: Any,
    padding: Any,
    data_format: Any,
    dilations: Any,
    explicit_paddings: Any,
) -> Settings:
    layout = _data_format(function, data_format)
    return Settings(
        strides=_pair(function, "strides", forms.strides, strides, layout),
        dilations=(1, 1)
        if dilations is None
        else _pair(function, "dilations", forms.dilations, dilations, layout),
        padding=_padding(function, forms.padding, padding, explicit_paddings, layout),
        data_format=layout,
    )


def sizes(function: str, argument: str, value: Any, lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Return a size vector as Python integers; signs are checked with the shapes."""
    if value is None:
        raise ArgumentError(f"{function}: `{argument}` must be a vector of sizes, got None.")
    if isinstance(value, str | bytes):
        raise ArgumentTypeError(f"{function}: `{argument}` must hold integers, got {shown(value)}.")
    items = _items(value)
    if items is None or any(_is_nested(item) for item in items):
        raise ArgumentError(f"{function}: `{argument}` must be 1-dimensional, got {shown(value)}.")
    result = tuple(_integer(function, argument, item, value) for item in items)
    if len(result) not in lengths:
        wanted = " values or ".join(str(length) for length in lengths)
        raise ArgumentError(
            f"{function}: `{argument}` must hold {wanted} values, got {_count(result)}: {shown(value)}."
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


def _data_format(function: str, value: Any) -> str:
    if value is None:
        return "NHWC"
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{function}: `data_format` must be a string, got {shown(value)}.")
    word = str.__str__(value)  # exactly a str, for the reason integers are exactly ints
    if word not in DATA_FORMATS:
        raise ArgumentError(
            f"{function}: `data_format` must be 'NHWC' or 'NCHW', got {shown(value)}."
        )
    return word


def _pair(function: str, argument: str, form: PairForm, value: Any, layout: str) -> tuple[int, int]:
    """Return (rows, columns) from any form the function accepts; None means 1 where `flexible`."""
    numbers = _numbers(function, argument, form, value)
    for number in numbers:
        if number < 1:
            raise ArgumentError(
                f"{function}: `{argument}` must be larger than 0, got {shown(number)} in {shown(value)}."
            )
        if number > _LARGEST_INT32:
            raise ArgumentError(
                f"{function}: `{argument}` must be below 2**31, got {shown(number)} in {shown(value)}."
            )
    if len(numbers) == 1:
        return numbers[0], numbers[0]
    if len(numbers) == 2:
        return numbers[0], numbers[1]
    batch, depth, rows, cols = _by_layout(numbers, layout)
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
        if _is_number(value):
            return (_integer(function, argument, value, value),)
        items, lengths, wanted = _items(value), (1, 2, 4), "an int, or a sequence of 1, 2 or 4 ints"
    else:
        items = _first(value) if isinstance(value, list | tuple) else None
        lengths = (4,) if form == "list4" else (2,)
        wanted = "a list or tuple of 4 ints" if form == "list4" else "a list or tuple of 2 ints"
    if items is None:
        raise ArgumentTypeError(f"{function}: `{argument}` must be {wanted}, got {shown(value)}.")
    numbers = tuple(_integer(function, argument, item, value) for item in items)
    if len(numbers) not in lengths:
        if form == "flexible":
            rule = "should be of length 1, 2 or 4"
        elif form == "list4":
            rule = "must specify 4 dimensions"
        else:
            rule = "must hold 2 values (rows, columns)"
        raise ArgumentError(
            f"{function}: `{argument}` {rule}, got {_count(numbers)}: {shown(value)}."
        )
    return numbers


def _padding(
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
    pairs = [_pad_pair(function, element, value) for element in _first(value)]
    if form == "friendly" and len(pairs) == 2:
        return pairs[0], pairs[1]
    if len(pairs) != 4:
        also = " or 2 pairs (rows, columns)" if form == "friendly" else ""
        raise ArgumentError(
            f"{function}: `padding` must hold 4 pairs in {layout} order{also}, got {_count(pairs)}: {shown(value)}."
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
    flat = [_integer(function, "explicit_paddings", item, explicit) for item in _first(explicit)]
    if value == "EXPLICIT":
        if len(flat) != 8:
            raise ArgumentError(
                f"{function}: `explicit_paddings` must contain 8 values with padding 'EXPLICIT', "
                f"got {_count(flat)}: {shown(explicit)}."
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
    numbers = _first(element) if isinstance(element, list | tuple) else ()
    if len(numbers) != 2:
        raise ArgumentError(
            f"{function}: each element of `padding` must be a list of size 2 (before, after), "
            f"got {shown(element)} in {shown(value)}."
        )
    before, after = (_integer(function, "padding", number, value) for number in numbers)
    _check_pads(function, "padding", (before, after), value)
    return before, after


def _check_pads(function: str, argument: str, pair: Pads, value: Any) -> None:
    for pad in pair:
        if pad < 0:
            raise ArgumentError(
                f"{function}: all elements of `{argument}` must be nonnegative, got {shown(pad)} in {shown(value)}."
            )
        if pad > _LARGEST_INT32:
            raise ArgumentError(
                f"{function}: all elements of `{argument}` must be below 2**31, got {shown(pad)} in {shown(value)}."
            )


def _spatial_pads(
    function: str, argument: str, pairs: Sequence[Pads], value: Any, layout: str
) -> tuple[Pads, Pads]:
    batch, depth, rows, cols = _by_layout(pairs, layout)
    if batch != (0, 0) or depth != (0, 0):
        raise ArgumentError(
            f"{function}: `{argument}` in the batch and depth dimensions must be 0 ({layout}), got {shown(value)}."
        )
    return rows, cols


def _by_layout(four: Sequence[Any], layout: str) -> tuple[Any, Any, Any, Any]:
    """Return (batch, depth, rows, columns)."""
    if layout == "NHWC":
        return four[0], four[3], four[1], four[2]
    return four[0], four[1], four[2], four[3]


def _is_number(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 0
    return not isinstance(value, str | bytes) and (
        np.isscalar(value) or (hasattr(value, "__index__") and not hasattr(value, "__array__"))
    )


def _is_nested(item: Any) -> bool:
    return isinstance(item, list | tuple) or (isinstance(item, np.ndarray) and item.ndim > 0)


def _items(value: Any) -> tuple[Any, ...] | None:
    """Return the elements of a sequence or 1-D array, or None if it is neither."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview):
        return _first(value)
    if not isinstance(value, np.ndarray):
        try:
            if hasattr(value, "as_list"):  # a TensorShape, which is no sequence
                found = value.as_list()
                return _first(found) if isinstance(found, list) else None
            if not hasattr(value, "__array__"):
                return None
            value = np.asarray(value)
        except Exception:
            return None
    return tuple(value[: _MOST_ITEMS + 1].tolist()) if value.ndim == 1 else None


_MOST_ITEMS = 64
"""Elements looked at. No argument has more than 8, and `range(10**9)` and its like must not be spelled out."""


def _first(value: Iterable[Any]) -> tuple[Any, ...]:
    """Return the elements, or so many that there are too many."""
    return tuple(islice(value, _MOST_ITEMS + 1))


def _count(found: Sequence[Any]) -> str:
    return str(len(found)) if len(found) <= _MOST_ITEMS else f"more than {_MOST_ITEMS}"


def _integer(function: str, argument: str, item: Any, value: Any) -> int:
    if isinstance(item, bool | np.bool_):
        raise ArgumentTypeError(f"{function}: `{argument}` must hold integers, got {shown(value)}.")
    try:
        # Exactly an int: a subclass might compare as it likes.
        return int.__index__(operator.index(item))
    except TypeError:
        raise ArgumentTypeError(
            f"{function}: `{argument}` must hold integers, got {shown(item)} in {shown(value)}."
        ) from None
