"""The oracle's exact mode: whole numbers in, no rounding anywhere, and a refusal of everything else."""

from __future__ import annotations

import inspect
import math
import random

import ml_dtypes
import numpy as np
import pytest

import convgrad
from convgrad import reference
from convgrad.errors import ArgumentError
from errors.doors import REFERENCE

BIG = 2**62


def column(*values, dtype=None):
    return np.array(values, dtype).reshape(1, -1, 1, 1)


@pytest.mark.parametrize("door", REFERENCE, ids=lambda door: door.id)
def test_parameters_are_those_of_the_top_level(door):
    """The same names, order and defaults, without `name` and with `exact` and `bits`, which are keyword-only."""
    ours = list(inspect.signature(door.function).parameters.values())
    theirs = list(inspect.signature(getattr(convgrad, door.op)).parameters.values())
    assert [(each.name, each.default) for each in ours[:-2]] == [
        (each.name, each.default) for each in theirs[:-1]
    ]
    only = inspect.Parameter.KEYWORD_ONLY
    assert [(each.name, each.default, each.kind) for each in ours[-2:]] == [
        ("exact", False, only),
        ("bits", False, only),
    ]


@pytest.mark.parametrize("door", REFERENCE, ids=lambda door: door.id)
@pytest.mark.parametrize(
    "dtype",
    [
        np.float16,
        ml_dtypes.bfloat16,
        np.float32,
        np.float64,
        np.longdouble,
        np.int8,
        np.int32,
        np.int64,
    ],
)
def test_any_real_dtype_gives_float64_or_exact_integers(door, dtype):
    plain, exact = door.call(dtype=dtype), door.call(dtype=dtype, exact=True)
    assert plain.dtype == np.float64 and exact.dtype == np.int64
    assert np.array_equal(plain, exact)
    assert plain.flags.c_contiguous and exact.flags.c_contiguous


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, np.bool_])
def test_unsigned_and_bool(dtype):
    x = np.array([1, 0, 1, 1], dtype).reshape(1, 4, 1, 1)
    result = reference.conv2d(x, np.ones((2, 1, 1, 1), dtype), 1, "VALID", exact=True)
    assert result.ravel().tolist() == [1, 1, 2] and result.dtype == np.int64


@pytest.mark.parametrize(
    ("value", "factor", "dtype"),
    [
        (2**31, 2**31, np.int64),
        (BIG, 1, np.int64),
        (BIG, 2, object),
        (-BIG, 2, object),
        (BIG, BIG, object),
        (-(2**63), 1, object),
        (-(2**63), -(2**63), object),
    ],
)
def test_python_ints_take_over_where_int64_ends(value, factor, dtype):
    result = reference.conv2d(column(value), column(factor), 1, "SAME", exact=True)
    assert result.dtype == dtype
    assert result.item() == value * factor
    assert type(result.ravel().tolist()[0]) is int


def test_sums_decide_not_only_products():
    """Each product fits int64; three of them do not."""
    for operands in (
        (reference.conv2d, column(BIG, BIG, BIG), np.ones((3, 1, 1, 1), np.int64)),
        (reference.conv2d, np.full((1, 1, 1, 3), BIG), np.ones((1, 1, 3, 1), np.int64)),
    ):
        function, x, f = operands
        assert function(x, f, 1, "VALID", exact=True).item() == 3 * BIG
    g = np.ones((1, 3, 1, 1), np.int64)
    total = reference.conv2d_backprop_filter(
        column(BIG, BIG, BIG), [1, 1, 1, 1], g, 1, "VALID", exact=True
    )
    assert total.item() == 3 * BIG
    back = reference.conv2d_backprop_input(
        [1, 1, 1, 1],
        np.full((1, 1, 1, 3), BIG),
        np.ones((1, 1, 1, 3), np.int64),
        1,
        "VALID",
        exact=True,
    )
    assert back.item() == 3 * BIG


def test_unsigned_64_bits():
    x = column(2**64 - 1, dtype=np.uint64)
    assert (
        reference.conv2d(x, column(1, dtype=np.uint64), 1, "SAME", exact=True).item() == 2**64 - 1
    )
    assert reference.conv2d(x, column(0), 1, "SAME", exact=True).item() == 0


def test_huge_floats_are_whole_numbers():
    result = reference.conv2d(column(1e300), column(3.0), 1, "SAME", exact=True)
    assert result.item() == 3 * int(1e300)
    assert reference.conv2d(column(1e300), column(0.0), 1, "SAME", exact=True).item() == 0


def test_cancellation_is_exact():
    """Where float64 loses the small term, exact mode keeps it."""
    x, f = column(BIG, 1, -BIG), np.full((3, 1, 1, 1), 4, np.int64)
    assert reference.conv2d(x, f, 1, "VALID", exact=True).item() == 4
    assert reference.conv2d(x.astype(np.float64), f, 1, "VALID").item() != 4


def test_against_python_sums():
    """Numbers of up to 60 bits, by the formula, in Python."""
    draw = random.Random(0)
    x = [draw.randrange(-(2**60), 2**60) for _ in range(7)]
    f = [draw.randrange(-(2**60), 2**60) for _ in range(3)]
    result = reference.depthwise_conv2d(
        column(*x), column(*f).reshape(3, 1, 1, 1), 2, ((2, 1), (0, 0)), exact=True
    )
    padded = [0, 0, *x, 0]
    wanted = [
        math.sumprod(padded[i : i + 3], f)
        if hasattr(math, "sumprod")
        else sum(a * b for a, b in zip(padded[i : i + 3], f, strict=True))
        for i in range(0, 8, 2)
    ]
    assert result.ravel().tolist() == wanted
    g = [draw.randrange(-(2**60), 2**60) for _ in range(4)]
    gradient = reference.depthwise_conv2d_backprop_filter(
        column(*x), [3, 1, 1, 1], column(*g), 2, ((2, 1), (0, 0)), exact=True
    )
    assert gradient.ravel().tolist() == [
        sum(g[i] * padded[2 * i + r] for i in range(4)) for r in range(3)
    ]


@pytest.mark.parametrize(
    "value",
    [
        0.5,
        1e-300,
        np.nan,
        np.inf,
        -np.inf,
        np.float16(0.25),
        np.longdouble(2) ** 40 + np.longdouble(0.5),
    ],
    ids=str,
)
@pytest.mark.parametrize("place", [0, 1])
def test_numbers_that_are_not_whole_are_refused(value, place):
    operands = [np.ones((1, 1, 1, 1)), np.ones((1, 1, 1, 1))]
    operands[place] = np.full((1, 1, 1, 1), value)
    with pytest.raises(
        ArgumentError,
        match=r"reference\.conv2d: with exact=True both operands must hold whole numbers",
    ):
        reference.conv2d(*operands, 1, "SAME", exact=True)


def test_a_fraction_only_longdouble_holds():
    value = np.longdouble(2) ** 60 + np.longdouble(0.5)
    if value == np.longdouble(2) ** 60:
        pytest.skip("longdouble is double here")
    with pytest.raises(ArgumentError, match="whole numbers"):
        reference.conv2d(np.full((1, 1, 1, 1), value), column(1), 1, "SAME", exact=True)


def test_empty_arrays_are_exact_zeros():
    for exact in (False, True):
        result = reference.conv2d_backprop_filter(
            np.zeros((0, 4, 4, 2)), [3, 3, 2, 2], np.zeros((0, 4, 4, 2)), 1, "SAME", exact=exact
        )
        assert result.shape == (3, 3, 2, 2) and not result.any()
