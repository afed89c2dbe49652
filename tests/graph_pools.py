"""Poolings by hand: every window is listed, and its largest cell looked up."""

from __future__ import annotations

import numpy as np

import cases as convolutions
from graphs import whole

POOLS = (
    ((2, 5, 6, 3), (2, 2), (2, 2), "VALID", ()),
    ((1, 4, 5, 2), (3, 2), (1, 2), "SAME", ()),
    ((1, 5, 4, 1), (3, 3), (2, 1), "EXPLICIT", (0, 0, 1, 2, 0, 1, 0, 0)),
    ((0, 4, 4, 1), (2, 2), (1, 1), "VALID", ()),
    ((1, 2, 2, 1), (3, 3), (1, 1), "VALID", ()),
)


def pools(dtype, rng):
    """Yield images, windows of every output by hand, and attributes."""
    for shape, ksize, strides, padding, pads in POOLS:
        x = rng.permutation(np.arange(int(np.prod(shape))) % 120).astype(dtype).reshape(shape)
        sizes = [
            convolutions.window_count(
                shape[1 + at], ksize[at], strides[at], 1, _pads(padding, pads, at)
            )
            for at in (0, 1)
        ]
        before = [
            convolutions.pads(shape[1 + at], ksize[at], strides[at], 1, _pads(padding, pads, at))[0]
            for at in (0, 1)
        ]
        windows = {}
        for place in np.ndindex(shape[0], *sizes, shape[3]):
            n, row, col, c = place
            top, left = row * strides[0] - before[0], col * strides[1] - before[1]
            windows[place] = [
                (n, r, s, c)
                for r in range(top, top + ksize[0])
                for s in range(left, left + ksize[1])
                if 0 <= r < shape[1] and 0 <= s < shape[2]
            ]
        attrs = {
            "ksize": [1, *ksize, 1],
            "strides": [1, *strides, 1],
            "padding": padding,
            "explicit_paddings": list(pads),
        }
        yield x, (shape[0], *sizes, shape[3]), windows, attrs


def _pads(padding, pads, at):
    return padding if padding != "EXPLICIT" else pads[2 + 2 * at : 4 + 2 * at]


def both_layouts(arrays, attrs, expected):
    """Yield a case of pictures in both layouts."""
    yield arrays, attrs, expected
    turned = {
        name: [values[at] for at in (0, 3, 1, 2)] if name != "padding" else values
        for name, values in attrs.items()
        if name != "explicit_paddings"
    }
    pairs = [
        attrs["explicit_paddings"][at : at + 2]
        for at in range(0, len(attrs["explicit_paddings"]), 2)
    ]
    turned["explicit_paddings"] = [pad for at in (0, 3, 1, 2) for pad in pairs[at]] if pairs else []
    move = (0, 3, 1, 2)
    yield (
        [a.transpose(move).copy() for a in arrays],
        {**turned, "data_format": "NCHW"},
        expected.transpose(move),
    )


def max_pool(dtype, rng):
    for x, shape, windows, attrs in pools(dtype, rng):
        expected = np.zeros(shape, dtype)
        for place, cells in windows.items():
            expected[place] = max(x[cell] for cell in cells)
        yield from both_layouts([x], attrs, expected)


def max_pool_grad(dtype, rng):
    for x, shape, windows, attrs in pools(dtype, rng):
        y, expected, g = np.zeros(shape, dtype), np.zeros(x.shape), whole(rng, shape, dtype)
        for place, cells in windows.items():
            best = max(cells, key=lambda cell: x[cell])  # the first of equal ones
            y[place] = x[best]
            expected[best] += g[place]
        yield from both_layouts([x, y, g], attrs, expected.astype(dtype))


def max_pool_grad_grad(dtype, rng):
    for x, shape, windows, attrs in pools(dtype, rng):
        y, expected, g = np.zeros(shape, dtype), np.zeros(shape, dtype), whole(rng, x.shape, dtype)
        for place, cells in windows.items():
            best = max(cells, key=lambda cell: x[cell])
            y[place], expected[place] = x[best], g[best]
        yield from both_layouts([x, y, g], attrs, expected)
