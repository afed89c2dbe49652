"""`tools/changelog.py`: news of any time end in the section of their version, and nothing else changes."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
OLD = "# Changelog\n\nAll notable changes.\n\n## 0.1.0 (2031-01-01)\n\n### Added\n\n- All of it.\n"


@pytest.fixture
def tool() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "tools" / "changelog.py"))


def clone(folder: Path, page: str = OLD, **fragments: str) -> Path:
    (folder / "changelog.d").mkdir(exist_ok=True)
    (folder / "changelog.d" / "README.md").write_text("how", encoding="utf-8")
    (folder / "CHANGELOG.md").write_text(page, encoding="utf-8")
    for name, text in fragments.items():
        file = folder / "changelog.d" / f"{name.replace('__', '.').replace('_', '-')}.md"
        file.write_text(text, encoding="utf-8")
    return folder


def test_a_first_folding_makes_the_section(tool: dict[str, Any], tmp_path: Path) -> None:
    root = clone(
        tmp_path,
        wide__fixed="Wide\ngraphs work.\n",
        jax_grad__added="Gradients.",
        half__added="16 bits.",
    )
    tool["fold"](root, "0.2.0", "2031-05-17")
    news = (
        "## 0.2.0 (2031-05-17)\n\n### Added\n\n#### Operations\n\n- 16 bits.\n\n#### JAX\n\n- Gradients.\n\n"
        "### Fixed\n\n- Wide graphs work.\n\n"
    )
    before, _, after = OLD.partition("## ")
    assert (root / "CHANGELOG.md").read_text(encoding="utf-8") == f"{before}{news}## {after}"
    assert [path.name for path in (root / "changelog.d").iterdir()] == ["README.md"]


def test_late_news_join_what_was_written_by_hand(tool: dict[str, Any], tmp_path: Path) -> None:
    """In the order of the tool's subjects; the words at the top, the lines of an entry and other versions stay."""
    by_hand = OLD.replace(
        "## 0.1.0",
        "## 0.2.0 (2031-05-17)\n\nIn short: much.\n\n### Added\n\n#### Keras\n\n- Layers,\n  all.\n\n## 0.1.0",
    )
    root = clone(
        tmp_path, by_hand, torch_fuse__added="Fused blocks.", keras_fuse__added="Also here."
    )
    tool["fold"](root, "0.2.0", "2031-05-18")
    page = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    assert page == by_hand.replace("05-17", "05-18").replace(
        "#### Keras\n\n- Layers,\n  all.\n",
        "#### PyTorch\n\n- Fused blocks.\n\n#### Keras\n\n- Layers,\n  all.\n- Also here.\n",
    )
    tool["fold"](root, "0.2.0", "2031-05-18")  # nothing new: nothing changes
    assert (root / "CHANGELOG.md").read_text(encoding="utf-8") == page


def test_an_unknown_kind_changes_nothing(tool: dict[str, Any], tmp_path: Path) -> None:
    root = clone(tmp_path, half__news="16 bits.")
    with pytest.raises(SystemExit, match=r"added, changed, fixed, removed: \['half.news.md'\]"):
        tool["fold"](root, "0.2.0", "2031-05-17")
    assert (root / "CHANGELOG.md").read_text(encoding="utf-8") == OLD
    assert (root / "changelog.d" / "half.news.md").exists()


def test_our_own_changelog_survives(tool: dict[str, Any]) -> None:
    """Every section that stands there is read and written again to the letter."""
    page = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for line in page.splitlines():
        if line.startswith("## "):
            version, _, date = line.removeprefix("## ").partition(" ")
            assert tool["with_news"](page, version, date.strip("()"), {}) == page
