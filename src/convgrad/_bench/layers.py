"""One convolution of a network: its text form, its sizes, and how much work and traffic each operation on it is.

A layer reads ``[label:][N x]HxWxC k<window> [s<stride>] [d<dilation>] [m<multiplier>] [o<outputs>] [g<groups>]
[v] [b<batch>]`` without blanks: ``8x56x56x144k3s2`` and ``56x56x144k3s2b8`` are the same depthwise layer. With
``o`` it is a dense (or grouped) one: ``8x56x56x64k1o256``. ``v`` means VALID padding; SAME otherwise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from .._dtypes import BFLOAT16, DOUBLE, FLOAT, HALF

OPS = ("fwd", "dx", "dw")
LAYOUTS = ("NHWC", "NCHW")
DTYPES = {row.name: row for row in (FLOAT, DOUBLE, HALF, BFLOAT16)}

_TEXT = re.compile(
    r"(?:(?P<label>[a-z0-9_+-]+):)?(?P<sizes>\d+(?:x\d+){2,3})k(?P<kh>\d+)(?:x(?P<kw>\d+))?(?P<rest>(?:[sdmogb]\d+|v)*)",
)


@dataclass(frozen=True)
class Layer:
    """A forward convolution; its two gradients have the same sizes."""

    batch: int
    height: int
    width: int
    channels: int
    kernel_h: int
    kernel_w: int
    stride: int = 1
    dilation: int = 1
    multiplier: int = 1
    """Depthwise only: filters per input channel."""
    outputs: int = 0
    """Dense only: output channels; 0 means depthwise."""
    groups: int = 1
    """Dense only."""
    padding: Literal["SAME", "VALID"] = "SAME"
    labels: tuple[str, ...] = ()
    """Which networks have this layer; the first one is part of the name."""

    def __post_init__(self) -> None:
        numbers = (self.batch, self.height, self.width, self.channels, self.kernel_h, self.kernel_w)
        if min(*numbers, self.stride, self.dilation, self.multiplier, self.groups) < 1:
            raise ValueError(f"{self.text}: every size must be at least 1")
        if self.is_dense and (self.channels % self.groups or self.outputs % self.groups):
            raise ValueError(f"{self.text}: groups must divide input and output channels")
        if self.is_dense and self.multiplier != 1:
            raise ValueError(f"{self.text}: `m` is for depthwise problems, `o` for dense ones")
        if not self.is_dense and self.groups != 1:
            raise ValueError(f"{self.text}: `g` needs `o`, the number of output channels")
        if min(self.out_h, self.out_w) < 1:
            raise ValueError(f"{self.text}: the window is larger than the image")

    @property
    def is_dense(self) -> bool:
        return self.outputs > 0

    @property
    def text(self) -> str:
        """The canonical text without label: what `parse` takes back."""
        window = f"k{self.kernel_h}" + (
            f"x{self.kernel_w}" if self.kernel_w != self.kernel_h else ""
        )
        parts = [f"{self.height}x{self.width}x{self.channels}", window, f"s{self.stride}"]
        parts += [f"d{self.dilation}"] if self.dilation > 1 else []
        parts += [f"m{self.multiplier}"] if self.multiplier > 1 else []
        parts += [f"o{self.outputs}"] if self.is_dense else []
        parts += [f"g{self.groups}"] if self.groups > 1 else []
        parts += ["v"] if self.padding == "VALID" else []
        return "".join([*parts, f"b{self.batch}"])

    @property
    def name(self) -> str:
        return f"{self.labels[0]}:{self.text}" if self.labels else self.text

    @property
    def pads(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """((top, bottom), (left, right)); SAME puts the odd cell at the bottom and right."""
        return self._pad(self.height, self.kernel_h), self._pad(self.width, self.kernel_w)

    @property
    def out_h(self) -> int:
        return self._out(self.height, self.kernel_h)

    @property
    def out_w(self) -> int:
        return self._out(self.width, self.kernel_w)

    @property
    def out_c(self) -> int:
        return self.outputs or self.channels * self.multiplier

    @property
    def group_count(self) -> int:
        """Groups in the general sense: a depthwise convolution has one per channel."""
        return self.groups if self.is_dense else self.channels

    @property
    def filter_shape(self) -> tuple[int, int, int, int]:
        window = (self.kernel_h, self.kernel_w)
        if self.is_dense:
            return (*window, self.channels // self.groups, self.outputs)
        return (*window, self.channels, self.multiplier)

    def input_shape(self, layout: str = "NHWC") -> tuple[int, int, int, int]:
        return _arrange(layout, self.batch, self.height, self.width, self.channels)

    def output_shape(self, layout: str = "NHWC") -> tuple[int, int, int, int]:
        return _arrange(layout, self.batch, self.out_h, self.out_w, self.out_c)

    def flops(self, *, effective: bool = True) -> int:
        """Multiplications and additions of any of the three operations.

        Effective flops leave out the taps that fall into the padding; nobody has to compute those.
        """
        rows, cols = self.out_h * self.kernel_h, self.out_w * self.kernel_w
        if effective:
            (top, _), (left, _) = self.pads
            rows = self._taps_inside(self.height, self.out_h, self.kernel_h, top)
            cols = self._taps_inside(self.width, self.out_w, self.kernel_w, left)
        return 2 * self.batch * rows * cols * self.out_c * (self.channels // self.group_count)

    def traffic(self, op: str, dtype: str) -> tuple[int, int]:
        """Bytes read and written by `op` if every array moves exactly once."""
        x, f, y = (
            math.prod(s) for s in (self.input_shape(), self.filter_shape, self.output_shape())
        )
        read, written = {"fwd": (x + f, y), "dx": (y + f, x), "dw": (x + y, f)}[op]
        itemsize = DTYPES[dtype].itemsize
        return read * itemsize, written * itemsize

    def with_batch(self, batch: int) -> Layer:
        return replace(self, batch=batch)

    def _out(self, size: int, window: int) -> int:
        if self.padding == "SAME":
            return -(-size // self.stride)
        return (size - (window - 1) * self.dilation - 1) // self.stride + 1

    def _pad(self, size: int, window: int) -> tuple[int, int]:
        if self.padding == "VALID":
            return 0, 0
        span = (window - 1) * self.dilation + 1
        total = max((self._out(size, window) - 1) * self.stride + span - size, 0)
        return total // 2, total - total // 2

    def _taps_inside(self, size: int, out: int, window: int, before: int) -> int:
        starts = (p * self.stride - before for p in range(out))
        return sum(0 <= at + r * self.dilation < size for at in starts for r in range(window))


def _arrange(layout: str, n: int, h: int, w: int, c: int) -> tuple[int, int, int, int]:
    return (n, h, w, c) if layout == "NHWC" else (n, c, h, w)


def parse(text: str) -> Layer:
    """Read a layer from its text form.

    >>> parse("8x56x56x144k3s2").name
    '56x56x144k3s2b8'
    >>> parse("rn50:56x56x64k1o256b8").filter_shape
    (1, 1, 64, 256)
    """
    match = _TEXT.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError(
            f"cannot read the problem {text!r}: {_complaint(text.strip().lower())}; write 8x56x56x144k3s2 (batch, "
            "height, width, channels, window, stride), or 8x56x56x64k3s1o128 for a dense one with 128 outputs"
        )
    sizes = [int(n) for n in match["sizes"].split("x")]
    rest = re.findall(r"([sdmogb])(\d+)|(v)", match["rest"])
    values: dict[str, int] = {}
    for letter, digits, valid in rest:
        if (letter or valid) in values:
            raise ValueError(f"{text}: `{letter or valid}` is given twice")
        values[letter or valid] = int(digits or 1)
    if len(sizes) == 4 and "b" in values:
        raise ValueError(f"{text}: the batch is given twice, as the first of four sizes and as `b`")
    if values.get("o") == 0:
        raise ValueError(f"{text}: `o`, the number of output channels, must be at least 1")
    batch = sizes.pop(0) if len(sizes) == 4 else values.get("b", 1)
    height, width, channels = sizes
    return Layer(
        batch,
        height,
        width,
        channels,
        int(match["kh"]),
        int(match["kw"] or match["kh"]),
        stride=values.get("s", 1),
        dilation=values.get("d", 1),
        multiplier=values.get("m", 1),
        outputs=values.get("o", 0),
        groups=values.get("g", 1),
        padding="VALID" if "v" in values else "SAME",
        labels=(match["label"],) if match["label"] else (),
    )


def _complaint(text: str) -> str:
    """Say what is wrong with a text that `parse` cannot read.

    >>> _complaint("8x56x56x144"), _complaint("56x56k3"), _complaint("56x56x8k3z2")
    ('it has no window, such as k3', 'it needs 3 or 4 sizes before the window, not 2', "'z2' means nothing")
    """
    sizes, window, rest = text.rpartition(":")[2].partition("k")
    if not re.fullmatch(r"\d+(x\d+)*", sizes):
        return f"{sizes!r} is no list of sizes with x between them" if sizes else "it has no sizes"
    if not window:
        return "it has no window, such as k3"
    count = sizes.count("x") + 1
    if count not in (3, 4):
        return f"it needs 3 or 4 sizes before the window, not {count}"
    after = re.match(r"(\d+(x\d+)?)?([sdmogb]\d+|v)*", rest)
    left = rest[after.end() :] if after else rest
    return f"{left!r} means nothing" if left else "its window has no size"


def deduplicate(layers: Iterable[Layer]) -> tuple[Layer, ...]:
    """Keep the first of equal layers and let it carry the labels of all."""
    merged: dict[Layer, tuple[str, ...]] = {}
    for layer in layers:
        bare = replace(layer, labels=())
        merged[bare] = tuple(dict.fromkeys((*merged.get(bare, ()), *layer.labels)))
    return tuple(replace(bare, labels=labels) for bare, labels in merged.items())
