"""Depthwise problems of few channels: vectors along the width, with long windows, any stride and multipliers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import convgrad
from calling import seeds
from cases import DTYPES, KINDS, Case, normal, run, whole_numbers
from convgrad._compiler import jit
from convgrad._compiler.targets import Target
from convgrad._engine import planner
from kernels import compute, expected_exactly, problem_of, taken

HOST = jit.host_target()
PLANES = ("depthwise_plane", "depthwise_flat")


def check(case: Case, rng: np.random.Generator, target: Any = HOST) -> int:
    """Compare all that the two algorithms compute of a case with the exact sums; return how much that is."""
    count = 0
    data = whole_numbers(case, rng, 2)
    for name in PLANES:
        for kind in taken(name, case, target):
            place = ("start", "end", "shifted")[int(rng.integers(3))]
            got = compute(name, target, case, kind, data, place)  # type: ignore[arg-type]
            expected = expected_exactly(case, kind, data)
            np.testing.assert_array_equal(
                got.astype(np.float64), expected.astype(np.float64), str((name, case, kind, place))
            )
            count += 1
    return count


def draw(rng: np.random.Generator, windows: tuple[int, ...], sizes: tuple[int, int]) -> Case:
    def pair(low: int, high: int) -> tuple[int, int]:
        a, b = (int(n) for n in rng.integers(low, high, 2))
        return a, b

    padding: Any = ("SAME", "VALID", "SAME", (pair(0, 4), pair(0, 4)))[int(rng.integers(4))]
    case = Case(
        depthwise=True,
        batch=int(rng.integers(1, 4)),
        size=pair(*sizes),
        groups=int(rng.choice([1, 1, 2, 3, 3, 4, 5, 7, 9])),
        group_in=1,
        group_out=int(rng.choice([1, 1, 2, 3, 5, 8])),
        window=(int(rng.choice(windows)), int(rng.choice(windows))),
        strides=(1, 1) if rng.random() < 0.4 else pair(1, 5),
        dilations=(1, 1) if rng.random() < 0.6 else pair(1, 4),
        padding=padding,
        data_format="NHWC" if rng.random() < 0.7 else "NCHW",
        dtype=str(rng.choice(list(DTYPES))),
    )
    usual = case.legal and 0 not in case.output_shape and case.products < 20_000_000
    return case if usual else draw(rng, windows, sizes)


@pytest.mark.parametrize("seed", seeds(3, 8))
def test_long_windows_are_exact(seed: int, checked: Any) -> None:
    """Longer than what is written out in rows, in columns and in both; longer than the image too."""
    rng = np.random.default_rng([seed, 1])
    done = 0
    while done < 12:
        done += check(draw(rng, (1, 3, 9, 11, 13, 15, 21, 31, 34, 70), (3, 70)), rng)
    checked["special shapes, exact integers"] += done


@pytest.mark.parametrize("seed", seeds(4, 12))
def test_few_channels_at_any_stride_are_exact(seed: int, checked: Any) -> None:
    rng = np.random.default_rng([seed, 2])
    done = 0
    while done < 25:
        done += check(draw(rng, (1, 2, 3, 3, 4, 5, 7), (1, 40)), rng)
    checked["special shapes, exact integers"] += done


@pytest.mark.parametrize("bits", [128, 512])
def test_few_channels_in_other_vectors_are_exact(bits: int, checked: Any) -> None:
    rng = np.random.default_rng(bits)
    done = 0
    while done < 40:
        done += check(draw(rng, (1, 2, 3, 5, 11), (1, 40)), rng, HOST.with_vector_bits(bits))
    checked["special shapes, exact integers"] += done


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dense", [False, True])
def test_one_channel_is_a_plane_in_both_layouts(layout: str, dense: bool, machine: Target) -> None:
    """A dense convolution of one channel into one too: it ran at 7 GFlop/s where vectors held channels."""
    case = Case(not dense, 1, (64, 64), 1, 1, 1, (15, 15), (1, 1), (1, 1), "SAME", layout)
    for kind in KINDS:
        assert planner.choose(problem_of(case, kind), machine).algorithm == "depthwise_plane"


@pytest.mark.parametrize("outputs", [6, 8, 32])
def test_one_channel_into_many_is_exact(outputs: int, checked: Any) -> None:
    """A dense convolution of one channel is a depthwise one with a multiplier; gradients are left to others."""
    rng = np.random.default_rng(outputs)
    for dtype, stride in zip(DTYPES, (1, 2, 3, 4), strict=True):
        steps = (stride, stride)
        case = Case(False, 2, (17, 21), 1, 1, outputs, (3, 5), steps, (1, 1), "SAME", dtype=dtype)
        count = check(case, rng)
        assert count == 1, case
        checked["special shapes, exact integers"] += count


def test_threads_do_not_change_long_windows() -> None:
    rng = np.random.default_rng(3)
    for case in (
        Case(True, 2, (61, 67), 1, 1, 1, (17, 15), (1, 1), (1, 1), "SAME"),
        Case(True, 2, (61, 67), 3, 1, 1, (3, 3), (2, 2), (1, 1), "SAME"),
        Case(True, 2, (61, 67), 3, 1, 4, (3, 3), (2, 2), (1, 1), "SAME"),
    ):
        data = normal(case, rng)
        for kind in KINDS:
            found = set()
            for threads in (1, 2, 3, 8):
                with convgrad.threads(threads):
                    found.add(run(case, kind, data).tobytes())
            assert len(found) == 1, (case, kind)


@pytest.mark.parametrize("channels", [3, *(n for n in (5, 6, 7, 13) if n < HOST.lanes(4))])
def test_the_last_pixel_of_a_strided_input_gradient_is_read_in_the_workspace(channels: int) -> None:
    """A load of whole vectors once went beyond it; the workspace ends at a forbidden page here."""
    for size, window, strides in (((1, 16), (1, 2), (1, 2)), ((2, 16), (1, 1), (2, 2))):
        for dtype in ("float32", "half"):
            shape = (True, 1, size, channels, 1, 1, window, strides, (1, 1), "VALID", "NHWC", dtype)
            assert check(Case(*shape), np.random.default_rng(4))
