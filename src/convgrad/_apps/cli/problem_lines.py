"""Problems as verbs take them: lines of text, layers, and files of both, behind an @.

How a line reads stands in `_problem/text.py`. One word of a layer, such as 8x56x56x144k3s2, is its three operations.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from pathlib import Path

from ..._base import files, headroom
from ..._base.errors import AllocationError
from ..._problem import layer_text
from ..._problem.text import Line, parse, parse_lines, write
from .verb import Refusal

FORMS = "a problem in one line such as 'conv2d 8x28x28x64 3x3x64x64 strides=2', a layer, or @FILE with lines of both"
_LARGEST_FILE = 64 << 20
"""Bytes; half a million lines."""


def is_line(word: str) -> bool:
    """Whether a word of the command line is a whole problem, or several, and not an operation's name.

    >>> [is_line(word) for word in ("conv2d 1x4x4x1 3x3x1x1", "@mine.txt", "8x56x56x144k3s2", "conv2d")]
    [True, True, True, False]
    """
    return len(word.split()) > 1 or word.startswith("@") or layer_text.looks_like(word)


def is_setting(word: str) -> bool:
    """Whether a word is key=value, as lines have them."""
    return re.match(r"[A-Za-z_]+=", word) is not None


def read(texts: Sequence[str]) -> list[Line]:
    """Read what was given, each problem once; a file that cannot be read, or says nothing, is refused."""
    found: dict[object, Line] = {}
    for text in texts:
        lines = _of_file(Path(text[1:])) if text.startswith("@") else parse(text)
        if not lines:
            raise Refusal(f"{text!r} holds no problem; there must be {FORMS}")
        for line in lines:
            found.setdefault(line.problem, line)
    return list(found.values())


def _of_file(path: Path) -> list[Line]:
    try:
        with files.open_regular(path) as stream:
            data = stream.read(_LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Refusal(f"cannot read problems from {str(path)!r}: {reason}") from None
    if len(data) > _LARGEST_FILE:
        raise Refusal(
            f"cannot read problems from {str(path)!r}: it has more than {_LARGEST_FILE:,} bytes"
        )
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Refusal(
            f"cannot read problems from {str(path)!r}: it is not text, {error.reason}"
        ) from None
    return parse_lines(text, str(path))


def check_memory(lines: Sequence[Line]) -> None:
    """Refuse a problem whose arrays no memory holds, before they are made."""
    for line in lines:
        problem = line.problem
        shapes = (problem.input_shape, problem.filter_shape, problem.output_shape)
        nbytes = 1 + 8 * sum(map(prod, shapes))  # they are judged in float64
        try:
            headroom.ask(nbytes, "")
        except AllocationError:
            raise Refusal(
                f"{write(problem)}: there is no memory for its {nbytes / 1e9:,.1f} GB"
            ) from None
