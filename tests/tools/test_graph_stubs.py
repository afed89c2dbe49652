"""`tools/graph_stubs.py`: the types of `convgrad.graph.ops` are those of the table, and what type checkers see."""

from __future__ import annotations

import ast
import inspect
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from convgrad._apps.graph.table import TABLE
from convgrad.graph import ops

ROOT = Path(__file__).resolve().parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "graph_stubs.py"))


def test_the_file_is_what_the_tool_writes(monkeypatch, tmp_path, capsys):
    assert TOOL["STUBS"].read_text(encoding="utf-8") == TOOL["text"]()
    assert TOOL["main"](["--check"]) == 0
    other = tmp_path / "ops.pyi"
    monkeypatch.setitem(TOOL["main"].__globals__, "STUBS", other)
    assert (
        TOOL["main"](["--check"]) == 1
        and "run python tools/graph_stubs.py" in capsys.readouterr().err
    )
    assert TOOL["main"]([]) == 0 and other.read_text(encoding="utf-8") == TOOL["text"]()
    other.write_text("something else")
    assert TOOL["main"](["--check"]) == 1


def classes():
    tree = ast.parse(TOOL["text"]())
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def functions(body):
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", TABLE)
def test_a_stub_has_the_arguments_setters_and_outputs_of_its_class(name):
    found, kind = classes()[name], getattr(ops, name)
    made = functions(found.body)["__init__"].args
    typed = [argument.arg for argument in made.args[1:]], [each.arg for each in made.kwonlyargs]
    parameters = inspect.signature(kind).parameters.values()
    assert typed[0] == [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert typed[1] == [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    setters = [attr.setter for attr in TABLE[name].optional]
    assert [each for each in functions(found.body) if each != "__init__"] == setters
    inner = [node for node in found.body if isinstance(node, ast.ClassDef)]
    assert [list(functions(node.body)) for node in inner] == ([setters] if setters else [])
    outputs = [node.target.id for node in found.body if isinstance(node, ast.AnnAssign)]
    assert tuple(outputs) == TABLE[name].outputs


def test_the_stubs_are_those_of_the_table():
    assert list(classes()) == list(TABLE)


GOOD = """
import numpy as np
from convgrad.graph import ClientSession, Output, Scope, add_symbolic_gradients, ops

scope = Scope.new_root_scope()
x = ops.Placeholder(scope, "float32", [None, 8, 8, 2])
f = ops.Const(scope, np.ones((3, 3, 2, 4), np.float32))
attrs = ops.Conv2D.Attrs().DataFormat("NHWC").Dilations([1, 1, 1, 1])
y = ops.Conv2D(scope, x, f, [1, 1, 1, 1], "SAME", attrs)
z = ops.Conv2D(scope, x, f.output, [1, 1, 1, 1], padding="SAME", data_format="NHWC")
w = ops.Conv2D(scope, x, f, (1, 1, 1, 1), "SAME", ops.Conv2D.UseCudnnOnGpu(False))
total = ops.AddN(scope, ops.InputList([y, z, w])).sum
loss: Output = ops.L2Loss(scope, total).output
both = ops.SoftmaxCrossEntropyWithLogits(scope, [[1.0, 2.0]], [[0.0, 1.0]])
outputs: list[Output] = [both.loss, both.backprop]
(slope,) = add_symbolic_gradients(scope, [loss], [x])
drawn = ops.RandomNormal(scope, [2, 3], np.float32, ops.RandomNormal.Seed(1).Seed2(2))
arrays = ClientSession(scope).run([slope, drawn], {x: np.ones((1, 8, 8, 2), np.float32)})
print([array.shape for array in arrays])
"""
BAD = {
    'ops.Conv2D(scope, x, x, [1, 1, 1, 1], 3)': "arg-type",
    'ops.Conv2D.DataFormat(3)': "arg-type",
    'ops.Conv2D(scope, x, x, [1], "SAME", ops.MatMul.TransposeA(True))': "arg-type",
    'ops.Relu(scope, x).output': "attr-defined",
    'ops.MatMul.DataFormat("NHWC")': "attr-defined",
    'ops.Add(scope, x)': "call-arg",
    'ops.Sum(scope, x, [0], keepdims=True)': "call-arg",
    'ops.Conv3D': "attr-defined",
}  # fmt: skip


@pytest.mark.long
def test_a_type_checker_accepts_right_programs_and_refuses_wrong_ones(tmp_path):
    """One run of mypy, which is quick where the package was checked before."""
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(GOOD, encoding="utf-8")
    head = [
        "from convgrad.graph import Scope, ops",
        "scope = Scope.new_root_scope()",
        "x = ops.Const(scope, 1)",
    ]
    bad.write_text("\n".join([*head, *BAD, ""]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml", str(good), str(bad)],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": "src"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert not [line for line in errors if "bad.py" not in line], done.stdout + done.stderr
    for number, (line, code) in enumerate(BAD.items(), len(head) + 1):
        assert any(f"bad.py:{number}: " in each and f"[{code}]" in each for each in errors), (
            line,
            errors,
        )
    exec(compile(GOOD, "good.py", "exec"), {})  # and it runs
