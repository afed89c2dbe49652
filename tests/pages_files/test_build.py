"""From a page of ours to a graph: what is built, what is refused and in which words, and how it runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import convgrad
from convgrad.errors import ArgumentError
from convgrad.graph import (
    Block,
    Page,
    PageRun,
    Value,
    Wire,
    build,
    load,
    page_of,
    python_source,
    save,
    svg,
)

EXAMPLE = Path(__file__).parents[2] / "examples" / "pages" / "filter_gradient.json"


def page(blocks: dict[str, tuple[str, dict[str, object]]], *wires: str) -> Page:
    """Return a page from ``{id: (symbol, pins)}`` and wires such as "x.output > f.input"."""
    made = []
    for id, (symbol, pins) in blocks.items():
        values = {
            pin: Value("", "float", value.shape, value)
            if isinstance(value, np.ndarray)
            else Value(str(value))
            for pin, value in pins.items()
        }
        made.append(Block(id, symbol, values))
    found = []
    for wire in wires:
        source, target = (end.strip().rpartition(".") for end in wire.split(">"))
        pin, _, index = source[2].partition("[")
        number = int(index[:-1]) if index else None
        found.append(Wire(source[0], pin, number, target[0], target[2]))
    return Page("test", made, found)


def test_the_documents_block() -> None:
    """Texts as the document shows them; the same numbers as the eager function."""
    built = build(load(EXAMPLE))
    assert not built.problems and not built.notes
    results = PageRun(built).step()
    x, g = results["images"]["output"], results["gradient"]["output"]
    expected = convgrad.depthwise_conv2d_backprop_filter(x, [3, 3, 2, 1], g, 2, "SAME")
    assert results["filter_gradient"]["output"].tobytes() == expected.tobytes()
    assert results["sizes"]["output"].tolist() == [3, 3, 2, 1]


@pytest.mark.parametrize(
    ("pins", "wired", "words"),
    [
        ({"strides": "1,2,2"}, True, "`strides` must hold exactly 4|4"),
        ({"strides": "1,2,2,x"}, True, "`strides`: expected"),
        ({"strides": "2,2,2,1"}, True, "batch and depth dimensions must be 1"),
        ({"padding": "same"}, True, "`padding`: "),
        ({"attrs": "data_format_ = NCWH"}, True, "`data_format` must be 'NHWC' or 'NCHW'"),
        ({"attrs": "dilations_ = {1,0,1,1}"}, True, "`dilations` must be larger than 0"),
        ({"filter": "{1,2}"}, False, "`filter` must be 4-dimensional"),
        ({}, False, "`filter` needs a wire or a literal"),
        ({"fliter": "1"}, True, "has no pin `fliter`; did you mean filter|fliter"),
    ],
)
def test_a_block_with_a_mistake_says_so_and_others_are_built(pins, wired, words) -> None:
    wires = ["x.output > c.input", "c.output > r.features", "x.output > other.features"]
    wires += ["f.output > c.filter"] * wired
    built = build(
        page(
            {
                "x": ("RandomNormal", {"shape": "1,6,6,2", "dtype": "DT_FLOAT"}),
                "f": ("RandomNormal", {"shape": "{3,3,2,1}", "dtype": "DT_FLOAT"}),
                "c": ("DepthwiseConv2dNative", pins),
                "r": ("Relu", {}),
                "other": ("Relu", {}),
            },
            *wires,
        )
    )
    import re

    assert re.search(words, built.problems["c"]), built.problems["c"]
    assert built.problems["r"] == "`features` waits for block 'c', which has a problem"
    assert set(built.problems) == {"c", "r"} and "other" in built.outputs
    results = PageRun(built).step()
    assert results["other"]["activations"].shape == (1, 6, 6, 2)
    with pytest.raises(ArgumentError, match="block 'r': `features` waits"):
        PageRun(built, fetch=["r"])


def test_wires_that_cannot_be() -> None:
    built = build(
        page(
            {
                "a": ("Relu", {}),
                "b": ("Relu", {}),
                "c": ("Const", {"val": "1"}),
                "d": ("Negate", {}),
                "e": ("Negate", {}),
                "f": ("Wobble", {}),
                "g": ("Negate", {}),
            },
            "a.activations > b.features",
            "b.activations > a.features",
            "c.outptu > d.x",
            "c.output > e.x",
            "c.output > e.x",
            "c.output > g.y",
        )
    )
    assert (
        built.problems["a"]
        == built.problems["b"]
        == "it is part of a circle of wires: a graph has none"
    )
    assert "which has no such output (there are: output)" in built.problems["d"]
    assert built.problems["e"] == "`x` takes one wire, got 2"
    assert built.problems["f"] == "Wobble is not computed here: no block of this name is known"
    assert built.problems["g"].startswith("Negate has no input pin `y`")
    nothing = build(page({"a": ("Relu", {})}, "a.activations > a.features"))
    with pytest.raises(ArgumentError, match="the page cannot run: a: it is part of a circle"):
        PageRun(nothing)


def test_literals_take_the_dtype_of_the_wire() -> None:
    built = build(
        page(
            {
                "x": ("Const", {"val": np.array([1, 2], np.float32)}),
                "half": ("Multiply", {"y": "0.5"}),
                "alone": ("Multiply", {"x": "0.5", "y": "{1.5,2}"}),
            },
            "x.output > half.x",
        )
    )
    results = PageRun(built).step()
    assert results["half"]["z"].dtype == np.float32 and results["half"]["z"].tolist() == [0.5, 1]
    assert results["alone"]["z"].dtype == np.float64


def training() -> Page:
    """Fit y = w x by gradient descent, the gradient symbolic."""
    return page(
        {
            "w": ("Variable", {"shape": "{}", "dtype": "DT_DOUBLE", "initvalues": "100."}),
            "x": ("Const", {"val": "{1.,2.,3.}"}),
            "y": ("Const", {"val": "{1.,2.,3.}"}),
            "h": ("Multiply", {}),
            "r": ("Subtract", {}),
            "s": ("Square", {}),
            "cost": ("Mean", {"axis": "0"}),
            "grad": ("AddSymbolicGradients", {}),
            "step": ("ApplyGradientDescent", {"alpha": "0.0001"}),
            "session": ("ClientSession", {}),
        },
        "x.output > h.x",
        "w.ref > h.y",
        "h.z > r.x",
        "y.output > r.y",
        "r.z > s.x",
        "s.y > cost.input",
        "cost.output > grad.outputs",
        "w.ref > grad.inputs",
        "w.ref > step.var",
        "grad.grad_outputs[0] > step.delta",
        "step.out > session.fetch_outputs",
    )


def test_a_page_trains_step_by_step() -> None:
    """Every block before the fetched one has a result; all see the Variable as it was before the step."""
    run = PageRun(build(training()))
    first = run.step()
    assert first["cost"]["output"] == 45738 and first["w"]["ref"] == 100
    assert first["grad"]["grad_outputs[0]"] == pytest.approx(924)
    assert first["step"]["out"] == pytest.approx(99.9076)
    second = run.step()
    assert second["w"]["ref"] == first["step"]["out"]
    assert set(first) == {"w", "x", "y", "h", "r", "s", "cost", "grad", "step"}
    # What is named is kept; the session's updates happen all the same.
    kept = PageRun(build(training()), fetch=["cost", "step.result_out"])
    for _ in range(2):
        found = kept.step()
    assert set(found) == {"cost", "step"}
    assert found["step"]["out"] == second["step"]["out"]


def test_placeholders_are_fed() -> None:
    built = build(
        page(
            {
                "x": ("Placeholder", {"dtype": "DT_FLOAT", "attrs": "shape_ = [?][2]"}),
                "r": ("Relu", {}),
            },
            "x.output > r.features",
        )
    )
    assert str(built.specs()["r"]["activations"]) == "float32[?, 2]"
    with pytest.raises(ArgumentError, match="must give a value for placeholder 'x'"):
        PageRun(built).step()
    data = np.array([[-1, 2]], np.float32)
    assert PageRun(built, {"x": data}).step()["r"]["activations"].tolist() == [[0, 2]]
    with pytest.raises(ArgumentError, match="must have shape"):
        PageRun(built, {"x": np.zeros(3, np.float32)}).step()
    built.page.blocks[0].pins["value"] = Value("{{1f,-2f}}")
    assert PageRun(build(built.page)).step()["r"]["activations"].tolist() == [[1, 0]]


def test_a_graph_is_saved_read_and_run_again(tmp_path: Path) -> None:
    """Through the file, and as a program: the same bits."""
    built = build(training())
    path = tmp_path / "saved.json"
    save(built.scope, path, {"w": np.float64(100)})
    again = build(load(path))
    assert not again.problems
    run = PageRun(again, fetch=["step"])
    assert run.step()["step"]["out"] == PageRun(build(training())).step()["step"]["out"]
    document = json.loads(path.read_text())
    assert document["format"] == "convgrad-page" and document["version"] == 1
    assert "step.out" not in python_source(built.scope) and "ops.Mean" in python_source(built.scope)
    assert svg(page_of(built.scope)).startswith("<svg") and svg(training()).count("<rect") >= 10


def test_names_of_tensors() -> None:
    built = build(training())
    assert built.find("cost").name == built.find("cost.output").name == "cost:0"
    assert built.find("grad.grad_outputs[0]") is built.find("grad")
    for name, words in (
        ("cots", "there is no block 'cots'"),
        ("cost.z", "has no output 'z' \\(there are: output\\)"),
        ("grad.grad_outputs[3]", "is a list of 1"),
    ):
        with pytest.raises(ArgumentError, match=words):
            built.find(name)


def test_a_value_on_a_placeholder_has_its_shape():
    """`check` found nothing, and the run failed."""
    pins = {
        "dtype": Value("DT_FLOAT"),
        "attrs": Value("shape_ = {2}"),
        "value": Value("{1f,2f,3f}"),
    }
    page = Page("p", [Block("x", "Placeholder", pins, 0, 0)], [], 0, 0, "convgrad", [])
    assert build(page).problems == {"x": "`value` must have shape [2], got [3]"}
