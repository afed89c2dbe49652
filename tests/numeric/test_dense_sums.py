"""The sums of dense forward passes and input gradients: one order, whatever algorithm, row, width and cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import same_bits
from cases import Case, Data, normal
from convgrad._compiler import jit
from convgrad._compiler.targets import find
from convgrad._engine import planner
from convgrad._kernels import ALGORITHMS
from convgrad._kernels.dense_planes.words import WORDS, PlanesKernel
from convgrad._problem.sums.gather import GROUP, RUN, SHORT, gather_contract
from kernels import compute, problem_of

HOST = jit.host_target()
NAMES = ("dense_direct", "dense_planes", "dense_grouped")
LAYER = Case(False, 2, (6, 9), 1, 100, 24, (3, 3), (1, 1), (1, 1), "SAME", "NCHW", "float32")
GROUPS = replace(LAYER, groups=16, group_in=40, group_out=4)
GATHERS = ("forward", "input")


@pytest.mark.parametrize("kind", GATHERS)
@pytest.mark.parametrize("seed", range(4))
def test_random_problems_have_the_same_bits(seed: int, kind: str) -> None:
    for number in range(3):
        case = same_bits.draw(seed + 30, number, depthwise=False)
        found = same_bits.compare(case, kind, NAMES, same_bits.machines())
        assert found.same, (case, found.digests)


@pytest.mark.parametrize("kind", GATHERS)
@pytest.mark.parametrize("dtype", ["float32", "half"])
@pytest.mark.parametrize(
    "case",
    [
        # Blocks of channels, totals, and grand totals; phases, dilation; groups; a segment of several blocks.
        LAYER,
        replace(LAYER, strides=(2, 3), dilations=(2, 1), window=(5, 4), size=(12, 11)),
        GROUPS,
        replace(GROUPS, strides=(2, 2), group_in=50, group_out=56),
        replace(GROUPS, window=(5, 11), group_in=6, group_out=6),
        replace(LAYER, window=(1, 1), group_in=512, group_out=700, size=(8, 16)),
    ],
)
def test_algorithms_add_in_the_same_order(case: Case, dtype: str, kind: str) -> None:
    for data_format in ("NHWC", "NCHW"):
        turned = replace(case, data_format=data_format, dtype=dtype)
        found = same_bits.compare(turned, kind, NAMES, same_bits.machines())
        who = {each.split()[0] for some in found.digests["sums"].values() for each in some}
        assert len(who) > 1 or turned.groups == 1, who
        assert found.same, (turned, found.digests)


@pytest.mark.parametrize("kind", GATHERS)
@pytest.mark.parametrize("case", [LAYER, GROUPS, replace(LAYER, group_in=2, group_out=3)])
def test_a_result_that_is_zero_is_plus_zero(case: Case, kind: str) -> None:
    """Products too small for a float32 are zeros of either sign, and so would their sum be."""
    for data_format in ("NHWC", "NCHW"):
        turned = replace(case, data_format=data_format)
        data = normal(turned, np.random.default_rng(3))
        data = Data(*(np.full_like(each, value) for each, value in _tiny(data)))
        for name in NAMES:
            if ALGORITHMS[name].why_not(problem_of(turned, kind), HOST) is None:
                got = compute(name, HOST, turned, kind, data)
                assert not got.any() and not np.signbit(got).any(), (name, turned)


def _tiny(data: Data) -> list[tuple[Any, float]]:
    return [(data.x, -1e-30), (data.f, 1e-30), (data.g, -1e-30)]


def test_runs_blocks_and_levels_are_those_of_the_contract() -> None:
    """The order written down once more, one result after the other: a float64 holds each product exactly."""
    case = replace(LAYER, batch=1, size=(5, 4), group_in=1000, group_out=8, data_format="NHWC")
    data = normal(case, np.random.default_rng(8))
    expected = np.zeros(case.output_shape, np.float32)
    for p in range(5):
        for q in range(4):
            runs: dict[int, Any] = {}
            for block in range(1000 // 48 + 1):
                channels = range(block * 48, min(block * 48 + 48, 1000))
                for r in range(3):
                    for s in range(3):
                        h, w = p + r - 1, q + s - 1
                        if 0 <= h < 5 and 0 <= w < 4:
                            sums = np.zeros(8, np.float32)
                            for c in channels:
                                x, f = np.float64(data.x[0, h, w, c]), data.f[r, s, c].astype(float)
                                sums = (x * f + sums).astype(np.float32)
                            runs[block * 9 + r * 3 + s] = sums
            totals: dict[int, Any] = {}
            for number, sums in runs.items():
                group = number // GROUP
                totals[group] = totals[group] + sums if group in totals else sums
            first, *others = totals.values()
            for total in others:
                first = first + total
            expected[0, p, q] = first
    assert gather_contract(problem_of(case, "forward")).block == RUN
    np.testing.assert_array_equal(compute("dense_direct", HOST, case, "forward", data), expected)


@pytest.mark.parametrize("depth", [1, 3, 16, 48, 49, 96, 100, 160, 161, 1000])
def test_blocks_are_equal_and_runs_short(depth: int) -> None:
    case = replace(LAYER, group_in=depth, group_out=32)
    contract = gather_contract(problem_of(case, "forward"))
    assert contract.block * (contract.blocks - 1) < depth <= contract.block * contract.blocks
    assert contract.run <= RUN and (contract.blocks == 1 or contract.block % 16 == 0)
    assert contract.levels == (depth * 9 > SHORT)


@pytest.mark.parametrize("kind", GATHERS)
def test_the_contract_asks_neither_batch_nor_layout_of_usual_problems(kind: str) -> None:
    contracts = {
        gather_contract(problem_of(replace(LAYER, batch=batch, data_format=form), kind))
        for batch in (1, 7)
        for form in ("NHWC", "NCHW")
    }
    assert len(contracts) == 1


def test_a_segment_is_as_many_blocks_as_the_first_cache_holds() -> None:
    """One block at a time moved the totals of a tile through memory twice as often."""
    case = replace(LAYER, window=(1, 1), group_in=512, group_out=512, size=(28, 28))
    target = find("avx2").with_caches(32 << 10, 512 << 10, 16 << 20)
    (_, candidate), *_ = planner.candidates(problem_of(case, "forward"), target, "dense_planes")
    step = candidate.plan().steps[-1]
    assert isinstance(step.kernel, PlanesKernel) and step.kernel.segmented
    # 2 vectors of 8 pixels are a line of each channel: half the cache holds 256 channels.
    blocks = step.words[WORDS.index("segment")]
    assert 128 < blocks * 48 <= 256
