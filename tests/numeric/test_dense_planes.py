"""What is peculiar to `dense_planes`: panels, vectors at the ends of planes, phases, infinities beside padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cases import Case, Data, normal, run, whole_numbers
from convgrad._compiler import jit
from convgrad._compiler.targets import TARGETS, Target
from convgrad._engine import planner, prepare
from convgrad._kernels.dense_planes import schedule
from convgrad._runtime.run import run as run_program
from kernels import compute, expected_exactly, placed, problem_of, taken
from tolerance import assert_close

NAME = schedule.NAME
HOST = jit.host_target()


def layer(
    size: tuple[int, int],
    channels: tuple[int, int],
    window: tuple[int, int] = (1, 1),
    stride: tuple[int, int] = (1, 1),
    padding: Any = "SAME",
    **more: Any,
) -> Case:
    groups, batch = more.pop("groups", 1), more.pop("batch", 2)
    dilations = more.pop("dilations", (1, 1))
    return Case(
        *(False, batch, size, groups, *channels, window, stride, dilations, padding, "NCHW"),
        more.pop("dtype", "float32"),
    )


LAYERS = {
    "pointwise": layer((13, 11), (40, 34)),
    "pointwise, many channels": layer((9, 10), (700, 70)),
    "pointwise, one row of vectors": layer((1, 9), (5, 7)),
    "first layer": layer((33, 35), (3, 32), (7, 7), (2, 2)),
    "patches": layer((32, 37), (3, 20), (4, 4), (4, 4), "VALID"),
    "strides of three": layer((20, 50), (6, 9), (3, 3), (3, 3), ((2, 1), (0, 4))),
    "narrow": layer((7, 5), (17, 33), (3, 3)),
    "stride 2": layer((23, 40), (33, 16), (3, 3), (2, 2)),
    "holes": layer((30, 31), (20, 12), (3, 2), (1, 1), ((3, 9), (2, 0)), dilations=(5, 3)),
    "holes and strides": layer((29, 19), (8, 4), (3, 3), (2, 1), "VALID", dilations=(3, 2)),
    "groups": layer((15, 17), (5, 10), (3, 3), groups=3),
    "more channels than stay in a cache": layer((5, 20), (150, 13), (3, 3), batch=1),
    "a chunk of one low panel": layer((4, 8), (1024, 32)),
    "a chunk of one low panel, windows": layer((3, 10), (112, 32), (3, 3), padding="VALID"),
    "doubles": layer((12, 13), (20, 21), (5, 1), dtype="float64"),
    "halves": layer((12, 13), (20, 21), (1, 5), (1, 2), dtype="half"),
    "bfloat16": layer((12, 13), (9, 21), (3, 3), (2, 2), dtype="bfloat16"),
    "integers": layer((12, 13), (9, 21), (3, 3), (2, 2), dtype="int32"),
}


def every_plan(case: Case, kind: str, data: Data, place: Any = "end") -> list[Any]:
    """Return the results of all candidates."""
    problem = problem_of(case, kind)
    operands = (data.x, data.f) if kind == "forward" else (data.f, data.g)
    results = []
    for _, candidate in planner.candidates(problem, HOST, NAME):
        program = prepare.bind(candidate.plan(), HOST)
        first, second = (placed(each, place) for each in operands)
        result = placed(np.full(problem.result_shape, 77, problem.dtype.numpy), place)
        run_program(program, *(each.ctypes.data for each in (first, second, result)))
        results.append(result)
    return results


@pytest.mark.parametrize("case", LAYERS.values(), ids=LAYERS)
def test_every_candidate_is_exact(case: Case) -> None:
    data = whole_numbers(case, np.random.default_rng(1))
    for kind in ("forward", "input"):
        for place in ("start", "end", "shifted"):
            for got in every_plan(case, kind, data, place):
                np.testing.assert_array_equal(
                    got.astype(np.float64), expected_exactly(case, kind, data).astype(np.float64)
                )


@pytest.mark.parametrize("width", range(1, 21))
def test_any_number_of_channels_fills_its_panels(width: int) -> None:
    case = layer((5, 9), (4, width), (3, 1))
    data = whole_numbers(case, np.random.default_rng(width))
    for target in TARGETS:
        high, highs, low, lows = schedule.heights(width, target)
        assert width <= high * highs + low * lows < width + max(high, 4)
        assert high <= width and low <= width
    (got, *_) = every_plan(case, "forward", data)
    np.testing.assert_array_equal(got, expected_exactly(case, "forward", data))


@pytest.mark.parametrize("seed", range(6))
def test_segments_and_chunks_are_exact_in_small_caches(seed: int) -> None:
    """Small caches cut small problems into segments and chunks; totals of one chunk once lay in the staged source."""
    rng = np.random.default_rng([9, seed])
    target = HOST.with_caches(2048, 16384, HOST.l3_bytes)
    for width in (14, 20, 26, 32, 44, 50, 56, 128):
        depth, taps = int(rng.integers(20, 140)), int(rng.integers(1, 3))
        case = layer((4, int(rng.integers(8, 20))), (depth, width), (taps, taps), batch=1)
        data = whole_numbers(case, rng)
        for kind in ("forward", "input"):
            got = compute(NAME, target, case, kind, data)
            np.testing.assert_array_equal(got, expected_exactly(case, kind, data), str(case))


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize(
    "name", ["first layer", "stride 2", "holes", "strides of three", "doubles"]
)
def test_padding_adds_nothing_even_to_infinite_weights(name: str, special: float) -> None:
    """Zeros stand beside the image; zero times infinity must not show."""
    case = LAYERS[name]
    rng = np.random.default_rng(3)
    data = whole_numbers(case, rng)
    data.f[0, 0, 0, 0] = special
    data.f[-1, -1, -1, -1] = special
    for kind in ("forward", "input"):
        expected = run(case, kind, data, "reference")
        assert not np.isfinite(expected).all() and np.isfinite(expected).any()
        for got in every_plan(case, kind, data):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", ["pointwise, many channels", "stride 2", "first layer"])
def test_long_sums_are_as_accurate_as_others(name: str) -> None:
    case = LAYERS[name]
    data = normal(case, np.random.default_rng(4))
    for kind in ("forward", "input"):
        assert_close(case, kind, data, compute(NAME, HOST, case, kind, data))


def test_large_problems_have_items_for_sixteen_threads(machine: Target) -> None:
    for size, channels, window, stride in (
        ((14, 14), (1024, 256), (1, 1), (1, 1)),
        ((28, 28), (512, 256), (1, 1), (1, 1)),
        ((56, 56), (64, 64), (1, 1), (1, 1)),
        ((224, 224), (3, 64), (7, 7), (2, 2)),
    ):
        for batch in (1, 8):
            case = layer(size, channels, window, stride, batch=batch)
            for kind in ("forward", "input"):
                problem = problem_of(case, kind)
                if problem.flops < 100_000_000:
                    continue
                for _, candidate in planner.candidates(problem, machine, NAME):
                    items = candidate.plan().steps[-1].items
                    assert items / -(-items // 16) >= 12, (case, kind, items)


def test_what_is_refused() -> None:
    assert taken(NAME, layer((9, 9), (4, 4), (3, 3)), HOST) == ("forward", "input")
    assert not taken(NAME, layer((9, 9), (1, 2), (3, 3), groups=4), HOST)
    far = layer((900, 9), (600, 4), (3, 3), dilations=(400, 4000), padding=((0, 0), (9000, 0)))
    assert "bytes" in (planner.refusals(problem_of(far, "forward"), HOST)[NAME] or "")
