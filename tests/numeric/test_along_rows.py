"""Depthwise filter gradients whose chains lie along rows, against the contract of sums written down in NumPy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import same_bits
from cases import Case
from convgrad._problem.convolution import Problem
from convgrad._problem.sums.pixels import along_rows, pixel_contract
from kernels import problem_of

_BASE = Case(True, 3, (9, 21), 5, 1, 1, (3, 3), (1, 1), (1, 1), "SAME", "NCHW")
PLANES = ("depthwise_plane", "depthwise_flat")
CASES = {
    "narrow": replace(_BASE, batch=20, size=(7, 7)),
    "pieces": _BASE,
    "bands and units": replace(_BASE, batch=2, size=(19, 70)),
    "strides": replace(_BASE, size=(13, 37), strides=(2, 2), group_out=2),
    "dilated": replace(_BASE, dilations=(2, 3)),
    "large window, few channels": replace(_BASE, groups=2, size=(14, 19), window=(13, 7)),
    "large window, wide": replace(_BASE, batch=1, groups=20, size=(6, 66), window=(5, 5)),
    "double": replace(_BASE, dtype="float64"),
    "flat": replace(_BASE, data_format="NHWC", groups=3, size=(30, 37)),
    "flat, fewer chains": replace(
        _BASE, data_format="NHWC", groups=4, size=(21, 44), strides=(2, 3)
    ),
    "flat, multiplier": replace(_BASE, data_format="NHWC", groups=2, group_out=4),
    "flat, double": replace(_BASE, data_format="NHWC", groups=6, dtype="float64"),
}


def expected(problem: Problem, x: Any, y: Any) -> Any:
    """Add the products as the contract says; products of few bits are exact, so that no fused addition is needed."""
    _, unit, _, chains, band_rows = pixel_contract(problem)
    rows, cols = problem.rows, problem.cols
    if problem.data_format == "NHWC":
        x, y = (each.transpose(0, 3, 1, 2) for each in (x, y))
    y = y.reshape(problem.batch, problem.groups, problem.group_out, rows.out, cols.out)
    leaves = []
    for first in range(0, problem.batch, unit.images):
        for top in range(0, rows.out, unit.rows):
            sums = np.zeros((chains, rows.window, cols.window, *y.shape[1:3]), x.dtype)
            stop = min(rows.out, top + unit.rows)
            places = [
                (n, p, q)
                for n in range(first, min(problem.batch, first + unit.images))
                for band in range(top, stop, band_rows)
                for left in range(0, cols.out, chains)
                for p in range(band, min(band + band_rows, stop))
                for q in range(left, min(left + chains, cols.out))
            ]
            for n, p, q in places:
                for r in range(rows.window):
                    h = p * rows.stride + r * rows.dilation - rows.before
                    for s in range(cols.window):
                        w = q * cols.stride + s * cols.dilation - cols.before
                        if 0 <= h < rows.size and 0 <= w < cols.size:
                            sums[q % chains, r, s] += x[n, :, h, w][:, None] * y[n, :, :, p, q]
            while len(sums) > 1:
                half = len(sums) // 2
                sums = sums[:half] + sums[half:]
            leaves.append(sums[0])
    while len(leaves) > 1:
        pairs = [leaves[i : i + 2] for i in range(0, len(leaves), 2)]
        leaves = [pair[0] + pair[1] if len(pair) == 2 else pair[0] for pair in pairs]
    return leaves[0].reshape(problem.result_shape)


@pytest.mark.parametrize("name", CASES)
def test_every_row_width_and_cache_gives_the_bits_of_the_contract(name: str) -> None:
    case = CASES[name]
    problem = problem_of(case, "filter")
    assert along_rows(problem)
    rng = np.random.default_rng(3)
    x, y = (
        (rng.integers(-255, 256, shape) * 2.0 ** rng.integers(-6, 6, shape)).astype(case.dtype)
        for shape in problem.operand_shapes
    )
    wanted = expected(problem, x, y)
    count = 0
    machines = same_bits.machines()
    for _, who, target, plan in same_bits.plans(problem, PLANES, machines):
        got = same_bits.run_plan(plan, target, x, y, threads=1 + count % 3)
        np.testing.assert_array_equal(got, wanted, who)
        count += 1
    assert count or not machines


@pytest.mark.parametrize("name", ["pieces", "flat", "flat, multiplier"])
def test_what_is_infinite_beside_padding_keeps_the_order(name: str) -> None:
    """A sum that met an infinity times zero in the padding is computed again, in the same order."""
    case = CASES[name]
    problem = problem_of(case, "filter")
    rng = np.random.default_rng(4)
    x, y = (rng.integers(-255, 256, each).astype("float32") / 8 for each in problem.operand_shapes)
    top = (slice(None), 0) if case.data_format == "NHWC" else (slice(None), slice(None), 0)
    y[top] = np.inf
    x = np.abs(x) + 1
    with np.errstate(invalid="ignore"):
        wanted = expected(problem, x, y)
    assert np.isinf(wanted[1:]).all() and np.isfinite(wanted[0]).all()
    for _, who, target, plan in same_bits.plans(problem, PLANES, same_bits.machines()):
        np.testing.assert_array_equal(same_bits.run_plan(plan, target, x, y), wanted, who)
