"""For each family of kernels problems on which its runs, units and tree show: the very bits of the specification.

Problems drawn at random have few of these: a window with several runs, rows that are cut, five units and more. So a
change of one length in one family fails here, and under that family's name (`tools/plant_bugs.py` plants them).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import same_bits
from cases import Case, normal
from convgrad._problem.convolution import Kind, Problem
from convgrad._problem.sums import specification, winograd
from convgrad._problem.sums.gather import gather_contract
from convgrad._problem.sums.pixels import pixel_contract
from kernels import problem_of

DENSE = Case(False, 1, (7, 9), 1, 12, 20, (5, 5), (1, 1), (1, 1), "SAME")
"""25 taps in runs of four, seven of a row: a total and a grand one."""
BLOCKS = replace(DENSE, group_in=100, group_out=24, window=(1, 2))
PIXELS = Case(False, 5, (20, 20), 1, 5, 8, (3, 3), (1, 1), (1, 1), "SAME")
"""Five units of an image, each of ten runs of two rows."""
IMAGES = replace(PIXELS, batch=9, size=(9, 11))
"""Three units of four, four and one image, in runs of three rows."""
WIDE = replace(PIXELS, batch=1, size=(3, 410), window=(2, 1))
"""Six units of half a row."""
GROUPS = replace(DENSE, groups=16, group_in=8, group_out=8)
NARROW = replace(PIXELS, groups=16, group_in=2, group_out=4)
CHANNELS = replace(PIXELS, depthwise=True, groups=24, group_in=1, group_out=1)
TALL = replace(CHANNELS, batch=1, size=(56, 56), groups=48)
"""Large enough for tiles of two rows, which are runs of their own; eight units of seven rows."""
LARGE = Case(True, 1, (20, 15), 20, 1, 1, (17, 13), (1, 1), (1, 1), "SAME")
"""A run of 13 taps for each of 17 rows of the window: two totals."""
LAYER = Case(False, 1, (9, 10), 1, 72, 72, (3, 3), (1, 1), (1, 1), "SAME")


def planes(case: Case) -> Case:
    return replace(case, data_format="NCHW")


PROBLEMS: dict[str, tuple[tuple[Case, str], ...]] = {
    "dense_direct": ((DENSE, "forward"), (DENSE, "input"), (BLOCKS, "forward")),
    "dense_planes": (
        (planes(DENSE), "forward"),
        (planes(DENSE), "input"),
        (planes(BLOCKS), "forward"),
    ),
    "dense_grouped": (
        (GROUPS, "forward"),
        (GROUPS, "input"),
        (NARROW, "filter"),
        (replace(IMAGES, groups=16, group_in=10, group_out=10, window=(1, 2)), "filter"),
    ),
    "dense_filter": (
        (PIXELS, "filter"),
        (planes(IMAGES), "filter"),
        (WIDE, "filter"),
        (replace(PIXELS, group_in=24, group_out=40, window=(1, 1)), "filter"),
    ),
    "depthwise_direct": (
        (CHANNELS, "filter"),
        (replace(CHANNELS, batch=9, size=(9, 11)), "filter"),
        (replace(CHANNELS, batch=1, size=(5, 410)), "filter"),
        (TALL, "filter"),
    ),
    "depthwise_packed": (
        (CHANNELS, "filter"),
        (replace(CHANNELS, size=(15, 16), window=(7, 7)), "filter"),
        (LARGE, "forward"),
        (LARGE, "input"),
    ),
    "depthwise_plane": (
        (planes(replace(CHANNELS, groups=5, batch=3, size=(70, 18))), "filter"),
        (planes(replace(CHANNELS, groups=5, batch=9)), "filter"),
        (planes(LARGE), "forward"),
        (planes(LARGE), "input"),
    ),
    "winograd": ((LAYER, "forward"), (LAYER, "input")),
}


@pytest.mark.parametrize(
    ("name", "number"), [(name, i) for name, each in PROBLEMS.items() for i in range(len(each))]
)
def test_a_family_adds_as_the_contract_says(name: str, number: int) -> None:
    """Every FMA row, width and cache size this machine can run, the best plans, and 1 to 3 threads."""
    case, kind = PROBLEMS[name][number]
    problem, data = problem_of(case, kind), normal(case, np.random.default_rng(11))
    pair = same_bits.operands(kind, data)
    numbers = name if name == "winograd" else winograd.SUMS
    want = np.ascontiguousarray(specification.compute(problem, *pair, numbers=numbers)[0]).tobytes()
    plans = [*same_bits.plans(problem, [name], same_bits.machines())]
    assert plans or not same_bits.machines(), f"{name} takes no {kind} of {case}"
    for turn, (_, who, target, plan) in enumerate(plans):
        found = same_bits.run_plan(plan, target, *pair, 1 + turn % 3).tobytes()
        assert found == want, f"{name} adds in another order: {kind} of {case}, {who}"


def test_the_problems_show_runs_units_and_trees() -> None:
    """Each family has a problem of several runs, in a sum or in a unit; filter gradients have three units or more."""
    for name, rows in PROBLEMS.items():
        found = [problem_of(case, kind) for case, kind in rows]
        assert name == "winograd" or any(map(has_runs, found)), name
        for problem in found:
            if problem.kind is Kind.FILTER_GRADIENT:
                assert pixel_contract(problem).units >= 3, (name, problem)


def has_runs(problem: Problem) -> bool:
    if problem.kind is Kind.FILTER_GRADIENT:
        order = pixel_contract(problem)
        return order.run != order.unit or order.chains > 2
    return gather_contract(problem).levels
