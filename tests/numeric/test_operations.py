"""The public functions against the oracle: exact on whole numbers, within a stated bound on others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import convgrad
from calling import few_and_more
from cases import DOORS, DTYPES, KINDS, Case, Data, normal, random_case, run, whole_numbers
from convgrad._base import config
from kernels import expected_exactly
from tolerance import assert_close


@pytest.fixture(autouse=True)
def mostly_the_reference(request: pytest.FixtureRequest) -> Iterator[None]:
    """Test the doors, not the kernels: each new geometry would compile one.

    The first seed of a test uses kernels, on fewer problems.
    """
    seed = request.node.callspec.params.get("seed", 0) if hasattr(request.node, "callspec") else 0
    with config.scope(kernels=seed == 0 and config.get("kernels")):
        yield


@pytest.mark.parametrize("seed", range(20))
def test_whole_numbers_come_out_exact(seed: int, checked: Any) -> None:
    rng = np.random.default_rng(3000 + seed)
    for _ in range(60 if seed else 25):
        case = random_case(rng)
        data = whole_numbers(case, rng)
        for kind in KINDS:
            got = run(case, kind, data, str(rng.choice(DOORS)))
            expected = expected_exactly(case, kind, data)
            assert got.dtype == DTYPES[case.dtype]
            assert got.shape == expected.shape
            np.testing.assert_array_equal(
                got.astype(np.float64), expected.astype(np.float64), str((case, kind))
            )
            checked["problems, exact integers"] += 1


@pytest.mark.parametrize("seed", range(6))
def test_normal_numbers_come_out_within_the_bound(seed: int, checked: Any) -> None:
    rng = np.random.default_rng(4000 + seed)
    for _ in range(60 if seed else 25):
        case = random_case(rng)
        data = normal(case, rng)
        for kind in KINDS:
            assert_close(case, kind, data, run(case, kind, data, str(rng.choice(DOORS))))
            checked["problems, normal numbers"] += 1


@pytest.mark.parametrize("seed", range(4))
def test_the_three_operations_are_adjoint(seed: int, checked: Any) -> None:
    """<conv(x, f), g> = <x, backprop_input(f, g)> = <f, backprop_filter(x, g)>, exactly for whole numbers."""
    rng = np.random.default_rng(5000 + seed)
    for _ in range(60):
        case = random_case(rng, dtype="float64")
        data = whole_numbers(case, rng, 99)
        forward = (run(case, "forward", data) * data.g).sum()
        assert forward == (run(case, "input", data) * data.x).sum(), case
        assert forward == (run(case, "filter", data) * data.f).sum(), case
        checked["adjoint identities"] += 1


@st.composite
def any_case(draw: st.DrawFn) -> Case:
    """Cases hypothesis can shrink: the smallest failing one is then a readable counter-example."""
    pair = st.tuples
    depthwise = draw(st.booleans())
    case = Case(
        depthwise=depthwise,
        batch=draw(st.integers(0, 3)),
        size=draw(pair(st.integers(0, 12), st.integers(0, 12))),
        groups=draw(st.integers(1, 20 if depthwise else 4)),
        group_in=1 if depthwise else draw(st.integers(1, 6)),
        group_out=draw(st.integers(0, 4)),
        window=draw(pair(st.integers(1, 7), st.integers(1, 7))),
        strides=draw(pair(st.integers(1, 5), st.integers(1, 5))),
        dilations=draw(pair(st.integers(1, 4), st.integers(1, 4))),
        padding=draw(
            st.sampled_from(["SAME", "VALID"])
            | pair(*[pair(st.integers(0, 9), st.integers(0, 9))] * 2)
        ),
        data_format=draw(st.sampled_from(["NHWC", "NCHW"])),
        dtype=draw(st.sampled_from(sorted(DTYPES))),
    )
    return case


@settings(max_examples=100, deadline=None, derandomize=True)
@given(case=any_case().filter(lambda case: case.legal), seed=st.integers(0, 2**32 - 1))
def test_any_legal_case(case: Case, seed: int) -> None:
    data = whole_numbers(case, np.random.default_rng(seed))
    for kind in KINDS:
        got = run(case, kind, data)
        expected = expected_exactly(case, kind, data)
        np.testing.assert_array_equal(got.astype(np.float64), expected.astype(np.float64))


def test_int32_wraps() -> None:
    rng = np.random.default_rng(7)
    for data_format in ("NHWC", "NCHW"):
        case = random_case(
            rng,
            depthwise=False,
            batch=2,
            groups=2,
            group_in=3,
            group_out=2,
            data_format=data_format,
        )
        shapes = (case.input_shape, case.filter_shape, case.output_shape)
        x, f, g = (rng.integers(-(2**31), 2**31, shape, dtype=np.int32) for shape in shapes)
        data = Data(x, f, g)
        for kind in ("forward", "input"):
            exact = run(case, kind, data, "reference", exact=True)
            wrapped = (exact + 2**31) % 2**32 - 2**31
            got = run(case, kind, data, "raw")
            assert got.dtype == np.int32
            assert (got == wrapped.astype(np.int32)).all()


@pytest.mark.parametrize("dtype", ["half", "bfloat16"])
@pytest.mark.parametrize("depthwise", [True, False])
def test_narrow_types_add_in_a_wide_accumulator(dtype: str, depthwise: bool) -> None:
    """Sums of ones over 72x72, as TensorFlow's CPU kernels get wrong: 2048 in half, 256 in bfloat16."""
    case = Case(depthwise, 1, (72, 72), 1, 1, 1, (1, 1), (1, 1), (1, 1), "VALID", dtype=dtype)
    ones = Data(
        *(
            np.ones(s, DTYPES[dtype])
            for s in (case.input_shape, case.filter_shape, case.output_shape)
        )
    )
    assert float(run(case, "filter", ones).item()) == 5184.0
    case = Case(depthwise, 1, (40, 40), 1, 1, 2, (40, 40), (1, 1), (1, 1), "VALID", dtype=dtype)
    ones = Data(
        *(
            np.ones(s, DTYPES[dtype])
            for s in (case.input_shape, case.filter_shape, case.output_shape)
        )
    )
    assert float(run(case, "forward", ones).ravel()[0]) == 1600.0
    case = Case(depthwise, 1, (79, 79), 1, 1, 2, (40, 40), (1, 1), (1, 1), "VALID", dtype=dtype)
    ones = Data(
        *(
            np.ones(s, DTYPES[dtype])
            for s in (case.input_shape, case.filter_shape, case.output_shape)
        )
    )
    assert float(run(case, "input", ones)[0, 39, 39, 0]) == 3200.0


def test_a_sum_that_fits_half_does_not_overflow_on_the_way() -> None:
    x = np.array([60000, 60000, -60000], np.float16).reshape(1, 1, 3, 1)
    ones = np.ones((1, 3, 1, 1), np.float16)
    assert convgrad.conv2d(x, ones, 1, "VALID").item() == 60000
    assert convgrad.depthwise_conv2d(x, ones, 1, "VALID").item() == 60000


def test_a_final_value_that_does_not_fit_becomes_infinite() -> None:
    x = np.full((1, 1, 2, 1), 60000, np.float16)
    assert convgrad.conv2d(x, np.ones((1, 2, 1, 1), np.float16), 1, "VALID").item() == np.inf


@pytest.mark.parametrize("dtype", sorted(DTYPES))
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize(("turns", "draw"), few_and_more(15, 25, seed=11))
def test_not_a_number_reaches_its_own_windows_and_no_others(
    dtype: str, bad: float, turns: int, draw: int
) -> None:
    rng = np.random.default_rng(draw)
    for _ in range(turns):
        case = random_case(rng, dtype=dtype)
        if case.is_empty:
            continue
        data = whole_numbers(case, rng, 2)
        data = Data(*(np.abs(each) + each.dtype.type(1) for each in (data.x, data.f, data.g)))
        for kind, operand in (("forward", "x"), ("input", "g"), ("filter", "x"), ("filter", "g")):
            spoiled = {name: getattr(data, name).copy() for name in "xfg"}
            target = spoiled[operand]
            position = tuple(int(rng.integers(size)) for size in target.shape)
            target[position] = bad
            probe = {name: np.abs(getattr(data, name)) for name in "xfg"}
            probe[operand] = np.zeros_like(target)
            probe[operand][position] = 1
            touched = run(case, kind, Data(**probe), "reference") != 0
            got = run(case, kind, Data(**spoiled)).astype(np.float64)
            np.testing.assert_array_equal(~np.isfinite(got), touched, str((case, kind)))


def test_same_bits_on_every_run() -> None:
    rng = np.random.default_rng(12)
    for _ in range(20):
        case = random_case(rng)
        data = normal(case, rng)
        for kind in KINDS:
            assert run(case, kind, data).tobytes() == run(case, kind, data).tobytes()


def test_nothing_is_read_of_operands_that_make_an_empty_result() -> None:
    """A copy of this operand would take 1.75 TiB."""
    x = np.broadcast_to(np.float32(0), (1, 40_000, 40_000, 300))
    result = convgrad.conv2d(x, np.zeros((1, 1, 300, 0), np.float32), 1, "SAME")
    assert result.shape == (1, 40_000, 40_000, 0)
