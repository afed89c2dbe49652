"""Results no machine can hold are refused in a line: systems promise memory that they do not have."""

from __future__ import annotations

import numpy as np
import pytest

from convgrad._apps.graph import philox
from convgrad._base.errors import AllocationError
from convgrad.graph import ClientSession, Scope, ops


@pytest.mark.parametrize(
    "make",
    [
        lambda scope, sizes: ops.RandomNormal(scope, sizes, "float32"),
        lambda scope, sizes: ops.RandomUniform(scope, sizes, "float64"),
        lambda scope, sizes: ops.BroadcastTo(scope, 1.0, sizes),
    ],
)
@pytest.mark.parametrize("sizes", [[100_000] * 3, [2**31 - 1] * 2, [2**31 - 1] * 4])
def test_shapes_that_nobody_can_hold(make, sizes):
    scope = Scope.new_root_scope()
    with pytest.raises(
        AllocationError, match=r"node '\w+': \w+: the result must fit into the machine's memory"
    ):
        ClientSession(scope).run([make(scope, sizes)])


def test_ranges_and_rows_that_nobody_can_hold():
    scope = Scope.new_root_scope()
    wide = np.float64
    for op in (
        ops.Range(scope, wide(0), wide(1e300), wide(1e-300)),
        ops.Range(scope, 0.0, 1e9, 1e-9),
        ops.Range(scope, np.int64(-(2**63)), np.int64(2**63 - 1), np.int64(1)),
        ops.OneHot(scope, [1, 2], np.int64(2**62), 1.0, 0.0),
    ):
        with pytest.raises(AllocationError, match="the result must fit into the machine's memory"):
            ClientSession(scope).run([op])


def test_the_machine_decides_and_not_its_promises(monkeypatch):
    """4e9 numbers were promised memory, and the process was ended while it wrote them."""
    from convgrad._apps.graph.table import rules

    monkeypatch.setattr(rules, "_memory", lambda: 10**9)
    scope = Scope.new_root_scope()
    with pytest.raises(
        AllocationError,
        match=r"memory of 1,000,000,000 bytes, got shape \[1000000000, 4\] of float32",
    ):
        ClientSession(scope).run([ops.RandomNormal(scope, [10**9, 4], "float32")])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("draw", [philox.normal, philox.uniform])
def test_random_numbers_in_parts_are_the_same(monkeypatch, draw, dtype):
    whole = draw(3, 5, 1003, np.dtype(dtype))
    monkeypatch.setattr(philox, "PART", 16)
    assert draw(3, 5, 1003, np.dtype(dtype)).tobytes() == whole.tobytes()


def test_an_eager_function_that_finds_no_memory_is_named_once():
    scope = Scope.new_root_scope()
    one = np.ones((1, 1, 1, 1), np.float32)
    sizes = [1, 2**24, 2**24, 1]
    op = ops.Conv2DBackpropInput(scope, sizes, one, one, [1, 2**24, 2**24, 1], "SAME")
    with pytest.raises(AllocationError) as caught:
        ClientSession(scope).run([op])
    assert str(caught.value).count("Conv2DBackpropInput: ") == 1, caught.value
