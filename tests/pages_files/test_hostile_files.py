"""Page files made to hurt: each is read, or refused in one line, and soon."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convgrad._apps.pages import document, files, loading
from convgrad._apps.pages.enuspace_json import read_enuspace_json
from convgrad._apps.pages.enuspace_svg import read_svg
from convgrad._apps.pages.files import read_page, write_page
from convgrad._apps.pages.page import Block, Page, Wire
from convgrad._base.errors import ArgumentError
from pages_files.hostile import PIPES, USE, page_of, put, refusal, soon
from pages_files.writing import block, json_text, svg_text

# XML

LAUGHS = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(9))
TRICKS = {
    "billion laughs": f'<!DOCTYPE svg [<!ENTITY l0 "lol">{LAUGHS}]><svg>&l9;</svg>',
    "external entity": '<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]><svg>&x;</svg>',
    "external type": '<!DOCTYPE svg SYSTEM "http://localhost/svg.dtd"><svg/>',
    "parameter entity": '<!DOCTYPE svg [<!ENTITY % x SYSTEM "file:///etc/passwd"> %x;]><svg/>',
    "attribute default": '<!DOCTYPE svg [<!ATTLIST svg a CDATA "b">]><svg/>',
    "empty type": "<!DOCTYPE svg><svg/>",
    "after a declaration": '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE svg []><svg/>',
}


@pytest.mark.parametrize("name", TRICKS)
@pytest.mark.parametrize("encoding", ["utf-16", "utf-8"])
def test_document_types_are_refused(tmp_path: Path, name: str, encoding: str) -> None:
    text = refusal(put(tmp_path, TRICKS[name].encode(encoding)))
    assert "no document type (`<!DOCTYPE`) and no entities" in text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("<svg>&x;</svg>", "not XML: undefined entity"),
        ("<svg>" * 201 + "</svg>" * 201, "nested more than 200 deep"),
        ("<svg>" + "<g>" * 1_000_000, "nested more than 200 deep"),
        ("<svg>" + "<a/>" * 1_000_001 + "</svg>", "more than 1000000 elements"),
        ("<svg>", "not XML: no element found"),
        ("<svg></svg><svg/>", "not XML: junk after document element"),
        ("<svg a='1' a='2'/>", "not XML: duplicate attribute"),
        ("<svg a='" + "x" * 1_000_000, "not XML: unclosed token"),
        ("<?xml version='1.0' encoding='UTF-7'?><svg", "not XML"),
        (page_of(USE.format("") * 2), "two blocks have the id 'A'"),
        (page_of('<use type="tensorflow" xlink:href="#A"/>'), "`id` must be a name, got ''"),
        (page_of('<use id="A" type="tensorflow"/>'), "`xlink:href` must be a name, got ''"),
        (page_of('<use id="A&#10;B" type="tensorflow" xlink:href="#A"/>'), "`id` must be a name"),
    ],
    ids=range(13),
)
def test_xml_that_is_refused(tmp_path: Path, content: str, words: str) -> None:
    assert words in refusal(put(tmp_path, content))


def test_lines_are_counted_from_the_top_of_the_file(tmp_path: Path) -> None:
    head = '<?xml version="1.0"\n encoding="UTF-16"?>\n'
    text = refusal(put(tmp_path, head + page_of("\n" + USE.format("") + "\n" + USE.format(""))))
    assert "page.svg: line 5: two blocks" in text


def test_much_of_something_does_not_take_long(tmp_path: Path) -> None:
    for inside in (
        "<!--" + "x" * 3_000_000 + "-->",
        "<text>" + "x" * 3_000_000 + "</text>",
        "<![CDATA[" + "<" * 3_000_000 + "]]>",
        "<g " + " ".join(f"a{n}='1'" for n in range(50_000)) + "/>",
        f"<g transform='{'translate(' * 100_000}'/>",
        f"<g transform='translate(1{' ' * 100_000}x'/>",
        USE.format(f'<pg-set-pin variable="{"#" * 500_000}"/>'),
        USE.format(f'<pg-set-pin variable="#val{"[1]" * 100_000}" var-type="int"/>'),
        USE.format(f'<pg-set-pin variable="#val" var-type="int" shape="{"[1]" * 100_000}"/>'),
        '<pg-link from-id="A" param-from="x" to-id="B" param-to="y"/>' * 20_000,
        "".join(f'<use id="I{n}" type="tensorflow" xlink:href="#Add"/>' for n in range(20_000)),
    ):
        with soon():
            page = read_page(put(tmp_path, page_of(inside)))
        assert all("\n" not in str(note) and len(str(note)) < 700 for note in page.notes)


# Encodings

WHOLE = svg_text(Page("p", [block("A", "Const", val=np.arange(3.0))]), 3)[0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"\xff\xfe", "the file is empty"),
        (b"\xff\xfe<", "not UTF-16: truncated data"),
        (WHOLE.encode("utf-16")[:-1], "not UTF-16: truncated data"),
        (WHOLE.encode("utf-16-le"), "neither UTF-8 nor UTF-16 with a byte order mark"),
        (WHOLE.encode("utf-16-be"), "neither UTF-8 nor UTF-16 with a byte order mark"),
        (WHOLE.encode("utf-32"), "UTF-32"),
        (b"\xff\xfe" + WHOLE.encode("utf-16-be"), "begins with"),
        (b"\xff\xfe" + "<svg>".encode("utf-16-le") + b"\x00\xd8<\x00", "not UTF-16: illegal"),
        (b"\xff\xfe" + b"\x00\xdc", "not UTF-16: illegal"),
        (b"<svg>\xff</svg>", "not UTF-8: invalid start byte at byte 5"),
        ("<svg a='\0'/>".encode("utf-16"), "not XML"),
        (b"\x89PNG\r\n\x1a\n", "not UTF-8"),
        (b"hello", "a page is JSON or SVG; the file begins with 'hello'"),
        (b"[1]", "a page is JSON or SVG"),
        (b"{}", 'a page has "format" (ours) or "object"'),
    ],
    ids=range(16),
)
def test_encodings_that_are_refused(tmp_path: Path, content: bytes, words: str) -> None:
    assert words in refusal(put(tmp_path, content))


def test_a_page_cut_anywhere_is_refused(tmp_path: Path) -> None:
    data = WHOLE.encode("utf-16")
    for end in range(0, len(data) - 4, 37):
        refusal(put(tmp_path, data[:end]))


@given(st.integers(0, len(WHOLE) * 2), st.binary(max_size=6), st.booleans())
@settings(max_examples=200, deadline=None)
def test_a_page_with_other_bytes_is_read_or_refused(at: int, data: bytes, as_json: bool) -> None:
    page = Page("p", [block("A", "Const", val=np.arange(3.0))])
    text = json_text(page)[0] if as_json else WHOLE
    whole = text.encode("utf-16")
    try:
        (read_enuspace_json if as_json else read_svg)(whole[:at] + data + whole[at + len(data) :], "p")  # fmt: skip
    except ArgumentError as error:
        assert "\n" not in str(error)


# JSON


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"object": ' + "[" * 100_000, "nested too deeply"),
        ('{"format": ' + '{"a":' * 100_000, "nested too deeply"),
        ('{"object": [' + "[]," * 2_000_001, "more than 2000000 lists"),
        ('{"object": NaN}', "NaN is not a number in JSON"),
        ('{"object": [-Infinity]}', "-Infinity is not a number in JSON"),
        ('{"object": [' + "9" * 10_000 + "]}", "ValueError: Exceeds the limit"),
        ('{"object": [], "object": []}', "the name 'object' twice"),
        ('{"object": "\\ud800"}', "surrogates not allowed"),
        ('{"object": [', "line 1, column 13: not JSON"),
        ('{"object": []} x', "not JSON: Extra data"),
        ('{"object": 1e999}', "$.object must be a list, got inf"),
        ('{"object": ' + json.dumps(["x"] * 100_001) + "}", "more than 100000 blocks"),
        (
            '{"format": "convgrad-page", "version": 1, "name": "", "blocks": '
            + json.dumps([0] * 100_001)
            + "}",
            "$.blocks has 100001 items",
        ),
        (
            '{"format": "convgrad-page", "version": 1, "name": "", "blocks": ['
            '{"id": "a", "type": "b", "at": [1e999, 0]}]}',
            "two numbers",
        ),
    ],
    ids=range(14),
)
def test_json_that_is_refused(tmp_path: Path, content: str, words: str) -> None:
    assert words in refusal(put(tmp_path, content.encode(), "page.json"))


def test_many_wires_to_unknown_pins(tmp_path: Path) -> None:
    page = Page("p", [block("A", "Add")])
    page.wires = [Wire("A", "z", None, "A", f"x{n}") for n in range(30_000)]
    write_page(page, tmp_path / "p.json")
    with soon():
        read = read_page(tmp_path / "p.json")
    assert len(read.wires) == 30_000
    assert len(read.notes) == 1000
    assert str(read.notes[-1]) == "there are more wires that end at unknown pins"


def test_characters_beyond_the_first_plane_are_welcome(tmp_path: Path) -> None:
    text = '{"format": "convgrad-page", "version": 1, "name": "\\ud83d\\ude00", "blocks": []}'
    assert read_page(put(tmp_path, text.encode(), "page.json")).name == "\N{GRINNING FACE}"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
KEYS = ("id", "type", "at", "pins", "task", "from", "to", "hidden", "pin-name", "pin-save")


@given(JSON_VALUES, st.sampled_from(KEYS), st.sampled_from(["blocks", "wires", "object"]))
@settings(max_examples=200, deadline=None)
def test_random_json_is_read_or_refused(value: object, key: str, top: str) -> None:
    record = {"id": "a", "type": "Add", "symbol-name": "#Add", "input": [{"pin-name": "x", key: value}]}  # fmt: skip
    for entry in (value, {**record, key: value}, {"from": value, "to": ["a", "x"], key: value}):
        page = {"format": "convgrad-page", "version": 1, "name": "", "blocks": [], top: [entry]}
        for reader in (document.read, read_enuspace_json):
            try:
                reader(json.dumps(page).encode(), "p.json")
            except ArgumentError as error:
                assert "\n" not in str(error)


# The page itself


@PIPES
def test_paths_that_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.svg")
    (tmp_path / "folder.svg").mkdir()
    (tmp_path / "circle.svg").symlink_to(tmp_path / "circle.svg")
    for name, words in {
        "pipe.svg": "it is a pipe",
        "folder.svg": "it is a folder",
        "circle.svg": "cannot be read",
        "absent.svg": "there is no such file",
        "a\0b.svg": "no file can have this name",
        "a\nb.svg": "there is no such file",
        "x" * 300 + ".svg": "cannot be read",
    }.items():
        assert words in refusal(tmp_path / name)
    with pytest.raises(ArgumentError, match="cannot be written"):
        write_page(Page("p"), tmp_path / "absent" / "p.json")


@PIPES
def test_names_that_no_line_can_show(tmp_path: Path) -> None:
    path = put(tmp_path, page_of(""), "a\nb.svg")
    page = read_page(path)
    assert page.name == r"'a\nb'"
    write_page(page, tmp_path / "p.json")
    assert read_page(tmp_path / "p.json").name == page.name
    with pytest.raises(ArgumentError, match="half a character"):
        write_page(Page("\ud800"), tmp_path / "p.json")


def test_files_that_are_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, b"")
    with path.open("wb") as file:
        file.truncate(loading.MOST_BYTES + 1)
    assert f"has {loading.MOST_BYTES + 1} bytes, more than" in refusal(path)
    monkeypatch.setattr(files, "MOST_BYTES", 10)
    assert "has 11 bytes, more than 10" in refusal(put(tmp_path, b"<svg></svg>"))


@pytest.mark.skipif(os.name == "nt", reason="links and permissions of POSIX")
def test_writing_keeps_links_and_permissions(tmp_path):
    place, link = tmp_path / "p.json", tmp_path / "link.json"
    write_page(Page("first"), place)
    place.chmod(0o600)
    link.symlink_to(place)
    write_page(Page("second"), link)
    assert link.is_symlink() and read_page(place).name == "second"
    assert place.stat().st_mode & 0o777 == 0o600
    assert sorted(tmp_path.iterdir()) == [link, place]


@pytest.mark.skipif(os.name == "nt", reason="a file that is open cannot be replaced")
def test_writers_at_once_do_not_disturb_one_another(tmp_path):
    """Two tabs save: some saves failed, and for a moment the file was cut off."""
    place, raised = tmp_path / "p.json", []

    def writes(page):
        try:
            for _ in range(8):
                write_page(page, place)
                read_page(place)
        except Exception as error:
            raised.append(error)

    pages = [Page("short"), Page("long", [Block(f"b{at}", "Relu") for at in range(3000)])]
    threads = [threading.Thread(target=writes, args=(page,)) for page in pages * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert raised == []
