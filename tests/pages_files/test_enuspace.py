"""enuSpace's pages, written by `writing.py` in both dialects and as JSON, and read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from convgrad._apps.pages import symbols
from convgrad._apps.pages.enuspace_json import read_enuspace_json
from convgrad._apps.pages.enuspace_svg import read_svg
from convgrad._apps.pages.files import read_page
from convgrad._apps.pages.page import Page, Value, Wire
from convgrad._apps.pages.setting_texts import attribute_value, attributes
from convgrad._apps.pages.tensor_texts import typed_array
from convgrad._base.errors import ArgumentError
from pages_files.writing import block, json_text, save, svg_text, wire

A = np.array([[3, 2], [-1, 0]], np.float64)
BIG = np.random.default_rng(0).standard_normal((20, 30)).astype(np.float32)
COUNTS = np.arange(250, dtype=np.int32)
FLAGS = np.arange(300) % 3 == 0


def sample() -> Page:
    """Return a page with a value of every kind."""
    return Page(
        "sample",
        [
            block("ID_A", "Const", (917.22, 293.44), val=A, output="", scope="scope"),
            block("ID_B", "Const_ex", (-10, 5), val=BIG, dtype="DT_FLOAT"),
            block("ID_N", "Const", val=COUNTS, result_output=FLAGS),
            block("ID_S", "Const", val=np.float64(0.001)),
            block("ID_I", "Const", val=np.array([[1], [2]], np.int32)),
            block("ID_F", "Const", val=np.array([True, False])),
            block(
                "ID_C", "Conv2D", strides="{1,2,2,1}", padding="SAME", attrs="dilations_={1,1,1,1}"
            ),
            block("ID_G", "AddSymbolicGradients"),
            block("ID_SESSION", "ClientSession"),
            block("ID_T", "SENSOR_TREND", task="logic", IN="<&\"'>"),
        ],
        [
            wire("ID_B.output > ID_SESSION.fetch_outputs"),
            wire("ID_A.output > ID_SESSION.fetch_outputs", hidden=True),
            wire("ID_G.grad_outputs[3] > ID_C.input"),
            wire("ID_N.result_output > ID_T.IN"),
        ],
        1920,
        1080,
    )


@pytest.fixture(params=[3, 4])
def version(request: pytest.FixtureRequest) -> int:
    return request.param


def test_both_dialects(tmp_path: Path, version: int) -> None:
    wanted = sample()
    page = read_page(save(wanted, tmp_path, version))
    assert page.dialect == f"enuspace-{version}"
    assert (page.name, page.width, page.height) == ("sample", 1920, 1080)
    assert page.notes == []
    assert page.wires == wanted.wires
    assert [(b.id, b.symbol, b.x, b.y, b.task) for b in page.blocks] == [
        (b.id, b.symbol, b.x, b.y, b.task) for b in wanted.blocks
    ]
    for got, put in zip(page.blocks, wanted.blocks, strict=True):
        for name, pin in put.pins.items():
            assert (got.pins[name].type, got.pins[name].shape) == (pin.type, pin.shape)
            assert_same(got.pins[name], pin)


def assert_same(got: Value, put: Value) -> None:
    if put.array is None:
        assert got.text == put.text
    elif got.array is not None:
        np.testing.assert_array_equal(got.array, put.array)
        assert got.array.dtype == put.array.dtype
        assert got.array.flags.writeable
    else:
        assert put.array.size < 200
        assert got.shape is not None
        read = typed_array(got.text, got.type, got.shape)
        np.testing.assert_array_equal(read, put.array)
        assert read.dtype == put.array.dtype


def test_missing_pins_are_filled_from_the_table(tmp_path: Path, version: int) -> None:
    page = read_page(save(sample(), tmp_path, version))
    session = page.block("ID_SESSION")
    assert session is not None
    assert session.pins["device"].text == "/cpu:0"
    assert session.pins["INFINITE_LOOP"].text == "0"
    assert page.block("ID_T").pins.keys() == {"IN"}


def test_blocks_of_other_tasks_are_kept_and_told_apart(tmp_path: Path) -> None:
    page = sample()
    page.blocks[0].task = "enu_tensorflow2_0"
    read = read_page(save(page, tmp_path, 4))
    assert [b.id for b in read.blocks if not b.in_graph] == ["ID_T"]


@pytest.mark.parametrize("separator", [";", ","])
def test_json(tmp_path: Path, separator: str) -> None:
    wanted = sample()
    text, dat = json_text(wanted, separator)
    path = tmp_path / "sample.json"
    path.write_bytes(b"\xff\xfe" + text.encode("utf-16-le"))
    path.with_suffix(".dat").write_bytes(dat)
    page = read_page(path)
    assert page.dialect == "enuspace-json"
    assert sorted(page.wires, key=str) == sorted(
        (
            Wire(w.source, w.source_pin, w.source_index, w.target, w.target_pin)
            for w in wanted.wires
        ),
        key=str,
    )
    # The order inside a list is that of the file.
    assert [w.source for w in page.wires_into("ID_SESSION", "fetch_outputs")] == ["ID_B", "ID_A"]
    for got, put in zip(page.blocks, wanted.blocks, strict=True):
        for name, pin in put.pins.items():
            assert_same(got.pins[name], pin)
    assert len({(b.x, b.y) for b in page.blocks}) == len(page.blocks)
    assert page.block("ID_SESSION").x > page.block("ID_A").x


def test_json_in_utf8(tmp_path: Path) -> None:
    text, _ = json_text(sample())
    (tmp_path / "sample.json").write_text(text, encoding="utf-8")
    assert len(read_page(tmp_path / "sample.json").blocks) == 10


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8", "utf-8-sig"])
def test_encodings(encoding: str, version: int) -> None:
    text, _ = svg_text(sample(), version)
    data = text.encode(encoding)
    if encoding == "utf-16-be":
        data = b"\xfe\xff" + data
    page = read_svg(data, "x.svg")
    notes = [note.text for note in page.notes if "UTF-8" in note.text]
    assert len(notes) == ("8" in encoding)


def test_blocks_inside_groups_and_libraries() -> None:
    text = """<svg enuspace-version="3.0"><g transform="translate(10, 20)"><g>
      <use id="A" type="tensorflow" xlink:href="#Relu" transform="translate(1.5 2)" x="3" y="4"/></g></g>
      <defs><symbol id="S"><use id="A" type="tensorflow" xlink:href="#Add"/>
      <pg-link from-id="A" param-from="y" to-id="A" param-to="x"/></symbol></defs></svg>"""
    page = read_svg(text.encode("utf-16"), "x.svg")
    assert [(b.symbol, b.x, b.y) for b in page.blocks] == [("Relu", 14.5, 26.0)]
    assert page.wires == []


def test_pins_of_either_spelling() -> None:
    text = """<svg enuspace-version="3.0.1.16"><use id="A" type="tensorflow" xlink:href="#Const">
      <pg-set-pin variable="#val[2][1]" type="int" value="1;2"/>
      <pg-set-pin variable="#val" type="int" value="3"/>
      <pg-set-pin variable="result_output" var-type="odd" shape="[x]"/>
      <pg-set-pin variable="" value="3"/>
      <pg-set-attribute variable="#m_x" value="3"/></use>
      <polyline visibility="hidden"><pg-link from-id="A" param-from="#output" to-id="A" param-to="#val"/></polyline>
      <pg-link from-id="A" param-from="output" to-id="GONE" param-to="x"/>
      <pg-link from-id="A" to-id="A" param-to="x"/>
      <use id="" type="logic"/><pg-set-pin variable="#loose" value="1"/></svg>"""
    page = read_svg(text.encode("utf-16"), "x.svg")
    (const,) = page.blocks
    assert const.pins["val"] == Value("1;2", "int", (2, 1))
    assert page.wires == [Wire("A", "output", None, "A", "val", hidden=True)]
    notes = [str(note) for note in page.notes]
    assert len(notes) == 7
    assert "A: pin `val` is there twice; the first one counts" in notes
    assert any("no block is 'GONE'" in note for note in notes)
    assert "A: pin `result_output`: the unknown type 'odd' is read as string" in notes
    assert const.pins["result_output"].type == "string"


def test_a_dat_that_is_absent_or_short(tmp_path: Path, version: int) -> None:
    path = save(sample(), tmp_path, version)
    dat = path.with_suffix(".dat")
    whole = dat.read_bytes()
    dat.write_bytes(whole[:-1])
    page = read_page(path)
    assert [note.block for note in page.notes] == ["ID_N"]
    assert page.block("ID_N").pins["result_output"] == Value("", "bool", (300,), missing=True)
    assert page.block("ID_B").pins["val"].array is not None
    dat.unlink()
    page = read_page(path)
    assert page.block("ID_B").pins["val"].missing
    assert {note.block for note in page.notes} == {"ID_B", "ID_N"}
    assert all("there is no 'sample.dat'" in note.text for note in page.notes)


def test_projects_libraries_and_exports_say_what_they_are(tmp_path: Path) -> None:
    project = """<?xml-stylesheet href="a"?><svg pg-classname="project" pg-project="p">
      <pg-global xlink:href="global\\global.svg"/><pg-picture xlink:href="picture\\a.svg"/></svg>"""
    path = tmp_path / "p.enup"
    path.write_bytes(project.encode("utf-16"))
    with pytest.raises(ArgumentError, match=r"a project; open one of its pages: .*a\.svg"):
        read_page(path)
    with pytest.raises(ArgumentError, match="a library of symbols"):
        read_svg(b'<svg pg-libraryname="core"/>', "x.svg")
    with pytest.raises(ArgumentError, match="a page begins with `svg`"):
        read_svg(b"<html/>", "x.svg")
    web = tmp_path / "web"
    web.mkdir()
    flat = sample()
    flat.wires = []
    texts = [note.text for note in read_page(save(flat, web, 3)).notes]
    assert any("exports for browsers" in text for text in texts)
    assert any("there are no wires" in text for text in texts)
    assert any("no blocks" in note.text for note in read_svg(b"<svg/>", "x.svg").notes)


def test_json_that_is_refused() -> None:
    for text, words in {
        "[]": "$ must be an object",
        "{}": "$.object must be a list",
        '{"object": [1]}': "$.object[0] must be an object",
        '{"object": [{"id": "a"}]}': "$.object[0]['symbol-name'] must be a name",
        '{"object": [{"id": "", "symbol-name": "#Add"}]}': "must be a name",
        '{"object": [{"id": "a", "symbol-name": "#Add", "input": 3}]}': "$.object[0].input",
        '{"object": [{"id": "a", "symbol-name": "#Add", "input": [{}]}]}': "['pin-name']",
        '{"object": [{"id": "a", "symbol-name": "#A"}, {"id": "a", "symbol-name": "#A"}]}': "two blocks",
        '{"object": [{"id": "a", "symbol-name": "#A", "input": [{"pin-name": "x", "pin-initial": []}]}]}': "a text",
    }.items():
        with pytest.raises(ArgumentError) as caught:
            read_enuspace_json(text.encode(), "x.json")
        assert words in str(caught.value)
        assert str(caught.value).startswith("x.json: ")


def test_the_table_of_symbols() -> None:
    computed = {name for name, row in symbols.SYMBOLS.items() if row.computed}
    assert {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"} <= computed
    assert {"DepthwiseConv2dNativeBackpropFilter", "OneHot", "AddN", "Variable"} <= computed
    assert not {"Switch", "Save", "TensorArrayWrite", "FIFOQueue"} & computed
    assert symbols.find("Conv2DBackpropInput").pin("input_sizes").kind == symbols.WIRE
    assert symbols.find("Reshape").pin("shape").dtype == "DT_INT32"
    for row in symbols.SYMBOLS.values():
        attrs = row.pin("attrs")
        assert (attrs is None) == (not row.attrs)
        if attrs is not None:  # every default is known, misspelt or not
            given, notes = attributes(attrs.default, row.attrs)
            assert not [note for note in notes if "unknown" in note]
            for name, text in given.items():
                attribute_value(row.attrs[name], text)
