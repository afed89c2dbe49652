"""The Python blocks of the pages that need TensorFlow: each runs on its own and shows what the page shows.

Blocks that call `install()` change the process for good, so they run in processes of their own.
"""

from __future__ import annotations

import pytest

from page_blocks import PAGES, blocks, framework_of, run_block
from tensorflow_bridge import children

PYTHON = [
    pytest.param(page, line, source, id=f"{page}:{line}")
    for page in PAGES
    for line, source in blocks(page, "python")
    if framework_of(source) == "tensorflow"
]
CHILD = "from page_blocks import run_block; run_block({page!r}, {line!r}, {source!r})"


@pytest.mark.parametrize(("page", "line", "source"), PYTHON)
def test_python_block_runs_on_its_own(page: str, line: int, source: str) -> None:
    if "install()" not in source:
        run_block(page, line, source)
        return
    done = children.run(CHILD.format(page=page, line=line, source=source))
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_are_examples() -> None:
    """Guards the choice of blocks: one that is left out by mistake would be run nowhere."""
    found = {page for page, *_ in (each.values for each in PYTHON)}
    assert {"docs/tensorflow.md"} <= found
