"""`tools/cc_ops.py`: the op classes of the C++ headers are those of the table."""

import runpy
from pathlib import Path

from convgrad._apps.graph.table import TABLE

ROOT = Path(__file__).resolve().parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "cc_ops.py"))


def test_the_headers_are_fresh():
    stale = [str(path) for path, text in TOOL["files"]().items() if path.read_text() != text]
    assert not stale, "run: python tools/cc_ops.py"


def test_every_row_is_a_class_of_one_header():
    classes = [
        line.removeprefix("class ").removesuffix(" {")
        for path, text in TOOL["files"]().items()
        if path.parent.name == "ops"
        for line in text.splitlines()
        if line.startswith("class ")
    ]
    assert sorted(classes) == sorted(set(TABLE) - {"Const"})


def test_lines_of_the_headers_fit():
    for path in (ROOT / "src" / "convgrad" / "include" / "convgrad" / "cc").rglob("*.h"):
        long = [line for line in path.read_text().splitlines() if len(line) > 120]
        assert not long, (path.name, long)
