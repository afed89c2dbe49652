"""Our own page file: what is written comes back, and every mistake is named with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from convgrad._apps.pages import document
from convgrad._apps.pages.files import read_page, write_page
from convgrad._apps.pages.page import DIALECTS, Block, Page, Value, Wire
from convgrad._apps.pages.setting_texts import DTYPES, VAR_TYPES
from convgrad._apps.pages.tensors import dtype_name
from convgrad._base.errors import ArgumentError
from pages_files.writing import block, save

EXAMPLE = {
    "format": "convgrad-page",
    "version": 1,
    "name": "filter gradient",
    "blocks": [
        {
            "id": "x",
            "type": "RandomNormal",
            "at": [40, 60],
            "pins": {"shape": "{1,8,8,2}", "dtype": "DT_FLOAT", "attrs": "seed_ = 1"},
        },
        {
            "id": "c",
            "type": "Const",
            "at": [0, 0],
            "pins": {"val": {"dtype": "DT_FLOAT", "shape": [2, 2], "data": [1, 2, 3, 4]}},
        },
        {"id": "df", "type": "Conv2DBackpropFilter"},
    ],
    "wires": [
        {"from": ["x", "output"], "to": ["df", "input"]},
        {"from": ["c", "output", 2], "to": ["df", "out_backprop"]},
    ],
}


def read(value: Any) -> Page:
    return document.read(json.dumps(value).encode(), "p.json")


def changed(path: list[Any], value: Any) -> Any:
    """Return the example with one thing changed."""
    copy = json.loads(json.dumps(EXAMPLE))
    inside = copy
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value
    return copy


def test_the_example() -> None:
    page = read(EXAMPLE)
    assert page.notes == []
    assert page.blocks[0] == Block(
        "x",
        "RandomNormal",
        {"shape": Value("{1,8,8,2}"), "dtype": Value("DT_FLOAT"), "attrs": Value("seed_ = 1")},
        40.0,
        60.0,
    )
    value = page.blocks[1].pins["val"]
    assert (value.type, value.shape, value.array.dtype) == ("float", (2, 2), np.float32)
    assert page.wires[1] == Wire("c", "output", 2, "df", "out_backprop")
    assert document.read(document.write(page).encode(), "p.json") == page


LETTERS = st.characters(exclude_categories=("C", "Z"))
NAMES = st.text(LETTERS, min_size=1, max_size=8)
TEXTS = st.text(max_size=20)
ARRAYS = st.sampled_from([d for n, d in DTYPES.items() if n not in ("DT_STRING", "DT_BFLOAT16")])
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)
PLACES = st.floats(-1e6, 1e6)


@st.composite
def values(draw: Any) -> Value:
    kind = draw(st.sampled_from(["text", "typed", "array", "bfloat16", "strings"]))
    if kind == "text":
        return Value(draw(TEXTS))
    if kind == "typed":
        shape = draw(st.none() | SHAPES)
        missing = draw(st.booleans())
        return Value(draw(TEXTS), draw(st.sampled_from(list(VAR_TYPES))), shape, missing=missing)
    if kind == "strings":
        array = np.array([*draw(st.lists(TEXTS, min_size=2, max_size=3)), None], object)[:-1]
        return Value("", "string", array.shape, array)
    if kind == "bfloat16":
        array = draw(hnp.arrays(np.uint16, SHAPES)).view(DTYPES["DT_BFLOAT16"])
    else:
        array = draw(hnp.arrays(draw(ARRAYS), SHAPES))
    types = {dtype: name for name, dtype in VAR_TYPES.items()}
    names = {dtype: name for name, dtype in DTYPES.items()}
    return Value("", types.get(array.dtype) or names[array.dtype], array.shape, array)


@st.composite
def pages(draw: Any) -> Page:
    ids = draw(st.lists(NAMES, unique=True, min_size=1, max_size=4))
    blocks = [
        Block(
            id,
            draw(NAMES),
            draw(st.dictionaries(NAMES, values(), max_size=3)),
            draw(PLACES),
            draw(PLACES),
            draw(st.sampled_from(["tensorflow", "logic", ""])),
        )
        for id in ids
    ]
    ends = st.sampled_from(ids)
    index = st.none() | st.integers(0, 1000)
    wires = draw(st.lists(st.builds(Wire, ends, NAMES, index, ends, NAMES, st.booleans()), max_size=4))  # fmt: skip
    name = draw(st.text(LETTERS, max_size=9))
    return Page(name, blocks, wires, draw(PLACES), draw(PLACES), draw(st.sampled_from(DIALECTS)))


@given(pages())
@settings(max_examples=150, deadline=None)
def test_pages_come_back(page: Page) -> None:
    text = document.write(page)
    again = document.read(text.encode("utf-8"), "p.json")
    again.notes = []
    assert again == page
    assert document.write(again) == text
    assert text.count("\n") <= len(page.blocks) + len(page.wires) + 6


@pytest.mark.parametrize(
    ("dtype", "bits"), [("bfloat16", 0x7F81), ("float16", 0x7C01), ("float32", 0x7F800001)]
)
def test_signalling_nans_come_back_without_a_warning(dtype: str, bits: int) -> None:
    """NumPy warns of an invalid value where it only looks at one of bfloat16."""
    size = np.dtype(dtype).itemsize
    array = np.array([bits], f"u{size}").view(dtype)
    kept = Value("", dtype_name(array.dtype), array.shape, array)
    text = document.write(Page("p", [block("A", "Const", val=kept)]))
    (again,) = document.read(text.encode("utf-8"), "p.json").blocks
    found = again.pins["val"].array
    assert found is not None and found.view(f"u{size}").tolist() == [bits]


def test_an_imported_page_comes_back(tmp_path: Path) -> None:
    big = np.arange(300, dtype=np.float64).reshape(3, 100)
    page = Page("p", [block("A", "Const", val=big), block("B", "Const", val=big[:1, :3])])
    path = save(page, tmp_path, 3)
    imported = read_page(path)
    path.with_suffix(".dat").unlink()
    missing = read_page(path)
    for each in (imported, missing):
        write_page(each, tmp_path / "ours.json")
        again = read_page(tmp_path / "ours.json")
        each.notes = []
        assert again == each
    assert again.blocks[0].pins["val"].missing
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (["format"], "page", "$.format must be \"convgrad-page\", got 'page'"),
        (["version"], 2, "$.version must be 1, got 2"),
        (["version"], True, "$.version must be 1, got True"),
        (["version"], "1", "$.version must be 1"),
        (["name"], 3, "$.name must be a text, got 3"),
        (["name"], "a\nb", "$.name must be a text of one line"),
        (["blocks"], {}, "$.blocks must be a list, got an object"),
        (["blocks"], None, "$.blocks must be a list, got None"),
        (["block"], [], "$ has the unknown name 'block' (did you mean `blocks`?)"),
        (["zzz"], [], "known are format, version"),
        (["size"], [1], "$.size must be two numbers"),
        (["dialect"], "x", "$.dialect must be one of convgrad"),
        (["dialect"], [], "$.dialect must be one of convgrad"),
        (["blocks", 0], 3, "$.blocks[0] must be an object, got 3"),
        (["blocks", 0], {"id": "x"}, "$.blocks[0] has no `type`"),
        (["blocks", 0, "id"], "", "$.blocks[0].id must be a name"),
        (["blocks", 0, "id"], "a\nb", "$.blocks[0].id must be a name"),
        (["blocks", 1, "id"], "x", "$.blocks[1].id: two blocks have the id 'x'"),
        (["blocks", 0, "type"], 3, "$.blocks[0].type must be a name"),
        (["blocks", 0, "pin"], {}, "(did you mean `pins`?)"),
        (["blocks", 0, "at"], [1, "2"], "$.blocks[0].at must be two numbers"),
        (["blocks", 0, "at"], [True, 2], "$.blocks[0].at must be two numbers"),
        (["blocks", 0, "at"], [10**400, 2], "$.blocks[0].at must be two numbers"),
        (["blocks", 0, "task"], 1, "$.blocks[0].task must be a text"),
        (["blocks", 0, "pins"], [], "$.blocks[0].pins must be an object"),
        (
            ["blocks", 0, "pins", "shape"],
            3,
            "$.blocks[0].pins['shape'] must be a text or an object",
        ),
        (["blocks", 0, "pins", ""], "", "$.blocks[0].pins[''] must be a name"),
        (["wires"], 1, "$.wires must be a list"),
        (["wires", 0, "to"], ["df"], "$.wires[0].to must be [id, pin]"),
        (["wires", 0, "from"], "x", "$.wires[0].from must be [id, pin] or"),
        (["wires", 0, "from"], ["x", 1], "$.wires[0].from[1] must be a name"),
        (["wires", 0, "from"], ["x", "y", -1], "$.wires[0].from[2] must be a whole number"),
        (["wires", 0, "from"], ["x", "y", True], "$.wires[0].from[2] must be a whole number"),
        (
            ["wires", 0, "to"],
            ["dff", "input"],
            "$.wires[0].to: no block is 'dff' (did you mean `df`?)",
        ),
        (["wires", 0, "hidden"], 1, "$.wires[0].hidden must be true or false"),
    ],
)
def test_mistakes_are_named_with_their_place(path: list[Any], value: Any, words: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        read(changed(path, value))
    assert str(caught.value).startswith("p.json: $")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        ({"dtype": "float", "shape": [], "data": [1]}, ".dtype must be one of DT_FLOAT"),
        (
            {"dtype": "DT_FLOAT", "shape": [2], "data": [1]},
            ".data must have 2 items for its shape, got 1",
        ),
        ({"dtype": "DT_FLOAT", "shape": [10**6] * 5, "data": [1]}, ".shape: shape"),
        ({"dtype": "DT_FLOAT", "shape": [0, 2**62, 2**62], "data": []}, ".shape: shape"),
        ({"dtype": "DT_FLOAT", "shape": [-1], "data": []}, ".shape[0] must be a whole number"),
        ({"dtype": "DT_FLOAT", "shape": [2**70], "data": []}, ".shape[0] must be a whole number"),
        ({"dtype": "DT_FLOAT", "shape": [1] * 33, "data": [1]}, ".shape has 33 items"),
        ({"dtype": "DT_FLOAT", "shape": [1], "data": ["1"]}, ".data[0] must be a number, got '1'"),
        (
            {"dtype": "DT_FLOAT", "shape": [1], "data": [[1]]},
            ".data[0] must be a number, got a list",
        ),
        ({"dtype": "DT_FLOAT", "shape": [1], "data": [1e39]}, ".data[0] must fit in float32"),
        ({"dtype": "DT_FLOAT", "shape": [1], "data": None}, ".data must be a list of 1 items"),
        ({"dtype": "DT_FLOAT", "shape": [1], "base64": None}, ".base64 must be a text, got null"),
        ({"dtype": "DT_INT32", "shape": [1], "data": [1.0]}, ".data[0] must be an int32, got 1.0"),
        ({"dtype": "DT_INT32", "shape": [1], "data": [2**31]}, ".data[0] must be an int32"),
        ({"dtype": "DT_BOOL", "shape": [1], "data": [2]}, ".data[0] must be true or false"),
        ({"dtype": "DT_STRING", "shape": [1], "data": [2]}, ".data[0] must be a text"),
        ({"dtype": "DT_STRING", "shape": [1], "base64": "AAAA"}, "texts are written in `data`"),
        ({"dtype": "DT_FLOAT", "shape": [1], "base64": "AAAA"}, ".base64 must have 8 characters"),
        ({"dtype": "DT_FLOAT", "shape": [1], "base64": "!!!!!!=="}, ".base64 is not valid base64"),
        (
            {"dtype": "DT_FLOAT", "shape": [1], "base64": "AAAAAAAA"},
            ".base64 must hold 4 bytes, got 6",
        ),
        ({"dtype": "DT_FLOAT", "shape": [1]}, "either `data` or `base64`"),
        (
            {"dtype": "DT_FLOAT", "shape": [1], "data": [1], "base64": "x"},
            "either `data` or `base64`",
        ),
        ({"dtype": "DT_FLOAT", "data": [1]}, "has no `shape`"),
        ({"dtype": 3, "shape": [], "data": [1]}, ".dtype must be a text"),
        ({"text": "1", "type": "complex"}, ".type must be one of string, int"),
        ({"text": 1, "type": "int"}, ".text must be a text"),
        ({"text": "1", "type": "int", "shape": "[1]"}, ".shape must be a list"),
        ({"text": "1", "type": "int", "missing": 1}, ".missing must be true or false"),
    ],
)
def test_tensors_that_do_not_fit(tensor: Any, words: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        read(changed(["blocks", 1, "pins", "val"], tensor))
    assert str(caught.value).startswith("p.json: $.blocks[1].pins['val']")
    assert words in str(caught.value)
    assert len(str(caught.value)) < 500


def test_wires_to_unknown_pins_load_with_a_note() -> None:
    page = read(changed(["wires", 0, "to"], ["df", "inputs"]))
    assert [str(note) for note in page.notes] == [
        "df: Conv2DBackpropFilter has no input pin `inputs` (did you mean `input`?)"
    ]
    page = read(changed(["wires", 0, "from"], ["x", "result_output"]))
    assert page.notes == []
    page = read(changed(["blocks", 2, "type"], "SomethingElse"))
    assert page.notes == []


def test_pages_that_cannot_be_written() -> None:
    with pytest.raises(ArgumentError, match="position must be finite"):
        document.write(Page("p", [Block("a", "Add", x=float("nan"))]))
    with pytest.raises(ArgumentError, match="no dtype of a page"):
        document.write(Page("p", [block("a", "Add", x=Value(array=np.zeros(1, np.complex64)))]))


def test_numbers_are_few_and_short() -> None:
    text = document.write(Page("p", [block("a", "Const", val=np.array([0.1, 1e-7], np.float32))]))
    assert '"data": [0.1, 1e-07]' in text
    text = document.write(Page("p", [block("a", "Const", val=np.zeros(65, np.float32))]))
    assert '"base64": "AAAA' in text
