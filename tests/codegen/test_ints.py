"""Run-time integers give what Python gives, and constants write nothing."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from calling import ROWS, run
from convgrad._compiler.codegen import I64, Int, KernelBuilder

TARGET = ROWS[0]
PAIRS = [(0, 1), (7, 3), (-7, 3), (7, -3), (1 << 40, 12345), (-1, 1 << 62), (5, 5), (13, 8)]


def _results(operations, a, b):
    """Run each operation on run-time a and b, on a and constant b, and on constant a and b."""
    out = np.zeros((len(operations), 3), np.int64)

    def write(k):
        place = k.arg_pointer(0, I64)
        x, y = k.arg_i64(1), k.arg_i64(2)
        for i, operation in enumerate(operations):
            for j, pair in enumerate(((x, y), (x, b), (a, y))):
                place.offset(3 * i + j).store_int(operation(*pair))

    run(TARGET, write, out, a, b)
    return out


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_arithmetic(a, b):
    operations = [operator.add, operator.sub, operator.mul]
    wrapped = [(f(a, b) + (1 << 63)) % (1 << 64) - (1 << 63) for f in operations]
    assert _results(operations, a, b).tolist() == [[value] * 3 for value in wrapped]


@pytest.mark.parametrize(("a", "b"), [pair for pair in PAIRS if min(pair) >= 0])
def test_unsigned_division(a, b):
    assert _results([operator.floordiv, operator.mod], a, b).tolist() == [[a // b] * 3, [a % b] * 3]


def _run_ints(write_values, *words):
    out = np.full(32, -99, np.int64)

    def write(k):
        values = write_values(k, *[k.arg_i64(i + 1) for i in range(len(words))])
        for i, value in enumerate(values):
            k.arg_pointer(0, I64).offset(i).store_int(value)

    run(TARGET, write, out, *words)
    return out


@pytest.mark.parametrize(("a", "b"), [*PAIRS, (3, 7), (-1, 5), (4, 5), (5, 5)])
def test_comparisons_and_choices(a, b):
    def write(k, x, y):
        one, zero = k.i64(1), k.i64(0)
        truths = []
        for left, right in ((x, y), (x, b), (k.i64(a), y), (k.i64(a), b)):
            truths += [left < right, left <= right, left > right, left >= right]
            truths += [left.equals(right), left.differs(right)]
        values = [k.select(truth, one, zero) for truth in truths]
        total = values[0]
        for i, value in enumerate(values[1:]):
            total = total + value * (1 << (i + 1))
        inside = k.select(x.inside(y), one, zero)
        both = k.select((x < y) & (x > 0), one, zero)
        either = k.select((x < y) | ~(x > 0), one, zero)
        return [total, k.min(x, y), k.max(x, y), k.min(a, y), k.max(x, b), inside, both, either]

    out = _run_ints(write, a, b)
    six = [a < b, a <= b, a > b, a >= b, a == b, a != b] * 4
    assert out[0] == sum(value << i for i, value in enumerate(six))
    assert out[1:5].tolist() == [min(a, b), max(a, b), min(a, b), max(a, b)]
    assert out[5] == (a % 2**64 < b % 2**64)
    assert out[6:8].tolist() == [a < b and a > 0, a < b or a <= 0]


def test_bits_and_shifts():
    out = _run_ints(lambda k, a: [a & 12, a << 3, a >> 1, -a, 100 - a, 100 // a, 100 % a], 22)
    assert out[:7].tolist() == [4, 176, 11, -22, 78, 4, 12]


def test_constants_fold_without_writing():
    k = KernelBuilder("probe", TARGET)
    x = k.arg_i64(0)
    nine = k.i64(4) * 2 + 1
    for same in (x + 0, 0 + x, x - 0, x * 1, 1 * x, x // 1, x + k.i64(0), k.i64(0) + x, x << 0):
        assert same is x
    for zero in (x * 0, x % 1, k.i64(7) // 8, nine - 9, k.min(0, 3), k.max(0, -3)):
        assert isinstance(zero, Int) and zero.value == 0
    assert nine.value == 9 and (nine < 10).value is True and k.i64(-1).inside(5).value is False
    assert k.emitter.body == []


def test_a_runtime_truth_cannot_steer_python():
    k = KernelBuilder("probe", TARGET)
    with pytest.raises(TypeError, match=r"k\.when"):
        min(k.arg_i64(0), k.arg_i64(1))
