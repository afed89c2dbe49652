"""`depthwise_direct` with every kind of tile on small images: the rule picks some of them only for large ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from calling import seeds
from cases import whole_numbers
from convgrad._compiler import jit
from convgrad._engine import prepare
from convgrad._kernels.depthwise_direct import schedule as direct
from convgrad._kernels.depthwise_direct.words import Tile
from convgrad._problem.convolution import Kind, Problem
from convgrad._runtime.run import run as run_program
from kernels import expected_exactly, placed, problem_of, random_case_for

HOST = jit.host_target()


def random_tile(rng: np.random.Generator, problem: Problem, lanes: int) -> Tile:
    """Draw a tile the kernel must manage for this problem."""
    to_filter = problem.kind is Kind.FILTER_GRADIENT
    rows, cols = direct._gathers(problem)
    heights = [n for n in (1, 2, 3, 4) if n <= rows.groups]
    if to_filter:  # rows of a tile are runs of their own there
        heights = [n for n in heights if n == 1 or direct._tall(problem, n)]
    tile = Tile(
        rows=int(rng.choice(heights)),
        cols=int(rng.choice(direct._widths(problem, cols, 16))),
        vectors=2 if problem.in_c % (2 * lanes) == 0 and rng.random() < 0.5 else 1,
        prefetch=int(rng.choice([0, 512])),
    )
    orders = ("rows", "resident")
    return replace(tile, order=orders[int(rng.integers(2))]) if to_filter else tile


@pytest.mark.parametrize("seed", seeds(3, 6))
def test_any_tile_is_exact(seed: int, checked: Any) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(12):
        groups = int(rng.choice([8, 16, 20, 32]))
        case, kinds = random_case_for(rng, direct.NAME, HOST, groups=groups, depthwise=True)
        _check(rng, case, kinds, checked)


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_any_tile_of_alternate_channels_is_exact(seed: int, checked: Any) -> None:
    """bfloat16 in vectors of every other channel: whole pairs of vectors, and a last one that is moved back."""
    rng = np.random.default_rng(100 + seed)
    alternate = 0
    for groups in (16, 32, 48, 60, 72, 75, 79, 95):
        case, kinds = random_case_for(
            rng, direct.NAME, HOST, groups=groups, depthwise=True, dtype="bfloat16"
        )
        alternate += _check(rng, case, kinds, checked)
    assert alternate or HOST.lanes(4) > 8


def _check(rng: np.random.Generator, case: Any, kinds: Any, checked: Any) -> int:
    """Compute one case with tiles drawn at random; returns how many kernels took every other channel."""
    alternate = 0
    data = whole_numbers(case, rng)
    operands = {
        "forward": (data.x, data.f),
        "input": (data.f, data.g),
        "filter": (data.x, data.g),
    }
    for kind in kinds:
        problem = problem_of(case, kind)
        lanes = HOST.lanes(8 if case.dtype == "float64" else 4)
        tile = random_tile(rng, problem, lanes)
        chunk = int(rng.choice([2 * lanes, 1 << 30]))
        plan = direct.plan_with(problem, HOST, tile, chunk, int(rng.integers(1, 9)))
        alternate += getattr(plan.steps[0].kernel, "alternate", False)
        first, second = (placed(each, "end") for each in operands[kind])
        result = placed(np.full(problem.result_shape, 77, problem.dtype.numpy), "end")
        program = prepare.bind(plan, HOST)
        run_program(program, *(each.ctypes.data for each in (first, second, result)))
        np.testing.assert_array_equal(
            result.astype(np.float64),
            expected_exactly(case, kind, data).astype(np.float64),
            str((case, kind, tile)),
        )
        checked["depthwise_direct tiles, exact integers"] += 1
    return alternate
