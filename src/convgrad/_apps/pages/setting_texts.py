"""What people type on pins that set something: attributes, shapes, lists of integers, dtypes, padding.

The grammars T4 to T8 of enuSpace's pages, and the way back. A text that enuSpace reads is read the same here, except
where enuSpace makes something else of it than anybody can have meant; those are refused, and listed where they are:

- A number with something behind it (`12abc`) and an empty item of a list are mistakes, not 12 and 0.
- `True` is neither of the spellings of true that enuSpace knows, and it would mean false; it is refused.
- `{2,3}` as the shape of a Placeholder means 2 by 3; enuSpace makes `[2, 23]` of it. There is a note.
- Attributes that are fractions keep them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from ..._base.dtypes import BFLOAT16
from ..._base.errors import ArgumentError, shown

MOST_CHARACTERS = 1 << 25
"""Of one text."""
MOST_DIMENSIONS = 32
MOST_ATTRIBUTES = 1000
KINDS = ("bool", "int", "ints", "string", "type", "shape", "float")
"""What an attribute may be."""

DTYPES: dict[str, np.dtype[Any]] = {
    "DT_FLOAT": np.dtype(np.float32),
    "DT_DOUBLE": np.dtype(np.float64),
    "DT_INT32": np.dtype(np.int32),
    "DT_INT64": np.dtype(np.int64),
    "DT_UINT8": np.dtype(np.uint8),
    "DT_BOOL": np.dtype(np.bool_),
    "DT_STRING": np.dtype(object),
    "DT_HALF": np.dtype(np.float16),
    "DT_BFLOAT16": BFLOAT16.numpy,
    "DT_INT8": np.dtype(np.int8),
    "DT_INT16": np.dtype(np.int16),
    "DT_UINT16": np.dtype(np.uint16),
    "DT_UINT32": np.dtype(np.uint32),
    "DT_UINT64": np.dtype(np.uint64),
}
"""TensorFlow's names; strings are objects, since NumPy pads all strings of an array to the longest."""
VAR_TYPES: dict[str, np.dtype[Any]] = {
    "string": DTYPES["DT_STRING"],
    "int": DTYPES["DT_INT32"],
    "float": DTYPES["DT_FLOAT"],
    "double": DTYPES["DT_DOUBLE"],
    "bool": DTYPES["DT_BOOL"],
}
"""enuSpace's names."""
MISSPELT = {"dialtions_": "dilations_", "SharedName_": "shared_name_"}
"""Names that pages carry, and what they mean."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_REAL = re.compile(r"[+-]?([0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})([eE][+-]?[0-9]{1,6})?")
_BLANKS = str.maketrans("", "", " \t\r\n")
_TRUE, _FALSE = ("true", "TRUE", "1"), ("false", "FALSE", "0")


def nearest(word: str, words: Iterable[str]) -> str:
    """Return a hint such as `` (did you mean `padding`?)``, or nothing.

    >>> nearest("paddin", ["padding", "strides"])
    ' (did you mean `padding`?)'
    """
    found = get_close_matches(word[:100], list(words), n=1)
    return f" (did you mean `{found[0]}`?)" if found else ""


def dtype(text: str) -> np.dtype[Any]:
    """Read the name of a dtype (T7), exactly as TensorFlow spells it.

    >>> dtype("DT_FLOAT")
    dtype('float32')
    """
    if text not in DTYPES:
        raise ArgumentError(
            f"a dtype must be one of {', '.join(DTYPES)}, got {shown(text)}"
            + nearest(text.upper(), DTYPES)
        )
    return DTYPES[text]


def dtype_name(dtype: np.dtype[Any]) -> str:
    """Name a NumPy dtype as TensorFlow does: the reverse of `dtype`."""
    native = dtype.newbyteorder("=")
    for name, row in DTYPES.items():
        if row == native:
            return name
    raise ArgumentError(f"no dtype of a page is {dtype}; those are {', '.join(DTYPES)}")


def padding(text: str, words: Sequence[str] = ("SAME", "VALID")) -> str:
    """Read a padding (T8): verbatim, not even blanks are forgiven.

    >>> padding("SAME")
    'SAME'
    """
    if text not in words:
        raise ArgumentError(
            f"padding must be {' or '.join(words)}, in capitals and without blanks, got {shown(text)}"
        )
    return text


def integer(text: str) -> int:
    """Read one whole number of 64 bits."""
    bare = text.strip()
    value = int(bare) if _INTEGER.fullmatch(bare) else None
    if value is None or not -(1 << 63) <= value < 1 << 63:
        raise ArgumentError(f"expected a whole number of 64 bits, got {shown(text)}")
    return value


def _items(text: str, what: str) -> list[str]:
    """Split a flat list, with or without braces, at `,` or `;`."""
    if len(text) > MOST_CHARACTERS:
        raise ArgumentError(f"{what} has {len(text)} characters, more than {MOST_CHARACTERS}")
    bare = text.strip()
    if bare[:1] == "{" and bare[-1:] == "}" and len(bare) > 1:
        bare = bare[1:-1].strip()
    if "{" in bare or "}" in bare:
        raise ArgumentError(f"{what} has one pair of braces or none, got {shown(text)}")
    return re.split("[;,]", bare) if bare else []


def ints(text: str) -> tuple[int, ...]:
    """Read a list of whole numbers (T6).

    >>> ints("{1,2,2,1}"), ints("1;2;2;1"), ints("1, 2, 2, 1")
    ((1, 2, 2, 1), (1, 2, 2, 1), (1, 2, 2, 1))
    """
    items = _items(text, "a list such as {1,2,2,1}")
    try:
        return tuple(map(integer, items))
    except ArgumentError:
        raise ArgumentError(
            f"expected whole numbers such as {{1,2,2,1}} or 1;2;2;1, got {shown(text)}"
        ) from None


def ints_text(values: Iterable[int]) -> str:
    """Write a list of whole numbers: the reverse of `ints`.

    >>> ints_text([1, 2, 2, 1])
    '{1,2,2,1}'
    """
    return "{" + ",".join(str(int(value)) for value in values) + "}"


def shape(text: str, unknown: bool = False) -> tuple[int, ...]:
    """Read a shape (T5); where `unknown` is allowed, a size may be `?` or -1, and is -1.

    >>> shape("{2,3}"), shape("[2][3]"), shape("2;3"), shape("{}"), shape("[?][3]", unknown=True)
    ((2, 3), (2, 3), (2, 3), (), (-1, 3))
    """
    bare = text.strip()
    if len(bare) <= MOST_CHARACTERS and bare[:1] == "[" and bare[-1:] == "]":
        # `[2][3]`, and Python's `[2, 3]` as well.
        bare = re.sub(r"\]\s*\[", ";", bare)[1:-1]
        if "[" in bare or "]" in bare:
            raise ArgumentError(_no_shape(text, unknown))
    items = [item.strip() for item in _items(bare, "a shape")]
    if len(items) > MOST_DIMENSIONS:
        raise ArgumentError(
            f"a shape has at most {MOST_DIMENSIONS} dimensions, got {len(items)}: {shown(text)}"
        )
    try:
        sizes = tuple(-1 if item == "?" else integer(item) for item in items)
    except ArgumentError:
        raise ArgumentError(_no_shape(text, unknown)) from None
    if any(size < (-1 if unknown else 0) for size in sizes):
        raise ArgumentError(_no_shape(text, unknown))
    return sizes


def _no_shape(text: str, unknown: bool) -> str:
    also = ", or ? where a size is not known" if unknown else ""
    return f"expected a shape such as {{2,3}} or [2][3], sizes 0 or more{also}; got {shown(text)}"


def bracket_shape(text: str) -> tuple[tuple[int, ...], list[str]]:
    """Read the shape of a Placeholder or RandomNormal_ex, whose list in braces enuSpace misreads; and notes.

    >>> bracket_shape("[2][3]")
    ((2, 3), [])
    >>> bracket_shape("{2,3}")
    ((2, 3), ['shape {2,3} is read as 2 by 3; enuSpace itself reads [2,23] and needs [2][3]'])
    """
    sizes = shape(text, unknown=True)
    if len(sizes) < 2 or text.strip()[:1] == "[":
        return sizes, []
    words = " by ".join("?" if size < 0 else str(size) for size in sizes)
    brackets = "".join("[?]" if size < 0 else f"[{size}]" for size in sizes)
    misread = f"[{sizes[0]},{''.join(map(str, sizes))}]" if len(sizes) == 2 else "another one"
    note = f"shape {text.strip()} is read as {words}; enuSpace itself reads {misread} and needs {brackets}"
    return sizes, [note]


def shape_text(sizes: Iterable[int]) -> str:
    """Write a shape in the form every pin understands: the reverse of `shape`.

    >>> shape_text([2, -1]), shape_text([])
    ('[2][?]', '{}')
    """
    return "".join("[?]" if size < 0 else f"[{int(size)}]" for size in sizes) or "{}"


def attributes(
    text: str, known: Mapping[str, str] | Iterable[str] | None = None
) -> tuple[dict[str, str], list[str]]:
    """Read attributes (T4): values by name, as text, and notes on what was passed over.

    Blanks and line ends mean nothing, the first of a repeated name counts, an empty value is not set, and names that
    are not `known` are passed over. `None` knows them all.

    >>> attributes("data_format_ = NHWC; dialtions_={1,1,1,1};", ["data_format_", "dilations_"])
    ({'data_format_': 'NHWC', 'dilations_': '{1,1,1,1}'}, ['attribute `dialtions_` is read as `dilations_`'])
    """
    if len(text) > MOST_CHARACTERS:
        raise ArgumentError(f"attributes have {len(text)} characters, more than {MOST_CHARACTERS}")
    if text.count(";") > MOST_ATTRIBUTES:
        raise ArgumentError(f"a block has at most {MOST_ATTRIBUTES} attributes, got more")
    names = None if known is None else tuple(known)
    given: dict[str, str] = {}
    notes: list[str] = []
    misspelt: list[tuple[str, str]] = []
    for part in text.translate(_BLANKS).split(";"):
        if not part:
            continue
        name, equals, value = part.partition("=")
        if value.count("{") != value.count("}"):
            raise ArgumentError(
                f"attribute `{name[:50]}`: a list in braces is separated by `,`, such as {{1,1}}; got {shown(part)}"
            )
        if not equals or not name or "=" in value:
            raise ArgumentError(f"an attribute is `name_ = value`, got {shown(part)}")
        right = MISSPELT.get(name, name)
        if names is not None and right not in names:
            notes.append(f"unknown attribute `{name[:50]}` is ignored{nearest(name, names)}")
        elif right != name:
            misspelt.append((name, value))
        elif name in given:
            notes.append(f"attribute `{name[:50]}` is repeated; the first one counts")
        else:
            given[name] = value
    for name, value in misspelt:  # last, so that a name spelt right wins
        right = MISSPELT[name]
        if right in given:
            notes.append(f"attribute `{name}` is ignored: `{right}` is there")
        else:
            notes.append(f"attribute `{name}` is read as `{right}`")
            given[right] = value
    return {name: value for name, value in given.items() if value}, notes


def attribute_value(kind: str, text: str) -> Any:
    """Read the value of an attribute of one of the `KINDS`.

    >>> attribute_value("bool", "TRUE"), attribute_value("ints", "{1,1,2,2}"), attribute_value("float", "0.5")
    (True, (1, 1, 2, 2), 0.5)
    """
    if kind == "bool":
        return boolean(text)
    if kind == "int":
        return integer(text)
    if kind == "ints":
        return ints(text)
    if kind == "float":
        bare = text.strip().removesuffix("f")
        if not _REAL.fullmatch(bare) or not np.isfinite(float(bare)):
            raise ArgumentError(f"expected a number, got {shown(text)}")
        return float(bare)
    if kind == "type":
        return dtype(text)
    if kind == "shape":
        return shape(text, unknown=True)
    if kind == "string":
        return unescaped(text)
    raise ArgumentError(f"an attribute is one of {', '.join(KINDS)}, not {shown(kind)}")


def boolean(text: str) -> bool:
    """Read true or false as attributes spell them.

    >>> boolean("true"), boolean("0")
    (True, False)
    """
    if text not in _TRUE + _FALSE:
        raise ArgumentError(
            f"expected {', '.join(_TRUE)} or {', '.join(_FALSE)}, got {shown(text)}"
        )
    return text in _TRUE


def unescaped(text: str) -> str:
    r"""Undo the doubling of backslashes in texts such as paths.

    >>> print(unescaped(r"C:\\data\\x"))
    C:\data\x
    """
    return text.replace("\\\\", "\\")


def attributes_text(values: Mapping[str, Any]) -> str:
    """Write attributes: the reverse of `attributes` and `attribute_value`.

    >>> attributes_text({"data_format_": "NHWC", "dilations_": (1, 1, 1, 1), "use_locking_": True})
    'data_format_ = NHWC; dilations_ = {1,1,1,1}; use_locking_ = true'
    """
    return "; ".join(f"{name} = {_attribute_text(name, value)}" for name, value in values.items())


def _attribute_text(name: str, value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating) and np.isfinite(value):
        return repr(float(value))
    if isinstance(value, np.dtype):
        return dtype_name(value)
    if isinstance(value, str):
        if re.search(r"[\s;={}]", value) or not value:
            raise ArgumentError(
                f"attribute `{name}`: a text of attributes cannot hold {shown(value)}: no blanks, no `;={{}}`"
            )
        return value.replace("\\", "\\\\")
    if isinstance(value, Iterable):
        return ints_text(value)
    raise ArgumentError(f"attribute `{name}`: no text stands for {shown(value)}")
