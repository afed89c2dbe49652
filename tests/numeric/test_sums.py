"""The contract of sums: asked of the problem alone, written down as a program, and obeyed by every kernel."""

from __future__ import annotations

import inspect
import sys
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import convgrad
import same_bits
from biases import biased
from cases import KINDS, Case, normal
from convgrad import reference
from convgrad._apps.bits import campaign, expected
from convgrad._base import config, dtypes
from convgrad._compiler import jit
from convgrad._compiler.targets import ALL
from convgrad._engine import planner
from convgrad._kernels import ALGORITHMS
from convgrad._kernels import reference as last_resort
from convgrad._kernels.shared.winograd_scheme import SCHEMES
from convgrad._problem.convolution import Kind, Problem
from convgrad._problem.sums import (
    VERSION,
    gather,
    pixels,
    specification,
    told,
    transformed,
    winograd,
)
from convgrad._problem.sums.fma import fma32, fma64
from convgrad.errors import ArgumentError, DTypeError
from kernels import NAMES, problem_of, taken

LAYER = Case(False, 2, (12, 13), 1, 40, 48, (3, 3), (1, 1), (1, 1), "SAME")
CASES = 4
"""Of each algorithm."""
MOST_PRODUCTS = 400_000
SIXTEEN = ("half", "bfloat16")


# The contract itself


def test_nothing_but_the_problem_is_asked() -> None:
    """Signatures here; `tests/unit/test_layers.py` keeps targets, kernels and prices out of the whole room."""
    for ask in (gather.gather_contract, pixels.pixel_contract, pixels.bias_contract):
        assert list(inspect.signature(ask).parameters) == ["problem"], ask
    assert list(inspect.signature(winograd.numerical_class).parameters) == ["problem", "switch"]


@pytest.mark.parametrize("kind", ["forward", "input"])
def test_the_batch_is_not_asked(kind: str) -> None:
    for number in range(200):
        case = same_bits.draw(4, number)
        one, many = (problem_of(replace(case, batch=batch), kind) for batch in (1, 9))
        assert gather.gather_contract(one) == gather.gather_contract(many), case
        assert winograd.numerical_class(one, "auto") == winograd.numerical_class(many, "auto"), case


def test_runs_and_units_are_no_longer_than_promised() -> None:
    for number in range(200):
        case = same_bits.draw(5, number)
        order = gather.gather_contract(problem_of(case, "forward"))
        assert order.block * order.taps <= gather.RUN * order.chains, case
        filters = pixels.pixel_contract(problem_of(case, "filter"))
        if not filters.band:
            assert np.prod(filters.unit) <= pixels.UNIT, case
            most = pixels.UNIT if case.dtype in SIXTEEN else pixels.PIXELS
            assert np.prod(filters.run) <= most, case


# An exact fused multiply-add


def hard(rng: np.random.Generator, count: int, least: int, most: int, digits: int) -> Any:
    """Draw numbers with few digits, and powers of two, and any, over a range of exponents."""
    whole = rng.integers(-(2**digits) + 1, 2**digits, count)
    whole = np.where(rng.random(count) < 0.3, rng.integers(-3, 4, count), whole)
    return whole * 2.0 ** rng.integers(least, most, count)


def rounded(exact: Fraction, dtype: type[Any]) -> float:
    """Round a fraction to the nearest number of a dtype, to even in the middle."""
    near = dtype(float(exact))
    if not np.isfinite(near):
        return float(near)
    around = [np.nextafter(near, dtype(-np.inf)), near, np.nextafter(near, dtype(np.inf))]
    bits = {np.float32: np.uint32, np.float64: np.uint64}[dtype]
    return float(
        min(
            (each for each in around if np.isfinite(each)),
            key=lambda each: (abs(Fraction(float(each)) - exact), int(each.view(bits)) & 1),
        )
    )


@pytest.mark.parametrize(("least", "most"), [(-30, -20), (-75, -60), (-172, -120), (30, 38)])
def test_float32_is_fused_exactly(least: int, most: int) -> None:
    rng = np.random.default_rng(1)
    a, b = (hard(rng, 500, least, most, 23).astype(np.float32).astype(float) for _ in range(2))
    near = -(a * b) * (1 + rng.integers(-2, 3, 500) * 2.0**-24)
    c = np.where(rng.random(500) < 0.5, near, hard(rng, 500, least, most, 23))
    with np.errstate(all="ignore"):
        c = c.astype(np.float32).astype(float)
        c[~np.isfinite(c)] = 1.0
        found = fma32(a, b, c)
    for number, (x, y, z) in enumerate(zip(a, b, c, strict=True)):
        want = rounded(Fraction(x) * Fraction(y) + Fraction(z), np.float32)
        assert found[number] == want, (x.hex(), y.hex(), z.hex())


@pytest.mark.parametrize(("least", "most"), [(-60, -50), (-590, -560), (-1074, -900), (300, 450)])
def test_float64_is_fused_exactly(least: int, most: int) -> None:
    rng = np.random.default_rng(2)
    a, b = (hard(rng, 500, least, most, 52) for _ in range(2))
    near = -(a * b) * (1 + rng.integers(-2, 3, 500) * 2.0**-52)
    c = np.where(rng.random(500) < 0.5, near, hard(rng, 500, least, most, 52))
    found = fma64(a, b, c)
    for number, (x, y, z) in enumerate(zip(a, b, c, strict=True)):
        assert found[number] == float(Fraction(x) * Fraction(y) + Fraction(z)), (
            x.hex(),
            y.hex(),
            z.hex(),
        )


@pytest.mark.parametrize("fused", [fma32, fma64])
def test_infinities_and_overflow(fused: Any) -> None:
    largest = float(np.finfo(np.float32 if fused is fma32 else np.float64).max)
    inf, nan = np.inf, np.nan
    rows = [
        (inf, 1, 1, inf),
        (inf, 0, 1, nan),
        (inf, 1, -inf, nan),
        (1, 1, -inf, -inf),
        (largest, largest, -inf, -inf),
        (largest, 2, 0, inf),
        (largest, 2, -largest, largest),
        (0, 5, 3, 3),
        (nan, 0, 0, nan),
    ]
    a, b, c, want = (np.array(each, float) for each in zip(*rows, strict=True))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(fused(a, b, c), want)


# Kernels against the specification


def small_case(name: str, number: int) -> tuple[Case, str]:
    """Return a case that an algorithm takes, and an operation: kinds and dtypes in turn."""
    target = jit.host_target()
    fixed: dict[str, Any] = {}
    if name == "dense_grouped":  # groups are lanes, of which a vector has 16 at most
        narrow = (2, 4, 8, 10)[number % 4]
        fixed |= {"depthwise": False, "groups": 16, "group_in": narrow, "group_out": narrow}
    elif "depthwise" in name:
        fixed["depthwise"] = True
    elif "dense" in name:
        fixed["depthwise"] = False
    if "winograd" in name:
        sizes = ((8, 9), (17, 12), (10, 21), (12, 8))[number % 4]
        layout, dtype = (
            ("NHWC", "NCHW")[number % 2],
            ("float32", "float32", "half", "bfloat16")[number % 4],
        )
        group_in, group_out = ((32, 40), (100, 33), (72, 64), (48, 48))[number % 4]
        case = Case(
            False, 1, sizes, 1, group_in, group_out, (3, 3), (1, 1), (1, 1), "SAME", layout, dtype
        )
        return case, ("forward", "input")[number // 2 % 2]
    if number % 2 == 0:
        fixed["dtype"] = "float32"  # 16-bit results hide much
    for seed in range(3000):
        case = same_bits.draw(100 + number, seed, **fixed)
        if case.products > MOST_PRODUCTS:
            continue
        kinds = taken(name, case, target)
        if kinds:
            return case, kinds[(seed + number) % len(kinds)]
    raise AssertionError(f"{name} takes nothing that is drawn")


@cache
def bits_of(case: Case, kind: str, numbers: str) -> bytes:
    """Return what the specification gives."""
    problem = problem_of(case, kind)
    pair = same_bits.operands(kind, normal(case, np.random.default_rng(7)))
    found, _ = specification.compute(problem, *pair, numbers=numbers)
    return np.ascontiguousarray(found).tobytes()


@pytest.mark.parametrize("number", range(CASES))
@pytest.mark.parametrize("name", NAMES)
def test_kernels_give_the_bits_of_the_specification(name: str, number: int) -> None:
    """Every FMA row, width and cache size this machine can run, the best plans, and 1 to 3 threads."""
    case, kind = small_case(name, number)
    numbers = name if "winograd" in name else winograd.SUMS
    want = bits_of(case, kind, numbers)
    first, second = same_bits.operands(kind, normal(case, np.random.default_rng(7)))
    plans = [*same_bits.plans(problem_of(case, kind), [name], same_bits.machines())]
    assert plans, (name, case)
    for turn, (_, who, target, plan) in enumerate(plans):
        found = same_bits.run_plan(plan, target, first, second, 1 + turn % 3).tobytes()
        assert found == want, (
            f"{name} does not add as the contract of sums says: {kind} of {case}, {who}"
        )


def shorter_runs(problem: Problem) -> gather.GatherContract:
    """Return a contract with half the taps in a run."""
    order = gather.gather_contract(problem)
    taps = max(1, order.taps // 2)
    row_runs = -(-problem.cols.window // taps)
    return replace(order, taps=taps, row_runs=row_runs, block_runs=problem.rows.window * row_runs)


def shorter_pixel_runs(problem: Problem) -> pixels.PixelContract:
    """Return a contract with half the pixels in a run; where chains lie along rows, half the images of a unit."""
    order = pixels.pixel_contract(problem)
    if order.band:
        unit = order.unit._replace(images=order.unit.images // 2)
        return order._replace(unit=unit, run=unit)
    return order._replace(run=pixels.box(order.unit, pixels.PIXELS // 2))


DENSE = Case(False, 2, (9, 11), 1, 16, 24, (5, 5), (1, 1), (1, 1), "SAME")
THIN = Case(True, 2, (15, 16), 24, 1, 1, (3, 3), (1, 1), (1, 1), "SAME")
PLANTED: dict[str, tuple[Case, str]] = {
    "depthwise_direct": (THIN, "filter"),
    "depthwise_plane": (replace(THIN, data_format="NCHW"), "filter"),
    "depthwise_flat": (replace(THIN, groups=3), "filter"),
    "depthwise_packed": (THIN, "filter"),
    "winograd": (LAYER, "forward"),
    "dense_grouped": (replace(DENSE, groups=16, group_in=8, group_out=8), "forward"),
    "dense_direct": (DENSE, "forward"),
    "dense_planes": (replace(DENSE, data_format="NCHW"), "input"),
    "dense_filter": (DENSE, "filter"),
}
"""For each algorithm a problem whose bits show how long runs are."""


@pytest.mark.parametrize("name", NAMES)
def test_other_runs_are_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The contract is another one for this family alone: its plans give other bits, so these problems tell."""
    case, kind = PLANTED[name]
    planted: dict[str, Any] = {
        "gather_contract": shorter_runs,
        "pixel_contract": shorter_pixel_runs,
        "CHAIN": 4,
    }
    package = ALGORITHMS[name].__name__.rpartition(".")[0]
    found = [
        (module, attribute)
        for module_name, module in [*sys.modules.items()]
        if module_name.startswith(f"{package}.")
        for attribute in planted
        if hasattr(module, attribute)
    ]
    assert found, f"{name} does not ask the contract of sums"
    for module, attribute in found:
        monkeypatch.setattr(module, attribute, planted[attribute])
    problem, target = problem_of(case, kind), jit.host_target()
    plan = planner.choose_named(problem, target, name)
    pair = same_bits.operands(kind, normal(case, np.random.default_rng(7)))
    result = same_bits.run_plan(plan, target, *pair)
    want = bits_of(case, kind, name if "winograd" in name else winograd.SUMS)
    assert result.tobytes() != want, f"{name}: runs of another length have the same bits"


def differing(part: campaign.Part) -> list[str]:
    """Return the problems of a part of the campaign whose kernels give other bits, with who computes them."""
    wrong = []
    for number, problem in enumerate(part.problems):
        given = campaign.operands(problem, number)
        pairs = (campaign.computed(problem, given), campaign.specified(problem, given))
        if campaign.digest(pairs[0]) != campaign.digest(pairs[1]):
            wrong.append(f"{planner.choose(problem, jit.host_target()).algorithm}: {problem}")
    return wrong


def test_the_campaign_has_the_digests_that_are_expected() -> None:
    """What `convgrad check bits` computes; of what differs the problems are named, with the algorithm."""
    by_name = {part.name: part for part in campaign.parts()}
    receipts = [*campaign.receipts()]
    assert [each.name for each in receipts] == [*expected.EXPECTED]
    wrong = [each.name for each in receipts if expected.EXPECTED[each.name] != each.digest]
    assert not wrong, [differing(by_name[name]) if name in by_name else name for name in wrong]


def test_the_expected_digests_are_those_of_the_specification() -> None:
    """Of some parts; `python -m tools.expected_bits --check` asks for all."""
    parts = [
        part for part in campaign.parts() if "float32" in part.name and "layers" not in part.name
    ]
    assert len(parts) == 6
    for part in parts:
        found = [
            array
            for number, problem in enumerate(part.problems)
            for array in campaign.specified(problem, campaign.operands(problem, number))
        ]
        assert campaign.digest(found) == expected.EXPECTED[part.name], part.name


def test_numbers_of_the_campaign_are_always_the_same() -> None:
    """They are part of the digests, and fit their dtype exactly."""
    assert [hex(each) for each in campaign.hashed("a", 3).tolist()] == HASHED
    for dtype, wide in ((np.float32, np.float64), (np.float16, np.float32)):
        row = next(row for row in dtypes.DTYPES if row.numpy == dtype)
        found = campaign.numbers("x", (1000,), row)
        assert found.dtype == dtype and 2 < np.abs(found.astype(wide)).max() <= 4


HASHED = ["0xa872a244a29ce2aa", "0x3e834d3a7287ce70", "0x5ea62c40a71dac82"]


# The reference


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "half", "bfloat16"])
def test_the_public_reference_gives_the_bits(kind: str, dtype: str) -> None:
    case = replace(LAYER, dtype=dtype, group_in=20, group_out=6, strides=(2, 1))
    data = normal(case, np.random.default_rng(1))
    how = (case.strides, "SAME")
    calls: dict[str, tuple[str, tuple[Any, ...]]] = {
        "forward": ("conv2d", (data.x, data.f, *how)),
        "input": ("conv2d_backprop_input", (case.input_shape, data.f, data.g, *how)),
        "filter": ("conv2d_backprop_filter", (data.x, case.filter_shape, data.g, *how)),
    }
    name, arguments = calls[kind]
    slow = getattr(reference, name)(*arguments, bits=True)
    quick = getattr(convgrad, name)(*arguments)
    assert slow.dtype == quick.dtype and slow.tobytes() == quick.tobytes()


def test_the_public_reference_heeds_the_switch() -> None:
    data = normal(LAYER, np.random.default_rng(1))
    found = []
    for switch in ("off", "auto"):
        with convgrad.options(winograd=switch):
            found.append(reference.conv2d(data.x, data.f, 1, "SAME", bits=True))
            assert convgrad.conv2d(data.x, data.f, 1, "SAME").tobytes() == found[-1].tobytes(), (
                switch
            )
    assert (found[0] != found[1]).any()
    with convgrad.options(winograd="fast"), pytest.raises(ArgumentError, match='winograd="off"'):
        reference.conv2d_backprop_filter(data.x, LAYER.filter_shape, data.g, 1, "SAME", bits=True)


def test_bits_want_one_dtype() -> None:
    x, f = np.ones((1, 2, 2, 1), np.float32), np.ones((1, 1, 1, 1))
    with pytest.raises(
        DTypeError, match=r"reference\.conv2d: with bits=True both operands must have the same"
    ):
        reference.conv2d(x, f, 1, "SAME", bits=True)
    with pytest.raises(ArgumentError, match="must not both be True"):
        reference.conv2d(x, x[:, :1, :1], 1, "SAME", exact=True, bits=True)


@pytest.mark.parametrize(
    ("kind", "side"),
    [("forward", "output"), ("input", "input"), ("filter", "output"), ("filter", "input")],
)
def test_without_kernels_small_problems_have_the_same_bits(kind: str, side: Any) -> None:
    case = replace(LAYER, group_in=20, group_out=6)
    problem = biased(case, kind, side)
    assert last_resort.follows_contract(problem, winograd.SUMS)
    given = campaign.operands(problem, 0)
    with_kernels = campaign.computed(problem, given)
    with config.scope(kernels=False):
        without = campaign.computed(problem, given)
    assert campaign.digest(with_kernels) == campaign.digest(without)


def test_large_problems_are_not_computed_slowly() -> None:
    problem = problem_of(replace(LAYER, batch=32), "forward")
    assert not last_resort.follows_contract(problem, winograd.SUMS)


def test_winograds_matrices_are_those_of_the_kernels() -> None:
    for outputs, name in ((2, winograd.F2), (4, winograd.F4)):
        scheme = SCHEMES[outputs]
        matrices = (scheme.input_matrix, scheme.filter_matrix, scheme.output_matrix)
        assert tuple(transformed.IDENTITIES[name]) == matrices


@pytest.mark.parametrize("kind", ["forward", "input"])
@pytest.mark.parametrize("group_out", [3, 48])
def test_other_images_of_a_batch_do_not_matter(kind: str, group_out: int) -> None:
    """Of plain sums, with few outputs and many, and of Winograd's."""
    case = replace(LAYER, batch=3, group_out=group_out)
    problem, single = (problem_of(each, kind) for each in (case, replace(case, batch=1)))
    first, second = same_bits.operands(kind, normal(case, np.random.default_rng(3)))
    whole = campaign.computed(problem, (first, second))[0]
    for image in range(3):
        part = slice(image, image + 1)
        pair = (first[part], second) if kind == "forward" else (first, second[part])
        alone = campaign.computed(single, [np.ascontiguousarray(each) for each in pair])[0]
        assert alone.tobytes() == whole[part].tobytes(), image


# What is told


def test_explain_tells_the_contract() -> None:
    story = convgrad.explain("conv2d_backprop_filter", [8, 56, 56, 64], [1, 1, 64, 32])
    found = story.to_dict()["sums"]
    assert (found["version"], found["class"], found["units"]) == (VERSION, "sums", 64)
    assert f"sums, version {VERSION}: 64 units of 392 pixels" in str(story)
    plain = convgrad.explain("conv2d", [1, 56, 56, 256], [1, 1, 256, 64])
    assert plain.to_dict()["sums"][
        "run_products"
    ] == 48 and "6 blocks of at most 48 channels" in str(plain)
    assert (
        convgrad.explain("conv2d", [1, 14, 14, 64], [3, 3, 64, 64]).to_dict()["sums"]["class"]
        == "winograd"
    )


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.name)
@pytest.mark.parametrize("dtype", ["float32", "float64", "half", "bfloat16", "int32"])
def test_explain_says_which_rows_are_outside(row: Any, dtype: str) -> None:
    """By the type of the sums: the M4 fuses float32, and calls the compiler's library for float64."""
    inside = {"sse2": False, "wasm": False, "wasm_simd": False, "cortex_m4": dtype != "float64"}
    for operation in ("conv2d", "conv2d_backprop_filter"):
        if dtype == "int32" and operation != "conv2d":
            continue
        sizes = [1, 9, 9, 4], [3, 3, 4, 8]
        story = convgrad.explain(operation, *sizes, dtype=dtype, target=row.name)
        outside = story.to_dict()["sums"]["outside"]
        if dtype == "int32" or inside.get(row.name, True):
            assert outside is None and told.OUTSIDE not in str(story)
        else:
            assert outside == f"{told.OUTSIDE} in {dtype} on {row.label}"
            assert outside in str(story)


def test_every_kind_of_contract_can_be_told() -> None:
    for number in range(100):
        case = same_bits.draw(6, number)
        problems: list[Problem] = [problem_of(case, kind) for kind in KINDS]
        problems += [biased(case, "filter", "output")]
        for problem in problems:
            for switch in config.WINOGRAD:
                numbers = winograd.numerical_class(problem, switch)
                lines = told.lines(problem, numbers)
                assert lines and told.document(problem, numbers)["class"] == numbers
                if problem.bias and problem.kind is Kind.FILTER_GRADIENT:
                    assert any(line.startswith("bias: ") for line in lines)
