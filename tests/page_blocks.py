"""The Python blocks of the pages, and how one is run."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("changelog.d/*.md"))
)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FRAMEWORKS = ("keras", "tensorflow", "jax", "torch")
"""In this order: a block on Keras may import a backend too."""


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[tuple[int, str]]:
    """Return (line number, text) of each fenced block of one language."""
    text = read(page)
    return [
        (text.count("\n", 0, match.start(2)) + 1, match.group(2))
        for match in FENCE.finditer(text)
        if match.group(1) == language
    ]


def framework_of(source: str) -> str | None:
    """Return the framework whose tests run a block; the environment of `make test` has none."""
    for name in FRAMEWORKS:
        named = rf"^(>>> )?(import|from) (convgrad\.)?{name}\b|^(>>> )?import .*\b{name}\b"
        if re.search(named, source, re.M):
            return name
    return None


def run_block(page: str, line: int, source: str) -> None:
    """Run one block on its own, and compare what it shows; a reader copies one, so none leans on another."""
    names: dict[str, Any] = {"__name__": "__main__"}
    if ">>>" not in source:
        exec(compile("\n" * (line - 1) + source, page, "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(source, names, page, page, line - 1)
    report: list[str] = []
    flags = doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(optionflags=flags).run(test, out=report.append)
    assert not report, "".join(report)
