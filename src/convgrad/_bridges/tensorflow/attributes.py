"""Settings of the corridor as the attributes of an op."""

from __future__ import annotations

import functools
from typing import Any

from ..._problem.convolution import Settings

NAMES = ("strides", "padding", "explicit_paddings", "data_format", "dilations")
"""In the order of `Attrs`."""
Attrs = tuple[list[int], str, list[int], str, list[int]]


@functools.lru_cache(maxsize=1024)
def attrs_of(settings: Settings) -> Attrs:
    """Return settings as an op's attributes.

    >>> attrs_of(Settings((2, 2), (1, 1), ((0, 1), (2, 3)), "NHWC"))
    ([1, 2, 2, 1], 'EXPLICIT', [0, 0, 0, 1, 2, 3, 0, 0], 'NHWC', [1, 1, 1, 1])
    """

    def four(pair: tuple[int, int]) -> list[int]:
        return [1, *pair, 1] if settings.data_format == "NHWC" else [1, 1, *pair]

    padding: Any = settings.padding
    explicit: list[int] = []
    if not isinstance(padding, str):
        rows, cols = padding
        explicit = [0, 0, *rows, *cols, 0, 0]
        if settings.data_format == "NCHW":
            explicit = [0, 0, 0, 0, *rows, *cols]
        padding = "EXPLICIT"
    layout = settings.data_format
    return four(settings.strides), padding, explicit, layout, four(settings.dilations)
