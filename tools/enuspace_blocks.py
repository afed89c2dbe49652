"""Write the tables of docs/enuspace-pages.md from the table of enuSpace's blocks.

Usage: python tools/enuspace_blocks.py
"""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import fill

from convgrad._apps.pages import symbols
from convgrad._apps.pages.blocks import OURS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "enuspace-pages.md"
MARKS = {symbols.LITERAL: "*", symbols.LITERALS: "*+", symbols.WIRES: "+"}
INPUTS = (symbols.WIRE, *MARKS)
UNREAD = {
    ("OneHot", "axis_"),
    ("RandomNormal_ex", "seed_"),
    ("RandomNormal_ex", "seed2_"),
}
"""What enuSpace never reads, and what therefore is not read on its pages."""


def computed() -> str:
    """Return the rows of the blocks that are computed."""
    head = "| block | inputs | texts | outputs | attributes |\n|---|---|---|---|---|\n"
    return head + "".join(_row(row) for row in symbols.SYMBOLS.values() if row.computed)


def _row(row: symbols.Symbol) -> str:
    inputs = [f"`{pin.name}`{MARKS.get(pin.kind, '')}" for pin in row.pins if pin.kind in INPUTS]
    texts = [f"`{pin.name}`" for pin in row.pins if pin.kind not in (*INPUTS, symbols.ATTRS)]
    outputs = [f"`{name}`" for name in row.outputs]
    attrs = [f"`{name}`" for name in row.attrs if (row.name, name) not in UNREAD]
    cells = [", ".join(cell) or "-" for cell in (inputs, texts, outputs, attrs)]
    return f"| {row.name} | {' | '.join(cells)} |\n"


def kept() -> str:
    """Return the names of blocks that are known and refuse to run."""
    names = sorted(row.name for row in symbols.SYMBOLS.values() if not row.computed)
    return _prose(names)


def also() -> str:
    """Return the names of our blocks that enuSpace's description does not have."""
    return _prose(sorted(set(OURS) - set(symbols.SYMBOLS)))


def _prose(names: list[str]) -> str:
    return fill(", ".join(names) + ".", width=125) + "\n"


def rewritten(page: str) -> str:
    """Return a page with its tables as they should be."""
    for name, content in (("computed", computed()), ("kept", kept()), ("also", also())):
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        found = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        assert found.search(page), begin
        # Markdown wants an empty line around a table.
        page = found.sub(lambda _, text=f"{begin}\n{content}\n{end}": text, page)
    return page


def main() -> None:
    """Replace the tables."""
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
