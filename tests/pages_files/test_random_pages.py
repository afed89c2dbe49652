"""Random SVG with the words of pages in wrong places: what is read can be written in our format and read again."""

from __future__ import annotations

import random
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

from convgrad._apps.pages.files import read_page, write_page
from convgrad._base.errors import ArgumentError

ELEMENTS = ("use", "svg:use", "pg-set-pin", "polyline", "pg-link", "g", "text", "defs", "symbol")
ATTRIBUTES = (
    *("id", "type", "xlink:href", "href", "transform", "x", "y", "width", "visibility", "hidden"),
    *("variable", "shape", "var-type", "value", "save-type", "binary-pos"),
    *("from-id", "param-from", "to-id", "param-to"),
)
WORDS = (
    *("", "#", "#val", "val", "A", "B", "tensorflow", "logic", "#Const", "Conv2D", "\t", "a b"),
    *("[2]", "[2][3]", "[", "{2,3}", "{", "[0]", "[9223372036854775808]", "1;2", "{1,2}"),
    "[0][9223372036854775807][9223372036854775807]",
    *("-1", "0", "8", "1e999", "nan", "9" * 30, "\N{SUPERSCRIPT TWO}", "\N{GRINNING FACE}"),
    *("binary", "text", "int", "float", "double", "bool", "string", "true"),
    *("translate(1,2)", "translate(", "translate(1e400,-1e400)", "grad_outputs[3]", "x[99999999]"),
)


def element(draw: random.Random, depth: int) -> str:
    name = draw.choice(ELEMENTS)
    attributes = {key: draw.choice(WORDS) for key in draw.sample(ATTRIBUTES, draw.randint(0, 8))}
    if name.endswith("use"):  # mostly sound, or no page would be read
        sound = {"id": f"I{draw.randrange(10**6)}", "type": "tensorflow", "xlink:href": "#Const"}
        attributes = {**sound, **attributes} if draw.random() < 0.1 else {**attributes, **sound}
    if name == "pg-set-pin":
        attributes.setdefault("variable", "#val")
    inside = "".join(element(draw, depth + 1) for _ in range(draw.randint(0, 3 - depth)))
    words = " ".join(f"{key}={quoteattr(value)}" for key, value in attributes.items())
    return f"<{name} {words}>{inside}</{name}>"


@pytest.mark.parametrize("seed", range(8))
def test_what_is_read_can_be_written_and_read_again(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    path, ours = tmp_path / "p.svg", tmp_path / "p.json"
    reads = 0
    for _ in range(60):
        inside = "".join(element(draw, 0) for _ in range(draw.randint(0, 5)))
        path.write_bytes(f"<svg enuspace-version='3'>{inside}</svg>".encode("utf-16"))
        path.with_suffix(".dat").write_bytes(bytes(draw.randint(0, 40)))
        try:
            page = read_page(path)
        except ArgumentError as error:
            assert "\n" not in str(error)
            continue
        reads += 1
        assert all("\n" not in str(note) and len(str(note)) < 700 for note in page.notes)
        write_page(page, ours)
        again = read_page(ours)
        again.notes = page.notes
        assert again == page
    assert reads > 20
