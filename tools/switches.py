"""Write the table of docs/switches.md from the rows of `_base/config.py`.

Usage: python tools/switches.py
"""

from __future__ import annotations

from pathlib import Path

from convgrad._base import config

PAGE = Path(__file__).resolve().parent.parent / "docs" / "switches.md"
HEAD = "|---|---|---|\n"


def table() -> str:
    """Return the rows, one per switch."""
    return "".join(
        f"| `{row.variable}` | {_shown(row.default)} | {row.meaning} |\n"
        for row in config.SWITCHES.values()
    )


def _shown(default: object) -> str:
    if default is None:
        return "unset"
    if isinstance(default, bool):
        return str(int(default))
    return f"{default >> 20}M" if isinstance(default, int) and default >= 1 << 20 else str(default)


def main() -> None:
    """Replace the table."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(HEAD)
    prose = "".join(line for line in rest.splitlines(True) if not line.startswith("| "))
    PAGE.write_text(f"{before}{HEAD}{table()}{prose}", encoding="utf-8")


if __name__ == "__main__":
    main()
