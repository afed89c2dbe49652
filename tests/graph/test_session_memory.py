"""The memory of a run: what `explain` states is what is taken, and everything ends behind its last use."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from convgrad._base.errors import ArgumentError
from convgrad.graph import ClientSession, Scope, add_symbolic_gradients, ops

F = np.float32
SIDE = 400
BYTES = SIDE * SIDE * 4
SLACK = 100_000
"""Bytes for lists, frames and small arrays."""


@pytest.fixture
def scope():
    return Scope.new_root_scope()


def taken(session, fetches, feeds):
    """Return the most memory a run has at a time, beside what is there already."""
    session.run(fetches, feeds)  # prepares the way
    tracemalloc.start()
    try:
        session.run(fetches, feeds)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def checked(scope, fetches, feeds, hidden=0):
    """Assert that the stated peak is the true one; `hidden` bytes are scratch of one kernel."""
    session = ClientSession(scope)
    said = session.explain(fetches, feeds)
    assert said.peak_bytes is not None and said.peak_bytes <= said.kept_bytes and not said.unknown
    used = taken(session, fetches, feeds)
    assert 0.8 * said.peak_bytes - SLACK <= used <= 1.2 * said.peak_bytes + SLACK + hidden
    return said


def picture():
    return np.random.default_rng(0).standard_normal((SIDE, SIDE)).astype(F)


@pytest.mark.parametrize("shape", [[SIDE, SIDE], [None, SIDE], None])
def test_a_chain_needs_one_tensor(scope, shape):
    x = ops.Placeholder(scope, F, shape)
    y = x
    for name in ("Square", "Tanh", "Negate", "Exp", "Sigmoid", "Relu") * 3:
        y = getattr(ops, name)(scope, y)
    said = checked(scope, [y], {x: picture()})
    assert said.peak_bytes == BYTES and said.kept_bytes == 18 * BYTES
    assert sum(step.in_place for step in said.steps) == 17


def test_a_residual_graph_keeps_what_comes_back(scope):
    x = ops.Placeholder(scope, F, [SIDE, SIDE])
    y = ops.Square(scope, x)
    for _ in range(5):
        y = ops.Add(scope, y, ops.Tanh(scope, ops.Transpose(scope, y, [1, 0])))
    said = checked(scope, [y], {x: picture()})
    assert said.peak_bytes == 2 * BYTES


def test_reshapes_cost_nothing_and_do_not_hold_memory(scope):
    x = ops.Placeholder(scope, F, [SIDE, SIDE])
    y = ops.Square(scope, x)
    for _ in range(4):
        y = ops.Transpose(
            scope, ops.Reshape(scope, ops.Reshape(scope, y, [-1]), [SIDE, SIDE]), [1, 0]
        )
    assert checked(scope, [y], {x: picture()}).peak_bytes == 2 * BYTES


def test_a_cast_is_counted_and_freed(scope):
    x = ops.Placeholder(scope, F, [SIDE, SIDE])
    y = x
    for _ in range(3):
        y = ops.Cast(scope, ops.Cast(scope, y, np.float64), F)
    said = checked(scope, [ops.Sum(scope, y, [0, 1])], {x: picture()})
    assert said.peak_bytes == 3 * BYTES, "a double and a float at a time"


def test_gradients_state_their_memory(scope):
    x = ops.Placeholder(scope, F, [None, SIDE])
    y = x
    for _ in range(6):
        y = ops.Tanh(scope, y)
    (g,) = add_symbolic_gradients(scope, [y], [x])
    said = checked(scope, [g], {x: picture()})
    assert 6 * BYTES <= said.peak_bytes <= 9 * BYTES


def test_what_is_unknown_is_said(scope):
    x = ops.Placeholder(scope, F, [None, 3])
    y = ops.Square(scope.with_op_name("squares"), x)
    session = ClientSession(scope)
    said = session.explain([y])
    assert said.peak_bytes is None and said.unknown == ("squares",) and "?" in str(said)
    assert session.explain([y], {x: (5, 3)}).peak_bytes == 60
    told = str(session.explain([y], {x: np.ones((5, 3), F)}))
    assert "squares" in told and "60 B" in told and "1 nodes" in told
    z = ops.MatMul(scope.with_op_name("product"), y, np.ones((4, 2), F), transpose_a=True)
    with pytest.raises(
        ArgumentError, match="explain: node 'product': MatMul: `a` must have as many"
    ):
        session.explain([z], {x: (5, 3)})


def test_explain_follows_a_fed_constant(scope):
    x = ops.Placeholder(scope, F, [6])
    sizes = ops.Const(scope, [2, 3])
    y = ops.Reshape(scope, x, sizes)
    said = ClientSession(scope).explain([y], {x: (6,), sizes: np.array([3, 2], np.int32)})
    assert said.steps[-1].outputs[0].shape in ((3, 2), (None, None))
