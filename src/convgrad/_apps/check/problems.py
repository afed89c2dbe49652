"""One problem for the kernel under test: sizes, settings, and how the operands are filled."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ..._base.dtypes import FLOATING, AnyArray, DType
from ..._base.errors import ArgumentError
from ..._bridges.peers import Wanted
from ..._problem import convolution
from ..._problem.convolution import Call, Kind, Problem, Settings, Shape

OPS = {call.function: call for call in convolution.OPS}
DTYPES = {row.name: row for row in FLOATING}
LAYOUTS = ("NHWC", "NCHW")
LONG = 256
"""Sums of more products than this may fail by the way they are added."""

Pair = tuple[int, int]
Padding = Literal["SAME", "VALID"] | tuple[Pair, Pair]
Data = Literal["whole", "normal", "ones", "nan", "inf"]
Operands = tuple[AnyArray, AnyArray]


@dataclass(frozen=True)
class Case:
    """Sizes and settings of one call. Depthwise has `group_in` 1, and `group_out` is its multiplier."""

    op: str
    batch: int
    size: Pair
    groups: int
    group_in: int
    group_out: int
    window: Pair
    strides: Pair = (1, 1)
    dilations: Pair = (1, 1)
    padding: Padding = "SAME"
    data_format: str = "NHWC"
    dtype: str = "float32"

    @property
    def call(self) -> Call:
        return OPS[self.op]

    @property
    def row(self) -> DType:
        return DTYPES[self.dtype]

    @cached_property
    def problem(self) -> Problem:
        """The solved geometry; raises `ArgumentError` where TensorFlow's rules refuse the sizes."""
        settings = Settings(self.strides, self.dilations, self.padding, self.data_format)
        channels = self.groups * self.group_in
        image = (self.batch, *self.size, channels)
        if self.data_format == "NCHW":
            image = (self.batch, channels, *self.size)
        depth = (self.group_in, self.groups * self.group_out)
        if self.call.depthwise:
            depth = (self.groups, self.group_out)
        return convolution.build(self.call, settings, self.row, image, (*self.window, *depth), None)

    @property
    def legal(self) -> bool:
        try:
            return self.problem is not None
        except ArgumentError:
            return False

    @property
    def shapes(self) -> tuple[Shape, Shape]:
        """Shapes of the two operands, in the order the operation names them."""
        problem = self.problem
        if problem.kind is Kind.FORWARD:
            return problem.input_shape, problem.filter_shape
        if problem.kind is Kind.INPUT_GRADIENT:
            return problem.filter_shape, problem.output_shape
        return problem.input_shape, problem.output_shape

    @property
    def terms(self) -> int:
        """How many products at most meet in one number of the result."""
        problem = self.problem
        taps = self.window[0] * self.window[1]
        if problem.kind is Kind.FORWARD:
            return taps * self.group_in
        if problem.kind is Kind.INPUT_GRADIENT:
            return taps * self.group_out
        return self.batch * problem.rows.out * problem.cols.out

    @property
    def settings(self) -> dict[str, Any]:
        """The keywords of the call."""
        return {
            "strides": self.strides,
            "padding": self.padding,
            "data_format": self.data_format,
            "dilations": self.dilations,
        }

    def arguments(self, first: Any, second: Any) -> tuple[Any, ...]:
        """The arguments by position: the operands, and the sizes of what is wanted."""
        if self.call.kind is Kind.FORWARD:
            return first, second
        if self.call.kind is Kind.INPUT_GRADIENT:
            return self.problem.input_shape, first, second
        return first, self.problem.filter_shape, second

    @property
    def wanted(self) -> Wanted:
        """The same for a framework."""
        problem = self.problem
        rows, cols = problem.rows, problem.cols
        return Wanted(
            kind=problem.kind,
            depthwise=problem.depthwise,
            layout=self.data_format,
            input_shape=problem.input_shape,
            filter_shape=problem.filter_shape,
            strides=self.strides,
            dilations=self.dilations,
            padding=self.padding,
            pads=((rows.before, rows.after), (cols.before, cols.after)),
        )


@dataclass(frozen=True)
class Trial:
    """A case, the property it is to show, and the recipe of its data."""

    property: str
    case: Case
    data: Data
    seed: tuple[int, ...]

    def operands(self) -> Operands:
        """Make the data; the same trial always makes the same."""
        return fill(self.case, self.data, self.seed)


def generator(*seed: int | str) -> np.random.Generator:
    """Return a generator that depends on every part of `seed`, words included."""
    return np.random.default_rng(numbers(*seed))


def numbers(*seed: int | str) -> list[int]:
    return [zlib.crc32(part.encode()) if isinstance(part, str) else part for part in seed]


def fill(case: Case, data: Data, seed: tuple[int, ...]) -> Operands:
    """Draw the two operands of a case.

    Whole numbers are drawn so small and so sparse that any order of additions is exact in the case's dtype, most of
    the time; the judge looks at the sums and is lenient where they are too large.
    """
    random = generator(*seed)
    if data == "ones":
        first, second = (np.ones(shape) for shape in case.shapes)
    elif data == "normal":
        first, second = (random.standard_normal(shape) for shape in case.shapes)
    else:
        first, second = (_whole(random, case, shape, data == "whole") for shape in case.shapes)
    operands = first.astype(case.row.numpy), second.astype(case.row.numpy)
    if data in ("nan", "inf"):
        image = operands[1] if case.call.kind is Kind.INPUT_GRADIENT else operands[0]
        if image.size:
            image.reshape(-1)[random.integers(image.size)] = np.nan if data == "nan" else np.inf
    return operands


def _whole(random: np.random.Generator, case: Case, shape: Shape, zeros: bool) -> AnyArray:
    room = 1 / case.row.unit / max(case.terms, 1)
    largest = 4 if room >= 64 else 2 if room >= 8 else 1
    drawn: AnyArray = random.integers(1, largest + 1, shape) * random.choice([-1, 1], shape)
    if zeros:
        drawn[random.random(shape) >= min(0.9, (room / 2) ** 0.5)] = 0
    return drawn
