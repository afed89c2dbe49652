"""A page while it is edited: what each block has to say, whether a wire fits, which blocks are before one."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from ..graph import dtypes
from ..graph.row import Pin
from ..graph.spec import Spec
from ..graph.table import TABLE
from ..pages.blocks import symbol_of
from ..pages.build import build
from ..pages.built import Built
from ..pages.page import Block, Page, Value, Wire
from ..pages.symbols import LITERALS, WIRES


def checked(page: Page) -> dict[str, Any]:
    """Return problem, notes and tensors of every block."""
    start = time.perf_counter()
    built = build(page)
    specs = built.specs()
    notes: dict[str | None, list[str]] = {}
    for note in built.notes:
        known = notes.setdefault(note.block, [])
        if note.text not in known:
            known.append(note.text)
    blocks = {
        block.id: {
            "problem": built.problems.get(block.id),
            "notes": notes.get(block.id, []),
            "tensors": {pin: _tensor(spec) for pin, spec in specs.get(block.id, {}).items()},
        }
        for block in page.blocks
    }
    rest = [text for id, texts in notes.items() if id not in blocks for text in texts]
    ms = (time.perf_counter() - start) * 1e3
    return {"ms": ms, "blocks": blocks, "notes": rest}


def _tensor(spec: Spec) -> dict[str, Any]:
    shape = None if spec.shape is None else list(spec.shape)
    return {"dtype": dtypes.name(spec.dtype), "shape": shape}


def before(page: Page, starts: list[str]) -> set[str]:
    """Return blocks and all before them."""
    into: dict[str, list[str]] = {}
    for wire in page.wires:
        into.setdefault(wire.target, []).append(wire.source)
    found: set[str] = set()
    waiting = list(starts)
    while waiting:
        id = waiting.pop()
        if id not in found:
            found.add(id)
            waiting += into.get(id, ())
    return found


def part(page: Page, ids: set[str]) -> Page:
    """Return the page with these blocks and the wires between them alone."""
    return replace(
        page,
        blocks=[block for block in page.blocks if block.id in ids],
        wires=[wire for wire in page.wires if wire.source in ids and wire.target in ids],
    )


def why_unfit(page: Page, wire: Wire) -> str | None:
    """Say why a wire would not fit, or nothing.

    Only what the wire itself does counts. Pins that are still open are taken for tensors of which nothing is known, and
    a problem that is there without the wire is not its fault. A wire to a pin that has one takes its place.
    """
    blocks = page.by_id()
    source, target = blocks[wire.source], blocks[wire.target]
    symbol = symbol_of(target, page.dialect)
    if symbol is None:
        return f"{target.symbol} is not known"
    pin = symbol.pin(wire.target_pin)
    if pin is None:
        return f"{target.symbol} has no input pin `{wire.target_pin[:50]}`"
    made = symbol_of(source, page.dialect)
    if made is not None and wire.source_pin not in made.outputs:
        return f"{source.symbol} has no output pin `{wire.source_pin[:50]}`"
    if wire.target in before(page, [wire.source]):
        return "it would close a circle of wires: a graph has none"
    wires = list(page.wires)
    if pin.kind not in (WIRES, LITERALS):
        there = (wire.target, wire.target_pin)
        wires = [each for each in wires if (each.target, each.target_pin) != there]
    ids = before(page, [wire.source, wire.target])
    small = part(replace(page, wires=wires), ids)
    alone = build(small)
    if wire.source in alone.problems or wire.source not in alone.outputs:
        return None  # of what is not there, nothing can be said
    dtype = _dtype_of(alone, wire)
    tried = replace(small, wires=[*small.wires, wire])
    problem = build(_completed(tried, target, wire.target_pin, dtype)).problems.get(target.id)
    if problem is None:
        return None
    without = build(_completed(small, target, wire.target_pin, None)).problems.get(target.id)
    return None if problem == without or " needs " in problem else problem


def _dtype_of(built: Built, wire: Wire) -> str | None:
    """Return the dtype of what a wire brings."""
    tensor = built.outputs[wire.source].get(wire.source_pin)
    if isinstance(tensor, list):
        at = wire.source_index or 0
        tensor = tensor[at] if at < len(tensor) else None
    return None if tensor is None else dtypes.name(tensor.dtype)


def _completed(page: Page, target: Block, pin_name: str, dtype: str | None) -> Page:
    """Return the page with placeholders at the open pins of a block, of the dtype that comes in at one pin."""
    row = TABLE.get(target.symbol)
    if row is None:
        return page
    wired = {each.target_pin for each in page.wires if each.target == target.id}
    letter = next((pin.same for pin in row.inputs if pin.name == pin_name), "")
    blocks, wires = list(page.blocks), list(page.wires)
    for pin in row.inputs:
        value = target.pins.get(pin.name)
        if pin.name in wired or pin.ref or (value is not None and not value.is_empty):
            continue
        alike = dtype if letter and pin.same == letter else None
        id = f"{target.id} {pin.name} "
        blocks.append(Block(id, "Placeholder", {"dtype": Value(alike or _some(pin))}))
        wires.append(Wire(id, "output", None, target.id, pin.name))
    return replace(page, blocks=blocks, wires=wires)


def _some(pin: Pin) -> str:
    """Return a dtype that a pin takes."""
    return next(
        name
        for name in ("DT_FLOAT", "DT_INT32", *dtypes.BY_NAME)
        if dtypes.BY_NAME[name] in pin.allowed
    )
