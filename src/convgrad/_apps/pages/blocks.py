"""What every block of a page has: pins, defaults, outputs.

On our pages a block is an op: its inputs take wires or literals, its required attributes are pins with texts, the
others stand together on the pin `attrs`. A few blocks are not ops: lists, gradients, sessions.
"""

from __future__ import annotations

from ..graph.row import Attr, OpRow
from ..graph.table import TABLE
from . import symbols
from .page import Block
from .setting_texts import attributes_text
from .symbols import (
    ATTRS,
    DTYPE,
    INITIAL,
    INTS,
    LITERAL,
    LITERALS,
    PADDING,
    SHAPE,
    TEXT,
    WIRE,
    Pin,
    Symbol,
)

_KINDS = {"type": DTYPE, "shape": SHAPE, "ints": INTS, "string": TEXT, "tensor": INITIAL}
_DEFAULTS = {
    "strides": "1,1,1,1",
    "ksize": "1,2,2,1",
    "padding": "SAME",
    "dtype": "DT_FLOAT",
    "DstT": "DT_FLOAT",
    "shape": "{2,2}",
}
"""What a new block starts with."""
_PAGE_ONLY = ("AddSymbolicGradients", "ClientSession", "Const_ex", "InputList", "Operation")


def _attr_pin(attr: Attr) -> Pin:
    kind = PADDING if attr.name == "padding" else _KINDS[attr.kind]
    return Pin(attr.name, kind, _DEFAULTS.get(attr.name, ""))


def _of_row(row: OpRow) -> Symbol:
    if row.name == "Const":
        return Symbol("Const", (Pin("val", INITIAL, "0"),), ("output",))
    pins = [Pin(pin.name, LITERALS if pin.many else LITERAL) for pin in row.inputs]
    pins += [_attr_pin(attr) for attr in row.required]
    attrs = {f"{attr.name}_": attr.kind for attr in row.optional}
    if row.name == "Variable":
        pins.append(Pin("initvalues", INITIAL, "0"))
    if row.name == "Placeholder":
        pins.append(Pin("value", INITIAL))
    if attrs:
        set_ = {f"{a.name}_": a.default for a in row.optional if a.default not in (None, "", ())}
        pins.append(Pin("attrs", ATTRS, attributes_text(set_)))
    return Symbol(row.name, tuple(pins), row.outputs, attrs)


OURS: dict[str, Symbol] = {
    **{name: _of_row(row) for name, row in TABLE.items()},
    **{name: symbols.SYMBOLS[name] for name in _PAGE_ONLY},
    "RandomNormal_ex": symbols.SYMBOLS["RandomNormal_ex"],
    "GradientCheck": Symbol(
        "GradientCheck",
        (Pin("y", WIRE), Pin("x", WIRE), Pin("epsilon", TEXT, "1e-3")),
        ("largest_difference", "analytic", "numeric"),
    ),
    "Loop": Symbol("Loop", (Pin("loss", WIRE), Pin("steps", TEXT, "100"))),
}
"""The blocks of our pages."""


def symbol_of(block: Block, dialect: str) -> Symbol | None:
    """Return what is known of a block's symbol in the dialect of its page; None for what nobody knows."""
    if dialect == "convgrad":
        return OURS.get(block.symbol) or symbols.find(block.symbol)
    return symbols.find(block.symbol) or OURS.get(block.symbol)
