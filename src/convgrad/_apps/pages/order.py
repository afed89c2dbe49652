"""The order of blocks along wires."""

from __future__ import annotations

from .page import Block, Page, Wire


def upstream(starts: list[str], into: dict[str, list[Wire]]) -> list[str]:
    """Return blocks and all before them along the wires, each once, the nearest first."""
    seen: dict[str, None] = {}
    open_ = list(starts)
    while open_:
        id = open_.pop(0)
        if id not in seen:
            seen[id] = None
            open_ += [wire.source for wire in into.get(id, ())]
    return list(seen)


def ordered(page: Page, into: dict[str, list[Wire]]) -> tuple[list[Block], list[str]]:
    """Return the blocks so that every wire comes from an earlier one, and the ids of those in circles."""
    waiting = {block.id: len(into.get(block.id, ())) for block in page.blocks}
    targets: dict[str, list[str]] = {}
    for id, wires in into.items():
        for wire in wires:
            targets.setdefault(wire.source, []).append(id)
    blocks = page.by_id()
    ready = [block.id for block in page.blocks if not waiting[block.id]]
    found = []
    for id in ready:  # grows while it is walked
        found.append(blocks[id])
        for target in targets.get(id, ()):
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return found, [id for id, count in waiting.items() if count]
