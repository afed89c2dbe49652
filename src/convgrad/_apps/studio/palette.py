"""The blocks there are, for the palette and the forms of the page: names, pins, settings, choices."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..graph import dtypes
from ..graph.row import Attr, OpRow
from ..graph.table import GROUPS, TABLE
from ..pages import symbols
from ..pages.blocks import OURS
from ..pages.setting_texts import attributes_text
from ..pages.symbols import Pin, Symbol

DTYPES = list(dtypes.BY_NAME)
_KINDS = {
    symbols.SHAPE: "shape",
    symbols.DTYPE: "type",
    symbols.INTS: "ints",
    symbols.PADDING: "padding",
    symbols.TRUTH: "text",
    symbols.TEXT: "text",
    symbols.INITIAL: "tensor",
}
_WIRED = (symbols.WIRE, symbols.WIRES, symbols.LITERAL, symbols.LITERALS)
_PAGE_GROUP = {"Const_ex": "sources", "RandomNormal_ex": "sources", "InputList": "arrays"}
"""Of blocks that are not ops; the others are about the page."""
_PAGE_SUMMARIES = {
    "AddSymbolicGradients": "The gradients of the sum of `outputs` with respect to each of `inputs`.",
    "ClientSession": "Says what a step computes: `fetch_outputs`, and `run_outputs` for their effect.",
    "Const_ex": "A constant of a chosen type.",
    "GradientCheck": "Compares the symbolic gradient of a weighted sum of `y` with differences.",
    "InputList": "Several tensors as one list.",
    "Loop": "Steps the page and draws `loss`, live.",
    "Operation": "Hands on a tensor.",
    "RandomNormal_ex": "Normally distributed random numbers of a shape that is typed.",
}


@cache
def palette() -> list[dict[str, Any]]:
    """Return a row per block, in the order of the groups; what only occurs in gradients comes last."""
    groups = {row.name: group for group, rows in GROUPS.items() for row in rows}
    order = [*GROUPS, "page", "inside gradients"]
    rows = []
    for name, symbol in OURS.items():
        row = TABLE.get(name)
        group = groups.get(name) or _PAGE_GROUP.get(name, "page")
        if row is not None and row.internal:
            group = "inside gradients"
        summary = _PAGE_SUMMARIES[name] if row is None else row.summary
        rows.append(_block(symbol, row, group, summary))
    return sorted(rows, key=lambda each: order.index(each["group"]))


def _block(symbol: Symbol, row: OpRow | None, group: str, summary: str) -> dict[str, Any]:
    attributes = {} if row is None else {f"{each.name}_": each for each in row.optional}
    return {
        "type": symbol.name,
        "group": group,
        "summary": summary,
        "inputs": [_input(pin) for pin in symbol.pins if pin.kind in _WIRED],
        "settings": [_setting(pin) for pin in symbol.pins if pin.kind in _KINDS],
        "attributes": [
            _attribute(name, kind, attributes.get(name)) for name, kind in symbol.attrs.items()
        ],
        "outputs": list(symbol.outputs),
    }


def _input(pin: Pin) -> dict[str, Any]:
    return {
        "name": pin.name,
        "list": pin.kind in (symbols.WIRES, symbols.LITERALS),
        "literal": pin.kind in (symbols.LITERAL, symbols.LITERALS),
    }


def _setting(pin: Pin) -> dict[str, Any]:
    choices: list[str] | None = None
    if pin.kind == symbols.PADDING:
        choices = ["SAME", "VALID", "EXPLICIT"]
    elif pin.kind == symbols.DTYPE:
        choices = DTYPES
    elif pin.kind == symbols.TRUTH:
        choices = ["0", "1"]
    return {
        "name": pin.name,
        "kind": _KINDS[pin.kind],
        "default": pin.default,
        "choices": choices,
    }


def _attribute(name: str, kind: str, attr: Attr | None) -> dict[str, Any]:
    choices: list[str] | None = None
    if name == "data_format_":
        choices = ["NHWC", "NCHW"]
    elif attr is not None and attr.words:
        choices = list(attr.words)
    elif kind == "bool":
        choices = ["true", "false"]
    elif kind == "type":
        choices = DTYPES
    default = None if attr is None else attr.default
    text = "" if default in (None, (), "") else attributes_text({name: default})
    return {
        "name": name,
        "kind": kind,
        "default": text.partition("=")[2].strip().rstrip(";"),
        "choices": choices,
    }
