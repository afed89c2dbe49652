"""The order in which depthwise forward passes and input gradients add their products, told once more in NumPy.

Numbers have so few bits that products are exact, so that a fused product is a product and an addition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import same_bits
from cases import Case, Data, normal
from convgrad._problem.geometry import Axis
from convgrad._problem.sums.gather import GROUP, gather_contract
from kernels import problem_of

CASES = {
    "small": ((14, 15), (3, 3), (1, 1), (1, 1), 20, 1),
    "7x7": ((9, 20), (7, 7), (1, 1), (1, 1), 17, 1),
    "7x7 on one tile": ((7, 7), (7, 7), (1, 1), (1, 1), 3, 1),
    "one chain of 144": ((20, 18), (12, 12), (1, 1), (1, 1), 5, 1),
    "13x13": ((20, 40), (13, 13), (1, 1), (1, 1), 18, 1),
    "13x13, stride 2": ((21, 38), (13, 13), (2, 2), (1, 1), 18, 1),
    "17 rows": ((20, 21), (17, 15), (1, 1), (1, 1), 9, 1),
    "31x31": ((28, 28), (31, 31), (1, 1), (1, 1), 5, 1),
    "31x31 on a small image": ((9, 8), (31, 31), (1, 1), (1, 1), 18, 1),
    "40 rows, holes, stride": ((20, 30), (40, 5), (3, 2), (2, 1), 4, 1),
    "long rows": ((5, 60), (3, 101), (1, 2), (1, 1), 9, 1),
    "long rows with holes": ((4, 50), (2, 130), (1, 1), (1, 3), 3, 1),
    "multiplier": ((12, 12), (5, 5), (1, 1), (1, 1), 9, 2),
    "many outputs": ((9, 12), (5, 5), (2, 1), (1, 1), 5, 10),
}

NAMES = (
    *("depthwise_direct", "depthwise_plane", "depthwise_flat", "depthwise_packed"),
    "dense_direct",
)


def coarse(data: Data) -> Data:
    """Round to 11 bits."""
    return Data(*(each.astype(np.float16).astype(each.dtype) for each in (data.x, data.f, data.g)))


def in_order(case: Case, kind: str, data: Data) -> Any:
    """Add tap by tap, with images as NHWC."""
    problem = problem_of(case, kind)
    contract, forward = gather_contract(problem), kind == "forward"
    planes = (data.x, data.g)
    if case.data_format == "NCHW":
        planes = tuple(np.moveaxis(each, 1, 3) for each in planes)
    x, g = planes[0][..., None], planes[1].reshape(*planes[1].shape[:3], case.groups, -1)
    filters = data.f.reshape(*case.window, case.groups, -1)
    shape = g.shape if forward else x.shape
    runs: dict[int, Any] = {}
    for m, i, j in np.ndindex(1 if forward else case.group_out, *case.window):
        # By ascending source: the first tap first in a forward pass, the last in an input gradient.
        r, s = (i, j) if forward else (case.window[0] - 1 - i, case.window[1] - 1 - j)
        p, h = met(problem.rows, r)
        q, w = met(problem.cols, s)
        row, col = i // contract.row_spacing, j // contract.col_spacing
        run = m * contract.block_runs + row * contract.row_runs + col // contract.taps
        sums = runs.setdefault(run if contract.levels else 0, np.zeros(shape, x.dtype))
        if forward:
            sums[:, p, q] += x[:, h, w] * filters[r, s]
        else:
            sums[:, h, w] += (g[:, p, q] * filters[r, s])[..., m : m + 1]
    return joined(runs)


def met(axis: Axis, tap: int) -> tuple[slice, slice]:
    """Return the outputs that a tap takes part in, and the inputs it meets there."""
    first = tap * axis.dilation - axis.before
    inside = [p for p in range(axis.out) if 0 <= p * axis.stride + first < axis.size]
    if not inside:
        return slice(0), slice(0)
    start, stop = (inside[at] * axis.stride + first for at in (0, -1))
    return slice(inside[0], inside[-1] + 1), slice(start, stop + 1, axis.stride)


def joined(runs: dict[int, Any]) -> Any:
    """Add runs to totals, and totals to the grand total."""
    totals: dict[int, Any] = {}
    for run, sums in sorted(runs.items()):
        totals[run // GROUP] = totals.get(run // GROUP, 0 * sums) + sums
    grand = sum(total for _, total in sorted(totals.items()))
    return grand.reshape(*grand.shape[:3], -1)


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("kind", ["forward", "input"])
@pytest.mark.parametrize("name", CASES)
def test_products_are_added_in_the_order_of_the_contract(
    name: str, kind: str, data_format: str
) -> None:
    """By all algorithms on all machines."""
    size, window, strides, dilations, groups, multiplier = CASES[name]
    case = Case(
        True, 2, size, groups, 1, multiplier, window, strides, dilations, "SAME", data_format
    )
    data = coarse(normal(case, np.random.default_rng(3)))
    wanted = in_order(case, kind, data)
    if data_format == "NCHW":
        wanted = np.moveaxis(wanted, 3, 1)
    tried = set()
    for algorithm, who, target, plan in same_bits.plans(
        problem_of(case, kind), NAMES, same_bits.machines()
    ):
        got = same_bits.run_plan(plan, target, *same_bits.operands(kind, data))
        np.testing.assert_array_equal(got, wanted, err_msg=who)
        tried.add(algorithm)
    assert len(tried) > 1
