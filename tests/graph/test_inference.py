"""Errors appear when a graph is built, and name the node, the op, the argument and the rule."""

from __future__ import annotations

import numpy as np
import pytest

from convgrad._apps.graph.dtypes import ANY
from convgrad._apps.graph.table import TABLE
from convgrad._base.errors import ArgumentError, ArgumentTypeError, ConvgradError, DTypeError
from convgrad.graph import ClientSession, Scope, ops
from graph_calls import BAD, GOOD


def given(scope, value):
    """Return an argument from its description."""
    if value == "variable":
        return ops.Variable(scope, [2, 3], np.float32)
    if isinstance(value, tuple):
        return ops.Placeholder(scope, *value)
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return [given(scope, each) for each in value]
    return value


def build(scope, name, inputs, attrs):
    arguments = [given(scope, each) for each in inputs]
    return getattr(ops, name)(scope.with_op_name("mine"), *arguments, **attrs)


def refused(name, inputs, attrs, error, words):
    scope = Scope.new_root_scope()
    made = {}

    def attempt():
        arguments = [given(scope, each) for each in inputs]
        made["count"] = len(scope.graph.nodes)
        getattr(ops, name)(scope.with_op_name("mine"), *arguments, **attrs)

    with pytest.raises(ConvgradError) as caught:
        attempt()
    message = str(caught.value)
    assert type(caught.value) is error, (type(caught.value), message)
    assert message.startswith(f"node 'mine': {name}: ") and words in message, message
    assert message.endswith("."), message
    assert len(scope.graph.nodes) == made["count"], "nothing is left of a refused node"
    assert not scope.ok() and scope.status.error is caught.value


def test_the_tables_cover_every_row():
    assert GOOD.keys() == TABLE.keys() == BAD.keys()


@pytest.mark.parametrize("name", GOOD)
def test_right_calls_are_built(name):
    scope = Scope.new_root_scope()
    op = build(scope, name, *GOOD[name])
    assert op.name == "mine" and scope.ok and scope.status.message == ""
    assert op.operation.type == name


@pytest.mark.parametrize("name", BAD)
def test_wrong_calls_are_refused_by_name_and_rule(name):
    for inputs, attrs, error, words in BAD[name]:
        refused(name, inputs, {**GOOD[name][1], **attrs}, error, words)


@pytest.mark.parametrize("name", GOOD)
def test_mistakes_anyone_can_make_with_any_op(name):
    inputs, attrs = GOOD[name]
    row = TABLE[name]
    if name != "Const":  # which has a signature of its own
        refused(
            name, inputs, {**attrs, "nope": 1}, ArgumentTypeError, "there is no argument `nope`"
        )
        names = [pin.name for pin in row.inputs] + [attr.name for attr in row.required]
        for at, pin in enumerate(row.inputs):
            less = {p.name: given_later(inputs[i]) for i, p in enumerate(row.inputs) if i != at}
            refused(name, (), {**less, **attrs}, ArgumentTypeError, f"`{pin.name}` is missing")
        for attr in row.required:
            less = {key: value for key, value in attrs.items() if key != attr.name}
            refused(name, inputs, less, ArgumentTypeError, f"`{attr.name}` is missing")
        if names and inputs:
            refused(
                name, inputs, {**attrs, row.inputs[0].name: 1}, ArgumentTypeError, "was given twice"
            )
    with pytest.raises(
        ArgumentTypeError, match=f"{name}: `scope` must be a Scope and come first, got 3"
    ):
        getattr(ops, name)(3, *inputs, **attrs)


def given_later(value):
    """Numbers stand for themselves; what needs a scope is a number here, since a missing argument is seen first."""
    return 1 if isinstance(value, tuple | str) else value


@pytest.mark.parametrize("name", [name for name, row in TABLE.items() if row.inputs])
def test_tensors_of_another_graph_and_wrong_dtypes(name):
    inputs, attrs = GOOD[name]
    for at, pin in enumerate(TABLE[name].inputs):
        scope, other = Scope.new_root_scope(), Scope.new_root_scope()
        arguments = [given(other if i == at else scope, each) for i, each in enumerate(inputs)]
        foreign = given(other, inputs[at])
        if not isinstance(inputs[at], tuple | str):
            foreign = ops.Const(other, 1)
            arguments[at] = [foreign] if pin.many else foreign
        with pytest.raises(ArgumentError) as caught:
            getattr(ops, name)(scope, *arguments, **attrs)
        assert f"{name}: `{pin.name}` must be of the same graph, got " in str(caught.value)
        for dtype in sorted(ANY - pin.allowed, key=str)[:3]:
            wrong = ops.Placeholder(scope, dtype)
            if pin.ref:
                wrong = ops.Variable(scope, None, dtype)
            arguments = [given(scope, each) for each in inputs]
            arguments[at] = [wrong] if pin.many else wrong
            with pytest.raises(DTypeError) as caught:
                getattr(ops, name)(scope.with_op_name("typed"), *arguments, **attrs)
            message = str(caught.value)
            assert (
                message.startswith("node 'typed")
                and f"{name}: `" in message
                and dtype.name in message
            )


def test_unknown_sizes_are_no_mistake():
    """Every right call is right as well with placeholders that know nothing, and states no more than is known."""
    for name, (inputs, attrs) in GOOD.items():
        scope = Scope.new_root_scope()
        blurred = [
            [(p[0], None) for p in each] if isinstance(each, list) and each and isinstance(each[0], tuple)
            else (each[0], None) if isinstance(each, tuple) else each
            for each in inputs
        ]  # fmt: skip
        exact = build(scope, name, inputs, attrs).operation
        loose = build(scope, name, blurred, attrs).operation
        for known, less in zip(exact.outputs, loose.outputs, strict=True):
            assert known.dtype == less.dtype
            if less.shape is not None:
                assert len(less.shape) == len(known.shape), name
                assert all(
                    b is None or a == b for a, b in zip(known.shape, less.shape, strict=True)
                ), name


def test_a_shape_that_its_type_cannot_hold_is_refused():
    """NumPy's OverflowError came out of the session."""
    scope = Scope.new_root_scope()
    x = ops.Placeholder(scope, "float32", [3_000_000_000])
    with pytest.raises(
        ArgumentError, match=r"Shape: `input` must have sizes that `out_type` int32"
    ):
        ops.Shape(scope, x)
    wide = ops.Shape(scope, x, out_type="int64")
    assert ClientSession(scope).run([wide])[0].tolist() == [3_000_000_000]


@pytest.mark.parametrize(
    "dtype", [",,", "é,,", "(((", "f4,f4", "i4,zz", "1" * 40 + "i4", "\0", "\1"]
)
def test_words_that_are_no_dtype(dtype):
    with pytest.raises(ArgumentError, match="Placeholder: `dtype` must be one of DT_HALF"):
        ops.Placeholder(Scope.new_root_scope(), dtype)
