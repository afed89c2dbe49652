"""Convolution problems for tests: a description, generators, and data to run them on.

The geometry here is written apart from the package's own, by counting windows instead of dividing, so that a wrong
formula cannot agree with itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

import convgrad
from convgrad._apps.check.draws import Each, Families, problem
from convgrad._apps.check.draws import pads as pads_of

DTYPES = {
    "half": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}
NUMPY = {**DTYPES, "int32": np.dtype(np.int32)}
"""What a case may be of: int32 too, which only the dense forward and input gradient take."""
UNITS = {"half": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
ACCUMULATOR_UNITS = {name: 2.0**-53 if name == "float64" else 2.0**-24 for name in UNITS}

Padding = str | tuple[tuple[int, int], tuple[int, int]]


def window_count(size: int, window: int, stride: int, dilation: int, padding: Any) -> int | None:
    """Count the windows along an axis, or return None where TensorFlow says the size would be negative."""
    if padding == "SAME":
        return len(range(0, size, stride))
    before, after = (0, 0) if padding == "VALID" else padding
    padded, reach = size + before + after, dilation * (window - 1) + 1
    if reach - padded >= 2 * stride:
        return None
    return sum(1 for start in range(0, max(padded, 0) + 1, stride) if start + reach <= padded)


def pads(size: int, window: int, stride: int, dilation: int, padding: Any) -> tuple[int, int]:
    """Return the cells added before and after, by growing the image until the last window fits."""
    if padding == "VALID":
        return 0, 0
    if padding != "SAME":
        before, after = padding
        return before, after
    total, last = 0, (len(range(0, size, stride)) - 1) * stride
    while last + dilation * (window - 1) + 1 > size + total:
        total += 1
    return total // 2, (total + 1) // 2


@dataclass(frozen=True)
class Case:
    """One geometry; it stands for three problems: forward, input gradient, filter gradient."""

    depthwise: bool
    batch: int
    size: tuple[int, int]
    groups: int
    group_in: int
    group_out: int
    window: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    padding: Padding
    data_format: str = "NHWC"
    dtype: str = "float32"

    def axis(self, which: int) -> tuple[int, int, int, int, Any]:
        padding = self.padding if isinstance(self.padding, str) else self.padding[which]
        return (
            self.size[which],
            self.window[which],
            self.strides[which],
            self.dilations[which],
            padding,
        )

    @property
    def legal(self) -> bool:
        return None not in (window_count(*self.axis(0)), window_count(*self.axis(1)))

    @property
    def out_size(self) -> tuple[int, int]:
        rows, cols = window_count(*self.axis(0)), window_count(*self.axis(1))
        assert rows is not None and cols is not None
        return rows, cols

    @property
    def input_shape(self) -> tuple[int, ...]:
        return self.image(self.size, self.groups * self.group_in)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return self.image(self.out_size, self.groups * self.group_out)

    @property
    def filter_shape(self) -> tuple[int, ...]:
        if self.depthwise:
            return (*self.window, self.groups, self.group_out)
        return (*self.window, self.group_in, self.groups * self.group_out)

    @property
    def is_empty(self) -> bool:
        """Whether any of its three arrays has no element."""
        return 0 in (*self.input_shape, *self.filter_shape, *self.output_shape)

    def image(self, size: tuple[int, int], channels: int) -> tuple[int, ...]:
        if self.data_format == "NHWC":
            return (self.batch, *size, channels)
        return (self.batch, channels, *size)

    def terms(self, kind: str) -> int:
        """How many products at most meet in one number of the result."""
        taps = self.window[0] * self.window[1]
        if kind == "forward":
            return taps * self.group_in
        if kind == "input":
            return taps * self.group_out
        return self.batch * self.out_size[0] * self.out_size[1]

    @property
    def products(self) -> int:
        """Multiplications of any of the three sums, taps in the padding included."""
        return prod(self.output_shape) * self.terms("forward")


KINDS = ("forward", "input", "filter")


_SMALL = {
    "batch": range(1, 4),
    "size": Each(range(1, 10)),
    "window": Each(range(1, 6)),
    "strides": Each(range(1, 5)),
    "dilations": Each(range(1, 4)),
    "padding": ("SAME", "VALID", pads_of(range(7))),
    "data_format": ("NHWC", "NCHW"),
    "dtype": tuple(DTYPES),
}
DEPTHWISE = _SMALL | {
    "depthwise": True,
    "groups": range(1, 6),
    "group_in": 1,
    "group_out": (1, 1, 2, 3),
}
DENSE = _SMALL | {
    "depthwise": False,
    "groups": (1, 1, 2, 3),
    "group_in": range(1, 5),
    "group_out": range(1, 5),
}
SMALL: Families = ((0.5, DEPTHWISE), (0.5, DENSE))


def random_case(rng: np.random.Generator, families: Families = SMALL, **fixed: Any) -> Case:
    """Draw a legal small case; remainders, skipped cells, wide pads and empty axes all turn up."""
    return problem(rng, families, Case, empty=0.06, **fixed)


@dataclass(frozen=True)
class Data:
    """Operands of the three problems of a case."""

    x: Any
    f: Any
    g: Any


def whole_numbers(case: Case, rng: np.random.Generator, largest: int = 4) -> Data:
    """Draw small whole numbers, exact in every dtype; all sums stay below 2**24, so float32 adds them exactly."""
    dtype = NUMPY[case.dtype]
    x, f, g = (
        rng.integers(-largest, largest + 1, shape).astype(dtype)
        for shape in (case.input_shape, case.filter_shape, case.output_shape)
    )
    return Data(x, f, g)


def normal(case: Case, rng: np.random.Generator) -> Data:
    """Draw normal numbers, rounded to the case's dtype."""
    dtype = DTYPES[case.dtype]
    x, f, g = (
        rng.standard_normal(shape).astype(dtype)
        for shape in (case.input_shape, case.filter_shape, case.output_shape)
    )
    return Data(x, f, g)


def run(case: Case, kind: str, data: Data, door: str = "friendly", **more: Any) -> Any:
    """Call the public function for one problem of a case, through one of the doors that offer it."""
    module, settings = door_settings(case, door)
    name = "depthwise_conv2d" if case.depthwise else "conv2d"
    if door == "raw":
        name = "DepthwiseConv2dNative" if case.depthwise else "Conv2D"
        if kind == "forward":
            return getattr(module, name)(input=data.x, filter=data.f, **settings)
        if kind == "input":
            return getattr(module, name + "BackpropInput")(
                input_sizes=case.input_shape, filter=data.f, out_backprop=data.g, **settings
            )
        return getattr(module, name + "BackpropFilter")(
            input=data.x, filter_sizes=case.filter_shape, out_backprop=data.g, **settings
        )
    if kind == "forward":
        if door == "v1" and case.depthwise:
            name = "depthwise_conv2d_native"
        return getattr(module, name)(data.x, data.f, **settings, **more)
    if kind == "input":
        sizes = case.input_shape
        return getattr(module, name + "_backprop_input")(sizes, data.f, data.g, **settings, **more)
    sizes = case.filter_shape
    return getattr(module, name + "_backprop_filter")(data.x, sizes, data.g, **settings, **more)


def door_settings(case: Case, door: str) -> tuple[Any, dict[str, Any]]:
    """Return a module and the case's settings in the form that module takes."""
    if door in ("friendly", "reference"):
        return (convgrad if door == "friendly" else convgrad.reference), {
            "strides": case.strides,
            "dilations": case.dilations,
            "padding": case.padding,
            "data_format": case.data_format,
        }
    words = isinstance(case.padding, str)
    four: Any = [(0, 0), *case.padding, (0, 0)]
    if case.data_format == "NCHW":
        four = [(0, 0), (0, 0), *case.padding]
    settings: dict[str, Any] = {
        "strides": _four(case.strides, case.data_format),
        "dilations": _four(case.dilations, case.data_format),
        "padding": case.padding if words else four,
        "data_format": case.data_format,
    }
    if door == "v1":
        return convgrad.compat.v1.nn, settings
    assert door == "raw", door
    if not words:
        settings |= {
            "padding": "EXPLICIT",
            "explicit_paddings": [pad for pair in four for pad in pair],
        }
    return convgrad.raw_ops, settings


def _four(pair: tuple[int, int], data_format: str) -> list[int]:
    return [1, *pair, 1] if data_format == "NHWC" else [1, 1, *pair]


DOORS = ("friendly", "v1", "raw")
