"""`dense_grouped`: what is peculiar to groups in the lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calling import foreign
from cases import KINDS, Case, Data, normal, whole_numbers
from convgrad import _kernels
from convgrad._apps.bench.tables import find_layers
from convgrad._compiler import jit
from convgrad._compiler.targets import Target
from convgrad._engine import planner, prepare
from convgrad._kernels.dense_grouped.filter_gradient import GroupedFilterKernel, pieces
from convgrad._kernels.dense_grouped.filter_plan import plan_filter
from convgrad._kernels.dense_grouped.filter_sizes import GroupedFilterSizes
from convgrad._kernels.dense_grouped.sizes import is_busy
from convgrad._kernels.dense_grouped.words import GroupedKernel
from convgrad._problem.sums.pixels import pixel_contract
from convgrad._runtime.run import run as run_program
from kernels import compute, expected_exactly, problem_of
from tolerance import assert_close

NAME = "dense_grouped"
HOST = jit.host_target()
LARGEST = (GroupedKernel, GroupedFilterKernel)
"""Kernels of the launches that do the work; the others pack filters and add partial sums."""
LANES = HOST.lanes(4)
"""As many groups are side by side, in float32; problems are made of so many, whatever they are."""


def case_of(groups: int, group_in: int, group_out: int, **other: Any) -> Case:
    """Return a case of 3x3 windows on images of odd sizes; `other` replaces what it names."""
    fields: dict[str, Any] = {
        "depthwise": False,
        "batch": 3,
        "size": (9, 7),
        "groups": groups,
        "group_in": group_in,
        "group_out": group_out,
        "window": (3, 3),
        "strides": (1, 1),
        "dilations": (1, 1),
        "padding": "SAME",
        "data_format": "NHWC",
        "dtype": "float32",
        **other,
    }
    return Case(**fields)


def assert_exact(case: Case, kinds: tuple[str, ...] = KINDS, target: Target = HOST) -> None:
    data = whole_numbers(case, np.random.default_rng(5))
    for kind in kinds:
        got = compute(NAME, target, case, kind, data)
        expected = expected_exactly(case, kind, data)
        np.testing.assert_array_equal(got, expected, f"{case} {kind}")


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize(
    "channels",
    [(2, 4), (4, 4), (8, 8), (16, 16), (32, 32), (8, 1), (LANES * 3 // 2, LANES * 5 // 2)],
    ids=str,
)
def test_channels_of_a_group(channels: tuple[int, int], data_format: str) -> None:
    """Narrower than a vector, as wide, wider, and wider by a part; two blocks of lanes."""
    assert_exact(case_of(16, *channels, data_format=data_format))


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize(
    "other",
    [
        {"strides": (2, 2)},
        {"strides": (2, 3), "size": (14, 11)},
        {"strides": (3, 1), "window": (2, 4)},
        {"dilations": (2, 3), "size": (13, 12)},
        {"padding": ((0, 3), (2, 1))},
        {"padding": ((4, 0), (0, 5)), "strides": (2, 1)},
        {"padding": "VALID", "window": (5, 1)},
        {"window": (1, 1), "strides": (2, 2)},
        {"size": (1, 1)},
        {"size": (2, 60), "batch": 1},
    ],
    ids=str,
)
def test_windows(other: dict[str, Any], data_format: str) -> None:
    """Phases of strided gradients, taps that never meet the image, rows without any, and rows longer than a run."""
    assert_exact(case_of(LANES, 4, 8, data_format=data_format, **other))


@pytest.mark.parametrize("dtype", ["float64", "half", "bfloat16"])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_dtypes(dtype: str, data_format: str) -> None:
    for channels in ((4, 4), (8, 16)):
        assert_exact(case_of(16, *channels, dtype=dtype, data_format=data_format))


@pytest.mark.parametrize(
    ("_name", "target", "layouts", "_"), foreign([NAME], host=2, few=1, more=2)
)
def test_other_targets(_name: str, target: Target, layouts: int, _: int) -> None:
    """Vectors of any width, and tiles of 16 and of 32 registers."""
    for data_format in ("NHWC", "NCHW")[-layouts:]:
        assert_exact(case_of(16, 4, 16, data_format=data_format), target=target)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_padding_takes_part_in_nothing(kind: str, data_format: str) -> None:
    """Infinite weights, pixels and gradients reach the results they belong to, and no others."""
    case = case_of(LANES, 4, 4, data_format=data_format, strides=(2, 1))
    rng = np.random.default_rng(7)
    data = normal(case, rng)
    for array in (data.x, data.f, data.g):
        flat = array.reshape(-1)
        flat[rng.integers(flat.size, size=3)] = (np.inf, np.nan, -np.inf)
    got = compute(NAME, HOST, case, kind, data)
    with np.errstate(invalid="ignore"):
        reference = compute(
            "dense_filter" if kind == "filter" else "dense_direct", HOST, case, kind, data
        )
    np.testing.assert_array_equal(np.isnan(got), np.isnan(reference))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(reference))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("channels", [4, 32])
def test_threads_change_no_bit(kind: str, channels: int) -> None:
    """Also where sums are long enough for totals, and where shares are added."""
    case = case_of(LANES, channels, channels, batch=5, size=(28, 28))
    assert not planner.choose_named(problem_of(case, kind), HOST, NAME).serial
    data = normal(case, np.random.default_rng(11))
    results = [compute(NAME, HOST, case, kind, data, threads=count) for count in (1, 2, 3, 8)]
    assert_close(case, kind, data, results[0])
    assert len({each.tobytes() for each in results}) == 1


@pytest.mark.parametrize(("channels", "window"), [(4, (3, 3)), (16, (3, 3)), (2, (1, 1))])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_no_cut_of_a_filter_gradient_changes_a_bit(
    data_format: str, channels: int, window: tuple[int, int]
) -> None:
    """Slices of any power of two of units, tiles of 16 and of 32 registers, one chain in registers or two."""
    fixed: dict[str, Any] = {"batch": 5, "size": (21, 23), "data_format": data_format}
    case = case_of(16, channels, channels, window=window, **fixed)
    problem, data = problem_of(case, "filter"), normal(case, np.random.default_rng(17))
    assert pixel_contract(problem).chains == (2 if channels <= 8 else 1)
    results = set()
    for bits in (128, 256, 512):
        target = HOST.with_vector_bits(bits)
        sizes = GroupedFilterSizes(problem, target)
        for cut in sizes.cuts():
            for tile in ((4, 3), (6, 4), (2, 3)):
                sizes.cut, sizes.tile = cut, tile
                bound = prepare.bind(plan_filter(NAME, sizes, serial=False), target)
                result = np.full(problem.result_shape, 77, np.float32)
                run_program(bound, *(each.ctypes.data for each in (data.x, data.g, result)))
                results.add(result.tobytes())
    assert len(results) == 1


def test_errors_are_those_of_the_other_kernels() -> None:
    """Sums of 9 x 32 products and over 5 x 784 pixels stay near one rounding: 2.5 u of the largest result."""
    case = case_of(LANES, 32, 32, batch=5, size=(28, 28))
    data = normal(case, np.random.default_rng(13))
    wide = Data(*(each.astype(np.float64) for each in (data.x, data.f, data.g)))
    exact_case = case_of(LANES, 32, 32, batch=5, size=(28, 28), dtype="float64")
    for kind in KINDS:
        other = "dense_filter" if kind == "filter" else "dense_direct"
        exact = compute(other, HOST, exact_case, kind, wide)
        ours, theirs = (
            np.abs(compute(name, HOST, case, kind, data) - exact).max() for name in (NAME, other)
        )
        assert ours <= 1.25 * theirs, (kind, ours, theirs)


def test_large_problems_keep_sixteen_threads_busy(machine: Target) -> None:
    """Of the benchmark's grouped layers: the best possible speed-up on 16 threads is at least 12."""
    seen = 0
    for layer in find_layers("dense"):
        if layer.group_count in (1, layer.channels):
            continue
        for data_format in ("NHWC", "NCHW"):
            case = case_of(
                layer.group_count,
                layer.channels // layer.group_count,
                layer.out_c // layer.group_count,
                batch=layer.batch,
                size=(layer.height, layer.width),
                window=layer.filter_shape[:2],
                strides=(layer.stride, layer.stride),
                data_format=data_format,
            )
            for kind in KINDS:
                problem = problem_of(case, kind)
                if problem.flops < 100_000_000 or planner.why_not(NAME, problem, machine):
                    continue
                plan = planner.choose_named(problem, machine, NAME)
                (items,) = (step.items for step in plan.steps if isinstance(step.kernel, LARGEST))
                # Units are never divided, so the smallest filter gradients have no more items than those.
                most = problem.groups // machine.lanes(4)
                most *= pixel_contract(problem).units if kind == "filter" else 1000
                assert is_busy(items, 16) or items >= most, (problem, items)
                seen += 1
    assert seen > 20


def test_what_it_refuses() -> None:
    def reason(case: Case, kind: str = "forward") -> str:
        return planner.refusals(problem_of(case, kind), HOST)[NAME] or ""

    assert "groups do not fill the lanes" in reason(case_of(LANES + 1, 4, 4))
    assert "several channels" in reason(case_of(16, 1, 4))
    assert "channels in a group" in reason(case_of(16, 65, 4))
    assert "power of two" in reason(case_of(16, 3, 4))
    assert "power of two" in reason(case_of(16, 4, 3, data_format="NCHW"), "filter")
    assert "windows" in reason(case_of(16, 4, 4, window=(1, 16)))
    assert "strides" in reason(case_of(16, 4, 4, strides=(1, 16)))


def test_pieces_cover_all_channels() -> None:
    for total in range(1, 70):
        for most in range(1, 7):
            cut = [n for first, last, size in pieces(total, most) for n in range(first, last, size)]
            sizes = [
                size for first, last, size in pieces(total, most) for _ in range(first, last, size)
            ]
            assert sum(sizes) == total and max(sizes) <= most
            assert cut == [sum(sizes[:i]) for i in range(len(sizes))]


def test_kernels_serve_any_batch() -> None:
    """A changed batch compiles nothing."""
    kernels = [
        {step.kernel for step in planner.choose_named(problem_of(case, kind), HOST, NAME).steps}
        for kind in KINDS
        for case in (case_of(16, 8, 8, batch=2), case_of(16, 8, 8, batch=3))
    ]
    for one, other in zip(kernels[::2], kernels[1::2], strict=True):
        assert one == other
    for kernel in set().union(*kernels):
        assert _kernels.emit(kernel, HOST).ir


def test_taps_far_outside_fit_into_the_table() -> None:
    """What such a tap would read was in the table, a number of more than 32 bits, though nothing reads it."""
    far = 2**31 - 1
    assert_exact(case_of(LANES, 2, 4, dilations=(far, far)))
    assert_exact(case_of(LANES, 4, 2, dilations=(far, 2), window=(5, 3)))


def test_the_tables_of_a_large_image_are_small() -> None:
    case = case_of(32, 2, 2, size=(224, 224))
    for kind in KINDS:
        plan = planner.choose_named(problem_of(case, kind), HOST, NAME)
        assert sum(len(step.table) for step in plan.steps) < 5200
