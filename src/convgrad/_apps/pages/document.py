"""Our own page file: JSON in UTF-8, versioned, every field checked as it is read.

::

    {"format": "convgrad-page", "version": 1, "name": "filter gradient",
     "blocks": [{"id": "x", "type": "Conv2D", "at": [40, 60], "pins": {"strides": "{1,2,2,1}", "padding": "SAME"}}],
     "wires": [{"from": ["x", "output"], "to": ["y", "features"]}]}

A pin is a text; or a tensor, `{"dtype", "shape", "data": [numbers]}` or `{"dtype", "shape", "base64": bytes}`, whose
bytes are little-endian; or a text with a type of enuSpace's, `{"text", "type", "shape", "missing"}`. Notes are not
written: they are about a reading.
"""

from __future__ import annotations

import json
import math
from typing import Any

from ..._base.errors import ArgumentError, shown
from .loading import decoded, is_number, json_of, kind_of
from .page import DIALECTS, Block, Page, Value, Wire
from .setting_texts import VAR_TYPES, nearest
from .symbols import note_unknown_pins
from .tensors import Misfit, tensor_from_json, tensor_json

FORMAT, VERSION = "convgrad-page", 1
MOST_BLOCKS = 100_000
MOST_WIRES = 1_000_000
_LARGEST_INDEX = 1_000_000


def read(data: bytes, where: str) -> Page:
    """Read a page file; `where` names it in messages.

    >>> page = read(b'{"format": "convgrad-page", "version": 1, "name": "p", "blocks": [], "wires": []}', "p.json")
    >>> page.name, page.dialect
    ('p', 'convgrad')
    """
    text, _ = decoded(data, where)
    return from_json(json_of(text, where), where)


def from_json(value: Any, where: str) -> Page:
    """Read a page from what JSON holds."""
    return _Reader(where).page(value)


def wire_from_json(value: Any, where: str, ids: set[str]) -> Wire:
    """Read one wire between blocks of these ids."""
    return _Reader(where).wire(value, "$", ids)


def value_from_json(value: Any, where: str) -> Value:
    """Read what stands on one pin."""
    return Value(value) if isinstance(value, str) else _Reader(where).value(value, "$")


class _Reader:
    """Checks that name the file and the place in it."""

    def __init__(self, where: str) -> None:
        self.where = where

    def wrong(self, place: str, expected: str, value: Any) -> ArgumentError:
        got = kind_of(value) if isinstance(value, dict | list) else shown(value)
        return ArgumentError(f"{self.where}: {place} must be {expected}, got {got}")

    def record(
        self, value: Any, place: str, needed: tuple[str, ...], also: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Return an object that has all names needed and no name unknown."""
        if not isinstance(value, dict):
            raise self.wrong(place, "an object", value)
        for name in value:
            if name not in needed and name not in also:
                hint = nearest(name, (*needed, *also)) or f"; known are {', '.join((*needed, *also))}"  # fmt: skip
                raise ArgumentError(f"{self.where}: {place} has the unknown name {shown(name)}{hint}")  # fmt: skip
        absent = [name for name in needed if name not in value]
        if absent:
            raise ArgumentError(f"{self.where}: {place} has no `{absent[0]}`")
        return value

    def list(self, value: Any, place: str, most: int) -> list[Any]:
        if not isinstance(value, list):
            raise self.wrong(place, "a list", value)
        if len(value) > most:
            raise ArgumentError(f"{self.where}: {place} has {len(value)} items; at most {most} are read")  # fmt: skip
        return value

    def text(self, value: Any, place: str) -> str:
        if not isinstance(value, str):
            raise self.wrong(place, "a text", value)
        return value

    def name(self, value: Any, place: str) -> str:
        if not isinstance(value, str) or not value or not value.isprintable():
            raise self.wrong(place, "a name: a text of one line, not empty", value)
        return value

    def flag(self, value: Any, place: str) -> bool:
        if not isinstance(value, bool):
            raise self.wrong(place, "true or false", value)
        return value

    def pair(self, value: Any, place: str) -> tuple[float, float]:
        if not isinstance(value, list) or len(value) != 2 or not all(map(is_number, value)):
            raise self.wrong(place, "two numbers [x, y]", value)
        return float(value[0]), float(value[1])

    def shape(self, value: Any, place: str) -> tuple[int, ...]:
        sizes = self.list(value, place, 32)
        for at, size in enumerate(sizes):
            if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size < 1 << 63:
                raise self.wrong(f"{place}[{at}]", "a whole number, 0 or more", size)
        return tuple(sizes)

    def page(self, value: Any) -> Page:
        if isinstance(value, dict) and value.get("format") != FORMAT:
            raise self.wrong("$.format", f'"{FORMAT}"', value.get("format"))
        version = value.get("version") if isinstance(value, dict) else VERSION
        if type(version) is not int or version != VERSION:
            raise self.wrong("$.version", f"{VERSION}", version)
        record = self.record(
            value, "$", ("format", "version", "name", "blocks"), ("wires", "size", "dialect")
        )
        page = Page(self.text(record["name"], "$.name"))
        if not page.name.isprintable():
            raise self.wrong("$.name", "a text of one line", page.name)
        page.dialect = record.get("dialect", DIALECTS[0])
        if page.dialect not in DIALECTS:
            raise self.wrong("$.dialect", f"one of {', '.join(DIALECTS)}", page.dialect)
        page.width, page.height = self.pair(record.get("size", [0, 0]), "$.size")
        ids: set[str] = set()
        for at, each in enumerate(self.list(record["blocks"], "$.blocks", MOST_BLOCKS)):
            block = self.block(each, f"$.blocks[{at}]")
            if block.id in ids:
                raise ArgumentError(
                    f"{self.where}: $.blocks[{at}].id: two blocks have the id {shown(block.id)}"
                )
            ids.add(block.id)
            page.blocks.append(block)
        for at, each in enumerate(self.list(record.get("wires", []), "$.wires", MOST_WIRES)):
            page.wires.append(self.wire(each, f"$.wires[{at}]", ids))
        note_unknown_pins(page)
        return page

    def block(self, value: Any, place: str) -> Block:
        record = self.record(value, place, ("id", "type"), ("at", "pins", "task"))
        block = Block(
            self.name(record["id"], f"{place}.id"), self.name(record["type"], f"{place}.type")
        )
        block.x, block.y = self.pair(record.get("at", [0, 0]), f"{place}.at")
        block.task = self.text(record.get("task", block.task), f"{place}.task")
        pins = record.get("pins", {})
        if not isinstance(pins, dict):
            raise self.wrong(f"{place}.pins", "an object", pins)
        for name, pin in pins.items():
            if isinstance(pin, str) and name and name.isprintable():  # nearly all, and quick
                block.pins[name] = Value(pin)
                continue
            inside = f"{place}.pins[{shown(name)}]"
            self.name(name, inside)
            block.pins[name] = Value(pin) if isinstance(pin, str) else self.value(pin, inside)
        return block

    def value(self, value: Any, place: str) -> Value:
        if not isinstance(value, dict):
            raise self.wrong(place, "a text or an object", value)
        if "text" in value or "type" in value:
            record = self.record(value, place, ("text", "type"), ("shape", "missing"))
            pin_type = self.text(record["type"], f"{place}.type")
            if pin_type not in VAR_TYPES:
                raise self.wrong(f"{place}.type", f"one of {', '.join(VAR_TYPES)}", pin_type)
            sizes = self.shape(record["shape"], f"{place}.shape") if "shape" in record else None
            missing = self.flag(record.get("missing", False), f"{place}.missing")
            text = self.text(record["text"], f"{place}.text")
            return Value(text, pin_type, sizes, missing=missing)
        record = self.record(value, place, ("dtype", "shape"), ("data", "base64"))
        dtype = self.text(record["dtype"], f"{place}.dtype")
        sizes = self.shape(record["shape"], f"{place}.shape")
        if ("data" in record) == ("base64" in record):
            raise ArgumentError(f"{self.where}: {place} must have either `data` or `base64`")
        try:
            form = "data" if "data" in record else "base64"
            array, pin_type = tensor_from_json(dtype, sizes, form, record[form])
        except Misfit as error:
            raise ArgumentError(f"{self.where}: {place}{error}") from None
        return Value("", pin_type, sizes, array)

    def wire(self, value: Any, place: str, ids: set[str]) -> Wire:
        record = self.record(value, place, ("from", "to"), ("hidden",))
        source, target = record["from"], record["to"]
        if not isinstance(source, list) or len(source) not in (2, 3):
            raise self.wrong(f"{place}.from", "[id, pin] or [id, pin, index]", source)
        if not isinstance(target, list) or len(target) != 2:
            raise self.wrong(f"{place}.to", "[id, pin]", target)
        for key, end in (("from", source), ("to", target)):
            for at in (0, 1):
                self.name(end[at], f"{place}.{key}[{at}]")
            if end[0] not in ids:
                hint = nearest(end[0], ids) if len(ids) <= 1000 else ""
                raise ArgumentError(f"{self.where}: {place}.{key}: no block is {shown(end[0])}{hint}")  # fmt: skip
        index = source[2] if len(source) == 3 else None
        if index is not None and (
            isinstance(index, bool)
            or not isinstance(index, int)
            or not 0 <= index <= _LARGEST_INDEX
        ):
            raise self.wrong(f"{place}.from[2]", "a whole number, 0 or more", index)
        hidden = self.flag(record.get("hidden", False), f"{place}.hidden")
        return Wire(source[0], source[1], index, target[0], target[1], hidden)


def write(page: Page) -> str:
    """Write a page file: one block and one wire per line, the same text for the same page.

    >>> print(write(Page("p", [Block("x", "Relu", {"features": Value("1")}, 40.0, 60.5)])))
    {"format": "convgrad-page", "version": 1, "name": "p",
     "blocks": [
      {"id": "x", "type": "Relu", "at": [40, 60.5], "pins": {"features": "1"}}
     ],
     "wires": []}
    <BLANKLINE>
    """
    head: dict[str, Any] = {"format": FORMAT, "version": VERSION, "name": page.name}
    if page.dialect != DIALECTS[0]:
        head["dialect"] = page.dialect
    if page.width or page.height:
        head["size"] = _pair(page.width, page.height)
    lists = {
        "blocks": [_line(_block_json(block)) for block in page.blocks],
        "wires": [_line(_wire_json(wire)) for wire in page.wires],
    }
    parts = [_line(head)[:-1]]
    for name, lines in lists.items():
        inside = "[\n  " + ",\n  ".join(lines) + "\n ]" if lines else "[]"
        parts.append(f' "{name}": {inside}')
    return ",\n".join(parts) + "}\n"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _block_json(block: Block) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": block.id,
        "type": block.symbol,
        "at": _pair(block.x, block.y),
    }
    if block.task != Block.task:
        found["task"] = block.task
    found["pins"] = {name: _value_json(value) for name, value in block.pins.items()}
    return found


def _value_json(value: Value) -> Any:
    if value.array is not None:
        return tensor_json(value.array)
    if value.type == "string" and value.shape is None and not value.missing:
        return value.text
    found: dict[str, Any] = {"text": value.text, "type": value.type}
    if value.shape is not None:
        found["shape"] = list(value.shape)
    if value.missing:
        found["missing"] = True
    return found


def _wire_json(wire: Wire) -> dict[str, Any]:
    index = [] if wire.source_index is None else [wire.source_index]
    found: dict[str, Any] = {
        "from": [wire.source, wire.source_pin, *index],
        "to": [wire.target, wire.target_pin],
    }
    if wire.hidden:
        found["hidden"] = True
    return found


def _pair(x: float, y: float) -> list[float]:
    if not (math.isfinite(x) and math.isfinite(y)):
        raise ArgumentError(f"write: a position must be finite, got [{x}, {y}]")
    return [int(v) if v.is_integer() and abs(v) < 1 << 53 else v for v in (float(x), float(y))]
