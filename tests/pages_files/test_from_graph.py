"""Graphs as pages: every node a block, nothing lost, nothing overlaps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from convgrad._apps.pages import document, layout
from convgrad._apps.pages.from_graph import page_of
from convgrad._apps.pages.page import Block, Page, Value, Wire
from convgrad._apps.pages.setting_texts import attribute_value, attributes, dtype, ints, shape
from convgrad._base.errors import ArgumentError
from convgrad.graph import Scope, ops
from pages_files.graphs import Case, document_block, every_op, network

CASES = {"document": document_block, "network": network, "every op": every_op}


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_a_page_file_brings_the_page_back(make: Callable[[], Case]) -> None:
    case = make()
    page = page_of(case.graph, "saved", case.initial)
    text = document.write(page)
    back = document.read(text.encode(), "saved.json")
    assert back == page
    assert document.write(back) == text
    assert back.notes == []


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_every_node_input_and_attribute_is_on_the_page(make: Callable[[], Case]) -> None:
    case = make()
    page = page_of(case.graph, "saved", case.initial)
    blocks, wires = page.by_id(), page.wires_by_pin()
    assert [block.id for block in page.blocks] == [node.name for node in case.graph.nodes]
    for node in case.graph.nodes:
        block = blocks[node.name]
        found = [
            (wire.source, wire.source_pin)
            for pin in node.row.inputs
            for wire in wires.get((node.name, pin.name), [])
        ]
        assert found == [(each.operation.name, each.pin) for each in node.inputs]
        if node.type == "Const":
            array = block.pins["val"].array
            assert array is not None
            assert array.dtype == node.attrs["value"].dtype
            assert array.tobytes() == node.attrs["value"].tobytes()
            continue
        readers = {"ints": ints, "type": dtype, "string": str, "shape": shape}
        for attr in node.row.required:
            assert readers[attr.kind](block.pins[attr.name].text) == node.attrs[attr.name]
        kinds = {f"{attr.name}_": attr.kind for attr in node.row.optional}
        text = block.pins["attrs"].text if kinds else ""
        given, notes = attributes(text, kinds)
        assert not notes
        for attr in node.row.optional:
            value = given.get(f"{attr.name}_")
            read = attr.default if value is None else attribute_value(attr.kind, value)
            if attr.kind == "shape" and read is not None:
                read = tuple(None if size < 0 else size for size in read)
            assert read == node.attrs[attr.name], (node, attr)


def test_texts_are_those_people_type() -> None:
    scope = Scope.new_root_scope()
    x = ops.Placeholder(scope.with_op_name("x"), "float32", [1, None, 8, 2])
    scalar = ops.Placeholder(scope.with_op_name("scalar"), "int64", [])
    ops.Placeholder(scope.with_op_name("any"), "half")
    w = ops.Variable(scope.with_op_name("w"), [3, 3, 2, 1], "float32")
    ops.Variable(scope.with_op_name("s"), [], "float32")
    ops.Conv2D(
        scope.with_op_name("y"),
        x,
        w,
        [1, 2, 2, 1],
        "SAME",
        data_format="NHWC",
        dilations=[1, 1, 1, 1],
    )
    ops.Conv2D(scope.with_op_name("z"), x, w, [1, 1, 1, 1], "VALID", dilations=[1, 2, 2, 1])
    ops.OneHot(scope.with_op_name("h"), scalar, 3, 1.0, 0.0)
    page = page_of(scope.graph, "texts", {"w": np.ones((3, 3, 2, 1)).tolist()})
    texts = {
        block.id: {pin: value.text for pin, value in block.pins.items()} for block in page.blocks
    }
    assert texts["x"] == {"dtype": "DT_FLOAT", "attrs": "shape_ = [1][?][8][2]"}
    assert texts["scalar"] == {"dtype": "DT_INT64", "attrs": "shape_ = {}"}
    assert texts["any"] == {"dtype": "DT_HALF", "attrs": ""}
    assert texts["y"] == {"strides": "1,2,2,1", "padding": "SAME", "attrs": ""}
    assert texts["z"] == {
        "strides": "1,1,1,1",
        "padding": "VALID",
        "attrs": "dilations_ = {1,2,2,1}",
    }
    # An absent pin would mean enuSpace's default, the first axis.
    assert texts["h"] == {"attrs": ""}
    w_pins = page.by_id()["w"].pins
    assert (w_pins["shape"].text, w_pins["dtype"].text) == ("[3][3][2][1]", "DT_FLOAT")
    assert w_pins["initvalues"] == Value(
        "", "float", (3, 3, 2, 1), np.ones((3, 3, 2, 1), np.float32)
    )
    assert page.by_id()["s"].pins["initvalues"] == Value()


def test_what_has_no_text_is_refused() -> None:
    scope = Scope.new_root_scope()
    ops.Variable(scope.with_op_name("w"), None, "float32")
    with pytest.raises(ArgumentError, match=r"page_of: node 'w': `shape`: no text .* unknown rank"):
        page_of(scope.graph, "p")
    scope = Scope.new_root_scope()
    ops.Variable(scope.with_op_name("w"), [2], "float32", container="a;b")
    with pytest.raises(ArgumentError, match=r"page_of: node 'w': attribute `container_`"):
        page_of(scope.graph, "p")
    with pytest.raises(
        ArgumentError, match=r"page_of: `initial\['w'\]` must have shape \[2\], got"
    ):
        scope = Scope.new_root_scope()
        ops.Variable(scope.with_op_name("w"), [2], "float32")
        page_of(scope.graph, "p", {"w": [1.0]})
    with pytest.raises(ArgumentError, match=r"page_of: `initial` must name Variables .* got 'v'"):
        page_of(Scope.new_root_scope().graph, "p", {"v": 1})
    scope = Scope.new_root_scope()
    ops.Const(scope, 1).operation.name = "a\nb"
    with pytest.raises(ArgumentError, match="page_of: the name of a node must be one line"):
        page_of(scope.graph, "p")


def overlaps(page: Page) -> list[tuple[str, str]]:
    sides = layout.sides_of(page)
    boxes = [(block.id, block.x, block.y, sides[block.id].height) for block in page.blocks]
    return [
        (a, b)
        for at, (a, x, y, height) in enumerate(boxes)
        for b, other_x, other_y, other_height in boxes[:at]
        if abs(x - other_x) < layout.WIDTH and y < other_y + other_height and other_y < y + height
    ]


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_nothing_overlaps_and_wires_go_right(make: Callable[[], Case]) -> None:
    page = page_of(make().graph, "p")
    again = page_of(make().graph, "p")
    assert page == again
    assert overlaps(page) == []
    blocks = page.by_id()
    assert all(blocks[wire.source].x < blocks[wire.target].x for wire in page.wires)
    sides = layout.sides_of(page)
    for block in page.blocks:
        assert layout.MARGIN <= block.x <= page.width - layout.WIDTH - layout.MARGIN
        assert layout.MARGIN <= block.y <= page.height - sides[block.id].height - layout.MARGIN


def test_columns_are_longest_ways() -> None:
    scope = Scope.new_root_scope()
    x = ops.Placeholder(scope.with_op_name("x"), "float32")
    a = ops.Relu(scope.with_op_name("a"), x)
    b = ops.Relu(scope.with_op_name("b"), a)
    late = ops.Const(scope.with_op_name("late"), 1.0)
    ops.Add(scope.with_op_name("sum"), x, ops.Add(scope.with_op_name("inner"), b, late))
    page = page_of(scope.graph, "p")
    step = layout.WIDTH + layout.GAP_X
    columns = {block.id: (block.x - layout.MARGIN) / step for block in page.blocks}
    assert columns == {"x": 0, "a": 1, "b": 2, "late": 2, "inner": 3, "sum": 4}


def test_pages_with_circles_and_loose_ends_are_arranged() -> None:
    blocks = [Block(name, "Add") for name in "abc"]
    wires = [
        Wire("a", "z", None, "b", "x"),
        Wire("b", "z", None, "a", "x"),
        Wire("gone", "z", None, "c", "x"),
        Wire("c", "z", None, "c", "y"),
    ]
    page = Page("circle", blocks, wires)
    layout.arrange(page)
    assert overlaps(page) == []
    layout.arrange(empty := Page("empty"))
    assert (empty.width, empty.height) == (layout.MARGIN, layout.MARGIN)
