"""An activation is one row and a dtype is one row: nobody keeps a table of either beside them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import convgrad
import new_row
import rows
from convgrad import reference
from convgrad._base.dtypes import DTYPES, FLOATING, DType, accumulator, by_short, round_once
from convgrad._problem import activations
from convgrad._problem.activations import ROWS, Activation
from convgrad._problem.norm import normalisation, oracle
from convgrad.errors import ArgumentError
from sources import FILES, read

NAMES = {row.name for row in ROWS} - {"none"}
SHORTS = {row.short for row in FLOATING}
KINDS = {row.name for row in FLOATING} | {row.numpy.name for row in FLOATING}
CONSTANTS = {"HALF", "BFLOAT16", "FLOAT", "DOUBLE"}
TENSORFLOW = {f"DT_{row.tensorflow_name.upper()}" for row in FLOATING}
GROUPS = {
    "activations": NAMES,
    "short names of dtypes": SHORTS,
    "names of dtypes": KINDS,
    "rows of dtypes": CONSTANTS,
    "TensorFlow's names of dtypes": TENSORFLOW,
}
MAY = {
    "_base/dtypes.py": "the rows of dtypes",
    "_compiler/codegen/types.py": "names for what a row says, which conversions are written in",
    "_apps/pages/setting_texts.py": "names that enuSpace's pages have, strings among them",
    "_apps/bench/contests.py": "how far results of other libraries may be off",
    "_apps/check/batch_norm/properties.py": "one activation with a kink and one without",
    "_arrays/torch.py": "what PyTorch's autocast converts",
    "_bridges/torch/functional.py": "what PyTorch's autocast converts",
}
"""Files that may list some of them, and why."""


def tables(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Find tuples, lists, sets and dicts that name at least two members of a group by hand."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            parts: list[ast.expr | None] = [*node.keys, *node.values]
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            parts = [*node.elts]
        else:
            continue
        words = {part.value for part in parts if isinstance(part, ast.Constant)}
        names = {_name(part) for part in parts}
        for what, group in GROUPS.items():
            # A name such as `jnp.tanh` is a function of a framework's, and lists no activations.
            listed = words if group is NAMES else words | names
            if len(listed & group) > 1:
                yield node.lineno, what


def _name(node: ast.expr | None) -> object:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def test_there_are_no_other_tables() -> None:
    found, used = [], set()
    for name in FILES:
        for line, what in tables(ast.parse(read(name))):
            if name in MAY:
                used.add(name)
            else:
                found.append(f"{name}:{line} lists {what}")
    assert not found
    assert used == set(MAY), "a row of MAY that nothing needs"


def test_a_table_is_noticed() -> None:
    text = 'A = {"f16": 1, "bf16": 2}\nB = ("relu", "gelu")\nC = {dtypes.HALF: 1, dtypes.FLOAT: 2}'
    assert [line for line, _ in tables(ast.parse(text))] == [1, 2, 3]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_two_sides_of_a_row_agree(row: Activation) -> None:
    """A value has a kernel, a derivative has one too, and it is the value's."""
    assert (row.derivative is None) == (row.kernel_gradient is None)
    if row.derivative is None:
        assert not row.told_from_result
        return
    u, step = np.linspace(-7.03, 7.04, 353), 1e-6
    slope = oracle.derivative(row.name, u, 0.3)
    near = (
        (oracle.activated(row.name, u + step, 0.3) - oracle.activated(row.name, u - step, 0.3))
        / 2
        / step
    )
    np.testing.assert_allclose(slope, near, atol=1e-8)
    if row.told_from_result:
        at_result = oracle.derivative(row.name, oracle.activated(row.name, u, 0.3), 0.3)
        np.testing.assert_array_equal(slope, at_result)


def test_names_are_told_apart() -> None:
    for names in (
        [row.name for row in ROWS],
        [row.keras for row in ROWS if row.keras],
        [row.tensorflow for row in ROWS if row.tensorflow],
        [(row.torch, row.torch_settings) for row in ROWS if row.torch],
        [(row.torch_layer, row.torch_settings) for row in ROWS if row.torch_layer],
    ):
        assert len(set(names)) == len(names)
    assert activations.ACTIVATIONS[0] == "none"
    for field in ("name", "short", "tensorflow", "tensorflow_name", "torch", "xla"):
        assert len({getattr(row, field) for row in DTYPES}) == len(DTYPES), field


@pytest.mark.parametrize("row", DTYPES, ids=lambda row: row.name)
def test_the_numbers_of_a_dtype_agree(row: DType) -> None:
    assert by_short(row.short) is row
    assert by_short(row.partial).unit <= accumulator(row).unit or row.is_integer
    assert row.is_integer == (row.underflow == row.tolerance == 0)
    if not row.is_integer:
        near = np.array([1 + 0.999 * row.unit, 1 + 1.001 * row.unit])
        assert (round_once(near, row) == 1).tolist() == [True, False] and row.unit < row.tolerance
        assert row.underflow.as_integer_ratio()[0] == 1


def test_rows_are_looked_up_by_few_fields() -> None:
    """Problems are hashed on the way of a call, and a row with them."""
    assert (
        repr(DTYPES[0])
        == "DType(name='half', short='f16', numpy=dtype('float16'), accumulator='f32', unit=0.00048828125)"
    )


def test_the_tree_is_walked() -> None:
    assert {*MAY} <= {*FILES} and len(FILES) > 300


def test_a_new_activation_is_one_row(tmp_path: Path) -> None:
    """Each bridge has the same test."""
    new_row.run(tmp_path, Path(__file__).with_name("child_of_new_row.py"))


def test_an_unknown_activation_is_refused() -> None:
    x = np.ones((1, 2, 2, 1), np.float32)
    rows.check_unknown(lambda name: convgrad.batch_norm_act(x, activation=name))
    rows.check_unknown(
        lambda name: convgrad.batch_norm_act_grad(x, x, None, None, [1], [1], activation=name)
    )
    with pytest.raises(ArgumentError, match=r"reference\.batch_norm_act: `activation` must be one"):
        reference.batch_norm_act(x, activation=rows.UNKNOWN)
    line = f"batch_norm_act.forward 1x4x1 NHWC float32 {rows.UNKNOWN} epsilon=0.001"
    with pytest.raises(ArgumentError, match="is not a line that describes batch norm"):
        normalisation.read(line)


@pytest.mark.parametrize("row", DTYPES, ids=lambda row: row.name)
def test_every_dtype_is_taken(row: DType) -> None:
    rows.check_dtype(row, np.asarray, np.asarray)


def test_no_table_lacks_a_dtype() -> None:
    rows.check_tables("convgrad._arrays", "convgrad._problem")


def test_a_table_that_lacks_one_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalisation, "_DTYPES", {row.name: row for row in FLOATING[1:]})
    with pytest.raises(AssertionError, match=r"normalisation\._DTYPES"):
        rows.check_tables("convgrad._problem.norm")
