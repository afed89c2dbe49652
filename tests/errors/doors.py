"""Every public function as one row, with arguments for a small valid call: what the tables of mistakes start from.

The arrays hold small whole numbers, so that every sum is exact in every dtype and results can be compared bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import convgrad
from convgrad import nn, raw_ops, reference
from convgrad.compat.v1 import nn as v1

BATCH, HEIGHT, WIDTH, IN_C, OUT_C, MULTIPLIER = 2, 5, 6, 4, 6, 2
WINDOW = (3, 2)


@dataclass(frozen=True)
class Door:
    """A public function, how its arguments are called, and which forms it takes."""

    id: str
    function: Callable[..., Any]
    op: str
    """conv2d, depthwise_conv2d, their *_backprop_*, conv2d_transpose or separable_conv2d."""
    forms: str
    """friendly, flexible, strict, pair (strict strides, 2 dilations) or raw."""
    like: bool = False
    """Whether arrays stand where sizes are usual (the V2 raw ops)."""

    @property
    def shown(self) -> str:
        """The name messages begin with."""
        if self.id.startswith("reference."):
            return self.id
        return self.id.rpartition(".")[2].replace("native_backprop", "backprop")

    @property
    def depthwise(self) -> bool:
        return "depthwise" in self.op or self.op == "separable_conv2d"

    @property
    def has_grad(self) -> bool:
        return "backprop" in self.op or self.op == "conv2d_transpose"

    @property
    def input(self) -> str:
        """The parameter that holds the input or its sizes."""
        if self.op == "conv2d_transpose":
            return "output_shape"
        return "input_sizes" if self.op.endswith("_input") and not self.like else "input"

    @property
    def filter(self) -> str:
        """The parameter that holds the filter or its sizes."""
        if self.op.endswith("_filter"):
            return "filter" if self.like else "filter_sizes"
        if self.op == "separable_conv2d":
            return "depthwise_filter"
        new = self.op in ("conv2d", "conv2d_transpose")
        return (
            "filters" if new and self.forms != "raw" and not self.id.startswith("v1.") else "filter"
        )

    @property
    def grad(self) -> str:
        """The parameter that holds `out_backprop`."""
        if self.op == "conv2d_transpose":
            return "value" if self.id.startswith("v1.") else "input"
        return "out_backprop"

    @property
    def sizes(self) -> str | None:
        """The parameter that is a size vector, if there is one."""
        if self.like or not self.has_grad:
            return None
        return self.filter if self.op.endswith("_filter") else self.input

    @property
    def arrays(self) -> tuple[str, ...]:
        """The parameters that are arrays, in the order of the signature."""
        names = [self.input, self.filter, self.grad] if self.has_grad else [self.input, self.filter]
        if self.op == "conv2d_transpose":
            names = [self.grad, self.filter]
        if self.op == "separable_conv2d":
            names.append("pointwise_filter")
        return tuple(name for name in names if name != self.sizes)

    @property
    def takes_int32(self) -> bool:
        return not self.depthwise and not self.op.endswith("_filter")

    @property
    def takes_more_dimensions(self) -> bool:
        return self.op == "conv2d" and self.forms in ("friendly", "flexible")

    def call(self, **changes: Any) -> Any:
        """Call the function with its valid arguments and some changes."""
        return self.function(**self.arguments(**changes))

    def arguments(
        self, dtype: Any = np.float32, layout: str = "NHWC", **changes: Any
    ) -> dict[str, Any]:
        """Return keyword arguments of a valid call, SAME and stride 1, with some changes."""
        out_c = IN_C * MULTIPLIER if self.depthwise else OUT_C
        depth = (IN_C, MULTIPLIER) if self.depthwise else (IN_C, OUT_C)
        x = numbers(image(layout, BATCH, HEIGHT, WIDTH, IN_C), dtype, 1)
        f = numbers((*WINDOW, *depth), dtype, 2)
        g = numbers(image(layout, BATCH, HEIGHT, WIDTH, out_c), dtype, 3)
        result: dict[str, Any] = {self.input: x, self.filter: f}
        if self.has_grad:
            result[self.grad] = g
        if self.sizes:
            result[self.sizes] = list(result[self.sizes].shape)
        if self.op == "separable_conv2d":
            result["pointwise_filter"] = numbers((1, 1, out_c, OUT_C), dtype, 4)
        result |= self.settings(layout=layout)
        return result | changes

    def settings(
        self,
        strides: tuple[int, int] = (1, 1),
        dilations: tuple[int, int] = (1, 1),
        padding: Any = "SAME",
        layout: str = "NHWC",
    ) -> dict[str, Any]:
        """Write strides, dilations and padding (a word or two pairs) in the form all versions of TensorFlow take."""
        result: dict[str, Any] = {
            "strides": list(image(layout, 1, *strides, 1)),
            "dilations": list(dilations)
            if self.forms == "pair"
            else list(image(layout, 1, *dilations, 1)),
            "data_format": layout,
            "padding": padding,
        }
        if not isinstance(padding, str):
            pairs = [list(pair) for pair in image(layout, (0, 0), *padding, (0, 0))]
            if self.forms == "raw":
                result["padding"] = "EXPLICIT"
                result["explicit_paddings"] = [number for pair in pairs for number in pair]
            else:
                result["padding"] = pairs
        return result


def image(layout: str, batch: Any, height: Any, width: Any, channels: Any) -> tuple[Any, ...]:
    """Order four things as a layout does."""
    return (
        (batch, height, width, channels) if layout == "NHWC" else (batch, channels, height, width)
    )


def numbers(shape: tuple[int, ...], dtype: Any, seed: int) -> Any:
    """Return whole numbers from -2 to 2: no sum of the small problems leaves the exact range of bfloat16."""
    return _integers(shape, seed).astype(dtype)


@lru_cache
def _integers(shape: tuple[int, ...], seed: int) -> Any:
    return np.random.default_rng(seed).integers(-2, 3, shape)


_SIX = (
    "conv2d",
    "conv2d_backprop_input",
    "conv2d_backprop_filter",
    "depthwise_conv2d",
    "depthwise_conv2d_backprop_input",
    "depthwise_conv2d_backprop_filter",
)

FRIENDLY = tuple(
    Door(name, getattr(convgrad, name), name, "friendly")
    for name in (*_SIX, "conv2d_transpose", "separable_conv2d")
)
NN = (
    Door("nn.conv2d", nn.conv2d, "conv2d", "flexible"),
    Door("nn.conv2d_transpose", nn.conv2d_transpose, "conv2d_transpose", "flexible"),
    Door("nn.depthwise_conv2d", nn.depthwise_conv2d, "depthwise_conv2d", "pair"),
    Door(
        "nn.depthwise_conv2d_backprop_input",
        nn.depthwise_conv2d_backprop_input,
        "depthwise_conv2d_backprop_input",
        "strict",
    ),
    Door(
        "nn.depthwise_conv2d_backprop_filter",
        nn.depthwise_conv2d_backprop_filter,
        "depthwise_conv2d_backprop_filter",
        "strict",
    ),
    Door("nn.separable_conv2d", nn.separable_conv2d, "separable_conv2d", "pair"),
)
V1 = (
    Door("v1.conv2d", v1.conv2d, "conv2d", "flexible"),
    Door("v1.conv2d_backprop_input", v1.conv2d_backprop_input, "conv2d_backprop_input", "strict"),
    Door(
        "v1.conv2d_backprop_filter", v1.conv2d_backprop_filter, "conv2d_backprop_filter", "strict"
    ),
    Door("v1.conv2d_transpose", v1.conv2d_transpose, "conv2d_transpose", "flexible"),
    Door("v1.depthwise_conv2d", v1.depthwise_conv2d, "depthwise_conv2d", "pair"),
    Door("v1.depthwise_conv2d_native", v1.depthwise_conv2d_native, "depthwise_conv2d", "strict"),
    Door("v1.separable_conv2d", v1.separable_conv2d, "separable_conv2d", "pair"),
)
RAW = tuple(
    Door(f"raw_ops.{name}", getattr(raw_ops, name), op, "raw", like=name.endswith("V2"))
    for name, op in (
        ("Conv2D", "conv2d"),
        ("Conv2DBackpropInput", "conv2d_backprop_input"),
        ("Conv2DBackpropFilter", "conv2d_backprop_filter"),
        ("Conv2DBackpropInputV2", "conv2d_backprop_input"),
        ("Conv2DBackpropFilterV2", "conv2d_backprop_filter"),
        ("DepthwiseConv2dNative", "depthwise_conv2d"),
        ("DepthwiseConv2dNativeBackpropInput", "depthwise_conv2d_backprop_input"),
        ("DepthwiseConv2dNativeBackpropFilter", "depthwise_conv2d_backprop_filter"),
    )
)
REFERENCE = tuple(
    Door(f"reference.{name}", getattr(reference, name), name, "friendly") for name in _SIX
)

DOORS = (*FRIENDLY, *NN, *V1, *RAW)
"""Every distinct public function that computes in the caller's dtype."""
EVERY = (*DOORS, *REFERENCE)


def expected(
    door: Door,
    strides: tuple[int, int] = (1, 1),
    dilations: tuple[int, int] = (1, 1),
    padding: Any = "SAME",
    layout: str = "NHWC",
    **arrays: Any,
) -> Any:
    """Return the oracle's exact answer to `door.call()` with these settings, and these arrays or sizes."""
    given = {
        name: value
        for name, value in door.arguments(layout=layout, **arrays).items()
        if name in (*door.arrays, door.sizes)
    }
    how = {"strides": strides, "dilations": dilations, "padding": padding, "data_format": layout}
    if door.op == "separable_conv2d":
        middle = reference.depthwise_conv2d(
            given["input"], given["depthwise_filter"], **how, exact=True
        )
        return reference.conv2d(middle, given["pointwise_filter"], 1, "VALID", layout, exact=True)
    x, f, g = given.get(door.input), given.get(door.filter), given.get(door.grad)
    op = "conv2d_backprop_input" if door.op == "conv2d_transpose" else door.op
    if door.like:
        x, f = (np.shape(x), f) if op.endswith("_input") else (x, np.shape(f))
    operands = (x, f, g) if door.has_grad else (x, f)
    return getattr(reference, op)(*operands, **how, exact=True)
