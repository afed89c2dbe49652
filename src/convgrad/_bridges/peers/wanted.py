"""What a framework is asked for, and the answer before it is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ..._base.dtypes import AnyArray
from ..._problem.convolution import Kind, Shape

Pair = tuple[int, int]


@dataclass(frozen=True)
class Wanted:
    """One operation on arrays of some shapes. The operands are those that TensorFlow's operation takes, in its order.

    The caller states the pads, too. A test can thus work them out apart from the package it tests.
    """

    kind: Kind
    depthwise: bool
    layout: str
    """NHWC or NCHW, of the input and the output."""
    input_shape: Shape
    filter_shape: Shape
    """TensorFlow's: [kh, kw, C, M] if depthwise, [kh, kw, C / groups, O] if not."""
    strides: Pair
    dilations: Pair
    padding: Literal["SAME", "VALID"] | tuple[Pair, Pair]
    """As TensorFlow is told it: a word, or ((top, bottom), (left, right))."""
    pads: tuple[Pair, Pair]
    """The cells that come to, for frameworks without such words: ((top, bottom), (left, right))."""

    @property
    def groups(self) -> int:
        channels = self.input_shape[3 if self.layout == "NHWC" else 1]
        return channels if self.depthwise else channels // self.filter_shape[2]

    @property
    def grouped_filter(self) -> Shape:
        """The filter's shape as grouped convolutions write it, [kh, kw, C / groups, O]: the same numbers in order."""
        if not self.depthwise:
            return self.filter_shape
        rows, cols, channels, multiplier = self.filter_shape
        return rows, cols, 1, channels * multiplier

    @property
    def image_size(self) -> Pair:
        """Rows and columns of the input."""
        at = 1 if self.layout == "NHWC" else 2
        return self.input_shape[at], self.input_shape[at + 1]


@dataclass(frozen=True)
class Prepared:
    """An operation with its operands in the framework's own memory: ready to be timed."""

    call: Callable[[], Any]
    """Runs the operation to its end and returns the framework's result."""
    read: Callable[[Any], AnyArray]
    """Turns a result into an array of the layout that was asked for."""
    note: str = ""
    """What was arranged beforehand, where that is not the plain call."""
