"""What enuSpace does with a page, statement by statement: texts on pins, lists, sessions, Variables, oddities.

The same page may mean something else as one of ours; where that is so, both are tested.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from convgrad._apps.pages.build import build
from convgrad._apps.pages.built import Built
from convgrad._apps.pages.files import read_page
from convgrad._apps.pages.page import Block, Page, Value
from convgrad._apps.pages.run import PageRun
from convgrad._base.errors import ArgumentError
from pages_files.writing import block, save, wire

ONE_TWO = np.array([1, 2], np.float32)


def made(blocks: list[Block], *wires: str, dialect: str = "enuspace-3") -> Built:
    """Build a page."""
    return build(Page("p", blocks, [wire(each) for each in wires], dialect=dialect))


def fetched(blocks: list[Block], *wires: str, dialect: str = "enuspace-3") -> dict[str, Any]:
    """Run a page once, its last block wired to a session; return the last block's outputs."""
    last = blocks[-1]
    pins = {"Variable": "ref", "Add": "z", "AddN": "sum", "MatMul": "product", "Negate": "y"}
    end = f"{last.id}.{pins.get(last.symbol, 'output')} > session.fetch_outputs"
    built = made([*blocks, block("session", "ClientSession")], *wires, end, dialect=dialect)
    assert built.problems == {}
    return PageRun(built).step()[last.id]


def problem(blocks: list[Block], *wires: str, dialect: str = "enuspace-3") -> str:
    """Return what is wrong with the last block."""
    return made(blocks, *wires, dialect=dialect).problems[blocks[-1].id]


# Constants.


def test_a_const_has_the_type_and_shape_of_its_pin() -> None:
    value = Value("1.000000;2.000000", "int", (2, 1))
    assert fetched([block("c", "Const", val=value)])["output"].tolist() == [[1], [2]]
    flat = Value("{1,2}", "double", (1, 2))
    assert fetched([block("c", "Const", val=flat)])["output"].tolist() == [[1, 2]]


def test_a_const_of_type_string_is_a_text() -> None:
    assert "`val` is a text" in problem([block("c", "Const", val="{0}")])
    ours = fetched([block("c", "Const", val="{0}")], dialect="convgrad")
    assert ours["output"].tolist() == [0]


def test_a_const_ex_is_read_by_its_dtype() -> None:
    nothing = fetched([Block("c", "Const_ex", {"val": Value("{0}"), "dtype": Value("DT_INT32")})])
    assert nothing["output"].dtype == np.int32 and nothing["output"].shape == ()
    value = Value("0.1;2", "double", (2,))
    floats = fetched([block("c", "Const_ex", val=value, dtype="DT_FLOAT")])["output"]
    assert floats.tobytes() == np.float32([0.1, 2]).tobytes()
    wide = fetched([block("c", "Const_ex", val=Value("{3,4}", "int", (2,)), dtype="DT_INT64")])
    assert wide["output"].dtype == np.int64
    truth = fetched(
        [block("c", "Const_ex", val=Value("1;0;TRUE", "string", (3,)), dtype="DT_BOOL")]
    )
    assert truth["output"].tolist() == [True, False, True]


def test_a_stored_const_ex_has_the_type_of_its_pin() -> None:
    stored = Value("", "float", (2,), ONE_TWO)
    found = fetched([block("c", "Const_ex", val=stored, dtype="DT_INT32")])["output"]
    assert found.dtype == np.float32


@pytest.mark.parametrize("text", ["1;2;3", "1"])
def test_items_must_be_as_many_as_the_shape_has(text: str) -> None:
    words = problem([block("c", "Const", val=Value(text, "float", (2,)))])
    assert "shape [2] needs 2 items" in words


# Variables: the four cases, in their order.


def test_a_variable_wired_to_a_constant_takes_everything_from_it() -> None:
    blocks = [
        block("c", "Const", val=ONE_TWO),
        block("v", "Variable", shape="{7}", dtype="DT_INT32", initvalues="{9}"),
    ]
    found = fetched(blocks, "c.output > v.initvalues")["ref"]
    assert found.tobytes() == ONE_TWO.tobytes()


def test_a_variable_cannot_begin_with_anything_but_a_constant() -> None:
    blocks = [
        block("c", "Const", val=ONE_TWO),
        block("n", "Negate"),
        block("v", "Variable", dtype="", initvalues=""),
    ]
    words = problem(blocks, "c.output > n.x", "n.y > v.initvalues")
    assert words == "`initvalues` must be wired to one Const or Const_ex"


def test_a_variable_of_text_has_the_dtype_and_shape_of_its_pins() -> None:
    pins = {"dtype": "DT_FLOAT", "initvalues": "{{1,2},{3,4.5}}"}
    found = fetched([block("v", "Variable", shape="{2,2}", **pins)])["ref"]
    assert found.dtype == np.float32 and found.tolist() == [[1, 2], [3, 4.5]]
    assert "shape on the pin `shape`, [4]" in problem([block("v", "Variable", shape="{4}", **pins)])
    odd = Value("{{1,2},{3,4}}", "string", (4,))
    words = problem([block("v", "Variable", shape="[2][2]", dtype="DT_FLOAT", initvalues=odd)])
    assert "its own shape, [4]" in words


def test_a_variable_without_dtype_takes_it_from_its_values() -> None:
    value = Value("1;2;3", "float", (3, 1))
    found = fetched([block("v", "Variable", shape="{2,2}", dtype="", initvalues=value)])["ref"]
    assert found.dtype == np.float32 and found.shape == (3, 1)
    words = problem([block("v", "Variable", shape="{2,2}", dtype="", initvalues="{1,2}")])
    assert words.startswith("`initvalues` is a text")


def test_a_variable_with_two_types_is_refused() -> None:
    value = Value("1;2", "float", (2,))
    words = problem([block("v", "Variable", shape="{2}", dtype="DT_FLOAT", initvalues=value)])
    assert "`dtype` must be empty" in words


def test_a_stored_variable_may_repeat_its_type() -> None:
    stored = Value("", "float", (2,), ONE_TWO)
    same = block("v", "Variable", shape="{2}", dtype="DT_FLOAT", initvalues=stored)
    assert fetched([same])["ref"].tolist() == [1, 2]
    other = block("v", "Variable", shape="{2}", dtype="DT_DOUBLE", initvalues=stored)
    assert "`dtype` must be empty" in problem([other])


def test_defaults_of_a_variable_are_those_of_the_library(tmp_path: Path) -> None:
    page = Page(
        "p",
        [block("v", "Variable"), block("s", "ClientSession")],
        [wire("v.ref > s.fetch_outputs")],
    )
    found = PageRun(build(read_page(save(page, tmp_path, 3)))).step()["v"]["ref"]
    assert found.dtype == np.float64 and found.tolist() == [[1, 2], [3, 4]]


# Texts on input pins.


@pytest.mark.parametrize(
    ("text", "dtype", "value"),
    [
        ("99", np.int32, 99),
        ("{100}", np.int32, [100]),
        ("0.1", np.float64, 0.1),
        ("{0.5f,2}", np.float32, [0.5, 2]),
        ("{{1,2},{3,4}}", np.int32, [[1, 2], [3, 4]]),
    ],
)
def test_literals(text: str, dtype: Any, value: Any) -> None:
    found = fetched([block("a", "Add", x=text, y=text)])["z"]
    assert found.dtype == dtype and np.allclose(found, np.multiply(value, 2))


def test_literals_are_not_converted_to_the_wires_type() -> None:
    blocks = [block("c", "Const", val=ONE_TWO), block("a", "Add", y="0.5")]
    assert "float64" in problem(blocks, "c.output > a.x")
    ours = fetched(blocks, "c.output > a.x", dialect="convgrad")["z"]
    assert ours.dtype == np.float32


def test_a_list_needs_braces() -> None:
    blocks = [block("c", "Const", val=np.float32([[1]])), block("m", "Mean", axis="0,1")]
    assert "need braces" in problem(blocks, "c.output > m.input")
    assert fetched(blocks, "c.output > m.input", dialect="convgrad")["output"] == 1


def test_a_wire_wins_over_text() -> None:
    blocks = [block("c", "Const", val=ONE_TWO), block("n", "Negate", x="{7f,7f}")]
    assert fetched(blocks, "c.output > n.x")["y"].tolist() == [-1, -2]


def test_text_on_a_pin_that_needs_a_wire_means_nothing() -> None:
    assert problem([block("r", "Relu", features="{1f}")]) == "`features` needs a wire"


def test_results_and_texts_of_outputs_are_never_read() -> None:
    stale = Value("9;9", "float", (2,))
    blocks = [
        block("c", "Const", val=ONE_TWO, output="5", result_output=stale, scope="nonsense"),
        block("n", "Negate", y="8", result_y=stale),
    ]
    assert fetched(blocks, "c.output > n.x", "c.output > n.scope")["y"].tolist() == [-1, -2]
    assert "no such output" in problem(blocks, "c.result_output > n.x")


def test_a_wire_to_no_pin_is_a_note() -> None:
    blocks = [block("c", "Const", val=ONE_TWO), block("n", "Negate", x="1")]
    built = made(blocks, "c.output > n.xx")
    assert built.problems == {}
    assert any("has no input pin `xx`" in note.text for note in built.notes if note.block == "n")
    assert "has no input pin `xx`" in problem(blocks, "c.output > n.xx", dialect="convgrad")


# Lists.


def test_lists_are_flattened_in_the_order_of_their_wires() -> None:
    blocks = [
        *(block(f"c{at}", "Const", val=np.float32(10**at)) for at in range(3)),
        block("inner", "InputList"),
        block("outer", "InputList"),
        block("sum", "AddN"),
    ]
    wires = [
        "c2.output > inner.outputlist",
        "c0.output > inner.outputlist",
        "c1.output > outer.outputlist",
        "inner.output > outer.outputlist",
        "outer.output > sum.inputs",
    ]
    built = made(blocks, *wires)
    order = [each.operation.name for each in built.outputs["outer"]["output"]]
    assert order == ["c1", "c2", "c0"]
    assert fetched(blocks, *wires)["sum"] == 111


def test_a_list_of_literals() -> None:
    assert fetched([block("sum", "AddN", inputs="{1f,2f};{3f,4f}")])["sum"].tolist() == [4, 6]


# Sessions.


def counter() -> list[Block]:
    """Return a Variable that an Assign doubles."""
    return [
        block("v", "Variable", shape="{}", dtype="DT_FLOAT", initvalues="1"),
        block("double", "Add"),
        block("set", "Assign"),
    ]


COUNTS = ("v.ref > double.x", "v.ref > double.y", "v.ref > set.ref", "double.z > set.value")


def test_operations_run_and_are_not_fetched() -> None:
    blocks = [*counter(), block("run", "Operation"), block("s", "ClientSession")]
    wires = (*COUNTS, "set.output_ref > run.operation", "run.output > s.run_outputs")
    run = PageRun(made(blocks, *wires, "v.ref > s.fetch_outputs"))
    assert [run.step()["v"]["ref"].item() for _ in range(4)] == [1, 2, 4, 8]
    assert set(run.step()) == {"v"}


def test_operations_do_not_run_alone() -> None:
    blocks = [*counter(), block("run", "Operation"), block("s", "ClientSession")]
    run = PageRun(
        made(blocks, *COUNTS, "set.output_ref > run.operation", "run.output > s.run_outputs")
    )
    assert run.step() == {}
    assert run.session.variables["v"] == 1


def test_run_outputs_takes_operations_alone() -> None:
    blocks = [*counter(), block("s", "ClientSession")]
    wires = (*COUNTS, "v.ref > s.fetch_outputs", "set.output_ref > s.run_outputs")
    assert "put a block Operation behind Assign 'set'" in problem(blocks, *wires)
    run = PageRun(made(blocks, *wires, dialect="convgrad"))
    assert [run.step()["v"]["ref"].item() for _ in range(3)] == [1, 2, 4]


def test_sessions_run_in_the_order_of_their_ids() -> None:
    blocks = [*counter(), block("s2", "ClientSession"), block("s1", "ClientSession")]
    wires = (*COUNTS, "v.ref > s2.fetch_outputs", "set.output_ref > s1.fetch_outputs")
    run = PageRun(made(blocks, *wires))
    # The second sees what the first has changed.
    assert [run.step()["v"]["ref"].item() for _ in range(3)] == [2, 4, 8]


def test_everything_before_what_is_fetched_is_refreshed() -> None:
    blocks = [*counter(), block("aside", "Negate"), block("s", "ClientSession")]
    run = PageRun(made(blocks, *COUNTS, "v.ref > aside.x", "set.output_ref > s.fetch_outputs"))
    first = run.step()
    assert {id: float(value) for id, pins in first.items() for value in pins.values()} == {
        "set": 2,
        "v": 1,
        "double": 2,
    }


def test_lists_are_fetched_whole() -> None:
    blocks = [
        *(block(f"c{at}", "Const", val=np.float32(at)) for at in range(3)),
        block("list", "InputList"),
        block("s", "ClientSession"),
    ]
    wires = [f"c{at}.output > list.outputlist" for at in range(3)]
    found = PageRun(made(blocks, *wires, "list.output > s.fetch_outputs")).step()
    assert {id: pins["output"].item() for id, pins in found.items()} == {"c0": 0, "c1": 1, "c2": 2}


def test_a_page_without_a_session_has_nothing_to_run() -> None:
    with pytest.raises(ArgumentError, match="ClientSession"):
        PageRun(made([block("c", "Const", val=ONE_TWO)]))


def test_elements_of_a_list_of_gradients() -> None:
    blocks = [
        block("a", "Variable", shape="{}", dtype="DT_FLOAT", initvalues="3"),
        block("b", "Variable", shape="{}", dtype="DT_FLOAT", initvalues="5"),
        block("ab", "Multiply"),
        block("g", "AddSymbolicGradients"),
        block("n", "Negate"),
    ]
    wires = [
        "a.ref > ab.x",
        "b.ref > ab.y",
        "ab.z > g.outputs",
        "a.ref > g.inputs",
        "b.ref > g.inputs",
    ]
    assert fetched(blocks, *wires, "g.grad_outputs[1] > n.x")["y"] == -3
    assert "element 2" in problem(blocks, *wires, "g.grad_outputs[2] > n.x")


# Blocks that are not computed.


def test_unknown_blocks_are_refused_by_name() -> None:
    built = made(
        [
            block("d", "Dilation2D"),
            block("r", "Restore"),
            block("n", "Negate"),
            block("s", "ClientSession"),
        ],
        "d.output > n.x",
        "n.y > s.fetch_outputs",
    )
    assert built.problems["d"] == "Dilation2D is not computed here: no block of this name is known"
    assert built.problems["r"] == "Restore is not computed here"
    with pytest.raises(ArgumentError, match="d: Dilation2D is not computed here"):
        PageRun(built)


def test_blocks_of_other_tasks_are_dropped_with_their_wires() -> None:
    blocks = [
        block("n", "Negate", x="2f"),
        block("lcd", "SENSOR_LCD", task="logic"),
        block("s", "ClientSession"),
    ]
    built = made(blocks, "n.result_y > lcd.IN", "lcd.OUT > n.x", "n.y > s.fetch_outputs")
    assert built.problems == {}
    assert {note.block for note in built.notes if "not a block of a graph" in note.text} == {
        "n",
        "lcd",
    }
    assert PageRun(built).step()["n"]["y"] == -2


# Attributes the original reads, does not read, or spells in its own way.


def test_the_axis_of_one_hot_is_never_read() -> None:
    hot = block(
        "h", "OneHot", indices="{0,2}", depth="3", on_value="1", off_value="0", attrs="axis_=0"
    )
    assert fetched([hot])["output"].tolist() == [[1, 0, 0], [0, 0, 1]]
    assert fetched([hot], dialect="convgrad")["output"].tolist() == [[1, 0], [0, 0], [0, 1]]


def test_the_seeds_of_random_normal_ex_are_never_read() -> None:
    def drawn(seed: int, dialect: str) -> bytes:
        pins = {"shape": "[3]", "dtype": "DT_FLOAT", "attrs": f"seed_={seed};seed2_=7"}
        return fetched([block("r", "RandomNormal_ex", **pins)], dialect=dialect)["output"].tobytes()

    assert drawn(1, "enuspace-4") == drawn(2, "enuspace-4")
    assert drawn(1, "convgrad") != drawn(2, "convgrad")


def test_the_seeds_of_random_normal_are_read() -> None:
    def drawn(seed: int) -> bytes:
        sizes = block("c", "Const_ex", val=np.array([3], np.int32), dtype="DT_INT32")
        random = block("r", "RandomNormal", dtype="DT_FLOAT", attrs=f"seed_ = {seed};seed2_ = 7;")
        return fetched([sizes, random], "c.output > r.shape")["output"].tobytes()

    assert drawn(1) != drawn(2)


@pytest.mark.parametrize("name", ["dialtions_", "dilations_"])
@pytest.mark.parametrize("symbol", ["Conv2D", "DepthwiseConv2dNative"])
def test_dilations_are_read_in_both_spellings(symbol: str, name: str) -> None:
    image = np.arange(25, dtype=np.float32).reshape(1, 5, 5, 1)
    blocks = [
        block("x", "Const", val=image),
        block("f", "Const", val=np.ones((3, 3, 1, 1), np.float32)),
        block("c", symbol, strides="{1,1,1,1}", padding="VALID", attrs=f"{name} = {{1,2,2,1}};"),
    ]
    built = made(blocks, "x.output > c.input", "f.output > c.filter")
    assert built.outputs["c"]["output"].shape == (1, 1, 1, 1)
    notes = [note.text for note in built.notes if note.block == "c"]
    assert ("attribute `dialtions_` is read as `dilations_`" in notes) == (name == "dialtions_")


def test_unknown_attributes_are_ignored_with_a_note() -> None:
    blocks = [
        block("m", "MatMul", a="{{1,2}}", b="{{3,4}}", attrs="transpose_b_ = TRUE;adjoint_=1")
    ]
    built = made(blocks)
    assert any("unknown attribute `adjoint_`" in note.text for note in built.notes)
    assert fetched(blocks)["product"].tolist() == [[11]]


def test_integers_are_divided_towards_zero() -> None:
    blocks = [block("d", "Div", x="{7,-7}", y="2"), block("n", "Negate")]
    assert fetched(blocks, "d.z > n.x")["y"].tolist() == [-3, 3]


def test_notes_on_a_symbol_are_made_once() -> None:
    blocks = [block(f"v{at}", "Variable", shape="{}", initvalues="1") for at in range(3)]
    notes = [note.block for note in made(blocks).notes if "SharedName_" in note.text]
    assert notes == ["v0"]
