"""The three sums a second, different way: pad for real, then walk the outputs and cut out one patch each.

Groups are cut by slicing channels, the geometry is `cases`' own. Slow and plain on purpose.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cases import Case, Data, pads


def compute(case: Case, kind: str, data: Data) -> Any:
    """Return the result of one problem in int64 or float64, whichever the data is."""
    (top, bottom), (left, right) = pads(*case.axis(0)), pads(*case.axis(1))
    x, g = _nhwc(case, data.x), _nhwc(case, data.g)
    f = data.f.reshape(*case.window, case.group_in, case.groups * case.group_out)
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    y, dx, df = np.zeros_like(g), np.zeros_like(padded), np.zeros_like(f)
    for group in range(case.groups):
        inside = slice(group * case.group_in, (group + 1) * case.group_in)
        outside = slice(group * case.group_out, (group + 1) * case.group_out)
        for p in range(case.out_size[0]):
            for q in range(case.out_size[1]):
                patch = (slice(None), _cells(case, 0, p), _cells(case, 1, q), inside)
                at = (slice(None), p, q, outside)
                y[at] = np.tensordot(padded[patch], f[..., outside], 3)
                dx[patch] += np.tensordot(g[at], f[..., outside], (1, 3))
                df[..., outside] += np.tensordot(padded[patch], g[at], (0, 0))
    if kind == "forward":
        return _back(case, y)
    if kind == "filter":
        return df.reshape(case.filter_shape)
    return _back(case, dx[:, top : top + case.size[0], left : left + case.size[1], :])


def _cells(case: Case, axis: int, position: int) -> slice:
    _, window, stride, dilation, _ = case.axis(axis)
    start = position * stride
    return slice(start, start + dilation * (window - 1) + 1, dilation)


def _nhwc(case: Case, array: Any) -> Any:
    return array if case.data_format == "NHWC" else np.moveaxis(array, 1, -1)


def _back(case: Case, array: Any) -> Any:
    return array if case.data_format == "NHWC" else np.moveaxis(array, -1, 1)
