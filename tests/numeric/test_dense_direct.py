"""`dense_direct`: flat pixels, sources that are turned once, tables that stay small, and long sums."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from calling import seeds
from cases import Case, whole_numbers
from convgrad._compiler import jit
from convgrad._engine import planner
from convgrad._kernels.dense_direct import tables
from convgrad._kernels.dense_direct.axis import AxisTable
from convgrad._kernels.dense_direct.sizes import DirectSizes, tiles
from convgrad._kernels.dense_direct.turn import TurnKernel
from convgrad._kernels.dense_direct.words import DirectDenseKernel
from convgrad._kernels.shared.gather import gather
from convgrad._problem.convolution import Kind
from convgrad._problem.geometry import solve
from kernels import compute, expected_exactly, problem_of, random_case_for
from machines import MACHINES

HOST = jit.host_target()
NAME = "dense_direct"
DTYPES = ("float32", "float64", "half", "bfloat16", "int32")


def check(case: Case, kind: str, seed: int = 0) -> None:
    data = whole_numbers(case, np.random.default_rng(seed), 2)
    for place in ("start", "end"):
        got = compute(NAME, HOST, case, kind, data, place)
        expected = expected_exactly(case, kind, data)
        np.testing.assert_array_equal(
            got.astype(np.float64), expected.astype(np.float64), str((case, kind))
        )


def pointwise(batch: int, size: tuple[int, int], groups: int, ins: int, outs: int) -> Case:
    return Case(False, batch, size, groups, ins, outs, (1, 1), (1, 1), (1, 1), "SAME")


def main_step(case: Case, kind: str) -> Any:
    return planner.choose_named(problem_of(case, kind), HOST, NAME).steps[-1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape",
    [
        (1, (1, 1), 1, 70, 33),  # fully connected, one pixel
        (5, (1, 1), 1, 24, 40),  # fewer pixels than a tile has
        (3, (5, 7), 1, 17, 24),
        (2, (9, 11), 1, 16, 8),
        (1, (1, 101), 1, 3, 19),
        (2, (7, 5), 3, 5, 9),
        (2, (6, 7), 4, 4, 4),  # two groups in a vector
        (1, (13, 13), 1, 200, 3),
        (2, (13, 3), 1, 900, 20),  # more than one grand total
    ],
    ids=str,
)
def test_flat_pixels_are_exact(shape: Any, dtype: str, checked: Any) -> None:
    for kind, data_format in itertools.product(("forward", "input"), ("NHWC", "NCHW")):
        case = replace(pointwise(*shape), dtype=dtype, data_format=data_format)
        assert main_step(case, kind).kernel.flat == (data_format == "NHWC")
        check(case, kind)
        checked["dense_direct, flat"] += 1


def test_what_is_flat() -> None:
    """One tap, stride 1, no padding, NHWC: anything else has rows."""
    case = pointwise(2, (6, 6), 1, 16, 16)
    for changed, flat in (
        ({}, True),
        ({"strides": (2, 1)}, False),
        ({"padding": ((1, 0), (0, 0))}, False),
        ({"window": (1, 2)}, False),
        ({"data_format": "NCHW"}, False),
    ):
        step = main_step(replace(case, **changed), "forward")
        assert step.kernel.flat == flat, changed
        assert bool(step.table) == (not flat)


def test_blocks_of_flat_pixels_are_whole_tiles() -> None:
    for batch, size, ins, outs in itertools.product((1, 8), (7, 14, 28, 57), (16, 256), (24, 512)):
        problem = problem_of(pointwise(batch, (size, size), 1, ins, outs), "forward")
        for tile in tiles(HOST):
            it = DirectSizes(problem, HOST, tile)
            _, _, pixels = it.block()
            assert pixels % it.tile.height == 0, (batch, size, ins, outs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "case",
    [
        pointwise(1, (3, 3), 1, 40, 96),
        pointwise(2, (2, 5), 1, 48, 50),
        Case(False, 1, (5, 4), 1, 16, 24, (3, 3), (1, 1), (1, 1), "SAME"),
        Case(False, 2, (4, 5), 1, 24, 70, (3, 2), (2, 1), (1, 2), "SAME"),
        Case(False, 1, (1, 1), 1, 64, 64, (1, 1), (1, 1), (1, 1), "VALID"),
    ],
    ids=str,
)
def test_a_source_that_is_smaller_than_the_filter_is_turned_once(
    case: Case, dtype: str, checked: Any
) -> None:
    case = replace(case, data_format="NCHW", dtype=dtype)
    for kind in ("forward", "input"):
        plan = planner.choose_named(problem_of(case, kind), HOST, NAME)
        assert any(isinstance(step.kernel, TurnKernel) for step in plan.steps)
        main = plan.steps[-1].kernel
        assert isinstance(main, DirectDenseKernel) and main.planes and not main.staged
        assert plan.partial_bytes
        check(case, kind)
        checked["dense_direct, turned"] += 1
    large = replace(case, size=(40, 40), batch=4)
    steps = planner.choose_named(problem_of(large, "forward"), HOST, NAME).steps
    assert not any(isinstance(step.kernel, TurnKernel) for step in steps)


@pytest.mark.parametrize("seed", seeds(3, 8))
def test_walks_through_rows_are_exact(seed: int, checked: Any) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(8):
        case, kinds = random_case_for(rng, NAME, HOST, depthwise=False)
        for kind in kinds:
            check(case, kind, seed)
            checked["dense_direct, walks"] += 1


def test_pieces_are_all_cells_of_a_block_once() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        size, window, stride, dilation = (int(rng.integers(1, most)) for most in (40, 9, 5, 4))
        before, after = (int(n) for n in rng.integers(0, 9, 2))
        axis = solve(size, window, stride, dilation, (before, after))
        if axis.out < 1:
            continue
        for kind, sparse in itertools.product((Kind.FORWARD, Kind.INPUT_GRADIENT), (False, True)):
            along = gather(axis, kind)
            table = AxisTable(along, int(rng.integers(1, along.target + 1)), sparse)
            for span in table.examples:
                seen = {}
                for piece in table.pieces(span):
                    for i in range(piece.cells):
                        cell = piece.target + i * piece.target_step
                        assert cell not in seen
                        seen[cell] = piece.source + i * piece.source_step
                        at = span.start + cell
                        assert table.classes[at] == piece.number
                        if table.entries[piece.number]:
                            assert seen[cell] == table.place(span, table.base[at])
                assert sorted(seen) == list(range(span.count))


def test_tables_grow_neither_with_the_image_nor_with_the_batch() -> None:
    bytes_ = []
    for batch, size in ((1, 30), (4, 60), (64, 120)):
        case = Case(False, batch, (size, size), 1, 64, 64, (3, 3), (1, 1), (1, 1), "SAME")
        bytes_.append(len(main_step(case, "forward").table))
    assert max(bytes_) <= 4096, bytes_


def test_large_windows_are_planned_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pair of classes had a list of tiles: 31x127 taps took 1 s and 835 KB. Lists of runs take 33 KB at most."""
    looked_at = 0
    find = tables._SharedEntries.find

    def counted(self: Any, entries: Any) -> Any:
        nonlocal looked_at
        looked_at += len(entries)
        return find(self, entries)

    monkeypatch.setattr(tables._SharedEntries, "find", counted)
    for data_format, kind in itertools.product(("NHWC", "NCHW"), ("forward", "input")):
        looked_at = 0
        case = Case(*(False, 1, (64, 256), 1, 8, 8, (31, 127), (1, 1), (1, 1), "SAME", data_format))
        assert len(main_step(case, kind).table) < 35_000
        assert looked_at <= 2 * (31 * 62 + 127 * 254)


@pytest.mark.parametrize(
    ("terms", "most"), [(160, 4.0), (192, 2.4), (768, 2.55), (2048, 2.65), (16384, 3.1)]
)
def test_long_sums_err_by_what_is_promised(terms: int, most: float) -> None:
    """Two levels had 2.9 u at 2048 terms and 6 u at 16384."""
    rng = np.random.default_rng(3)
    case = pointwise(1, (6, 10), 1, terms, 32)
    data = whole_numbers(case, rng)
    x = rng.standard_normal(data.x.shape).astype(np.float32)
    f = rng.standard_normal(data.f.shape).astype(np.float32)
    got = compute(NAME, HOST, case, "forward", replace(data, x=x, f=f))
    exact = x.astype(np.float64).reshape(-1, terms) @ f.astype(np.float64).reshape(terms, 32)
    error = np.linalg.norm(got.reshape(-1, 32) - exact) / np.linalg.norm(exact)
    assert error * 2**24 <= most


@pytest.mark.parametrize("farthest", [2**31 - 1, 3])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_tables_of_either_width_compute_the_same(
    farthest: int, data_format: str, monkeypatch: Any
) -> None:
    """Numbers beyond 32 bits are of filters of 8 GB; here the limit is brought down to the numbers."""
    monkeypatch.setattr(tables, "FARTHEST", farthest)
    case = Case(False, 2, (9, 12), 1, 5, 7, (3, 2), (2, 1), (1, 2), "SAME", data_format)
    for kind in ("forward", "input"):
        step = main_step(case, kind)
        assert step.kernel.far == (farthest == 3)
        check(case, kind)


def test_the_table_of_a_large_image_is_as_small_as_the_code() -> None:
    """64-bit numbers made it 24 KB for 1,000 rows, four times the code."""
    case = Case(False, 1, (1000, 1000), 1, 8, 16, (5, 5), (3, 3), (1, 1), "SAME")
    plan = planner.choose_named(problem_of(case, "forward"), MACHINES["zen3"].target, NAME)
    assert len(plan.steps[-1].table) < 6000
