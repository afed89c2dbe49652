"""Depthwise filter gradients in NHWC, bit for bit as the contract of sums says: a NumPy model of the order."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from cases import NUMPY, Case, normal
from convgrad._compiler import targets
from convgrad._compiler.jit import host
from convgrad._compiler.targets import Target
from convgrad._engine import planner
from convgrad._kernels import ALGORITHMS
from convgrad._kernels.depthwise_direct import schedule
from convgrad._kernels.depthwise_direct.words import Tile
from convgrad._problem.sums.pixels import PixelBox, pixel_contract
from kernels import problem_of
from same_bits import run_plan

NAMES = ("depthwise_direct", "depthwise_packed", "depthwise_flat")
CASES = {
    "56x56": Case(True, 2, (14, 56), 20, 1, 1, (3, 3), (1, 1), (1, 1), "SAME"),
    "several runs of a row": Case(True, 1, (5, 131), 17, 1, 1, (3, 3), (1, 1), (1, 1), "SAME"),
    "several units of a row": Case(True, 1, (2, 805), 16, 1, 1, (3, 2), (1, 1), (1, 1), "SAME"),
    "units of images": Case(True, 21, (7, 7), 33, 1, 1, (3, 3), (1, 1), (1, 1), "SAME"),
    "runs of images": Case(True, 150, (4, 3), 19, 1, 1, (3, 3), (1, 1), (1, 1), "SAME"),
    "runs of rows": Case(True, 3, (29, 28), 24, 1, 1, (5, 5), (1, 1), (1, 1), "SAME"),
    "strides": Case(True, 3, (57, 30), 16, 1, 1, (3, 3), (2, 2), (1, 1), "SAME"),
    "dilated": Case(True, 2, (15, 40), 18, 1, 1, (3, 3), (1, 1), (2, 2), "VALID"),
    "7x7": Case(True, 2, (20, 20), 16, 1, 1, (7, 7), (1, 1), (1, 1), "SAME"),
    "1x1": Case(True, 2, (30, 31), 16, 1, 1, (1, 1), (1, 1), (1, 1), "SAME"),
    "few channels, far apart": Case(True, 2, (21, 47), 3, 1, 2, (3, 3), (1, 5), (1, 1), "SAME"),
    "half": Case(True, 9, (16, 15), 16, 1, 1, (3, 3), (1, 1), (1, 1), "SAME", dtype="half"),
    "bfloat16": Case(True, 2, (9, 70), 32, 1, 1, (3, 3), (1, 1), (1, 1), "SAME", dtype="bfloat16"),
}


def fma(a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c of float32, rounded once: by a sum in float64 that is rounded to odd."""
    product = a.astype(np.float64) * b.astype(np.float64)
    c = c.astype(np.float64)
    total = product + c
    rest = total - product
    error = (product - (total - rest)) + (c - rest)
    bits = total.view(np.int64)
    inexact = (error != 0) & (bits & 1 == 0)
    odd = bits + np.where(inexact, np.where((error > 0) == (total > 0), 1, -1), 0)
    return odd.view(np.float64).astype(np.float32)


def boxes(out: PixelBox, piece: PixelBox, begin: tuple[int, ...] = (0, 0, 0)) -> list[Any]:
    """Return the pieces of a box in order: where each begins, and its size."""
    starts = product(*(range(0, whole, part) for whole, part in zip(out, piece, strict=True)))
    return [
        (
            tuple(b + s for b, s in zip(begin, start, strict=True)),
            PixelBox(*(min(p, o - s) for p, o, s in zip(piece, out, start, strict=True))),
        )
        for start in starts
    ]


def expected(case: Case, x: Any, grad: Any) -> Any:
    """Add the products of every tap and channel in the order of the contract."""
    problem = problem_of(case, "filter")
    contract = pixel_contract(problem)
    rows, cols = problem.rows, problem.cols
    x = np.repeat(x.astype(np.float32), case.group_out, axis=3)
    grad = grad.astype(np.float32)
    taps = rows.window * cols.window
    leaves = []
    for begin, unit in boxes(contract.out, contract.unit):
        total = np.zeros((taps, x.shape[3]), np.float32)
        for (n0, p0, q0), run in boxes(unit, contract.run, begin):
            chain = np.zeros_like(total)
            pixels = product(*(range(a, a + b) for a, b in zip((n0, p0, q0), run, strict=True)))
            for n, p, q in pixels:
                if contract.out.rows == 1:  # one row of all pixels, perhaps
                    p, q = divmod(p * contract.out.cols + q, cols.out)
                for tap, (r, s) in enumerate(np.ndindex(rows.window, cols.window)):
                    h = p * rows.stride + r * rows.dilation - rows.before
                    w = q * cols.stride + s * cols.dilation - cols.before
                    if 0 <= h < rows.size and 0 <= w < cols.size:
                        chain[tap] = fma(x[n, h, w], grad[n, p, q], chain[tap])
            total = total + chain
        leaves.append(total)
    while len(leaves) > 1:
        pairs = zip(leaves[::2], leaves[1::2], strict=False)
        leaves = [a + b for a, b in pairs] + leaves[len(leaves) // 2 * 2 :]
    return leaves[0].astype(NUMPY[case.dtype]).reshape(problem.result_shape)


def machines() -> list[Target]:
    rows = targets.runnable(host.architecture(), host.features())
    return [row.with_caches(*host.cache_sizes()) for row in rows if row.has_fma]


@pytest.mark.parametrize("name", CASES)
def test_sums_are_added_in_the_order_of_the_contract(name: str) -> None:
    case = CASES[name]
    data = normal(case, np.random.default_rng(1))
    problem, wanted, tried = problem_of(case, "filter"), expected(case, data.x, data.g), 0
    for target in machines():
        for algorithm in NAMES:
            if ALGORITHMS[algorithm].why_not(problem, target) is not None:
                continue
            for threads, (_, candidate) in enumerate(
                planner.candidates(problem, target, algorithm), 1
            ):
                found = run_plan(candidate.plan(), target, data.x, data.g, threads)
                assert found.tobytes() == wanted.tobytes(), (algorithm, target.name)
                tried += 1
    assert tried or not machines()


@pytest.mark.parametrize(
    ("size", "stride"), [((14, 56), 1), ((28, 80), 2), ((12, 131), 1), ((6, 38), 1)]
)
def test_rows_of_a_tile_are_runs_of_their_own(size: tuple[int, int], stride: int) -> None:
    case = Case(True, 3, size, 33, 1, 1, (3, 3), (stride, stride), (1, 1), "SAME")
    data = normal(case, np.random.default_rng(1))
    problem, wanted = problem_of(case, "filter"), expected(case, data.x, data.g)
    for target in machines():
        for tile in (Tile(2, 4, 1, 512), Tile(2, 2, 1)):
            plan = schedule.plan_with(problem, target, tile, 32, 1)
            found = run_plan(plan, target, data.x, data.g)
            assert found.tobytes() == wanted.tobytes(), (tile, target.name)


@pytest.mark.parametrize(("window", "width"), [((5, 5), 2), ((5, 5), 7), ((3, 3), 1), ((4, 3), 4)])
def test_border_tiles_begin_and_end_rows_that_are_runs(window: tuple[int, int], width: int) -> None:
    """Tiles as narrow as the padding have no product for some taps, whose sums must begin and end all the same."""
    case = Case(True, 2, (5, 29), 33, 1, 1, window, (1, 1), (1, 1), "SAME")
    data = normal(case, np.random.default_rng(1))
    problem, wanted = problem_of(case, "filter"), expected(case, data.x, data.g)
    for target in machines():
        plan = schedule.plan_with(problem, target, Tile(1, width), 32, 1)
        assert plan.steps[0].kernel.row_runs, target.name
        found = run_plan(plan, target, data.x, data.g)
        assert found.tobytes() == wanted.tobytes(), target.name
