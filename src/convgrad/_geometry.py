"""Sizes and pads along one spatial axis: integers in, integers out.

With input size n, window k, stride s and dilation d, a window spans `reach = (k - 1) * d + 1` cells:

=========  ==========================================  ====================================================
padding    output size                                 cells added before / after
=========  ==========================================  ====================================================
VALID      trunc((n - reach + s) / s)                  0 / 0
(a, b)     trunc((n + a + b - reach + s) / s)          a / b
SAME       ceil(n / s)                                 t // 2 / t - t // 2, t = max(0, (out-1)*s + reach - n)
=========  ==========================================  ====================================================

`trunc` rounds towards zero, as TensorFlow's kernels do: a window that is too large by less than a stride gives an
empty output, a larger one a negative size, which the caller must refuse. Python integers throughout: nothing wraps.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Pads = tuple[int, int]
AxisPadding = Literal["SAME", "VALID"] | Pads


class Axis(NamedTuple):
    """One spatial axis of a convolution, solved."""

    size: int
    window: int
    stride: int
    dilation: int
    before: int
    after: int
    out: int


class Span(NamedTuple):
    """Outputs `[first, last)` for which a tap lies inside the image, and where the first one reads."""

    first: int
    last: int
    start: int


def reach(window: int, dilation: int) -> int:
    """Return how many cells a dilated window spans.

    >>> reach(3, 2)
    5
    """
    return (window - 1) * dilation + 1


def solve(size: int, window: int, stride: int, dilation: int, padding: AxisPadding) -> Axis:
    """Apply the table above; `out` is negative where no output exists.

    >>> solve(14, 3, 2, 1, "SAME")
    Axis(size=14, window=3, stride=2, dilation=1, before=0, after=1, out=7)
    """
    span = reach(window, dilation)
    if padding == "SAME":
        out = -(-size // stride)
        total = max(0, (out - 1) * stride + span - size)
        return Axis(size, window, stride, dilation, total // 2, total - total // 2, out)
    before, after = (0, 0) if padding == "VALID" else padding
    room = size + before + after - span + stride
    out = room // stride if room >= 0 else -(-room // stride)
    return Axis(size, window, stride, dilation, before, after, out)


def tap_span(axis: Axis, tap: int) -> Span:
    """Return the outputs for which `tap` reads a real cell: output i reads cell i*stride + shift.

    >>> tap_span(solve(5, 3, 1, 1, "SAME"), 0)   # the first tap of output 0 lies in the padding
    Span(first=1, last=5, start=0)
    """
    shift = tap * axis.dilation - axis.before
    first = max(0, -(shift // axis.stride))  # smallest i with i*stride + shift >= 0
    last = min(axis.out, (axis.size - 1 - shift) // axis.stride + 1)
    return Span(first, max(first, last), first * axis.stride + shift)
