"""Pictures of channels: who is added into whom, found by sending 1 through one channel at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from svg_picture import COLOURS, Picture

from convgrad import reference


def links(layer: Callable[[np.ndarray], np.ndarray], channels: int) -> list[tuple[int, int]]:
    """Return the (input channel, output channel) pairs a layer joins."""
    found = [layer(np.eye(channels)[c].reshape(1, 1, 1, channels)).ravel() for c in range(channels)]
    return [(c, k) for c, row in enumerate(found) for k, value in enumerate(row) if value]


def dense(depth: int, out: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: reference.conv2d(x, np.ones((1, 1, depth, out)), 1, "VALID")


def depthwise(channels: int, multiplier: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: reference.depthwise_conv2d(
        x, np.ones((1, 1, channels, multiplier)), 1, "VALID"
    )


Column = tuple[str, int, Callable[[int], str], Callable[[int], str]]
"""Heading, number of channels, label and colour of each."""


class Channels:
    """Columns of channels with lines between them."""

    unit, pitch = 26, 34

    def __init__(self, picture: Picture, x: int, y: int, tallest: int) -> None:
        self.picture, self.x, self.y, self.tallest = picture, x, y, tallest

    def place(self, count: int, channel: int) -> int:
        """Return the top of a channel; columns are centred on each other."""
        return self.y + (self.tallest - count) * self.pitch // 2 + channel * self.pitch

    def draw(
        self, columns: Sequence[Column], joints: Sequence[list[tuple[int, int]]], gap: int = 120
    ) -> None:
        for position, pairs in enumerate(joints):
            x = self.x + position * gap
            (_, left, _, paint), (_, right, _, _) = columns[position : position + 2]
            for a, b in pairs:
                self.picture.line(
                    x + self.unit,
                    self.place(left, a) + self.unit / 2,
                    x + gap,
                    self.place(right, b) + self.unit / 2,
                    f"{paint(a)}s",
                )
        for position, (heading, count, label, paint) in enumerate(columns):
            x = self.x + position * gap
            self.picture.text(x + self.unit / 2, self.y - 12, heading, "mid")
            for channel in range(count):
                y = self.place(count, channel)
                self.picture.rect(x, y, self.unit, self.unit, paint(channel))
                self.picture.text(x + self.unit / 2, y + 18, label(channel), "on")


def channel_kinds() -> str:
    """Dense, grouped and depthwise side by side."""
    title = "Which channels are added into which"
    picture = Picture()
    picture.text(16, 28, title, "title")
    for position, (name, depth, out, layer) in enumerate(
        (
            ("dense: filter [kh, kw, 4, 4]", 4, 4, dense(4, 4)),
            ("2 groups: filter [kh, kw, 2, 4]", 2, 4, dense(2, 4)),
            ("depthwise: filter [kh, kw, 4, 1]", 1, 4, depthwise(4, 1)),
        )
    ):
        x = 36 + position * 250
        picture.text(x - 12, 58, name, "label")
        chart = Channels(picture, x + 10, 94, 4)
        chart.draw(
            [
                ("input", 4, str, lambda c, depth=depth: COLOURS[c // depth]),
                ("output", out, str, lambda k, depth=depth: COLOURS[k // depth]),
            ],
            [links(layer, 4)],
        )
    return picture.finish(36 + 3 * 250, 94 + 4 * Channels.pitch + 14, title)


def depthwise_channels(backwards: bool) -> str:
    channels, multiplier = 3, 2
    title = (
        "A depthwise input gradient adds M channels"
        if backwards
        else "A depthwise convolution with multiplier M = 2"
    )
    picture = Picture()
    picture.text(16, 28, title, "title")
    count = channels * multiplier
    picture.text(
        16,
        47,
        "channel c of dx adds channels c*M to c*M + M-1 of out_backprop"
        if backwards
        else "channel c of the input makes channels c*M to c*M + M-1 of the output",
        "note",
    )
    pairs = links(depthwise(channels, multiplier), channels)
    near: Column = ("dx" if backwards else "input", channels, lambda c: f"{c}", COLOURS.__getitem__)
    far: Column = (
        "out_backprop" if backwards else "output",
        count,
        lambda k: f"{k}",
        lambda k: COLOURS[k // multiplier],
    )
    chart = Channels(picture, 74, 96, count)
    if backwards:
        chart.draw([far, near], [[(k, c) for c, k in pairs]], gap=190)
    else:
        chart.draw([near, far], [pairs], gap=190)
    return picture.finish(470, 96 + count * Channels.pitch + 12, title)


def separable_channels() -> str:
    title = "A separable convolution: window first, channels after"
    picture = Picture()
    picture.text(16, 28, title, "title")
    picture.text(
        16, 47, "2 channels, multiplier 2, then a 1x1 convolution from 4 channels to 3", "note"
    )
    chart = Channels(picture, 60, 96, 4)
    chart.draw(
        [
            ("input", 2, str, COLOURS.__getitem__),
            ("depthwise", 4, str, lambda k: COLOURS[k // 2]),
            ("output", 3, str, lambda k: "plain"),
        ],
        [links(depthwise(2, 2), 2), links(dense(4, 3), 4)],
        gap=160,
    )
    return picture.finish(480, 96 + 4 * Channels.pitch + 12, title)
