"""The Python blocks of the pages that need Keras: each runs in a process of its own, on PyTorch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from child_python import child_environment
from page_blocks import PAGES, blocks, framework_of

PYTHON = [
    pytest.param(page, line, id=f"{page}:{line}")
    for page in PAGES
    for line, source in blocks(page, "python")
    if framework_of(source) == "keras"
]
RUN = """
import sys
from page_blocks import blocks, run_block
page, line = sys.argv[1], int(sys.argv[2])
run_block(page, line, dict(blocks(page, "python"))[line])
"""


@pytest.mark.parametrize(("page", "line"), PYTHON)
def test_python_block_runs_on_its_own(page: str, line: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, page, str(line)],
        cwd=Path(__file__).parents[1],
        env=child_environment({"KERAS_BACKEND": "torch"}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_there_are_examples() -> None:
    assert any(each.values[0] == "docs/keras.md" for each in PYTHON)
