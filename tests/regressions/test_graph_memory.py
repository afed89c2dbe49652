"""Nodes that hand on a view must not be written into: what they show may be a Variable, or the caller's array.

A row transposed is the same memory, and so is a single number that is repeated once. Both counted as memory of their
own, and an op behind them wrote into it: into the array that was fed, or, where NumPy had marked the view, not at all.
"""

from __future__ import annotations

import numpy as np

from convgrad.graph import ClientSession, Scope, add_symbolic_gradients, ops


def test_a_transposed_row_leaves_what_was_fed() -> None:
    scope = Scope.new_root_scope()
    x = ops.Placeholder(scope, "float64", [1, 3])
    turned = ops.Negate(scope, ops.Transpose(scope, x, [1, 0]))
    fed = np.array([[1.0, 2.0, 3.0]])
    (result,) = ClientSession(scope).run([turned], {x: fed})
    assert result.tolist() == [[-1], [-2], [-3]]
    assert fed.tolist() == [[1, 2, 3]]


def test_a_transposed_row_leaves_a_variable() -> None:
    scope = Scope.new_root_scope()
    kept = ops.Variable(scope, [1, 2], "float32")
    session = ClientSession(scope)
    session.set_variables({kept.name: np.float32([[1, 2]])})
    turned = ops.Square(scope, ops.Transpose(scope, kept, [1, 0]))
    for _ in range(2):
        (result,) = session.run([turned])
        assert result.tolist() == [[1], [4]]


def test_gradients_through_a_mean_of_one_element() -> None:
    scope = Scope.new_root_scope()
    x = ops.Placeholder(scope, "float32", [1, 1])
    cost = ops.Mean(scope, ops.Square(scope, x), [0, 1])
    (slope,) = add_symbolic_gradients(scope, [cost], [x])
    (result,) = ClientSession(scope).run([slope], {x: [[3.0]]})
    assert result.tolist() == [[6]]


def test_scalars_stay_scalars() -> None:
    scope = Scope.new_root_scope()
    x = ops.Placeholder(scope, "float32", [])
    none = np.zeros(0, np.int32)
    fetches = [ops.Transpose(scope, x, none), ops.BroadcastTo(scope, x, none)]
    results = ClientSession(scope).run(fetches, {x: 2.0})
    assert [each.shape for each in results] == [(), ()]
