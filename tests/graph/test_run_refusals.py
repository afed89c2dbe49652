"""What a graph cannot know when it is built is checked when it runs, with the node's name and the rule."""

from __future__ import annotations

import numpy as np
import pytest

from convgrad._base.errors import ArgumentError
from convgrad.graph import ClientSession, Scope, ops


def indices(*values):
    return np.array(values, np.int32)


def refused(name, inputs, words, **attrs):
    """Assert that a session refuses what could not be known when the graph was built."""
    scope = Scope.new_root_scope()
    tensors = [ops.Placeholder(scope, each.dtype) for each in inputs]
    op = getattr(ops, name)(scope, *tensors, **attrs)
    with pytest.raises(ArgumentError) as caught:
        ClientSession(scope).run([op.operation.outputs[0]], dict(zip(tensors, inputs, strict=True)))
    message = str(caught.value)
    assert message.startswith(f"ClientSession.run: node '{name}': {name}: ") and words in message, (
        message
    )


ONES = np.ones((2, 3), np.float32)
POOL = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "VALID"}


@pytest.mark.parametrize(
    ("name", "inputs", "words", "attrs"),
    [
        ("Add", [ONES, np.ones(4, np.float32)], "broadcast together, got [2, 3] and [4]", {}),
        ("Div", [indices(1, 2), indices(0, 1)], "`y` must not be 0", {}),
        ("Reshape", [ONES, indices(4, -1)], "must leave a whole size for -1", {}),
        ("Transpose", [ONES, indices(0, 0)], "must hold each of 0 to 1 once", {}),
        ("InvertPermutation", [indices(0, 2)], "must hold each of 0 to 1 once", {}),
        ("Sum", [ONES, indices(2)], "`axis` must lie in [-2, 2), got 2", {}),
        ("Mean", [np.zeros((0, 2), np.int32), indices(0)], "must not be empty", {}),
        ("ArgMax", [np.zeros((0, 2), np.int32), np.int32(0)], "must not be empty", {}),
        ("MatMul", [ONES, ONES], "as many columns as `b` has rows", {}),
        ("BiasAdd", [ONES, np.ones(2, np.float32)], "`bias` must", {}),
        ("ReluGrad", [ONES, ONES[:1]], "must have one shape", {}),
        ("OneHot", [indices(1), np.int32(-1), ONES[0, 0], ONES[0, 0]], "`depth` must be >= 0", {}),
        ("Range", [np.float32(0), np.float32(np.inf), np.float32(1)], "`limit`", {}),
        ("Range", [np.float32(0), np.float32(np.nan), np.float32(1)], "`limit`", {}),
        ("Range", [np.int32(0), np.int32(3), np.int32(0)], "`delta` must not be 0", {}),
        ("BroadcastTo", [ONES, indices(2, 1)], "must broadcast to `shape`", {}),
        ("SumToShape", [ONES, indices(2)], "must", {}),
        ("MaxPool", [np.ones((1, 0, 2, 1), np.float32)], "must fit into the rows of `input`", POOL),
        ("MaxPoolGrad", [np.ones((1, 3, 3, 1), np.float32), np.ones((1, 2, 2, 1), np.float32),
                         np.ones((1, 3, 3, 1), np.float32)], "`grad` must have shape [1, 2, 2, 1]", POOL),
        ("MaxPoolGradGrad", [np.ones((1, 3, 3, 1), np.float32), np.ones((1, 2, 2, 1), np.float32),
                             np.ones((1, 2, 2, 1), np.float32)], "`grad` must have shape [1, 3, 3, 1]", POOL),
        ("Softmax", [np.float32(1)], "`logits` must have at least 1 dimension", {}),
        ("SoftmaxCrossEntropyWithLogits", [ONES, ONES[0]], "`labels` must have 2 dimensions", {}),
        ("RandomUniform", [indices(2, -1)], "sizes >= 0", {"dtype": "float32"}),
        ("SpreadReduced", [ONES, indices(0), indices(4, 5)], "must", {}),
    ],
)  # fmt: skip
def test_what_only_a_run_can_know_is_refused_there_by_name(name, inputs, words, attrs):
    refused(name, [np.asarray(each) for each in inputs], words, **attrs)
