"""Numbers as people type them on pins: typed arrays, literals with braces, lists of literals.

The grammars T1 to T3 of enuSpace's pages, and the way back. As in `setting_texts`, a text that enuSpace reads is read
the same here, except where it would be made into something else than was meant. Those are refused:

- Other numbers of items than the shape has: enuSpace leaves the rest undefined or writes beyond the memory.
- Lists whose parts differ in length: enuSpace does not notice.
- Characters that are passed over inside a number: `{1;2}` and `{1 2}` would be 12.
- A fraction where a whole number is wanted, unless it is zero: `3.000000` is 3, and `2.5` is a mistake.

In a literal, `nan` and `inf` are numbers here. enuSpace cannot write them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._base import dtypes
from ..._base.dtypes import AnyArray
from ..._base.errors import ArgumentError, shown
from .setting_texts import DTYPES, MOST_CHARACTERS, MOST_DIMENSIONS, VAR_TYPES

MOST_ITEMS = 1 << 18
"""Of one text: typing ends long before, and reading them takes about a second."""
MOST_LITERALS = 10_000
"""Of a list."""
MOST_ELEMENTS = 1 << 28
"""Of an array that a text asks for."""

_NUMBER = re.compile(r"([+-]?)(?:(inf|nan)|([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,6}))?)")
_SUFFIX = re.compile(r"[fFlLuU]{0,3}\s*")
_TRUE = ("1", "true", "TRUE", "True")
_PLAIN = "0123456789.+-eE"
_WORDS = re.compile("true|TRUE|false|FALSE")
_ODD = re.compile("(nan|-?inf)f?")
_MARKS = re.compile(r"[{},]")


def elements(shape: tuple[int, ...]) -> int:
    """Return how many elements a shape has; refuse what no memory holds, before any is asked for."""
    if len(shape) > MOST_DIMENSIONS:
        raise ArgumentError(f"a shape has at most {MOST_DIMENSIONS} dimensions, got {len(shape)}")
    if any(size < 0 for size in shape):
        raise ArgumentError(f"sizes of an array are 0 or more, got {list(shape)}")
    count = math.prod(
        max(size, 1) for size in shape
    )  # NumPy too counts an empty array's other sizes
    if count > MOST_ELEMENTS:
        raise ArgumentError(
            f"shape {shown(list(shape))} has {shown(count)} elements; at most {MOST_ELEMENTS} are read"
        )
    return 0 if 0 in shape else count


def typed_array(text: str, type: str, shape: tuple[int, ...]) -> AnyArray:
    """Read a typed array (T1): items separated by `;` or `,`, braces dropped, as many as `shape` has; none are zeros.

    `type` is string, int, float, double or bool, or TensorFlow's name of a dtype. Strings are separated by `;` only.

    >>> typed_array("1.000000;2.000000;3.000000;4.000000", "int", (2, 2)).tolist()
    [[1, 2], [3, 4]]
    >>> typed_array("{0.5,2.5f}", "float", (2,))
    array([0.5, 2.5], dtype=float32)
    """
    dtype = VAR_TYPES.get(type) or DTYPES.get(type)
    if dtype is None:
        raise ArgumentError(
            f"the type of a pin is one of {', '.join(VAR_TYPES)} or a name such as DT_INT64, got {shown(type)}"
        )
    count = elements(shape)
    _bound(text)
    if dtype.kind == "O":
        items = text.split(";")
        if not text:
            items = [""] * count if count <= MOST_ITEMS else []
    elif not text.strip():
        return np.zeros(shape, dtype)
    else:
        items = re.split("[;,]", text.replace("{", "").replace("}", ""))
        if items == [""]:
            items = []
    if len(items) != count:
        raise ArgumentError(
            f"shape {list(shape)} needs {count} items, got {len(items)}: {shown(text)}"
        )
    if dtype.kind == "O":
        return _objects(items).reshape(shape)
    if dtype.kind == "b":
        return np.array([_truth(item) for item in items], dtype).reshape(shape)
    return _numbers(items, dtype).reshape(shape)


def _bound(text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise ArgumentError(f"a text has at most {MOST_CHARACTERS} characters, got {len(text)}")
    if text.count(",") + text.count(";") >= MOST_ITEMS:
        raise ArgumentError(f"a text has at most {MOST_ITEMS} items: store more as numbers")


def _objects(items: list[str]) -> AnyArray:
    array = np.empty(len(items), object)
    array[:] = items
    return array


def _truth(item: str) -> bool:
    bare = item.strip()
    if bare not in _TRUE and bare not in ("0", "false", "FALSE", "False"):
        raise ArgumentError(f"expected one of {', '.join(_TRUE)}, 0, false, got {shown(item)}")
    return bare in _TRUE


def _numbers(items: list[str], dtype: np.dtype[Any]) -> AnyArray:
    """Turn items into numbers of a dtype, each within its range."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        whole = [_whole(item) for item in items]
        for item, value in zip(items, whole, strict=True):
            if not limits.min <= value <= limits.max:
                raise ArgumentError(f"{shown(item)} does not fit in {dtype.name}")
        return np.array(whole, dtype)
    wide = np.array([_real(item) for item in items], np.float64)
    row = dtypes.find(dtype)
    assert row is not None, dtype  # every dtype of fractions has one
    array = dtypes.round_once(wide, row)
    bad = ~np.isfinite(array.astype(np.float64)) & np.isfinite(wide)
    if bad.any():
        raise ArgumentError(f"{shown(items[int(bad.argmax())])} does not fit in {dtype.name}")
    return array


def _matched(item: str) -> re.Match[str]:
    bare = item.strip()
    found = _NUMBER.match(bare)
    if (
        found is None
        or not (found[2] or found[3] or found[4])
        or not _SUFFIX.fullmatch(bare, found.end())
    ):
        raise ArgumentError(f"expected a number, got {shown(item)}")
    return found


def _real(item: str) -> float:
    found = _matched(item)
    value = float(found[0])
    if math.isinf(value) and not found[2]:
        raise ArgumentError(f"{shown(item)} does not fit in float64")
    return value


def _whole(item: str) -> int:
    found = _matched(item)
    digits, fraction = found[3] or "", found[4] or ""
    if found[2] or found[5] or fraction.strip("0") or not 0 < len(digits) <= 40:
        raise ArgumentError(f"expected a whole number, got {shown(item)}")
    return int(found[1] + digits)


def parse_literal(text: str, dtype: np.dtype[Any] | None = None) -> AnyArray:
    """Read a literal (T2): nested braces give the shape, and without a dtype the characters give one.

    A quotation mark makes strings, else `f` float32, else `.`, `e` or `E` float64, else it is int32. So `0.1` is
    float64, `true` too, and `false` is float32.

    >>> parse_literal("{{1,2},{3,4}}")
    array([[1, 2],
           [3, 4]], dtype=int32)
    >>> parse_literal("0.1f"), parse_literal("{1.5}")
    (array(0.1, dtype=float32), array([1.5]))
    """
    _bound(text)
    if not text.strip():
        raise ArgumentError("expected a number or a list in braces, got an empty text")
    chosen = literal_dtype(text) if dtype is None else dtype
    items: list[str] = []
    shape = _nested(text, items)
    if chosen.kind == "O":
        return _objects([_quoted(item) for item in items]).reshape(shape)
    cleaned = [_cleaned(item) for item in items]
    if chosen.kind == "b":
        return _numbers(cleaned, DTYPES["DT_DOUBLE"]).astype(bool).reshape(shape)
    return _numbers(cleaned, chosen).reshape(shape)


def literal_dtype(text: str) -> np.dtype[Any]:
    """Return the dtype that the characters of a literal give."""
    if '"' in text:
        return DTYPES["DT_STRING"]
    bare = text.replace("nan", ".").replace("inf", ".")
    if "j" in bare or "J" in bare:
        raise ArgumentError(f"complex numbers are not computed with, got {shown(text)}")
    if "f" in bare:
        return DTYPES["DT_FLOAT"]
    return DTYPES["DT_DOUBLE" if re.search("[.eE]", bare) else "DT_INT32"]


def _nested(text: str, items: list[str]) -> tuple[int, ...]:
    """Collect the items of nested lists in order and return their shape."""
    sizes: list[int | None] = []  # by depth, as soon as one list of it has ended
    counts: list[int] = []  # of the lists that are open
    leaves = -1  # the depth that numbers stand at
    deepest = 0
    closed = False  # whether a list has just ended: a comma or brace must follow
    for mark, word in _marked(text):
        bare = word.strip()
        if mark == "{":
            if bare or closed or (not counts and sizes):
                raise ArgumentError(f"a list begins where none can: {shown(text)}")
            counts.append(0)
            deepest = max(deepest, len(counts))
            if len(counts) > MOST_DIMENSIONS:
                raise ArgumentError(f"lists are nested more than {MOST_DIMENSIONS} deep: {shown(text)}")  # fmt: skip
            if len(counts) > len(sizes):
                sizes.append(None)
            continue
        depth = len(counts)
        if closed:
            if bare:
                raise ArgumentError(f"something stands behind a list: {shown(text)}")
        elif bare or mark == "," or not depth or counts[-1]:
            if leaves not in (-1, depth):
                raise ArgumentError(_ragged(text))
            leaves = depth
            items.append(word)
        closed = closed or bool(bare) or mark == "," or bool(depth and counts[-1])
        if not mark:
            break
        if not depth:
            raise ArgumentError(f"several items need braces around them: {shown(text)}")
        counts[-1] += closed
        if mark == ",":
            closed = False
            continue
        size = counts.pop()
        if sizes[depth - 1] not in (None, size):
            raise ArgumentError(_ragged(text))
        sizes[depth - 1] = size
        closed = True
    if counts or any(size is None for size in sizes):
        raise ArgumentError(f"a brace is not closed: {shown(text)}")
    if leaves not in (-1, deepest):
        raise ArgumentError(_ragged(text))
    shape = tuple(size for size in sizes if size is not None)
    if math.prod(shape) != len(items):
        raise ArgumentError(_ragged(text))
    return shape


def _marked(text: str) -> Iterator[tuple[str, str]]:
    """Yield every brace and comma with the text before it, and in the end the rest with no mark."""
    at = 0
    for found in _MARKS.finditer(text):
        yield found[0], text[at : found.start()]
        at = found.end()
    yield "", text[at:]


def _ragged(text: str) -> str:
    return f"lists inside a list must be equally long and deep: {shown(text)}"


def _quoted(item: str) -> str:
    bare = item.strip()
    if len(bare) >= 2 and bare[0] == bare[-1] == '"' and '"' not in bare[1:-1]:
        return bare[1:-1]
    if '"' in bare:
        raise ArgumentError(f'expected a text such as "abc", got {shown(item)}')
    return bare


def _cleaned(item: str) -> str:
    """Pass over characters around a number, as enuSpace does; refuse those inside it, which would glue digits."""
    if item.isdecimal():
        return item
    odd = _ODD.fullmatch(item.strip())
    if odd:
        return odd[1]
    bare = _WORDS.sub(lambda word: "1" if word[0] in ("true", "TRUE") else "0", item)
    plain = "".join(mark if mark in _PLAIN else " " for mark in bare).strip()
    if " " in plain or not plain:
        raise ArgumentError(f"expected a number, got {shown(item)}")
    return plain


def literal_list(text: str, dtype: np.dtype[Any] | None = None) -> list[AnyArray]:
    """Read a list of literals (T3), separated at the top by `,` or `;`.

    >>> [array.tolist() for array in literal_list("{1,2};{3,4}")], [array.item() for array in literal_list("1,2")]
    ([[1, 2], [3, 4]], [1, 2])
    """
    _bound(text)
    parts, depth, begin = [], 0, 0
    for found in re.finditer("[{},;]", text):
        mark = found[0]
        depth += (mark == "{") - (mark == "}")
        if depth == 0 and mark in ",;":
            parts.append(text[begin : found.start()])
            begin = found.end()
    rest = text[begin:]
    if rest.strip():
        parts.append(rest)
    if len(parts) > MOST_LITERALS:
        raise ArgumentError(f"a list has at most {MOST_LITERALS} literals, got {len(parts)}")
    return [parse_literal(part, dtype) for part in parts]


def literal_text(array: AnyArray) -> str:
    """Write a literal: the reverse of `parse_literal`.

    int32, float32 and float64 are told by their characters; other dtypes must be given when it is read, and so must
    that of an empty list.

    >>> literal_text(np.array([[1, 2], [3, 4]], np.int32)), literal_text(np.float32(0.1))
    ('{{1,2},{3,4}}', '0.1f')
    """
    values = np.asarray(array)
    if values.size > MOST_ITEMS:
        raise ArgumentError(f"a text has at most {MOST_ITEMS} items, got {values.size}")
    if 0 in values.shape[:-1]:
        raise ArgumentError(f"no braces stand for shape {list(values.shape)}: an outer size is 0")
    return _written(values)


def _written(values: AnyArray) -> str:
    if values.ndim:
        # Indexed with an ellipsis, the elements of an array are arrays too.
        return "{" + ",".join(_written(values[at, ...]) for at in range(len(values))) + "}"
    value, dtype = values.item(), values.dtype
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind in "iu":
        return str(int(value))
    if dtype.kind == "O":
        if not isinstance(value, str) or re.search(r'["{},]', value):
            raise ArgumentError(f'a literal cannot hold the text {shown(value)}: no `"{{}},`')
        return f'"{value}"'
    return real_text(float(value), dtype)


def real_text(value: float, dtype: np.dtype[Any]) -> str:
    """Spell a number with as few digits as bring it back, in the dtype's characters."""
    mark = "" if dtype == np.float64 else "f"
    if not math.isfinite(value):
        return f"{value}{mark}"
    text = repr(value)
    if mark:
        # 9 digits are nearer to the number than half its distance to the next, so rounding twice is harmless.
        tries = (f"{value:.{digits}g}" for digits in (4, 7, 8, 9))
        with np.errstate(over="ignore"):  # the largest number with fewer digits may be too large
            text = next(text for text in tries if dtype.type(float(text)) == dtype.type(value))
    return f"{text if mark or re.search('[.e]', text) else text + '.0'}{mark}"
