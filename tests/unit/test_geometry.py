"""Output sizes and pads, against the table of the documentation and against counting cells one by one."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convgrad._problem.geometry import Axis, Span, reach, solve, tap_span, taps_inside

MOST = 2**31 - 1

TABLE = [
    # n, k, s, d, padding, (before, after, out)
    (14, 3, 2, 1, "SAME", (0, 1, 7)),
    (13, 3, 2, 1, "SAME", (1, 1, 7)),
    (5, 3, 1, 1, "SAME", (1, 1, 5)),
    (5, 2, 1, 1, "SAME", (0, 1, 5)),  # the odd cell goes after
    (5, 4, 1, 1, "SAME", (1, 2, 5)),
    (5, 3, 1, 2, "SAME", (2, 2, 5)),
    (5, 2, 1, 3, "SAME", (1, 2, 5)),
    (7, 1, 3, 1, "SAME", (0, 0, 3)),  # stride beyond the window: nothing to add
    (6, 1, 3, 1, "SAME", (0, 0, 2)),
    (6, 2, 4, 1, "SAME", (0, 0, 2)),
    (1, 125, 1, 1, "SAME", (62, 62, 1)),
    (0, 1, 1, 1, "SAME", (0, 0, 0)),
    (3, 1, MOST, 1, "SAME", (0, 0, 1)),
    (3, 3, 1, MOST, "SAME", (MOST, MOST, 3)),
    (5, 3, 1, 1, "VALID", (0, 0, 3)),
    (5, 3, 2, 1, "VALID", (0, 0, 2)),
    (6, 3, 2, 1, "VALID", (0, 0, 2)),
    (5, 3, 1, 2, "VALID", (0, 0, 1)),
    (3, 3, 1, 1, "VALID", (0, 0, 1)),
    (2, 3, 1, 1, "VALID", (0, 0, 0)),  # too large by less than a stride: empty, no error
    (2, 5, 2, 1, "VALID", (0, 0, 0)),
    (2, 4, 1, 1, "VALID", (0, 0, -1)),  # the caller refuses what is negative
    (2, 6, 2, 1, "VALID", (0, 0, -1)),
    (0, 1, 1, 1, "VALID", (0, 0, 0)),
    (0, 2, 1, 1, "VALID", (0, 0, -1)),
    (5, 3, 1, 1, (1, 0), (1, 0, 4)),
    (5, 3, 2, 1, (2, 3), (2, 3, 4)),
    (0, 1, 1, 1, (1, 1), (1, 1, 2)),
    (1, 125, 1, 1, (63, 63), (63, 63, 3)),
    (2, 1, MOST, 1, (MOST, MOST), (MOST, MOST, 3)),
    (4, 1, 1, 1, (MOST, MOST), (MOST, MOST, 2 * MOST + 4)),
    (2**62, 1, 2**61, 1, "VALID", (0, 0, 2)),
]


@pytest.mark.parametrize(("n", "k", "s", "d", "padding", "solution"), TABLE)
def test_table(n, k, s, d, padding, solution):
    before, after, out = solution
    assert solve(n, k, s, d, padding) == Axis(n, k, s, d, before, after, out)


@pytest.mark.parametrize(
    ("window", "dilation", "cells"),
    [(1, 1, 1), (1, 9, 1), (3, 1, 3), (3, 2, 5), (2, 5, 6), (3, MOST, 2 * MOST + 1)],
)
def test_reach(window, dilation, cells):
    assert reach(window, dilation) == cells


@pytest.mark.parametrize("stride", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("padding", ["VALID", (0, 0), (2, 1)])
def test_division_truncates_towards_zero(stride, padding):
    """A numerator from 1-s to s-1 gives 0, -s gives -1: C division, which Python's is not."""
    n, pads = 20, 0 if padding == "VALID" else sum(padding)
    for numerator in range(-3 * stride, 3 * stride + 1):
        window = n + pads + stride - numerator
        wanted = abs(numerator) // stride * (1 if numerator >= 0 else -1)
        assert solve(n, window, stride, 1, padding).out == wanted


PADDINGS = ["SAME", "VALID", (0, 0), (1, 0), (0, 2), (3, 5), (11, 0)]
CASES = [
    (n, k, s, d, padding)
    for n, k, s, d in itertools.product(range(8), range(1, 6), range(1, 5), range(1, 4))
    for padding in PADDINGS
]


def count_outputs(n, k, s, d, before, after):
    """Lay windows on the padded axis until one hangs over."""
    out = 0
    while out * s + (k - 1) * d < before + n + after:
        out += 1
    return out


@pytest.mark.parametrize("padding", PADDINGS, ids=str)
def test_outputs_by_counting(padding):
    for n, k, s, d in itertools.product(range(12), range(1, 6), range(1, 5), range(1, 4)):
        axis = solve(n, k, s, d, padding)
        if padding == "SAME":
            assert axis.out == len(range(0, n, s))
            total = axis.before + axis.after
            assert 0 <= axis.after - axis.before <= 1
            if n:
                assert axis.out == count_outputs(n, k, s, d, axis.before, axis.after)
                # No smaller padding reaches the same number of outputs.
                assert total == 0 or count_outputs(n, k, s, d, 0, total - 1) < axis.out
        elif n + axis.before + axis.after >= reach(k, d):
            assert axis.out == count_outputs(n, k, s, d, axis.before, axis.after)
        else:
            assert axis.out <= 0


def spans_by_counting(axis, tap):
    return [
        (i, i * axis.stride + tap * axis.dilation - axis.before)
        for i in range(max(axis.out, 0))
        if 0 <= i * axis.stride + tap * axis.dilation - axis.before < axis.size
    ]


def check_spans(axis):
    found = [tap for taps in taps_inside(axis) for tap in taps]
    assert found == [tap for tap in range(axis.window) if spans_by_counting(axis, tap)]
    for tap in range(axis.window):
        span = tap_span(axis, tap)
        pairs = spans_by_counting(axis, tap)
        assert isinstance(span, Span) and span.first <= span.last and span.first >= 0
        assert list(range(span.first, span.last)) == [output for output, _ in pairs]
        assert [span.start + i * axis.stride for i in range(span.last - span.first)] == [
            cell for _, cell in pairs
        ]


def test_tap_spans_by_counting():
    assert len(CASES) > 3000
    for n, k, s, d, padding in CASES:
        axis = solve(n, k, s, d, padding)
        if axis.out >= 0:
            check_spans(axis)


SIZES = st.integers(0, 60)


@settings(max_examples=300, deadline=None)
@given(
    SIZES,
    st.integers(1, 12),
    st.integers(1, 40),
    st.integers(1, 30),
    st.one_of(st.just("SAME"), st.just("VALID"), st.tuples(SIZES, SIZES)),
)
def test_tap_spans_of_larger_sizes(n, k, s, d, padding):
    axis = solve(n, k, s, d, padding)
    if axis.out >= 0:
        check_spans(axis)


@pytest.mark.parametrize(
    ("axis", "tap", "span"),
    [
        (solve(3, 3, 1, MOST, "SAME"), 0, (3, 3)),
        (solve(3, 3, 1, MOST, "SAME"), 1, (0, 3)),
        (solve(3, 3, 1, MOST, "SAME"), 2, (0, 0)),
        (solve(2, 1, MOST, 1, (MOST, MOST)), 0, (1, 2)),
        (solve(4, 1, 1, 1, (MOST, MOST)), 0, (MOST, MOST + 4)),
    ],
)
def test_tap_spans_of_huge_numbers(axis, tap, span):
    found = tap_span(axis, tap)
    if span[0] == span[1]:
        assert found.first == found.last
    else:
        assert (found.first, found.last) == span
        assert 0 <= found.start < axis.size


def test_taps_of_huge_windows_are_not_counted_one_by_one():
    assert list(taps_inside(solve(1, MOST, 1, 1, "SAME"))) == [
        range((MOST - 1) // 2, (MOST - 1) // 2 + 1)
    ]
    third = MOST // 3
    found = list(taps_inside(solve(2, MOST, third, 1, (2 * third, MOST))))
    assert found == [range(2), range(third, third + 2), range(2 * third, 2 * third + 2)]
