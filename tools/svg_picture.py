"""A picture as SVG text: rectangles, lines and words in one house style, readable on light and dark pages.

A picture brings its own background, so it can be read whatever page holds it; it follows the reader's system setting,
not the page's.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

_STYLE = """
.card{fill:#fdfdfb;stroke:#d8d8d2}.paper{fill:#fdfdfb}
.cell{fill:#fff;stroke:#8b949e}
.pad{fill:url(#hatch);stroke:#b8bec5;stroke-dasharray:2 2}
.ghost{fill:none;stroke:#dfe2e6}
.a{fill:#6cb2f5}.b{fill:#f7b548}.c{fill:#7fd08a}.d{fill:#e79bd0}.plain{fill:#c9ced4}
.as{stroke:#1f6fc0}.bs{stroke:#b36b00}.cs{stroke:#2b8a3e}.ds{stroke:#a83e8c}.plains{stroke:#6e7781}
.faint{fill-opacity:.28}
.frame{fill:none;stroke-width:2}
line{stroke-width:1.6}
.hatch{stroke:#c3c8ce;stroke-width:1}
.arrow{stroke:#57606a;fill:none;stroke-width:2}
text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:#1f2328}
.title{font-size:15px;font-weight:600}.note,.small,.tiny{fill:#57606a}.tiny{font-size:9px}
.on{fill:#101418}.on,.small,.number,.mid,.tiny{text-anchor:middle}.on,.small{font-size:12px}.end{text-anchor:end}
@media (prefers-color-scheme:dark){
.card{fill:#1d222a;stroke:#3b434d}.paper{fill:#1d222a}.cell{fill:#2b313a;stroke:#7d8793}.pad{stroke:#59626d}.ghost{stroke:#333b45}
.as{stroke:#8cc6ff}.bs{stroke:#ffcb70}.cs{stroke:#98e3a3}.ds{stroke:#f4b9e2}.plains{stroke:#aab2bb}
.hatch{stroke:#4a535e}.arrow{stroke:#aab2bb}text{fill:#e8edf2}.note,.small,.tiny{fill:#a9b3bd}.on{fill:#101418}
}
""".strip()

COLOURS = ("a", "b", "c", "d")
"""Names of the four looks that tell things apart; with an `s` behind, the same as a line."""

_WIDTHS = {"title": 9.0, "note": 7.4, "label": 7.4}
"""Pixels per letter of words that begin at their position, in the widest of the fonts named above."""


class Picture:
    """Shapes in the order they are drawn."""

    def __init__(self) -> None:
        self._shapes: list[str] = []
        self._right = 0.0

    def rect(self, x: float, y: float, width: float, height: float, look: str) -> None:
        self._shapes.append(
            f'<rect x="{_short(x)}" y="{_short(y)}" width="{_short(width)}" height="{_short(height)}" class="{look}"/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, look: str) -> None:
        self._shapes.append(
            f'<line x1="{_short(x1)}" y1="{_short(y1)}" x2="{_short(x2)}" y2="{_short(y2)}" class="{look}"/>'
        )

    def arrow(self, x1: float, y: float, x2: float) -> None:
        """Draw a horizontal arrow."""
        head = f"M{_short(x1)} {_short(y)}H{_short(x2)}m-8 -6l8 6l-8 6"
        self._shapes.append(f'<path d="{head}" class="arrow"/>')

    def text(self, x: float, y: float, words: str, look: str) -> None:
        if look in _WIDTHS:
            self._right = max(self._right, x + len(words) * _WIDTHS[look])
        self._shapes.append(
            f'<text x="{_short(x)}" y="{_short(y)}" class="{look}">{escape(words)}</text>'
        )

    def finish(self, width: int, height: int, title: str) -> str:
        """Return the whole text; a picture grows to the right where its words need it."""
        width = max(width, int(self._right) + 20)
        return "\n".join(
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                f'viewBox="0 0 {width} {height}" role="img">',
                f"<title>{escape(title)}</title>",
                f"<style>{_STYLE}</style>",
                '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
                '<line x1="0" y1="0" x2="0" y2="6" class="hatch"/></pattern>',
                f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8" class="card"/>',
                *self._shapes,
                "</svg>\n",
            )
        )


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def write(folder: Path, pictures: dict[str, str]) -> None:
    """Write pictures by their file names, and remove those of the folder that are no longer drawn."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.svg"):
        if old.name not in pictures:
            old.unlink()
    for name, text in pictures.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
