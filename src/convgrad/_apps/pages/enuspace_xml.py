"""Walking through XML that somebody else wrote: elements as they begin and end, within bounds.

The standard library's expat, without its doors: a document type is refused before anything in it is read, so there are
no entities to expand and no files to include. Nothing is kept but what the caller keeps.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pyexpat import ExpatError, ParserCreate, XMLParserType, errors
from typing import NoReturn

from ..._base.errors import ArgumentError

MOST_ELEMENTS = 1_000_000
DEEPEST = 200

_DECLARATION = re.compile(r"\s*<\?xml\s[^>]{0,1000}\?>")

Attributes = dict[str, str]


class ParserPosition:
    """Where the parser is: for messages."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.parser: XMLParserType | None = None

    @property
    def line(self) -> int:
        return 1 if self.parser is None else self.parser.CurrentLineNumber

    def __str__(self) -> str:
        return f"{self.where}: line {self.line}"


def walk(
    text: str,
    place: ParserPosition,
    begin: Callable[[str, Attributes], None],
    end: Callable[[str], None],
) -> None:
    """Call `begin` and `end` for every element, names without their prefix; `place` follows.

    >>> walk("<svg><use id='a'/></svg>", ParserPosition("x.svg"), lambda *given: print(*given), print)
    svg {}
    use {'id': 'a'}
    use
    svg
    """
    # The declaration names the encoding of the file, and this is text already. Lines keep their numbers.
    declared = _DECLARATION.match(text)
    if declared:
        text = "\n" * declared[0].count("\n") + text[declared.end() :]
    place.parser = parser = ParserCreate()
    seen = depth = 0

    def begun(name: str, attributes: Attributes) -> None:
        nonlocal seen, depth
        seen, depth = seen + 1, depth + 1
        if seen > MOST_ELEMENTS:
            raise ArgumentError(f"{place}: the file has more than {MOST_ELEMENTS} elements")
        if depth > DEEPEST:
            raise ArgumentError(f"{place}: elements are nested more than {DEEPEST} deep")
        begin(name if ":" not in name else name.rpartition(":")[2], attributes)

    def ended(name: str) -> None:
        nonlocal depth
        depth -= 1
        end(name if ":" not in name else name.rpartition(":")[2])

    def refused(*_: object) -> NoReturn:
        raise ArgumentError(f"{place}: a page has no document type (`<!DOCTYPE`) and no entities")

    parser.StartElementHandler = begun
    parser.EndElementHandler = ended
    parser.StartDoctypeDeclHandler = refused
    parser.EntityDeclHandler = refused
    parser.ExternalEntityRefHandler = refused
    try:
        parser.Parse(text, True)
    except ExpatError as error:
        reason = errors.messages.get(error.code, "a mistake")
        raise ArgumentError(
            f"{place.where}: line {error.lineno}, column {error.offset + 1}: not XML: {reason}"
        ) from None


def local(attributes: Attributes, name: str) -> str:
    """Return an attribute by its name without prefix, such as `href` of `xlink:href`; empty if there is none.

    >>> local({"xlink:href": "#Add"}, "href")
    '#Add'
    """
    if name in attributes:
        return attributes[name]
    return next((value for key, value in attributes.items() if key.rpartition(":")[2] == name), "")
