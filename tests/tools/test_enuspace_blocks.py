"""`tools/enuspace_blocks.py`: the tables of docs/enuspace-pages.md are those of the code."""

from __future__ import annotations

import runpy
from pathlib import Path

from convgrad._apps.pages.symbols import SYMBOLS

ROOT = Path(__file__).resolve().parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "enuspace_blocks.py"))


def test_the_tables_are_current() -> None:
    """`python tools/enuspace_blocks.py` rewrites them."""
    page = (ROOT / "docs" / "enuspace-pages.md").read_text(encoding="utf-8")
    assert TOOL["rewritten"](page) == page


def test_every_block_is_in_one_of_the_tables() -> None:
    computed, kept = TOOL["computed"](), TOOL["kept"]()
    for row in SYMBOLS.values():
        assert (f"| {row.name} |" in computed) == row.computed
        assert (row.name in kept.replace("\n", " ").rstrip(". ").split(", ")) != row.computed


def test_rows_say_what_pins_take() -> None:
    rows = TOOL["computed"]().splitlines()
    assert "| MatMul | `a`*, `b`* | - | `product` | `transpose_a_`, `transpose_b_` |" in rows
    assert "| AddN | `inputs`*+ | - | `sum` | - |" in rows
    hot = "| OneHot | `indices`*, `depth`*, `on_value`*, `off_value`* | - | `output` | - |"
    assert hot in rows
