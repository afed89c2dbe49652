"""`tools/walk.py`: the page of the walk is current, and the walk is short."""

from __future__ import annotations

import platform
import re

import pytest

from tools import walk

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="the page is made for a row of x86-64"
)


@pytest.fixture(scope="module")
def walks() -> tuple[list[walk.Step], list[walk.Step]]:
    return walk.walks(walk.ROOT / "src")


def test_a_call_walks_through_few_functions(walks: tuple[list[walk.Step], list[walk.Step]]) -> None:
    first, again = walks
    corridor, _ = walk.parts(first)
    assert len(walk.counted(corridor)) <= walk.MOST_FIRST
    assert len(walk.counted(again)) <= walk.MOST_AGAIN


def test_the_page_is_current(walks: tuple[list[walk.Step], list[walk.Step]]) -> None:
    """`python tools/walk.py` rewrites it. What makes a program may follow the caches, so its part is not compared."""
    written, drawn = (
        re.sub(r"(?m)^\| making the program.*\n", "", text.split("## Making the program")[0])
        for text in (walk.PAGE.read_text(encoding="utf-8"), walk.page(*walks))
    )
    assert written == drawn and "## A repeated call" in written
