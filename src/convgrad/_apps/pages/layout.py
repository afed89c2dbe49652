"""Where blocks stand on a page: which pins a block shows, how large it is, and an automatic arrangement.

Pictures and arrangements share these measures. Nothing here changes what a page means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..graph.table import TABLE
from .page import Block, Page
from .symbols import find

WIDTH, HEAD, PIN = 150.0, 30.0, 18.0
"""Of a block: how wide it is, how high its title is, and how high each pin."""
MARGIN, GAP_X, GAP_Y = 40.0, 110.0, 24.0
"""Around the page, between columns (wires bend there, and carry shapes), and between the blocks of a column."""


@dataclass(frozen=True)
class Sides:
    """The pins a block shows, from top to bottom."""

    left: tuple[str, ...]
    right: tuple[str, ...]

    @property
    def height(self) -> float:
        """Of the block.

        >>> Sides(("x", "y"), ("z",)).height
        66.0
        """
        return HEAD + PIN * max(len(self.left), len(self.right))


def sides_of(page: Page) -> dict[str, Sides]:
    """Return the pins every block shows, by id: those in use, and all outputs; in the order of the op's signature."""
    targets: dict[str, set[str]] = {}
    sources: dict[str, set[str]] = {}
    for wire in page.wires:
        sources.setdefault(wire.source, set()).add(wire.source_pin)
        targets.setdefault(wire.target, set()).add(wire.target_pin)
    return {
        block.id: _sides(block, targets.get(block.id, set()), sources.get(block.id, set()))
        for block in page.blocks
    }


def _sides(block: Block, wired: set[str], used: set[str]) -> Sides:
    inputs, outputs = signature(block)
    results = {*outputs, *used}
    results |= {f"result_{name}" for name in results}
    typed = {
        name
        for name, value in block.pins.items()
        if not value.is_empty and name != "scope" and name not in results
    }
    right = [*outputs, *sorted(used.difference(outputs))]
    return Sides(_ordered(wired | typed, inputs, block.pins), tuple(right))


def signature(block: Block) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of input and output pins, as far as the symbol is known.

    >>> signature(Block("a", "Relu")), signature(Block("s", "SENSOR_LCD", task="logic"))
    ((('features',), ('activations',)), ((), ()))
    """
    if not block.in_graph:
        return (), ()
    symbol, row = find(block.symbol), TABLE.get(block.symbol)
    if symbol is not None and (symbol.pins or symbol.outputs):
        return tuple(pin.name for pin in symbol.pins), symbol.outputs
    if row is not None:
        names = (*(pin.name for pin in row.inputs), *(attr.name for attr in row.required), "attrs")
        return names, row.outputs
    return (), ()


def _ordered(names: set[str], *orders: Iterable[str]) -> tuple[str, ...]:
    known = dict.fromkeys(name for order in orders for name in order if name in names)
    return (*known, *sorted(names.difference(known)))


def arrange(page: Page) -> None:
    """Give every block a place, and the page its size: wires go from left to right, and nothing overlaps.

    A block's column is the longest way to it from a block without wires into it. Those themselves, constants mostly,
    stand directly before the first block that needs them: a way from the left edge of a deep network would cross all
    of it.
    """
    before, after = _neighbours(page)
    columns = _columns(page, before, after)
    sides = sides_of(page)
    order = {block.id: at for at, block in enumerate(page.blocks)}
    centres: dict[str, float] = {}
    groups: list[list[Block]] = [[] for _ in range(max(columns.values(), default=-1) + 1)]
    for block in page.blocks:
        groups[columns[block.id]].append(block)
    for column, inside in enumerate(groups):
        wanted = _wanted(inside, before, after, centres)
        inside.sort(key=lambda block: (wanted[block.id], not before[block.id], order[block.id]))
        top = MARGIN
        for block in inside:
            height = sides[block.id].height
            block.x = MARGIN + column * (WIDTH + GAP_X)
            block.y = float(round(max(top, wanted[block.id] - height / 2)))
            centres[block.id] = block.y + height / 2
            top = block.y + height + GAP_Y
    ends = [(block.x + WIDTH, block.y + sides[block.id].height) for block in page.blocks]
    page.width = max((x for x, _ in ends), default=0.0) + MARGIN
    page.height = max((y for _, y in ends), default=0.0) + MARGIN


Neighbours = Mapping[str, list[str]]


def _neighbours(page: Page) -> tuple[Neighbours, Neighbours]:
    """Return the blocks before and behind each, in the order of the wires."""
    before: dict[str, list[str]] = {block.id: [] for block in page.blocks}
    after: dict[str, list[str]] = {block.id: [] for block in page.blocks}
    for wire in page.wires:
        if wire.source in before and wire.target in before:
            before[wire.target].append(wire.source)
            after[wire.source].append(wire.target)
    return before, after


def _columns(page: Page, before: Neighbours, after: Neighbours) -> dict[str, int]:
    columns = {block.id: 0 for block in page.blocks}
    open_wires = {id: len(sources) for id, sources in before.items()}
    ready = [id for id, count in open_wires.items() if not count]
    done: set[str] = set()
    # A page may have circles, which no graph has: their blocks are taken in the page's order.
    for start in (None, *columns):
        if start is not None and start not in done:
            ready.append(start)
        while ready:
            id = ready.pop()
            if id in done:
                continue
            done.add(id)
            for target in after[id]:
                if target in done:
                    continue
                columns[target] = max(columns[target], columns[id] + 1)
                open_wires[target] -= 1
                if not open_wires[target]:
                    ready.append(target)
    moved = {
        id: max(0, min(columns[target] for target in after[id]) - 1)
        for id in columns
        if after[id] and not before[id]
    }
    return {**columns, **moved}


def _wanted(
    blocks: list[Block], before: Neighbours, after: Neighbours, centres: Mapping[str, float]
) -> dict[str, float]:
    """Return how far down the blocks of a column want to be: where their wires come from, or go to."""
    found: dict[str, float] = {}
    for block in (block for block in blocks if before[block.id]):
        found[block.id] = _mean(centres[id] for id in before[block.id] if id in centres)
    for block in (block for block in blocks if not before[block.id]):
        beside = sorted({id for target in after[block.id][:1] for id in before[target]})
        known = (centres.get(id, found.get(id)) for id in beside)
        found[block.id] = _mean(centre for centre in known if centre is not None)
    return found


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0
