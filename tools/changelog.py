"""Move the news fragments of `changelog.d` into CHANGELOG.md: `python tools/changelog.py 0.2.0 2031-05-17`."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("added", "changed", "fixed", "removed")


def section(version: str, date: str, fragments: dict[str, str]) -> str:
    """Return the text of one version; `fragments` maps file names to sentences.

    >>> print(section("0.2.0", "2031-05-17", {"layout.added.md": "NCHW is quick."}))
    ## 0.2.0 (2031-05-17)
    <BLANKLINE>
    ### Added
    <BLANKLINE>
    - NCHW is quick.
    <BLANKLINE>
    """
    lines = [f"## {version} ({date})", ""]
    for kind in KINDS:
        news = [
            text.strip() for name, text in sorted(fragments.items()) if name.split(".")[-2] == kind
        ]
        if news:
            lines += [f"### {kind.capitalize()}", "", *(f"- {sentence}" for sentence in news), ""]
    return "\n".join(lines)


def main(version: str, date: str) -> None:
    paths = [path for path in (ROOT / "changelog.d").glob("*.md") if path.name != "README.md"]
    unknown = [path.name for path in paths if path.name.split(".")[-2] not in KINDS]
    if unknown:
        sys.exit(
            f"the last part of the name before .md must be one of {', '.join(KINDS)}: {unknown}"
        )
    page = ROOT / "CHANGELOG.md"
    text = page.read_text(encoding="utf-8")
    unreleased = f"## {version} (unreleased)"
    if unreleased in text:  # the section was written by hand: date it
        text = text.replace(unreleased, f"## {version} ({date})")
        if paths:
            sys.exit(
                f"move {[path.name for path in paths]} into the section '{unreleased}' by hand"
            )
    else:
        head, mark, rest = text.partition("\n## ")
        news = section(
            version, date, {path.name: path.read_text(encoding="utf-8") for path in paths}
        )
        text = f"{head}\n{news}{mark}{rest}"
    page.write_text(text, encoding="utf-8")
    for path in paths:
        path.unlink()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
