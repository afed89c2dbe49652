"""enuSpace's pages: SVG in UTF-16, in two dialects, read as blocks, pins and wires.

What is only drawing (texts, plots, scripts, colours, the course of wires) is passed over. Version 3 and 4 differ in the
names of attributes and in how arrays are written; both spellings are taken everywhere, as mixed pages exist.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from ..._base.errors import ArgumentError, shown
from .enuspace_dat import Store, stored_shape
from .enuspace_xml import Attributes, ParserPosition, local, walk
from .loading import decoded, page_name
from .page import Block, Page, Value, Wire, split_index
from .setting_texts import VAR_TYPES
from .symbols import fill_missing

_REAL = r"[+-]?(?:[0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?"
_TRANSLATE = re.compile(rf"translate\(\s*({_REAL})(?:[\s,]+({_REAL}))?\s*\)")
_LENGTH = re.compile(rf"\s*({_REAL})\s*(?:px)?\s*")
_PIN = re.compile(r"#?([^\[\]#]+)((?:\[[^\[\]]*\])*)")


def read_svg(data: bytes, where: str, path: Path | None = None) -> Page:
    """Read a page; `path` is where it lies, for its name and the `.dat` beside it.

    >>> text = '<svg enuspace-version="4.0.1"><use id="A" type="tensorflow" xlink:href="#Relu"/></svg>'
    >>> page = read_svg(text.encode("utf-16"), "x.svg")
    >>> page.dialect, page.blocks[0].symbol
    ('enuspace-4', 'Relu')
    """
    text, encoding = decoded(data, where)
    with Store(path) as store:
        reader = _Reader(where, page_name(path or Path(where)), store)
        walk(text, reader.place, reader.begin, reader.end)
    page = reader.finished()
    if encoding != "UTF-16":
        page.note(None, f"the file is {encoding}; enuSpace writes UTF-16 with a byte order mark")
    if path is not None and path.parent.name == "web":
        page.note(None, "the folder `web` holds exports for browsers, without wires and values")
    return page


class _Reader:
    """What has been seen so far."""

    def __init__(self, where: str, name: str, store: Store) -> None:
        self.place = ParserPosition(where)
        self.page = Page(name, dialect="enuspace-3")
        self.blocks: dict[str, Block] = {}
        self.store = store
        self.open: list[tuple[float, float, bool]] = []
        """Of every open element: where it begins, and whether it is hidden."""
        self.current: list[Block | None] = []
        """The `use` elements that are open; None for one that was passed over."""
        self.symbols = 0
        """How many `defs` and `symbol` elements are open: what is in them is not part of the page."""
        self.project: list[str] | None = None
        """The pages of a project, if this is one."""

    def begin(self, name: str, attributes: Attributes) -> None:
        if not self.open:
            self._root(name, attributes)
        x, y, hidden = self.open[-1] if self.open else (0.0, 0.0, False)
        if "transform" in attributes:
            found = _TRANSLATE.search(attributes["transform"][:1000])
            if found:
                x, y = x + float(found[1]), y + float(found[2] or 0)
        self.open.append((x, y, attributes.get("visibility") == "hidden"))
        if name in ("defs", "symbol"):
            self.symbols += 1
        elif self.symbols:
            return
        elif name == "use":
            self._block(attributes, x, y)
        elif name == "pg-set-pin":
            self._pin(attributes)
        elif name == "pg-link":
            self._wire(attributes, hidden)
        elif name == "pg-picture" and self.project is not None:
            self.project.append(local(attributes, "href"))

    def end(self, name: str) -> None:
        self.open.pop()
        if name in ("defs", "symbol"):
            self.symbols -= 1
        elif name == "use" and not self.symbols:
            self.current.pop()

    def _root(self, name: str, attributes: Attributes) -> None:
        if name != "svg":
            raise ArgumentError(f"{self.place}: a page begins with `svg`, got `{name[:50]}`")
        if "pg-libraryname" in attributes:
            raise ArgumentError(f"{self.place}: this is a library of symbols, not a page")
        if attributes.get("pg-classname") == "project":
            self.project = []
        version = attributes.get("enuspace-version", "")
        if version.startswith("4"):
            self.page.dialect = "enuspace-4"
        elif not version.startswith("3"):
            self.page.note(
                None, f"`enuspace-version` is {shown(version)}, neither 3 nor 4; it is read as both"
            )
        self.page.width = _length(attributes.get("width", ""))
        self.page.height = _length(attributes.get("height", ""))

    def _block(self, attributes: Attributes, x: float, y: float) -> None:
        id, task = attributes.get("id", ""), attributes.get("type", "")
        symbol = local(attributes, "href").removeprefix("#")
        x, y = x + _length(attributes.get("x", "")), y + _length(attributes.get("y", ""))
        block = Block(id, symbol, {}, _finite(x), _finite(y), task)
        for what, word in (("id", id), ("xlink:href", symbol)):
            if word and word.isprintable() and (block.in_graph or id not in self.blocks):
                continue
            if block.in_graph:
                raise ArgumentError(
                    f"{self.place}: a block's `{what}` must be a name, got {shown(word)}"
                )
            lost = f"a block of {shown(task)} without an id or symbol of its own is dropped"
            self.page.note(None, f"{lost} (line {self.place.line})")
            self.current.append(None)
            return
        if id in self.blocks:
            raise ArgumentError(f"{self.place}: two blocks have the id {shown(id)}")
        self.blocks[id] = block
        self.page.blocks.append(block)
        self.current.append(block)

    def _pin(self, attributes: Attributes) -> None:
        block = self.current[-1] if self.current else None
        if block is None:
            return
        found = _PIN.fullmatch(attributes.get("variable", "").strip())
        if found is None or not found[1].isprintable():
            self.page.note(block.id, f"a pin named {shown(attributes.get('variable', ''))} is dropped")  # fmt: skip
            return
        name = found[1]
        if name in block.pins:
            self.page.note(block.id, f"pin `{name}` is there twice; the first one counts")
            return
        type = attributes.get("var-type") or attributes.get("type") or "string"
        if type not in VAR_TYPES:
            self.page.note(
                block.id, f"pin `{name}`: the unknown type {shown(type)} is read as string"
            )
            type = "string"
        sizes = stored_shape(self.page, block, name, type, attributes.get("shape", found[2]))
        if attributes.get("save-type") == "binary":
            block.pins[name], trouble = self.store.fetch(
                type, sizes, attributes.get("binary-pos", "")
            )
            if trouble:
                self.page.note(block.id, f"pin `{name}`: {trouble}")
            return
        block.pins[name] = Value(attributes.get("value", ""), type, sizes)

    def _wire(self, attributes: Attributes, hidden: bool) -> None:
        words = [
            attributes.get(name, "") for name in ("from-id", "param-from", "to-id", "param-to")
        ]
        if not all(word and word.isprintable() for word in words):
            lost = f"a wire from {shown(words[0])} to {shown(words[2])} without two ends is dropped"
            self.page.note(None, f"{lost} (line {self.place.line})")
            return
        source, source_pin, target, target_pin = words
        pin, index = split_index(source_pin.removeprefix("#"))
        hidden = hidden or attributes.get("hidden") == "true"
        self.page.wires.append(
            Wire(source, pin, index, target, target_pin.removeprefix("#"), hidden)
        )

    def finished(self) -> Page:
        """Return the page: wires have two ends, and blocks all their pins."""
        page = self.page
        if self.project is not None:
            names = ", ".join(shown(name) for name in self.project[:20]) or "none"
            raise ArgumentError(f"{self.place.where}: this is a project; open one of its pages: {names}")  # fmt: skip
        drop_loose_wires(page)
        if not page.blocks:
            page.note(None, "there are no blocks: a drawing, or an export for browsers (`web`)")
        elif len(page.blocks) > 1 and not page.wires:
            page.note(None, "there are no wires: an export for browsers (`web`) has lost them")
        fill_missing(page)
        return page


def drop_loose_wires(page: Page) -> None:
    """Drop wires whose blocks are not on the page, with a note each."""
    known = {block.id for block in page.blocks}
    kept = []
    for wire in page.wires:
        absent = next((id for id in (wire.source, wire.target) if id not in known), None)
        if absent is None:
            kept.append(wire)
        else:
            ends = f"{wire.source}.{wire.source_pin} to {wire.target}.{wire.target_pin}"
            page.note(None, f"the wire from {shown(ends)} is dropped: no block is {shown(absent)}")
    page.wires = kept


def _length(text: str) -> float:
    found = _LENGTH.fullmatch(text)
    return _finite(float(found[1])) if found else 0.0


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0
