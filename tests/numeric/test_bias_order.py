"""Gradients of a bias are added in the order of `bias_contract`: the very bits, on every row, width and cache size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import convgrad
from biases import SIDES, biased, compute
from cases import NUMPY, Case, normal
from convgrad._base import dtypes
from convgrad._compiler import jit
from convgrad._engine import prepare
from convgrad._kernels import ALGORITHMS
from convgrad._kernels.plan import Plan, Step
from convgrad._kernels.shared.pixel_sum import complete
from convgrad._problem.convolution import Problem, Side
from convgrad._problem.sums.pixels import PixelBox, bias_contract, box
from convgrad._runtime.run import run as run_program
from kernels import random_case_for, shared_among
from same_bits import machines

NUMBERS = {"float32": np.float32, "half": np.float32, "bfloat16": np.float32, "float64": np.float64}
SIZES = [
    (1, 1, 1),
    (3, 5, 7),
    (40, 3, 3),
    (9, 7, 7),
    (2, 20, 21),
    (3, 56, 56),
    (1, 3, 300),
    (2, 33, 33),
    (1, 40, 1030),
]


def boxes(all_: PixelBox, piece: PixelBox) -> list[tuple[slice, ...]]:
    """Return the places of the boxes that something is cut into, in the order n, p, q."""
    places: list[tuple[slice, ...]] = [()]
    for size, each in zip(all_, piece, strict=True):
        places = [
            (*place, slice(at, min(at + each, size)))
            for place in places
            for at in range(0, size, each)
        ]
    return places


def halves(numbers: list[Any]) -> Any:
    """Add numbers halves onto halves."""
    while len(numbers) > 1:
        half = len(numbers) // 2
        numbers = [a + b for a, b in zip(numbers[:half], numbers[half:], strict=True)]
    return numbers[0]


def tree(nodes: list[Any]) -> Any:
    """Add neighbours, then their sums."""
    while len(nodes) > 1:
        nodes = [sum(nodes[i + 1 : i + 2], nodes[i]) for i in range(0, len(nodes), 2)]
    return nodes[0]


def by_the_contract(problem: Problem, image: Any) -> Any:
    """Return the gradient of a bias of an image [n, p, q, channel] in its sums' type, added as the contract says."""
    order = bias_contract(problem)
    image = image.reshape(*order.out, -1)
    units = []
    for place in boxes(order.out, order.unit):
        unit = image[place]
        total = np.zeros(image.shape[-1], image.dtype)
        for inner in boxes(PixelBox(*unit.shape[:3]), order.run):
            chains = np.zeros((order.chains, image.shape[-1]), image.dtype)
            for plane in unit[inner]:
                for i, pixel in enumerate(plane.reshape(-1, image.shape[-1])):
                    chains[i % order.chains] += pixel
            total = total + halves(list(chains))
        units.append(total)
    return tree(units)


def computed(problem: Problem, image: Any, target: Any, threads: int) -> Any:
    """Return what the two launches give."""
    plan = complete(lambda: Plan(problem, "", (Step(None, ("first",), (), 1),)))
    plan = replace(plan, steps=plan.steps[1:])
    bias = np.full(problem.bias_c, 77, problem.dtype.numpy)
    with shared_among(threads):
        run_program(
            prepare.bind(plan, target), image.ctypes.data, image.ctypes.data, 0, bias.ctypes.data
        )
    return bias


def drawn(case: Case, shape: tuple[int, ...]) -> Any:
    """Return numbers whose sums tell every order from another."""
    rng = np.random.default_rng(3)
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 4, shape)).astype(
        NUMPY[case.dtype]
    )


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", sorted(NUMBERS))
def test_the_bits_are_those_of_the_contract(dtype: str, layout: str) -> None:
    for number, (batch, height, width) in enumerate(SIZES):
        window = (1, 1) if number % 2 else (3, 3)
        case = Case(
            False, batch, (height, width), 1, 3, 3, window, (1, 1), (1, 1), "SAME", layout, dtype
        )
        channels = (1, 5, 16, 37, 70)[number % 5]
        case = replace(case, group_in=channels, group_out=channels)
        for side in ("output", "input"):
            check(case, side, threads=1 + number % 3)


def check(case: Case, side: Side, threads: int) -> None:
    problem = biased(case, "filter", side)
    image = drawn(case, problem.input_shape)
    last = image if case.data_format == "NHWC" else image.transpose(0, 2, 3, 1)
    row = dtypes.find(NUMPY[case.dtype])
    assert row is not None
    want = dtypes.round_once(by_the_contract(problem, last.astype(NUMBERS[case.dtype])), row)
    for name, target in machines().items():
        got = computed(problem, image, target, threads)
        assert got.tobytes() == want.tobytes(), (case, side, name)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_the_order_is_not_another_one(layout: str) -> None:
    """Numbers on which the order does not show would pass every test."""
    case = Case(False, 3, (56, 56), 1, 16, 16, (3, 3), (1, 1), (1, 1), "SAME", layout, "float32")
    problem = biased(case, "filter", "output")
    image = drawn(case, (3, 56, 56, 16))
    order = bias_contract(problem)
    mine = by_the_contract(problem, image)
    assert (mine != image.astype(np.float64).sum((0, 1, 2)).astype(np.float32)).any()
    assert order.unit != box(order.out, 300) and order.units > 4


def test_a_contract_asks_no_cpu() -> None:
    case = Case(False, 8, (14, 14), 1, 8, 8, (1, 1), (1, 1), (1, 1), "SAME", "NHWC", "float32")
    assert bias_contract(biased(case, "filter", "output")).unit == (2, 1, 196)
    strided = replace(case, strides=(2, 2), window=(3, 3))
    assert bias_contract(biased(strided, "filter", "input")).unit == (2, 14, 14)
    planes = bias_contract(biased(replace(strided, data_format="NCHW"), "filter", "input"))
    assert planes == (PixelBox(8, 1, 196), PixelBox(4, 1, 196), PixelBox(4, 1, 196), 16, 1)
    assert jit.host_target()


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name != "reference"])
def test_who_adds_on_the_way_adds_so_too(name: str) -> None:
    with convgrad.options(winograd="fast"):
        bias_of(name)


def bias_of(name: str) -> None:
    rng = np.random.default_rng([29, *name.encode()])
    for _ in range(4):
        case, kinds = random_case_for(rng, name, jit.host_target(), whole=False)
        if "filter" not in kinds:
            return
        data = normal(case, rng)
        for side in SIDES["filter"]:
            problem = biased(case, "filter", side)
            _, got = compute(name, jit.host_target(), problem, "filter", data, None)
            image = data.x if side == "input" else data.g
            last = image if case.data_format == "NHWC" else image.transpose(0, 2, 3, 1)
            row = dtypes.find(NUMPY[case.dtype])
            assert row is not None
            want = by_the_contract(problem, last.astype(NUMBERS[case.dtype]))
            assert got.tobytes() == dtypes.round_once(want, row).tobytes(), (case, side)
