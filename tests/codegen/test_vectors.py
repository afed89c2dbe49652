"""Vector arithmetic is bit for bit NumPy's."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from calling import TARGETS, label, run
from convgrad._compiler.codegen import F32, F64, I32, I64

KINDS = {np.float32: F32, np.float64: F64, np.int32: I32}
each_target = pytest.mark.parametrize("target", TARGETS, ids=label)
each_kind = pytest.mark.parametrize("kind", KINDS)


def _operands(kind, lanes, count, seed=0):
    random = np.random.default_rng(seed)
    if kind is np.int32:
        return random.integers(-(2**31), 2**31, (count, lanes)).astype(np.int32)
    return (random.standard_normal((count, lanes)) * 10.0 ** random.integers(-3, 4)).astype(kind)


def _run(target, kind, write_values, count, results, operands=None):
    """Give `write_values` the operands as vectors; return the vectors it gives."""
    element = KINDS[kind]
    lanes = target.lanes(element.size)
    given = _operands(kind, lanes, count) if operands is None else operands
    out = np.zeros((results, lanes), kind)

    def write(k):
        source = k.arg_pointer(0, element)
        vectors = [source.offset(i * lanes).load(lanes) for i in range(count)]
        for i, vector in enumerate(write_values(k, *vectors)):
            k.arg_pointer(1, element).offset(i * lanes).store(vector)

    run(target, write, given, out)
    return given, out


@each_target
@each_kind
def test_arithmetic(target, kind):
    (a, b), out = _run(target, kind, lambda k, a, b: [a + b, a - b, a * b, -a, a + 3], 2, 5)
    with np.errstate(over="ignore"):
        expected = [a + b, a - b, a * b, -a, a + kind(3)]
    np.testing.assert_array_equal(out, expected)


@each_target
def test_division(target):
    (a, b), out = _run(target, np.float32, lambda k, a, b: [a / b], 2, 1)
    np.testing.assert_array_equal(out[0], a / b)


@each_target
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_fma_rounds_as_often_as_the_target_says(target, kind):
    lanes = target.lanes(np.dtype(kind).itemsize)
    e = kind(2.0 ** (-13 if kind is np.float32 else -28))
    operands = np.stack([np.full(lanes, 1 + e), np.full(lanes, 1 - e), np.full(lanes, kind(-1))])
    operands = (operands * np.linspace(1, 1, lanes)).astype(kind)
    (a, b, c), out = _run(target, kind, lambda k, *v: [k.fma(*v)], 3, 1, operands)
    fused = [
        kind(float(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))))
        for x, y, z in zip(a, b, c, strict=True)
    ]
    assert fused[0] != (a * b + c)[0]
    np.testing.assert_array_equal(out[0], fused if target.has_fma else a * b + c)


@each_target
def test_integer_fma_wraps(target):
    (a, b, c), out = _run(target, np.int32, lambda k, *v: [k.fma(*v)], 3, 1)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(out[0], a * b + c)


@each_target
@each_kind
def test_sum_has_one_order(target, kind):
    (a,), out = _run(target, kind, lambda k, a: [a.sum().broadcast(a.lanes)], 1, 1)
    halves = a
    with np.errstate(over="ignore"):
        while len(halves) > 1:
            halves = halves[: len(halves) // 2] + halves[len(halves) // 2 :]
    assert (out == halves[0]).all()


@each_target
@each_kind
def test_lanes_and_shuffles(target, kind):
    lanes = target.lanes(np.dtype(kind).itemsize)
    last = lanes - 1
    mixed = [(3 * i + 1) % (2 * lanes) for i in range(lanes)]

    def write(k, a, b):
        half = k.shuffle(a.part(0, lanes // 2), a.part(lanes // 2, lanes // 2), range(lanes))
        return [
            k.shuffle(a, b, mixed),
            k.shuffle(a, None, range(last, -1, -1)),
            a.lane(last).broadcast(lanes),
            a.with_lane(last, b.lane(0)),
            half,
            k.constant(KINDS[kind], lanes, -2.5 if kind is not np.int32 else -2),
            k.zeros(KINDS[kind], lanes),
        ]

    (a, b), out = _run(target, kind, write, 2, 7)
    expected = [np.concatenate([a, b])[mixed], a[::-1], np.full_like(a, a[last]), a.copy(), a]
    expected[3][last] = b[0]
    expected += [np.full_like(a, -2.5 if kind is not np.int32 else -2), np.zeros_like(a)]
    np.testing.assert_array_equal(out, expected)


@each_target
@each_kind
def test_select_and_compare(target, kind):
    lanes = target.lanes(np.dtype(kind).itemsize)
    odd = [bool(i % 2) for i in range(lanes)]

    def write(k, a, b):
        return [k.select(a.less(b), a, b), k.select(k.mask(odd), a, b)]

    (a, b), out = _run(target, kind, write, 2, 2)
    np.testing.assert_array_equal(out, [np.where(a < b, a, b), np.where(odd, a, b)])


@each_target
def test_comparison_with_nan_is_false(target):
    lanes = target.lanes(4)
    operands = np.array([[np.nan] * lanes, [1] * lanes], np.float32)
    _, out = _run(target, np.float32, lambda k, a, b: [k.select(a.less(b), a, b)], 2, 1, operands)
    assert (out == 1).all()


@each_target
def test_bits_and_casts(target):
    def write(k, a, b):
        return [
            a.bitwise("and", b),
            a.bitwise("xor", 255),
            a.bitwise("lshr", 3),
            a.cast("sitofp", F32).cast("fptosi", I32),
            a.bitcast(F32).bitcast(I32),
            a.bitcast(I64).bitcast(I32),
        ]

    (a, b), out = _run(target, np.int32, write, 2, 6, _operands(np.int32, target.lanes(4), 2) >> 9)
    expected = [a & b, a ^ 255, (a.view(np.uint32) >> 3).view(np.int32), a, a, a]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("target", TARGETS, ids=label)
@pytest.mark.parametrize(("element", "dtype"), [(F32, np.float32), (F64, np.float64)])
def test_square_roots_are_rounded_once(target, element, dtype):
    lanes = target.lanes(element.size)
    x = np.linspace(0, 1e6, lanes).astype(dtype)
    y = np.zeros(lanes, dtype)
    run(
        target,
        lambda k: k.arg_pointer(1, element).store(k.sqrt(k.arg_pointer(0, element).load(lanes))),
        x,
        y,
    )
    np.testing.assert_array_equal(y, np.sqrt(x))


@pytest.mark.parametrize("target", TARGETS, ids=label)
def test_integers_become_numbers(target):
    x, y = np.array([2**40 + 1, -3], np.int64), np.zeros(2)

    def body(k):
        for i in range(2):
            value = k.number(k.arg_pointer(0, I64).offset(i).load_int(), F64)
            k.arg_pointer(1, F64).offset(i).store(value)

    run(target, body, x, y)
    assert y.tolist() == [2.0**40 + 1, -3.0]
