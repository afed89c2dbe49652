"""A layer of a network as one word, which stands for its three operations.

A layer reads ``[label:][N x]HxWxC k<window> [s<stride>] [d<dilation>] [m<multiplier>] [o<outputs>] [g<groups>]
[v | p<pads>] [b<batch>]`` without blanks: ``8x56x56x144k3s2`` and ``56x56x144k3s2b8`` are the same depthwise layer.
With ``o`` it is a dense (or grouped) one: ``8x56x56x64k1o256``. Window, stride and dilation may differ between rows and
columns: ``k1x7``, ``s2x1``. ``v`` means VALID padding, ``p`` pads: one number for all sides, two (rows, columns) or
four (top, bottom, left, right); SAME otherwise.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from .._base.errors import ArgumentError, shown
from .geometry import Pads

Pair = tuple[int, int]
Padding = Literal["SAME", "VALID"] | tuple[Pads, Pads]

_REST = r"[sd]\d+(?:x\d+)?|[mogb]\d+|p\d+(?:x\d+(?:x\d+x\d+)?)?|v"
_TEXT = re.compile(
    r"(?:(?P<label>[a-z0-9_+-]+):)?(?P<sizes>\d+(?:x\d+){2,3})k(?P<kh>\d+)(?:x(?P<kw>\d+))?"
    rf"(?P<rest>(?:{_REST})*)",
    re.ASCII,
)
_LONGEST_NUMBER = 20
"""Digits; sizes of more are refused before Python refuses to read them."""


class LayerText(NamedTuple):
    """What the word says; whether such a layer exists is for the reader to find out."""

    label: str
    batch: int
    height: int
    width: int
    channels: int
    window: Pair
    strides: Pair
    dilations: Pair
    multiplier: int
    """Depthwise only: filters per input channel."""
    outputs: int
    """Dense only: output channels; 0 means depthwise."""
    groups: int
    """Dense only."""
    padding: Padding


def looks_like(word: str) -> bool:
    """Whether a word is meant as a layer: it has sizes and a window, behind a label or not.

    >>> looks_like("8x56x56x144k3z2"), looks_like("rn50:56x56x64k1"), looks_like("conv2d")
    (True, True, False)
    """
    return re.match(r"[\dx]+k", word.lower().rpartition(":")[2], re.ASCII) is not None


def parse(text: str) -> LayerText:
    """Read a layer from its text form; `ArgumentError` says what is wrong with it.

    >>> parse("8x56x56x144k3s2x1").strides, parse("rn50:56x56x64k1o256p1b8").padding
    ((2, 1), ((1, 1), (1, 1)))
    """
    match = _TEXT.fullmatch(text.strip().lower())
    if match is None:
        raise ArgumentError(
            f"cannot read the problem {shown(text)}: {_complaint(text.strip().lower())}; write 8x56x56x144k3s2 (batch, "
            "height, width, channels, window, stride), or 8x56x56x64k3s1o128 for a dense one with 128 outputs"
        )
    if any(len(number) > _LONGEST_NUMBER for number in re.findall(r"\d+", text)):
        raise ArgumentError(
            f"cannot read the problem {shown(text)}: numbers must have at most {_LONGEST_NUMBER} digits"
        )
    sizes = [int(n) for n in match["sizes"].split("x")]
    values: dict[str, tuple[int, ...]] = {}
    for word in re.findall(_REST, match["rest"]):
        if word[0] in values:
            raise ArgumentError(f"{text}: `{word[0]}` is given twice")
        values[word[0]] = tuple(int(n) for n in word[1:].split("x")) if word != "v" else ()
    if len(sizes) == 4 and "b" in values:
        raise ArgumentError(
            f"{text}: the batch is given twice, as the first of four sizes and as `b`"
        )
    if values.get("o") == (0,):
        raise ArgumentError(f"{text}: `o`, the number of output channels, must be at least 1")
    if "v" in values and "p" in values:
        raise ArgumentError(f"{text}: `v`, no padding, and `p`, pads, cannot both be given")
    batch = sizes.pop(0) if len(sizes) == 4 else values.get("b", (1,))[0]
    height, width, channels = sizes
    return LayerText(
        match["label"] or "",
        batch,
        height,
        width,
        channels,
        (int(match["kh"]), int(match["kw"] or match["kh"])),
        strides=_pair(values.get("s", (1,))),
        dilations=_pair(values.get("d", (1,))),
        multiplier=values.get("m", (1,))[0],
        outputs=values.get("o", (0,))[0],
        groups=values.get("g", (1,))[0],
        padding="VALID" if "v" in values else _pads(values["p"]) if "p" in values else "SAME",
    )


def _pair(numbers: tuple[int, ...]) -> Pair:
    return numbers[0], numbers[-1]


def _pads(numbers: tuple[int, ...]) -> tuple[Pads, Pads]:
    if len(numbers) == 4:
        top, bottom, left, right = numbers
        return (top, bottom), (left, right)
    rows, cols = _pair(numbers)
    return (rows, rows), (cols, cols)


def _complaint(text: str) -> str:
    """Say what is wrong with a text that `parse` cannot read.

    >>> _complaint("8x56x56x144"), _complaint("56x56k3"), _complaint("56x56x8k3z2")
    ('it has no window, such as k3', 'it needs 3 or 4 sizes before the window, not 2', "'z2' means nothing")
    >>> _complaint("56x56x8k3p1x2x3")
    '`p` takes 1, 2 or 4 numbers, not 3'
    """
    sizes, window, rest = text.rpartition(":")[2].partition("k")
    if not re.fullmatch(r"\d+(x\d+)*", sizes, re.ASCII):
        return f"{shown(sizes)} is not a list of sizes with x between them" if sizes else "it has no sizes"  # fmt: skip
    if not window:
        return "it has no window, such as k3"
    count = sizes.count("x") + 1
    if count not in (3, 4):
        return f"it needs 3 or 4 sizes before the window, not {count}"
    after = re.match(rf"(\d+(x\d+)?)?(?:{_REST})*", rest, re.ASCII)
    left = rest[after.end() :] if after else rest
    if left.startswith("x") and (more := re.search(r"([sdmogbp])([\dx]+)$", rest, re.ASCII)):
        given = more[2].strip("x").count("x") + 1
        wanted = {"p": "1, 2 or 4 numbers", "s": "1 or 2 numbers", "d": "1 or 2 numbers"}
        return f"`{more[1]}` takes {wanted.get(more[1], 'one number')}, not {given}"
    return f"{shown(left)} means nothing" if left else "its window has no size"
