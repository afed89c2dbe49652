"""Plain text for people and machines: words in columns, and values JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any


def aligned(lines: Sequence[Sequence[str]], left: Iterable[int] = (0,)) -> str:
    """Pad cells into columns: those numbered in `left` are words and start in line, the others are numbers.

    >>> print(aligned([["op", "ms"], ["forward", "1.25"]]))
    op         ms
    forward  1.25
    """
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    words = set(left)
    padded = (
        (
            cell.ljust(w) if at in words else cell.rjust(w)
            for at, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )
    return "\n".join("  ".join(line).rstrip() for line in padded)


def finite(value: Any) -> Any:
    """Replace numbers that JSON cannot hold.

    >>> finite({"a": (1.0, float("nan"))})
    {'a': [1.0, None]}
    """
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
