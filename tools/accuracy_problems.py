"""The problems `accuracy.py` measures, and their operands: the same numbers in every process, from a seed."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from convgrad._base.dtypes import FLOATING

DTYPES = {row.name: row for row in FLOATING}
KINDS = ("forward", "input", "filter")
SUBNORMAL = {"half": -24, "bfloat16": -133, "float32": -149, "float64": -1074}
"""The exponent of the smallest number."""
SPECIAL = ("tiny inputs", "tiny results", "one NaN", "one Inf", "overflow")


@dataclass(frozen=True)
class Measurement:
    """One operation on one kind of data; square images and windows, SAME."""

    depthwise: bool
    batch: int
    side: int
    in_c: int
    out_c: int
    window: int
    stride: int
    kind: str
    dtype: str
    data: str = "normal"
    layout: str = "NHWC"

    @property
    def family(self) -> str:
        return "depthwise" if self.depthwise else "dense"

    @property
    def special(self) -> bool:
        """Whether the bits must be right, so that there is no error to measure."""
        return self.data in SPECIAL

    @property
    def function(self) -> str:
        name = "depthwise_conv2d" if self.depthwise else "conv2d"
        return (
            name
            + {"forward": "", "input": "_backprop_input", "filter": "_backprop_filter"}[self.kind]
        )

    @property
    def may_be_winograd(self) -> bool:
        plain = not self.depthwise and self.window == 3 and self.stride == 1
        return plain and self.dtype == "float32" and self.in_c >= 16

    @property
    def out_side(self) -> int:
        return -(-self.side // self.stride)

    @property
    def pads(self) -> tuple[int, int]:
        total = max(0, (self.out_side - 1) * self.stride + self.window - self.side)
        return total // 2, total - total // 2

    @property
    def input_shape(self) -> tuple[int, ...]:
        return self._image(self.side, self.in_c)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return self._image(self.out_side, self.out_c)

    @property
    def filter_shape(self) -> tuple[int, ...]:
        taps = (self.window, self.window)
        return (*taps, self.in_c, 1) if self.depthwise else (*taps, self.in_c, self.out_c)

    @property
    def shape_text(self) -> str:
        channels = f"x{self.in_c}" + (
            "" if self.depthwise or self.in_c == self.out_c else f"->{self.out_c}"
        )
        stride = f" /{self.stride}" if self.stride > 1 else ""
        layout = "" if self.layout == "NHWC" else f" {self.layout}"
        return f"{self.batch}x{self.side}x{self.side}{channels} {self.window}x{self.window}{stride}{layout}"

    def __str__(self) -> str:
        return f"{self.family} {self.kind} {self.dtype} {self.data} {self.shape_text}"

    def _image(self, side: int, channels: int) -> tuple[int, ...]:
        if self.layout == "NHWC":
            return (self.batch, side, side, channels)
        return (self.batch, channels, side, side)


def operands(problem: Measurement) -> tuple[Any, Any, Any]:
    """Return input, filter and output gradient; the three operations of a geometry share them."""
    name = repr(sorted({**asdict(problem), "kind": ""}.items()))
    rng = np.random.default_rng(
        int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")
    )
    shapes = (problem.input_shape, problem.filter_shape, problem.output_shape)
    x, f, g = _DATA[problem.data](problem, rng, shapes)
    dtype = DTYPES[problem.dtype].numpy
    with np.errstate(over="ignore", under="ignore"):
        return x.astype(dtype), f.astype(dtype), g.astype(dtype)


def _normal(problem: Measurement, rng: Any, shapes: Any) -> Any:
    return [rng.standard_normal(shape) for shape in shapes]


def _uniform(problem: Measurement, rng: Any, shapes: Any) -> Any:
    """All of one sign: rounding errors of a running sum do not cancel. Small enough for a half's range."""
    return [
        rng.random(shape) * scale for shape, scale in zip(shapes, (2.0**-9, 1.0, 1.0), strict=True)
    ]


def _ones(problem: Measurement, rng: Any, shapes: Any) -> Any:
    """Ones; times 2^-10 in half, where ten million are beyond the range."""
    scale = 2.0**-10 if problem.dtype == "half" else 1.0
    return [
        np.full(shapes[0], scale, np.float32),
        *(np.ones(shape, np.float32) for shape in shapes[1:]),
    ]


def _heavy(problem: Measurement, rng: Any, shapes: Any) -> Any:
    """Student's t with 2 degrees of freedom: the variance is infinite."""
    return [np.clip(rng.standard_t(2, shape), -200, 200) for shape in shapes]


def _cancel(problem: Measurement, rng: Any, shapes: Any) -> Any:
    """Every sum is of pairs that cancel to a millionth of their size, or to what the dtype can tell apart."""
    x, f, g = _normal(problem, rng, shapes)
    difference = max(1e-6, 4 * DTYPES[problem.dtype].unit)

    def nearly(values: Any) -> Any:
        return -values * (1 + difference * rng.standard_normal(values.shape))

    half = problem.batch // 2
    if problem.kind == "filter":
        x[half:], g[half:] = x[:half], nearly(g[:half])
    elif problem.kind == "forward":
        x[..., 1::2], f[:, :, 1::2] = x[..., ::2], nearly(f[:, :, ::2])
    else:
        g[..., 1::2], f[..., 1::2] = g[..., ::2], nearly(f[..., ::2])
    return x, f, g


def _whole(rng: Any, shapes: Any, exponents: tuple[int, int, int]) -> Any:
    drawn = (rng.integers(-4, 5, shape).astype(np.float64) for shape in shapes)
    return [np.ldexp(each, power) for each, power in zip(drawn, exponents, strict=True)]


def _tiny_inputs(problem: Measurement, rng: Any, shapes: Any) -> Any:
    """The operand of every operation that is not `f` or `g` alone is subnormal; the results are exact."""
    low = SUBNORMAL[problem.dtype]
    powers = {"forward": (low, 0, 0), "input": (0, low, 0), "filter": (0, 0, low)}[problem.kind]
    return _whole(rng, shapes, powers)


def _tiny_results(problem: Measurement, rng: Any, shapes: Any) -> Any:
    """Normal operands whose products are a few of the smallest numbers."""
    low = SUBNORMAL[problem.dtype]
    one, other = low // 2, low - low // 2
    powers = {"forward": (one, other, 0), "input": (0, one, other), "filter": (one, 0, other)}[
        problem.kind
    ]
    return _whole(rng, shapes, powers)


def _one_value(value: float) -> Any:
    def draw(problem: Measurement, rng: Any, shapes: Any) -> Any:
        x, f, g = _whole(rng, shapes, (0, 0, 0))
        x, f, g = np.abs(x) + 1, np.abs(f) + 1, np.abs(g) + 1  # Inf must not meet 0
        x[0, 3, 4, 1] = g[0, 3, 4, 1] = value
        return x, f, g

    return draw


def _overflow(problem: Measurement, rng: Any, shapes: Any) -> Any:
    """Sums on both sides of the largest number, of positive terms: no sum on the way is larger than the last."""
    top = {"half": 6, "bfloat16": 63, "float32": 63, "float64": 511}[problem.dtype]
    drawn = [np.abs(each) + 1 for each in _whole(rng, shapes, (0, 0, 0))]
    spread = [np.ldexp(each, rng.integers(-5, 1, (each.shape[0], 1, 1, 1))) for each in drawn]
    return [np.ldexp(each, top) for each in spread]


_DATA = {
    "normal": _normal,
    "uniform": _uniform,
    "ones": _ones,
    "heavy": _heavy,
    "cancel": _cancel,
    "tiny inputs": _tiny_inputs,
    "tiny results": _tiny_results,
    "one NaN": _one_value(np.nan),
    "one Inf": _one_value(np.inf),
    "overflow": _overflow,
}

SMALL = (8, 28, 64, 64, 3, 1)
DENSE = (
    SMALL,
    (8, 56, 128, 128, 3, 1),
    (32, 14, 256, 256, 3, 1),
    (8, 28, 256, 64, 1, 1),
    (8, 112, 3, 32, 7, 2),
)
DEPTHWISE = (
    SMALL,
    (8, 56, 128, 128, 3, 1),
    (32, 14, 256, 256, 3, 1),
    (8, 56, 96, 96, 7, 1),
    (32, 112, 32, 32, 3, 1),
)
NARROW = (SMALL, (8, 28, 256, 64, 1, 1), (8, 112, 3, 32, 7, 2), (8, 56, 96, 96, 7, 1))
"""Sizes measured in 16 bits too, where some frameworks take minutes for the others."""
WIDE = (SMALL,)
"""Sizes measured in float64 too: the exact result wants long doubles, which take ten times as long."""
LONG = (10, 1000, 2, 2, 3, 1)
"""Ten million terms in each number of the filter gradient."""


def _tables() -> list[Measurement]:
    found = []
    for dtype in ("float32", "half", "bfloat16", "float64"):
        for depthwise, sizes in ((False, DENSE), (True, DEPTHWISE)):
            for size in sizes:
                if dtype == "float32" or size in (WIDE if dtype == "float64" else NARROW):
                    found += [Measurement(depthwise, *size, kind, dtype) for kind in KINDS]
            if dtype == "float32":
                found += [
                    Measurement(depthwise, *SMALL, kind, dtype, layout="NCHW") for kind in KINDS
                ]
    return found


def _hard() -> list[Measurement]:
    found = []
    for data in ("ones", "uniform", "normal"):
        for dtype in ("float32", "half", "bfloat16"):
            found += [Measurement(each, *LONG, "filter", dtype, data) for each in (False, True)]
    for data in ("heavy", "cancel"):
        for dtype in ("float32", "half", "bfloat16"):
            for depthwise in (False, True):
                kinds = KINDS[2:] if data == "cancel" and depthwise else KINDS
                found += [Measurement(depthwise, *SMALL, kind, dtype, data) for kind in kinds]
    return found


TABLES = tuple(_tables())
HARD = tuple(_hard())
SPECIALS = tuple(
    Measurement(depthwise, 2, 9, 8, 8, 3, 1, kind, dtype, data)
    for data in SPECIAL
    for dtype in DTYPES
    for depthwise in (False, True)
    for kind in KINDS
)
