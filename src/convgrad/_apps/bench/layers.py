"""One convolution of a network: its text form, its sizes, and how much work and traffic each operation on it is.

`_problem.layer_text` says how its text reads: ``8x56x56x144k3s2`` is a depthwise layer, ``8x56x56x64k1o256`` a dense
one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from ..._base.dtypes import FLOATING
from ..._problem import geometry, layer_text
from ..._problem.geometry import Axis
from ..._problem.layer_text import Padding, Pair

OPS = ("fwd", "dx", "dw")
LAYOUTS = ("NHWC", "NCHW")
DTYPES = {row.name: row for row in sorted(FLOATING, key=lambda row: row.itemsize < 4)}


@dataclass(frozen=True)
class Layer:
    """A forward convolution; its two gradients have the same sizes."""

    batch: int
    height: int
    width: int
    channels: int
    kernel_h: int
    kernel_w: int
    stride: int | Pair = 1
    """One number where rows and columns agree; `strides` has both in any case."""
    dilation: int | Pair = 1
    multiplier: int = 1
    """Depthwise only: filters per input channel."""
    outputs: int = 0
    """Dense only: output channels; 0 means depthwise."""
    groups: int = 1
    """Dense only."""
    padding: Padding = "SAME"
    """The word where one means the same as the pads: some peers know nothing but words."""
    labels: tuple[str, ...] = ()
    """Which networks have this layer; the first one is part of the name."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "stride", _alike(self.stride))
        object.__setattr__(self, "dilation", _alike(self.dilation))
        numbers = (self.batch, self.height, self.width, self.channels, self.kernel_h, self.kernel_w)
        if min(*numbers, *self.strides, *self.dilations, self.multiplier, self.groups) < 1:
            raise ValueError(f"{self.text}: every size must be at least 1")
        if self.is_dense and (self.channels % self.groups or self.outputs % self.groups):
            raise ValueError(f"{self.text}: groups must divide input and output channels")
        if self.is_dense and self.multiplier != 1:
            raise ValueError(f"{self.text}: `m` is for depthwise problems, `o` for dense ones")
        if not self.is_dense and self.groups != 1:
            raise ValueError(f"{self.text}: `g` needs `o`, the number of output channels")
        if min(self.out_h, self.out_w) < 1:
            raise ValueError(f"{self.text}: the window is larger than the image")
        if not isinstance(self.padding, str):
            self._name_pads()

    def _name_pads(self) -> None:
        """Say SAME or VALID where that gives the same pads and sizes."""
        axes = (self.rows, self.cols)
        words: tuple[Literal["SAME", "VALID"], ...] = ("SAME", "VALID")
        for word in words:
            if axes == tuple(geometry.solve(*axis[:4], word) for axis in axes):
                object.__setattr__(self, "padding", word)
                return

    @property
    def is_dense(self) -> bool:
        return self.outputs > 0

    @property
    def text(self) -> str:
        """The canonical text without label: what `parse` takes back."""
        window = f"k{self.kernel_h}" + (
            f"x{self.kernel_w}" if self.kernel_w != self.kernel_h else ""
        )
        parts = [f"{self.height}x{self.width}x{self.channels}", window, f"s{short(self.strides)}"]
        parts += [f"d{short(self.dilations)}"] if self.dilations != (1, 1) else []
        parts += [f"m{self.multiplier}"] if self.multiplier > 1 else []
        parts += [f"o{self.outputs}"] if self.is_dense else []
        parts += [f"g{self.groups}"] if self.groups > 1 else []
        parts += ["v"] if self.padding == "VALID" else []
        if not isinstance(self.padding, str):
            parts.append("p" + "x".join(str(pad) for pair in self.padding for pad in pair))
        return "".join([*parts, f"b{self.batch}"])

    @property
    def name(self) -> str:
        return f"{self.labels[0]}:{self.text}" if self.labels else self.text

    @property
    def strides(self) -> Pair:
        return _both(self.stride)

    @property
    def dilations(self) -> Pair:
        return _both(self.dilation)

    @property
    def rows(self) -> Axis:
        return self._axis(0, self.height, self.kernel_h)

    @property
    def cols(self) -> Axis:
        return self._axis(1, self.width, self.kernel_w)

    @property
    def pads(self) -> tuple[Pair, Pair]:
        """((top, bottom), (left, right)); SAME puts the odd cell at the bottom and right."""
        rows, cols = self.rows, self.cols
        return (rows.before, rows.after), (cols.before, cols.after)

    @property
    def out_h(self) -> int:
        return self.rows.out

    @property
    def out_w(self) -> int:
        return self.cols.out

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
            rows, cols = _taps_inside(self.rows), _taps_inside(self.cols)
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

    def _axis(self, which: int, size: int, window: int) -> Axis:
        padding = self.padding if isinstance(self.padding, str) else self.padding[which]
        return geometry.solve(size, window, self.strides[which], self.dilations[which], padding)


def _both(step: int | Pair) -> Pair:
    return (step, step) if isinstance(step, int) else step


def _alike(step: int | Pair) -> int | Pair:
    rows, cols = _both(step)
    return rows if rows == cols else (rows, cols)


def short(pair: Pair) -> str:
    """Write one number for two that agree."""
    return f"{pair[0]}" if pair[0] == pair[1] else f"{pair[0]}x{pair[1]}"


def _taps_inside(axis: Axis) -> int:
    starts = (p * axis.stride - axis.before for p in range(axis.out))
    return sum(0 <= at + r * axis.dilation < axis.size for at in starts for r in range(axis.window))


def _arrange(layout: str, n: int, h: int, w: int, c: int) -> tuple[int, int, int, int]:
    return (n, h, w, c) if layout == "NHWC" else (n, c, h, w)


def parse(text: str) -> Layer:
    """Read a layer from its text form.

    >>> parse("8x56x56x144k3s2").name
    '56x56x144k3s2b8'
    >>> parse("rn50:56x56x64k1o256b8").filter_shape
    (1, 1, 64, 256)
    """
    found = layer_text.parse(text)
    return Layer(
        found.batch,
        found.height,
        found.width,
        found.channels,
        *found.window,
        stride=found.strides,
        dilation=found.dilations,
        multiplier=found.multiplier,
        outputs=found.outputs,
        groups=found.groups,
        padding=found.padding,
        labels=(found.label,) if found.label else (),
    )


def deduplicate(layers: Iterable[Layer]) -> tuple[Layer, ...]:
    """Keep the first of equal layers and let it carry the labels of all."""
    merged: dict[Layer, tuple[str, ...]] = {}
    for layer in layers:
        bare = replace(layer, labels=())
        merged[bare] = tuple(dict.fromkeys((*merged.get(bare, ()), *layer.labels)))
    return tuple(replace(bare, labels=labels) for bare, labels in merged.items())
