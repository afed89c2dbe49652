"""A page as a picture: one SVG file that stands alone, light or dark as its reader prefers.

No scripts, and nothing is fetched. Every text comes from a page and is escaped; what XML cannot hold is replaced.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from html import escape

import numpy as np

from ..._base.dtypes import AnyArray
from ..._base.errors import ArgumentError
from ..graph.operation import Output
from ..graph.spec import Spec
from ..graph.table import TABLE
from .layout import HEAD, MARGIN, PIN, WIDTH, Sides, sides_of
from .page import Block, Page, Value, Wire
from .symbols import find

Results = Mapping[tuple[str, str], "Spec | Output | AnyArray"]
"""What is known of a block's output pin, by id and pin: a spec, a tensor of a graph, or numbers."""

_INVALID = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TITLE, _LONG_TITLE, _PIN_CHARACTERS = 17, 27, 25
"""Characters that a block has room for: in its title, in a title of smaller letters, in a line of its own."""
_LINE = 15.0
_LIGHT = ("#ffffff", "#1f2933", "#697586", "#f4f7fb", "#7b8ba1", "#dbe7f5", "#4f7cac", "#b3261e")
_DARK = ("#14181d", "#e6ebf1", "#97a3b3", "#1f262e", "#5d6b7d", "#2b3a4b", "#7fb0e6", "#ff8a80")
# Colours as they are, twice, instead of CSS variables: half of the programs that show SVG do not know those.
_COLOURS = """
  .back {{ fill: {0}; }} text {{ fill: {1}; }} .id, .typed, .shape {{ fill: {2}; }} .box {{ fill: {3}; stroke: {4}; }}
  .head {{ fill: {5}; }} .pin {{ fill: {6}; }} .wire {{ stroke: {6}; }} .shape {{ stroke: {0}; }}
  .refused .box, .noted .box {{ stroke: {7}; }} .mark, .note {{ fill: {7}; }}
"""
_STYLE = f"""
  text {{ font-family: "DejaVu Sans", Verdana, sans-serif; font-size: 10px; }}
  .title {{ font-size: 11px; }} .long {{ font-size: 7.5px; }} .title, .long {{ font-weight: bold; }}
  .id {{ font-size: 9px; }} .typed, .shape {{ font-size: 8.5px; }}
  .shape {{ stroke-width: 3px; paint-order: stroke; }} .wire {{ fill: none; stroke-width: 1.5px; }}
  .hidden {{ stroke-dasharray: 4 3; }} .refused .box, .noted .box {{ stroke-width: 1.5px; }}
  .refused .box {{ stroke-dasharray: 5 3; }} .mark {{ font-size: 12px; font-weight: bold; }}
{_COLOURS.format(*_LIGHT)}
  @media (prefers-color-scheme: dark) {{ {_COLOURS.format(*_DARK)} }}
"""


def svg_of(page: Page, results: Results | None = None) -> str:
    """Return a page as SVG.

    Blocks are boxes with pins left and right and what was typed on them; wires are curves. With `results`, wires say
    dtype and shape, and the value of a single number. Blocks that are not computed have a broken red line, those that
    a note is about a red one; the notes themselves stand below the page.

    >>> print(svg_of(Page("empty")).partition("<style>")[0])
    <svg xmlns="http://www.w3.org/2000/svg" width="80" height="80" viewBox="0 0 80 80" role="img">
    <title>empty</title>
    <BLANKLINE>
    """
    return _Picture(page, results or {}).written()


def escaped(text: str) -> str:
    r"""Escape a text for XML, between tags and inside quotation marks.

    >>> escaped('<a b="c">\x00')
    '&lt;a b=&quot;c&quot;&gt;�'
    """
    return escape(_INVALID.sub("\ufffd", text))


def _short(text: str, most: int) -> str:
    plain = " ".join(text[: 4 * most].split())
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def _ends(text: str, most: int) -> str:
    """Shorten in the middle: names that are long differ at their ends.

    >>> _ends("DepthwiseConv2dNativeBackpropFilter", 27)
    'DepthwiseConv…ackpropFilter'
    """
    plain = _short(text, 400)
    half = (most - 1) // 2
    return plain if len(plain) <= most else f"{plain[:half]}…{plain[-half:]}"


def _n(value: float) -> str:
    return f"{round(value, 2):g}" if abs(value) < 1e5 else f"{round(value, 2)!r}"


class _Picture:
    def __init__(self, page: Page, results: Results) -> None:
        for block in page.blocks:
            if not (math.isfinite(block.x) and math.isfinite(block.y)):
                raise ArgumentError(
                    f"svg_of: the position of block {block.id!r} must be finite, got {block.x}, {block.y}."
                )
        self.page, self.results = page, results
        self.blocks = page.by_id()
        self.sides = sides_of(page)
        self.labels: dict[str, None] = {}
        """Shapes on wires, each once, in order; drawn last, so that nothing hides them."""
        self.noted: dict[str | None, list[str]] = {}
        for note in page.notes:
            self.noted.setdefault(note.block, []).append(note.text)

    def written(self) -> str:
        page = self.page
        boxes = [(each.x, each.y, self.sides[each.id].height) for each in page.blocks]
        left = min([0.0, *(x - MARGIN for x, _, _ in boxes)])
        top = min([0.0, *(y - MARGIN for _, y, _ in boxes)])
        right = max([0.0, *(x + WIDTH for x, _, _ in boxes)]) + MARGIN
        bottom = max([0.0, *(y + height for _, y, height in boxes)]) + MARGIN
        if not boxes:
            right, bottom = 2 * MARGIN, 2 * MARGIN
        notes = [str(note) for note in page.notes]
        if notes:
            right = max(
                right, left + 6 * max(len(_short(note, 200)) for note in notes) + 2 * MARGIN
            )
        lines = [self.wire(wire) for wire in page.wires]
        lines += [self.block(block) for block in page.blocks]
        lines += self.labels
        for note in notes:
            lines.append(
                f'<text class="note" x="{_n(left + MARGIN)}" y="{_n(bottom)}">{escaped(_short(note, 200))}</text>'
            )
            bottom += _LINE
        size = f'width="{_n(right - left)}" height="{_n(bottom - top)}"'
        box = " ".join(map(_n, (left, top, right - left, bottom - top)))
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="{box}" role="img">'
        back = f'<rect class="back" x="{_n(left)}" y="{_n(top)}" {size}/>'
        style = f"<style>{_STYLE}</style>"
        return "\n".join(
            [head, f"<title>{escaped(page.name)}</title>", style, back, *lines, "</svg>", ""]
        )

    def wire(self, wire: Wire) -> str:
        """Draw a curve that leaves to the right and comes from the left."""
        begin = self.anchor(wire.source, wire.source_pin, right=True)
        end = self.anchor(wire.target, wire.target_pin, right=False)
        if begin is None or end is None:
            return ""  # an end that is not on the page
        (x, y), (to_x, to_y) = begin, end
        bend = max(30.0, abs(to_x - x) / 2)
        numbers = " ".join(map(_n, (x + bend, y, to_x - bend, to_y, to_x, to_y)))
        kind = "wire hidden" if wire.hidden else "wire"
        path = f'<path class="{kind}" d="M {_n(x)} {_n(y)} C {numbers}"/>'
        known = self.known(wire)
        if known:  # at the source, where wires of one output share it
            self.labels[_text("shape", x + 6, y - 4, known)] = None
        return path

    def known(self, wire: Wire) -> str:
        pin = wire.source_pin
        if wire.source_index is not None:
            pin = f"{pin}[{wire.source_index}]"
        found = self.results.get((wire.source, pin))
        if found is None:
            return ""
        if isinstance(found, Output):
            found = found.spec
        if isinstance(found, Spec):
            return str(found)
        array = np.asarray(found)
        text = str(Spec(array.dtype, array.shape))
        return f"{text} = {array.reshape(())[()]}" if array.size == 1 else text

    def anchor(self, id: str, pin: str, right: bool) -> tuple[float, float] | None:
        block, sides = self.blocks.get(id), self.sides.get(id)
        if block is None or sides is None:
            return None
        names = sides.right if right else sides.left
        return block.x + (WIDTH if right else 0), block.y + _middle(names.index(pin))

    def block(self, block: Block) -> str:
        sides = self.sides[block.id]
        computed = is_computed(block)
        kind = "block" if computed else "block refused"
        if block.id in self.noted:
            kind += " noted"
        hover = f"{block.symbol} {block.id}" + ("" if computed else " (not computed)")
        notes = self.noted.get(block.id, [])
        box = f'width="{_n(WIDTH)}" height="{_n(sides.height)}" rx="7"'
        parts = [
            f'<g class="{kind}" transform="translate({_n(block.x)} {_n(block.y)})">',
            f"<title>{escaped(chr(10).join([hover, *notes]))}</title>",
            f'<rect class="box" {box}/>',
            f'<path class="head" d="M 1 {_n(HEAD - 2)} V 7 Q 1 1 7 1 H {_n(WIDTH - 7)} '
            f'Q {_n(WIDTH - 1)} 1 {_n(WIDTH - 1)} 7 V {_n(HEAD - 2)} Z"/>',
            _text(
                "long" if len(block.symbol) > _TITLE else "title",
                8,
                13,
                _ends(block.symbol, _LONG_TITLE),
            ),
            _text("id", 8, 24, _ends(block.id, _PIN_CHARACTERS)),
        ]
        if not computed or block.id in self.noted:
            parts.append(_text("mark", WIDTH - 6, 25, "!", "end"))
        parts += self.pins(block, sides)
        return "".join([*parts, "</g>"])

    def pins(self, block: Block, sides: Sides) -> list[str]:
        parts = []
        for at, name in enumerate(sides.left):
            y = _middle(at)
            typed = _typed(block.pins.get(name))
            room = (
                _PIN_CHARACTERS
                - 2
                - len(name)
                - (len(sides.right[at]) if at < len(sides.right) else 0)
            )
            shown = f'<tspan class="typed" dx="5">{escaped(_short(typed, max(room, 4)))}</tspan>'
            parts.append(
                f'<circle class="pin" cx="0" cy="{_n(y)}" r="3"/><text x="8" y="{_n(y + 3.5)}">'
                f"{escaped(_short(name, _PIN_CHARACTERS))}{shown if typed else ''}</text>"
            )
        for at, name in enumerate(sides.right):
            y = _middle(at)
            parts.append(f'<circle class="pin" cx="{_n(WIDTH)}" cy="{_n(y)}" r="3"/>')
            parts.append(_text("out", WIDTH - 8, y + 3.5, _short(name, _TITLE), "end"))
        return parts


def is_computed(block: Block) -> bool:
    """Return whether we know what a block does.

    >>> is_computed(Block("a", "Relu")), is_computed(Block("b", "FIFOQueue")), is_computed(Block("c", "Conv9D"))
    (True, False, False)
    """
    symbol = find(block.symbol)
    known = block.symbol in TABLE if symbol is None else symbol.computed
    return known and block.in_graph


def _middle(at: int) -> float:
    return HEAD + PIN * (at + 0.5)


def _typed(value: Value | None) -> str:
    """Return what stands on a pin: its text, or dtype and shape of numbers."""
    if value is None:
        return ""
    if value.array is None:
        return "missing" if value.missing else value.text
    array = value.array
    if array.size == 1:
        return str(array.reshape(())[()])
    return str(Spec(array.dtype, array.shape))


def _text(kind: str, x: float, y: float, text: str, anchor: str = "") -> str:
    end = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text class="{kind}" x="{_n(x)}" y="{_n(y)}"{end}>{escaped(text)}</text>'
