"""The Python blocks of the pages that need PyTorch: each runs on its own and shows what the page shows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from page_blocks import PAGES, blocks, framework_of, run_block

pytest.importorskip("torch")

PYTHON = [
    pytest.param(page, line, source, id=f"{page}:{line}")
    for page in PAGES
    for line, source in blocks(page, "python")
    if framework_of(source) == "torch"
]


@pytest.fixture(autouse=True)
def no_memory_setting_stays() -> Iterator[None]:
    """A page may set it and leave it; other tests of this process look at it."""
    from convgrad._base import memory

    yield
    if memory.is_tuned():
        memory.tune_memory().undo()


@pytest.mark.parametrize(("page", "line", "source"), PYTHON)
def test_python_block_runs_on_its_own(page: str, line: int, source: str) -> None:
    run_block(page, line, source)


def test_there_are_examples() -> None:
    """Guards the choice of blocks: one that is left out by mistake would be run nowhere."""
    found = {
        page
        for page in PAGES
        if any(framework_of(text) == "torch" for _, text in blocks(page, "python"))
    }
    assert {"README.md", "docs/pytorch.md", "docs/moving-from-pytorch.md"} <= found
