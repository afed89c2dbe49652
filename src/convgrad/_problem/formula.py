"""A problem's sum written as a formula, with its numbers."""

from __future__ import annotations

from .convolution import Kind, Problem
from .geometry import Axis


def formula(problem: Problem, image: str = "dx", grad: str = "dy") -> str:
    """Write a problem's sum: x is the input, f the filter, y the forward result, d before a name its gradient.

    `image` and `grad` are what an input gradient makes and reads; a transposed convolution has other names for them.
    """
    p = problem
    row, col = _place("p", "r", p.rows), _place("q", "s", p.cols)
    if p.depthwise:
        inner, taken = ("", "c") if p.group_out == 1 else (f", m<{p.group_out}", "c")
        made = "c" if p.group_out == 1 else f"{p.group_out}c+m"
        weight = f"f[r,s,c,{'0' if p.group_out == 1 else 'm'}]"
        over_in, over_out = "", inner
    else:
        taken = "c" if p.groups == 1 else f"{_times(p.group_in, 'g')}+c"
        made = "k" if p.groups == 1 else f"{_times(p.group_out, 'g')}+k"
        weight = f"f[r,s,c,{made}]"
        over_in, over_out = f", c<{p.group_in}", f", k<{p.group_out}"
    read, out = _image(p, row, col, taken), _image(p, "p", "q", made)
    taps, cells = f"r<{p.rows.window}, s<{p.cols.window}", f"p<{p.rows.out}, q<{p.cols.out}"
    if p.kind is Kind.FORWARD:
        return f"y[{out}] = sum over {taps}{over_in} of x[{read}] * {weight}"
    if p.kind is Kind.FILTER_GRADIENT:
        return f"d{weight} = sum over n<{p.batch}, {cells} of x[{read}] * dy[{out}]"
    wanted = _image(p, "h", "w", taken)
    where = f"{cells}, {taps}{over_out} with h={row}, w={col}"
    return f"{image}[{wanted}] = sum over {where} of {grad}[{out}] * {weight}"


def _image(problem: Problem, row: str, col: str, channel: str) -> str:
    places = (row, col, channel) if problem.data_format == "NHWC" else (channel, row, col)
    return ",".join(("n", *places))


def _place(out: str, tap: str, axis: Axis) -> str:
    """Write where a tap of an output reads: 2p+r-1."""
    shift = f"-{axis.before}" if axis.before else ""
    return f"{_times(axis.stride, out)}+{_times(axis.dilation, tap)}{shift}"


def _times(factor: int, letter: str) -> str:
    return letter if factor == 1 else f"{factor}{letter}"
