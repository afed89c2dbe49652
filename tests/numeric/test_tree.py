"""Partial sums are added by a tree that knows positions only: nodes of any level may be its leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calling import call, some_targets
from convgrad._compiler.targets import Target
from convgrad._kernels.shared import reduce

NUMPY = {"f32": np.float32, "f64": np.float64, "f16": np.float16}


def level(nodes: Any) -> Any:
    """Add neighbours; one without a neighbour stays as it is."""
    pairs = nodes[: len(nodes) // 2 * 2]
    return np.concatenate([pairs[::2] + pairs[1::2], nodes[len(pairs) :]])


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("target", some_targets(1))
def test_slices_are_added_by_the_tree(target: Target, dtype: str) -> None:
    rng = np.random.default_rng(1)
    source = reduce.emit_tree(reduce.TreeKernel(dtype), target)
    wide = np.float64 if dtype == "f64" else np.float32
    for count in (*range(1, 18), 31, 33, 100, 257):
        size = 1 + int(rng.integers(600))
        start, pitch = 3, size + 5
        rows = rng.standard_normal((count, pitch)).astype(wide)
        nodes = rows[:, start : start + size]
        nodes[:, 0] = -0.0
        step = reduce.tree_step(dtype, size, count, pitch=pitch, start=start)
        result = np.full(size, 77, NUMPY[dtype])
        call(source, target, rows, result, *step.words, end=step.items)
        while len(nodes) > 1:
            nodes = level(nodes)
        np.testing.assert_array_equal(result, nodes[0].astype(NUMPY[dtype]), str(count))
        assert not np.signbit(result[0]), "-0"
