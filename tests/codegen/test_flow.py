"""Loops, branches and variables."""

from __future__ import annotations

import numpy as np
import pytest

from calling import ROWS, call, run
from convgrad._compiler.codegen import F32, I64, KernelBuilder

TARGET = ROWS[0]


def _out(write, *words, size=16):
    out = np.full(size, -1, np.int64)
    run(TARGET, lambda k: write(k, k.arg_pointer(0, I64)), out, *words)
    return out.tolist()


@pytest.mark.parametrize(
    ("start", "stop", "step"), [(0, 5, 1), (2, 11, 3), (4, 4, 1), (7, 3, 2), (0, 1, 8), (-3, 3, 2)]
)
def test_loops_count_like_range(start, stop, step):
    def write(k, out):
        place, total = k.variable(out), k.variable(k.i64(0))
        for first, last in ((start, stop), (k.arg_i64(1), k.arg_i64(2)), (start, k.arg_i64(2))):
            with k.loop(first, last, step, carry=[place, total]) as i:
                place.value.store_int(i)
                place.value = place.value.offset(1)
                total.value = total.value + i
        place.value.store_int(total.value)

    expected = [*range(start, stop, step)] * 3
    expected.append(sum(expected))
    assert _out(write, start, stop)[: len(expected)] == expected


def test_a_nonempty_loop_needs_no_guard():
    k = KernelBuilder("probe", TARGET)
    with k.loop(0, k.arg_i64(1), nonempty=True):
        pass
    assert sum("icmp" in line for line in k.emitter.body) == 1


def test_nested_loops_carry_vectors():
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    out = np.zeros(4, np.float32)

    def write(k):
        total = k.variable(k.zeros(F32, 4))
        with k.loop(0, k.arg_i64(2), carry=[total]) as i:
            rows = k.arg_pointer(0, F32).offset(i * 12)
            with k.loop(0, k.arg_i64(3), carry=[total]) as j:
                total.value = total.value + rows.offset(j * 4).load(4)
        k.arg_pointer(1, F32).store(total.value)

    run(TARGET, write, x, out, 2, 3)
    assert out.tolist() == x.sum(0).tolist()


@pytest.mark.parametrize("value", [-1, 0, 1, 2, 5])
def test_branches_set_variables(value):
    def write(k, out):
        x = k.arg_i64(1)
        a, b, c, d = (k.variable(k.i64(100 + i)) for i in range(4))
        with k.when(x > 0):
            a.value = x * 10
            with k.when(x > 1):
                inner = k.variable(x)
                inner.value = inner.value + 1
                b.value = inner.value
        with k.branch(x.equals(0)) as arms:
            with arms.then():
                c.value = k.i64(7)
            with arms.otherwise():
                c.value = x + 1
                d.value = x + 2
        with k.when(k.i64(1) < 2):
            a.value = a.value + 1
        with k.when(k.i64(2) < 1):
            a.value = k.i64(0)
        for i, variable in enumerate((a, b, c, d)):
            out.offset(i).store_int(variable.value)

    a = (value * 10 if value > 0 else 100) + 1
    b = value + 1 if value > 1 else 101
    c, d = (7, 103) if value == 0 else (value + 1, value + 2)
    assert _out(write, value)[:4] == [a, b, c, d]


@pytest.mark.parametrize("value", [0, 1, 2, 3, 9])
def test_cases_pick_one(value):
    def write(k, out):
        result = k.variable(k.i64(-5))
        for case in k.cases(k.arg_i64(1), (1, 2, 3, 4, 5, 6, 7, 8)):
            result.value = k.arg_i64(1) * case
        out.store_int(result.value)

    assert _out(write, value)[0] == (value * value if 1 <= value <= 8 else -5)


def test_branch_inside_loop_with_pointer():
    def write(k, out):
        place = k.variable(out)
        with k.loop(0, 10, carry=[place]) as i, k.when((i % 3).equals(0)):
            place.value.store_int(i)
            place.value = place.value.offset(1)

    assert _out(write)[:5] == [0, 3, 6, 9, -1]


def test_a_loop_must_carry_what_it_changes():
    k = KernelBuilder("probe", TARGET)
    total = k.variable(k.i64(0))
    with pytest.raises(AssertionError, match="does not carry"), k.loop(0, k.arg_i64(0)) as i:
        inner = k.variable(i)
        inner.value = inner.value + 1
        with k.when(i > 3):
            total.value = total.value + i


def test_both_arms_must_be_written():
    k = KernelBuilder("probe", TARGET)
    with pytest.raises(AssertionError, match="otherwise"), k.branch(k.arg_i64(0) > 0) as arms:
        one = k.i64(1)
        with arms.then():
            k.arg_pointer(1, I64).store_int(one)


def test_an_abandoned_case_is_noticed():
    k = KernelBuilder("probe", TARGET)
    for _ in k.cases(k.arg_i64(0), (1, 2)):
        break
    with pytest.raises(AssertionError, match="still open"):
        k.finish()


def test_items_are_those_of_the_call():
    k = KernelBuilder("probe", TARGET)
    with k.loop(k.begin, k.end) as item:
        k.arg_pointer(0, I64).offset(item).store_int(item)
    out = np.full(8, -1, np.int64)
    call(k.finish(), TARGET, out, begin=2, end=5)
    assert out.tolist() == [-1, -1, 2, 3, 4, -1, -1, -1]
