"""Exports: Python programs give the same bits, C++ programs compile, pictures are XML and nothing else."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from convgrad._apps.graph import dtypes
from convgrad._apps.pages.cpp_source import cpp_source
from convgrad._apps.pages.from_graph import page_of
from convgrad._apps.pages.page import Block, Note, Page, Value, Wire
from convgrad._apps.pages.python_source import python_source
from convgrad._apps.pages.svg import svg_of
from convgrad._base.errors import ArgumentError
from convgrad.graph import Scope, ops
from pages_files.cpp_headers import INTERNAL, write_headers
from pages_files.graphs import (
    HOSTILE,
    Case,
    document_block,
    every_op,
    network,
    odd_constants,
    rename,
)

CASES: dict[str, Callable[[], Case]] = {
    "document": document_block,
    "network": network,
    "every op": every_op,
    "hostile document": lambda: rename(document_block(), HOSTILE),
    "hostile network": lambda: rename(network(), HOSTILE),
    "hostile every op": lambda: rename(every_op(), HOSTILE),
}
_RUNNER = """
import json, runpy, sys
space = runpy.run_path(sys.argv[1], run_name="exported")
found, run = {}, space["run"]
def kept(*arguments):
    found.update(run(*arguments))
    return found
space["main"].__globals__["run"] = kept
space["main"]()
bits = {name: [value.dtype.name, value.shape, value.tobytes().hex()] for name, value in found.items()}
with open(sys.argv[2], "w") as file:
    json.dump(bits, file)
"""


def run_python(source: str, folder: Path) -> tuple[dict[str, Any], str]:
    """Run an exported program in a process of its own: results and what it printed."""
    program, runner, results = folder / "program.py", folder / "runner.py", folder / "results.json"
    program.write_text(source, encoding="utf-8")
    runner.write_text(_RUNNER)
    done = subprocess.run(
        [sys.executable, runner, program, results],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8:backslashreplace"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(results.read_text()), done.stdout


def bits(results: dict[str, Any]) -> dict[str, Any]:
    return {
        name: [value.dtype.name, list(value.shape), value.tobytes().hex()]
        for name, value in results.items()
    }


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_python_gives_the_same_bits(make: Callable[[], Case], tmp_path: Path) -> None:
    case = make()
    source = python_source(case.graph, case.fetches, case.feeds, case.initial, "a graph")
    found, printed = run_python(source, tmp_path)
    assert found
    if case.fetches is None:
        used = {each.operation for node in case.graph.nodes for each in node.inputs}
        sinks = [node for node in case.graph.nodes if node not in used]
        assert len(sinks) - 1 <= len({name.rpartition(":")[0] for name in found}) <= len(sinks)
    assert found == bits(case.results(list(found)))
    assert all(name in printed for name in found if name.isascii() and name.isprintable())


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_python_pleases_the_linter_and_is_ascii(make: Callable[[], Case], tmp_path: Path) -> None:
    case = make()
    source = python_source(case.graph, case.fetches, case.feeds, case.initial, HOSTILE[4])
    assert source.isascii()
    path = tmp_path / "program.py"
    path.write_text(source)
    ruff = Path(sys.executable).with_name("ruff")
    done = subprocess.run(
        [ruff, "check", "--isolated", "--no-cache", path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_inside_literals(name: str) -> None:
    """The program of a graph is the same tree whatever its nodes and the graph are called."""

    def shape(title: str) -> list[str]:
        scope = Scope.new_root_scope()
        x = ops.Placeholder(scope.with_op_name("x"), "float32", [2])
        y = ops.Variable(scope.with_op_name("y"), [2], "float32", container=title)
        z = ops.Add(scope.with_op_name("z"), x, y)
        for node, end in ((x, "x"), (y, "y"), (z, "")):
            node.operation.name = title + end
        scope.graph.by_name = {node.name: node for node in scope.graph.nodes}
        source = python_source(scope.graph, name=title)
        assert "\r" not in source
        return [type(node).__name__ for node in ast.walk(ast.parse(source))]

    assert shape(name) == shape("plain") if name else shape(name)


def test_fetches_feeds_and_first_values(tmp_path: Path) -> None:
    """A Variable without a value is an argument; Assigns of constants run first; a second update is left out."""
    scope = Scope.new_root_scope()
    a = ops.Variable(scope.with_op_name("a"), [2], "float32")
    b = ops.Variable(scope.with_op_name("b"), [2], "float32")
    unset = ops.Variable(scope.with_op_name("unset"), [None, 2], "float32")
    only_assigned = ops.Variable(scope.with_op_name("only"), [2], "float32")
    ops.Assign(scope.with_op_name("first"), b, [3.0, 4.0])
    total = ops.Add(scope.with_op_name("total"), ops.Add(scope, a, b), unset)
    ops.ApplyGradientDescent(scope.with_op_name("step"), a, 0.5, a)
    ops.ApplyGradientDescent(scope.with_op_name("step2"), a, 0.25, b)
    changed = ops.Assign(scope.with_op_name("changed"), only_assigned, b)
    ops.Negate(scope.with_op_name("negative"), changed)
    source = python_source(scope.graph, initial={"a": [1, 2]})
    assert 'unset,  # float32[?, 2], first value of Variable "unset"' in source
    found, _ = run_python(source, tmp_path)
    expected = {
        "total:0": np.array([[4, 6]], np.float32),
        "step:0": np.array([0.5, 1], np.float32),
        "negative:0": np.array([-3, -4], np.float32),
    }
    assert found == bits(expected)
    source = python_source(
        scope.graph, ["total"], {"unset": [[1, 1], [2, 2]]}, {"a": [1, 2], "b": [0, 0]}
    )
    found, printed = run_python(source, tmp_path)
    assert found == bits({"total:0": np.array([[2, 3], [3, 4]], np.float32)})
    assert "total:0 float32 [2, 2]\n[[2. 3.]\n [3. 4.]]" in printed
    assert total.name == "total"


@pytest.mark.parametrize("export", [python_source, cpp_source])
def test_wrong_hints_are_refused(export: Callable[..., str]) -> None:
    scope = Scope.new_root_scope()
    ops.Square(scope.with_op_name("y"), ops.Placeholder(scope.with_op_name("x"), "float32", [2]))
    name = export.__name__
    for fetch in ("z", "y:1", "y:", "y:x", "x:0:0"):
        with pytest.raises(
            ArgumentError, match=f"{name}: `fetches` must name nodes .* got '{fetch}'"
        ):
            export(scope.graph, [fetch])
    with pytest.raises(ArgumentError, match=f"{name}: `feeds` must name nodes that are .* got 'y'"):
        export(scope.graph, feeds={"y": 1})
    with pytest.raises(
        ArgumentError, match=f"{name}: `initial` must name nodes that are a Variable"
    ):
        export(scope.graph, initial={"x": [1, 2]})
    with pytest.raises(
        ArgumentError, match=rf"{name}: `feeds\['x'\]` must have shape \[2\], got \[3\]"
    ):
        export(scope.graph, feeds={"x": [1, 2, 3]})
    with pytest.raises(
        TypeError, match=rf"{name}: `feeds\['x'\]` must have dtype float32, got float64"
    ):
        export(scope.graph, feeds={"x": np.zeros(2)})


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Return a function that compiles and runs a program against the headers, and returns what it prints."""
    found = shutil.which("g++")
    if found is None:
        pytest.skip("there is no g++ to check exported C++ with")
    folder = tmp_path_factory.mktemp("cpp")
    write_headers(folder)

    def compile_(source: str) -> str:
        path, program = folder / "program.cc", folder / "program"
        path.write_text(source, encoding="ascii")
        flags = [
            "-std=c++17",
            "-Wall",
            "-Wextra",
            "-Wno-unused-variable",
            "-Werror",
            "-I",
            str(folder),
        ]
        done = subprocess.run(
            [found, *flags, path, "-o", program], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[:3000]
        done = subprocess.run([program], capture_output=True, text=True, check=False)
        assert done.returncode == 0
        return done.stdout

    return compile_


@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_cpp_makes_every_op(make: Callable[[], Case]) -> None:
    case = make()
    source = cpp_source(case.graph, case.fetches, case.feeds, case.initial, HOSTILE[9])
    for node in case.graph.nodes:
        space = "ops::internal::" if node.type in INTERNAL else "ops::"
        assert f"= {space}{node.type}(" in source


@pytest.mark.cc_long
@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("hostile ")])
def test_cpp_compiles(name: str, compiler: Callable[[str], str]) -> None:
    """Under hostile names; the same graphs with plain ones are compiled by tests/cc/test_exported_programs.py."""
    case = CASES[name]()
    compiler(cpp_source(case.graph, case.fetches, case.feeds, case.initial, HOSTILE[9]))
    if case.fetches is None:
        compiler(cpp_source(case.graph))  # without values for anything


@pytest.mark.cc_long
def test_cpp_keeps_the_bits_of_constants(compiler: Callable[[str], str]) -> None:
    scope = Scope.new_root_scope()
    values = [*odd_constants(), np.array(2.5, np.float32)]
    for value in values:
        ops.Const(scope, value)
    numbers = {dtype: at for at, dtype in enumerate(dtypes.BY_NAME.values(), 1)}
    expected = [
        f"{numbers[value.dtype]} [{''.join(f' {size}' for size in value.shape)} ] {value.tobytes().hex()}"
        for value in values
    ]
    printed = compiler(cpp_source(scope.graph)).splitlines()
    assert printed[: len(values)] == expected


def test_cpp_of_the_document(compiler: Callable[[str], str]) -> None:
    """Five lines as TensorFlow's documentation has them; the seed is the one our numbers come from."""
    source = cpp_source(document_block().graph)
    compiler(source)
    flat = " ".join(source.split())
    assert (
        'auto df = ops::DepthwiseConv2dNativeBackpropFilter( root.WithOpName("df"), input, df_filter_sizes, dy, '
        '{1, 2, 2, 1}, "SAME");' in flat
    )
    assert "ops::RandomNormal::Seed(3).Seed2(4)" in source
    assert re.search(
        r'WithOpName\("input"\), input_shape, DT_FLOAT, ops::RandomNormal::Seed\(\d+\)\)', flat
    )


def parsed(svg: str) -> ElementTree.Element:
    """Parse a picture, and check that it holds nothing that runs or is fetched."""
    root = ElementTree.fromstring(svg)
    allowed = {"svg", "title", "style", "rect", "path", "g", "text", "tspan", "circle"}
    for element in root.iter():
        assert element.tag.removeprefix("{http://www.w3.org/2000/svg}") in allowed
        for name, value in element.attrib.items():
            assert not name.lower().startswith("on")
            assert "href" not in name.lower()
            assert "url(" not in value
    style = next(element.text or "" for element in root.iter() if element.tag.endswith("style"))
    assert "url(" not in style
    assert "@import" not in style
    assert "prefers-color-scheme: dark" in style
    return root


@pytest.mark.parametrize("make", [document_block, network, every_op])
def test_svg_shows_blocks_pins_wires_and_shapes(make: Callable[[], Case]) -> None:
    case = make()
    page = page_of(case.graph, "a page")
    results = {(node.name, each.pin): each for node in case.graph.nodes for each in node.outputs}
    svg = svg_of(page, results)
    assert svg_of(page, results) == svg
    root = parsed(svg)
    assert len([each for each in root.iter() if each.get("class") == "wire"]) == len(page.wires)
    blocks = [each for each in root.iter() if each.get("class") == "block"]
    assert len(blocks) == len(page.blocks)
    texts = {"".join(each.itertext()) for each in root.iter() if each.tag.endswith("text")}
    wired = {wire.source for wire in page.wires}
    for node in case.graph.nodes:
        if node.name in wired and len(node.outputs) == 1:
            assert str(node.outputs[0].spec) in texts
    # Every wire begins and ends on a pin.
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    pins = set()
    for block, element in zip(page.blocks, blocks, strict=True):
        for circle in element.iter("{http://www.w3.org/2000/svg}circle"):
            x, y = float(circle.get("cx", "")) + block.x, float(circle.get("cy", "")) + block.y
            assert 0 < x < width
            assert 0 < y < height
            pins.add((x, y))
    for each in root.iter():
        if each.get("class") == "wire":
            numbers = [float(word) for word in each.get("d", "").split() if word not in "MC"]
            assert {tuple(numbers[:2]), tuple(numbers[-2:])} <= pins


def test_svg_marks_what_is_not_computed_and_notes() -> None:
    blocks = [
        Block("q", "FIFOQueue", {"capacity": Value("10")}, 10, 10),
        Block("r", "Relu", {}, 300, 10),
        Block("sensor", "SENSOR_LCD", {}, 300, 200, task="logic"),
        Block("u", "Conv9D", {}, -500, -20),
    ]
    wires = [
        Wire("q", "handle", None, "r", "features", hidden=True),
        Wire("r", "result_activations", None, "sensor", "in"),
        Wire("gone", "output", None, "r", "features"),
    ]
    page = Page("p", blocks, wires, notes=[Note("r", "a note"), Note(None, "about the page")])
    svg = svg_of(page, {("q", "handle"): np.float32(2.5), ("r", "activations"): np.zeros((2, 3))})
    root = parsed(svg)
    kinds = {each[0].text: each.get("class") for each in root.iter("{http://www.w3.org/2000/svg}g")}
    assert kinds == {
        "FIFOQueue q (not computed)": "block refused",
        "Relu r\na note": "block noted",
        "SENSOR_LCD sensor (not computed)": "block refused",
        "Conv9D u (not computed)": "block refused",
    }
    texts = ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"r: a note", "about the page", "float32[] = 2.5", "capacity10"} <= set(texts)
    assert (root.get("viewBox") or "").startswith("-540 -60 ")
    assert len([each for each in root.iter() if each.get("class") == "wire hidden"]) == 1


@pytest.mark.parametrize("name", HOSTILE)
def test_svg_escapes_every_text(name: str) -> None:
    blocks = [
        Block(name, name, {name: Value(name)}),
        Block("b" + name, "Add", {"x": Value(name)}, 300, 0),
    ]
    wires = [Wire(name, name, None, "b" + name, name)]
    svg = svg_of(Page(name, blocks, wires, notes=[Note(name, name)]), {(name, name): np.zeros(2)})
    root = parsed(svg)
    svg.encode("utf-8")
    assert len(list(root.iter("{http://www.w3.org/2000/svg}g"))) == 2


def test_svg_refuses_a_place_that_is_none() -> None:
    with pytest.raises(
        ArgumentError, match="svg_of: the position of block 'a' must be finite, got nan"
    ):
        svg_of(Page("p", [Block("a", "Relu", {}, float("nan"), 0)]))
