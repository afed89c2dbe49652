"""`tools/README.md`: every script has a place in one of its tables."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def test_every_script_is_in_the_tables_once() -> None:
    text = (TOOLS / "README.md").read_text(encoding="utf-8")
    named = Counter(re.findall(r"`([\w.]+(?:\.\w+|/))`", text))
    scripts = {path.name for path in TOOLS.iterdir() if path.suffix in (".py", ".c", ".cc")}
    folders = {f"{path.parent.name}/" for path in TOOLS.glob("*/__main__.py")}
    assert {name for name in named if not name.startswith("convgrad.")} == (
        scripts - {"conftest.py"} | folders
    )
    assert max(named.values()) == 1, named.most_common(3)
