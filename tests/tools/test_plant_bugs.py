"""The planted bugs still fit the sources they are planted in; that the tests notice each is a command of its own."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "plant_bugs.py"))


@pytest.mark.parametrize("bug", TOOL["BUGS"], ids=lambda bug: bug.name)
def test_a_bug_has_one_place(bug):
    text = (ROOT / "src" / "convgrad" / bug.file).read_text(encoding="utf-8")
    assert text.count(bug.right) == 1
