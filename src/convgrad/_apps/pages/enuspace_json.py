"""What enuSpace's plug-in loads: JSON with the blocks of a page in the order they are made, wires at their targets.

It has no positions, so blocks are put in columns, each to the right of what it needs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..._base.errors import ArgumentError, shown
from .enuspace_dat import Store, stored_shape
from .enuspace_svg import drop_loose_wires
from .loading import decoded, json_of, kind_of, page_name
from .page import Block, Page, Value, Wire, split_index
from .setting_texts import VAR_TYPES
from .symbols import fill_missing

MOST_BLOCKS = 100_000
_COLUMN, _ROW = 180.0, 150.0
"""Blocks of enuSpace are 100 to 185 wide and 60 to 130 high."""


def read_enuspace_json(data: bytes, where: str, path: Path | None = None) -> Page:
    """Read a page; `path` is where it lies, for its name and the `.dat` beside it.

    >>> page = read_enuspace_json(b'{"object": [{"symbol-name": "#Relu", "id": "A", "input": []}]}', "x.json")
    >>> page.dialect, page.blocks[0].symbol
    ('enuspace-json', 'Relu')
    """
    text, _ = decoded(data, where)
    return from_json(json_of(text, where), where, path)


def from_json(value: Any, where: str, path: Path | None = None) -> Page:
    """Read a page from what JSON holds."""
    reader = _Reader(where, page_name(path or Path(where)))
    objects = reader.list_of(reader.object_of(value, "$").get("object"), "$.object")
    if len(objects) > MOST_BLOCKS:
        raise ArgumentError(f"{where}: $.object has more than {MOST_BLOCKS} blocks")
    with Store(path) as store:
        for at, each in enumerate(objects):
            reader.block(each, f"$.object[{at}]", store)
    drop_loose_wires(reader.page)
    _place(reader.page)
    fill_missing(reader.page)
    return reader.page


class _Reader:
    """What has been read so far, and checks that name the place in the file."""

    def __init__(self, where: str, name: str) -> None:
        self.where = where
        self.page = Page(name, dialect="enuspace-json")
        self.ids: set[str] = set()

    def refused(self, place: str, expected: str, value: Any) -> ArgumentError:
        got = kind_of(value) if isinstance(value, dict | list) else shown(value)
        return ArgumentError(f"{self.where}: {place} must be {expected}, got {got}")

    def object_of(self, value: Any, place: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.refused(place, "an object", value)
        return value

    def list_of(self, value: Any, place: str) -> list[Any]:
        if not isinstance(value, list):
            raise self.refused(place, "a list", value)
        return value

    def word(self, record: dict[str, Any], key: str, place: str, needed: bool = False) -> str:
        """Return a text of an object; a number is taken as its text, and what is not there is empty."""
        value = record.get(key, "")
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = shown(value)
        if not isinstance(value, str):
            raise self.refused(f"{place}[{shown(key)}]", "a text", value)
        if needed and not (value and value.isprintable()):
            raise self.refused(f"{place}[{shown(key)}]", "a name", value)
        return value

    def block(self, value: Any, place: str, store: Store) -> None:
        record = self.object_of(value, place)
        id = self.word(record, "id", place, needed=True)
        symbol = self.word(record, "symbol-name", place, needed=True).removeprefix("#")
        if id in self.ids:
            raise ArgumentError(f"{self.where}: {place}: two blocks have the id {shown(id)}")
        self.ids.add(id)
        block = Block(id, symbol)
        self.page.blocks.append(block)
        for key in ("input", "output"):
            pins = self.list_of(record.get(key, []), f"{place}.{key}")
            for at, pin in enumerate(pins):
                self.pin(block, pin, f"{place}.{key}[{at}]", key == "input", store)

    def pin(self, block: Block, value: Any, place: str, is_input: bool, store: Store) -> None:
        record = self.object_of(value, place)
        name = self.word(record, "pin-name", place, needed=True).removeprefix("#")
        source = self.word(record, "in-symbol-id", place)
        if is_input and source:
            self.word(record, "in-symbol-id", place, needed=True)
            pin = self.word(record, "in-symbol-pin-name", place, needed=True)
            source_pin, index = split_index(pin.removeprefix("#"))
            self.page.wires.append(Wire(source, source_pin, index, block.id, name))
        if name in block.pins:
            if not (is_input and source):  # a list with n wires is there n times
                self.page.note(block.id, f"pin `{name}` is there twice; the first one counts")
            return
        type = self.word(record, "pin-type", place) or "string"
        if type not in VAR_TYPES:
            self.page.note(
                block.id, f"pin `{name}`: the unknown type {shown(type)} is read as string"
            )
            type = "string"
        sizes = stored_shape(self.page, block, name, type, self.word(record, "pin-shape", place))
        if self.word(record, "pin-save", place) == "binary":
            position = self.word(record, "pin-binary-pos", place)
            block.pins[name], trouble = store.fetch(type, sizes, position)
            if trouble:
                self.page.note(block.id, f"pin `{name}`: {trouble}")
            return
        block.pins[name] = Value(self.word(record, "pin-initial", place), type, sizes)


def _place(page: Page) -> None:
    """Put every block one column right of its sources; those of a column below each other."""
    sources: dict[str, list[str]] = {}
    for wire in page.wires:
        sources.setdefault(wire.target, []).append(wire.source)
    columns: dict[str, int] = {}
    filled: dict[int, int] = {}
    for block in page.blocks:  # sources come first in these files; a wire backwards counts as none
        column = 1 + max((columns.get(id, -1) for id in sources.get(block.id, [])), default=-1)
        columns[block.id] = column
        row = filled.get(column, 0)
        filled[column] = row + 1
        block.x, block.y = 40.0 + _COLUMN * column, 40.0 + _ROW * row
    page.width = 40.0 + _COLUMN * (1 + max(filled, default=0))
    page.height = 40.0 + _ROW * max(filled.values(), default=1)
