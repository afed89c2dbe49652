"""Bytes to text to JSON, with bounds: what every reader of page files needs first."""

from __future__ import annotations

import codecs
import json
import math
import re
from pathlib import Path
from typing import Any, NoReturn

from ..._base.errors import ArgumentError, said, shown

MOST_BYTES = 256 << 20
"""Of a page file."""
MOST_LISTS = 2_000_000
"""Lists and objects of a JSON file. An empty list is 3 bytes in the file and 64 in memory."""
MOST_COMMAS = 1 << 25

_LARGEST = 1 << 1000
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""The escape of half a character of UTF-16."""


def decoded(data: bytes, where: str) -> tuple[str, str]:
    """Decode a file: UTF-16 by its byte order mark, else UTF-8. Return the text and the encoding's name.

    >>> decoded("page".encode("utf-16"), "x.svg"), decoded(b"page", "x.svg")
    (('page', 'UTF-16'), ('page', 'UTF-8'))
    """
    if len(data) > MOST_BYTES:
        raise ArgumentError(f"{where}: the file has {len(data)} bytes, more than {MOST_BYTES}")
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise ArgumentError(f"{where}: the file is UTF-32; expected UTF-16 or UTF-8")
    encoding = "UTF-8"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "UTF-16"
    elif data[:1] == b"\0" or data[1:2] == b"\0":
        raise ArgumentError(f"{where}: the file is neither UTF-8 nor UTF-16 with a byte order mark")
    try:
        text = data.decode("utf-16" if encoding == "UTF-16" else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise ArgumentError(
            f"{where}: the file is not {encoding}: {error.reason} at byte {error.start}"
        ) from None
    if text.startswith("\ufeff"):
        text = text[1:]
    return text, encoding


def json_of(text: str, where: str) -> Any:
    """Parse JSON: no names twice in an object, no NaN, no text that asks for much more memory than it takes.

    >>> json_of('{"a": [1, 2.5]}', "x.json")
    {'a': [1, 2.5]}
    """
    if text.count("[") + text.count("{") > MOST_LISTS or text.count(",") > MOST_COMMAS:
        raise ArgumentError(
            f"{where}: the file has more than {MOST_LISTS} lists and objects or {MOST_COMMAS} items"
        )

    def refuse(word: str) -> NoReturn:
        raise ArgumentError(f"{where}: {word} is not a number in JSON")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            seen: set[str] = set()
            name = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            raise ArgumentError(f"{where}: an object has the name {shown(name)} twice")
        return found

    try:
        value = json.loads(text, parse_constant=refuse, object_pairs_hook=once)
        if _HALF.search(text):
            _refuse_halves(value)
        return value
    except json.JSONDecodeError as error:
        raise ArgumentError(
            f"{where}: line {error.lineno}, column {error.colno}: not JSON: {error.msg}"
        ) from None
    except RecursionError:
        raise ArgumentError(f"{where}: lists and objects are nested too deeply") from None
    except ArgumentError:
        raise
    except ValueError as error:  # an integer of thousands of digits, half a character
        raise ArgumentError(f"{where}: {said(error)}") from None


def _refuse_halves(value: Any) -> None:
    """Refuse texts with half a character: JSON can spell them, and nothing can print them."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting += [*each, *each.values()]
        elif isinstance(each, list):
            waiting += each
        elif isinstance(each, str):
            each.encode()


def page_name(path: Path) -> str:
    """Name a page after its file; a name that no line can show is spelt as Python does.

    >>> page_name(Path("pages/basic.svg"))
    'basic'
    """
    return path.stem if path.stem.isprintable() else shown(path.stem)


def kind_of(value: Any) -> str:
    """Name what a value is in JSON, for messages.

    >>> kind_of([]), kind_of(None), kind_of(1.5)
    ('a list', 'null', 'a number')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    kinds = ((dict, "an object"), (list, "a list"), (str, "a text"), (int | float, "a number"))
    return next(name for kind, name in kinds if isinstance(value, kind))


def is_number(value: Any) -> bool:
    """Return whether a value of JSON is a number that a double holds; `1e999` is infinite, and true is 1."""
    if type(value) is float:
        return math.isfinite(value)
    return type(value) is int and abs(value) < _LARGEST
