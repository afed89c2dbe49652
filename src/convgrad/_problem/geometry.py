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

from collections.abc import Iterator
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


def taps_inside(axis: Axis) -> Iterator[range]:
    """Yield the taps that read a real cell of the image for some output, as ascending ranges.

    Tap t of output i reads cell ``i*stride + t*dilation - before``. An image at least as wide as the stride leaves no
    gap, and there is one range. Otherwise there are as many as taps or outputs at most, whichever are fewer. So the
    work does not grow with the window alone: of 10**7 taps on one pixel, one counts.

    >>> list(taps_inside(solve(1, 10**7, 1, 1, "SAME")))
    [range(4999999, 5000000)]
    >>> list(taps_inside(solve(1, 8, 3, 1, (6, 7))))    # outputs 2, 1 and 0 see the pixel through different taps
    [range(0, 1), range(3, 4), range(6, 7)]
    """
    size, window, stride, dilation, before, _, out = axis
    if size < 1 or out < 1:
        return
    if stride <= size:
        lowest = before - (out - 1) * stride
        starts, cells = range(lowest, lowest + 1), before - lowest + size
    elif window <= out:
        for tap in range(window):
            first, last, _ = tap_span(axis, tap)
            if first < last:
                yield range(tap, tap + 1)
        return
    else:
        starts, cells = range(before - (out - 1) * stride, before + 1, stride), size
    for start in starts:  # places `t*dilation` that fall on the image, for one output or for all
        taps = range(
            max(0, -(-start // dilation)), min(window, (start + cells - 1) // dilation + 1)
        )
        if taps:
            yield taps
