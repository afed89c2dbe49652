"""`Problem`: one convolution, fully described, holding no data; and every check of shapes against each other.

The letters used for indices throughout the package:

====  ==========================================  ====  ==========================================
n     image of the batch                          p q   row and column of the output
h w   row and column of the input                 g     group
r s   row and column of the filter (a tap)        c k   channel inside a group: input, output
====  ==========================================  ====  ==========================================

A convolution has G groups of `group_in` input and `group_out` output channels. Dense is G = 1. Depthwise with
multiplier M is G = C groups of 1 and M: its filter ``[kh, kw, C, M]`` is, number for number, the grouped filter
``[kh, kw, 1, C*M]``. So the six operations are three sums (`Kind`) over one set of sizes. All sizes are Python
integers, and all checks end before anything is allocated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from math import prod
from typing import Literal

from .._base.dtypes import FLOATING, INT32, DType
from .._base.errors import ArgumentError, InternalError
from . import geometry
from .geometry import Axis, Pads

Shape = tuple[int, ...]
Side = Literal["", "input", "output"]
"""Whose channels a bias belongs to: no bias, the input image's or the output image's."""

_DENSE = (*FLOATING, INT32)

_LARGEST_BYTES = 2**63 - 1
_LARGEST_REACH = 2**62
"""Offsets inside a window are summed in 64 bits by the kernels; half the range leaves room for the sums."""


class Kind(Enum):
    """Which of the three tensors is wanted."""

    FORWARD = "forward"
    INPUT_GRADIENT = "input gradient"
    FILTER_GRADIENT = "filter gradient"

    __hash__ = object.__hash__
    """Enum's own is a function of Python, and a call looks up some ten times by a kind: 2 us."""

    @property
    def short(self) -> str:
        """As symbols and profiles of kernels name it."""
        names = {"forward": "fwd", "input gradient": "bwd_input", "filter gradient": "bwd_filter"}
        return names[self.value]


@dataclass(frozen=True, eq=False)
class Call:
    """How the caller knows the operands: messages speak the caller's language.

    Rows of tables, compared by identity, which makes them quick keys.
    """

    function: str
    kind: Kind
    depthwise: bool
    input: str = "input"
    filter: str = "filter"
    grad: str = "out_backprop"
    batched: bool = False
    """Whether an input may have more than four dimensions: all but the last three are batch then."""
    grad_first: bool = False
    """Whether the caller gives `grad` before `filter`, so that its dtype is the one to follow."""

    @property
    def allowed(self) -> tuple[DType, ...]:
        """Dtypes it takes: TensorFlow documents int32 for conv2d and its input gradient only."""
        return FLOATING if self.depthwise or self.kind is Kind.FILTER_GRADIENT else _DENSE

    @property
    def lengths(self) -> tuple[int, ...]:
        """How many sizes may say the shape of a gradient: those of an image may be rows and columns alone."""
        return (4, 2) if self.kind is Kind.INPUT_GRADIENT and not self.depthwise else (4,)


CONV2D = Call("conv2d", Kind.FORWARD, depthwise=False, filter="filters", batched=True)
CONV2D_INPUT = Call(
    "conv2d_backprop_input", Kind.INPUT_GRADIENT, depthwise=False, input="input_sizes"
)
CONV2D_FILTER = Call(
    "conv2d_backprop_filter", Kind.FILTER_GRADIENT, depthwise=False, filter="filter_sizes"
)
DEPTHWISE = Call("depthwise_conv2d", Kind.FORWARD, depthwise=True)
DEPTHWISE_INPUT = Call(
    "depthwise_conv2d_backprop_input", Kind.INPUT_GRADIENT, depthwise=True, input="input_sizes"
)
DEPTHWISE_FILTER = Call(
    "depthwise_conv2d_backprop_filter", Kind.FILTER_GRADIENT, depthwise=True, filter="filter_sizes"
)
OPS = (CONV2D, CONV2D_INPUT, CONV2D_FILTER, DEPTHWISE, DEPTHWISE_INPUT, DEPTHWISE_FILTER)
"""The six operations, one row each, under the names their arguments have at the top level."""

CONV2D_TRANSPOSE = replace(
    CONV2D_INPUT,
    function="conv2d_transpose",
    input="output_shape",
    filter="filters",
    grad="input",
    grad_first=True,
)
"""The input gradient under another name."""
SEPARABLE_DEPTHWISE = replace(DEPTHWISE, function="separable_conv2d", filter="depthwise_filter")
SEPARABLE_POINTWISE = replace(
    CONV2D,
    function="separable_conv2d",
    input="depthwise result",
    filter="pointwise_filter",
    batched=False,
)
"""Two problems in a row; `build_separable` makes both."""


@dataclass(frozen=True)
class Settings:
    """The arguments that are not arrays, in canonical form: (rows, columns) pairs."""

    strides: tuple[int, int]
    dilations: tuple[int, int]
    padding: Literal["SAME", "VALID"] | tuple[Pads, Pads]
    """A word, or ((top, bottom), (left, right))."""
    data_format: str


_SIDES: dict[Kind, tuple[Side, ...]] = {
    Kind.FORWARD: ("", "output"),
    Kind.INPUT_GRADIENT: ("", "input"),
    Kind.FILTER_GRADIENT: ("", "input", "output"),
}


@dataclass(frozen=True)
class Problem:
    """One convolution of the family; hashable, so that plans and kernels can be remembered by it."""

    kind: Kind
    depthwise: bool
    """Whether the filter is written [kh, kw, C, M] instead of [kh, kw, C/G, O]. Same memory either way."""
    dtype: DType
    data_format: str
    batch: int
    rows: Axis
    cols: Axis
    groups: int
    group_in: int
    group_out: int
    bias: Side = ""
    """Whose channels a bias belongs to. A forward pass adds one to the output's channels and an input gradient to the
    input's, before the result is rounded. A filter gradient also writes the bias's gradient: the sum over the pixels of
    `out_backprop`, or of the input (a transposed convolution, whose output that is)."""

    def __post_init__(self) -> None:
        if self.bias not in _SIDES[self.kind]:
            allowed = " or ".join(map(repr, _SIDES[self.kind]))
            raise InternalError(
                f"the bias of a {self.kind.value} must be {allowed}, got {self.bias!r}; please report this"
            )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Hashing fifteen numbers takes 2 us, a good part of a small call."""
        sizes = (self.batch, self.rows, self.cols, self.groups)
        return hash((self.kind, self.dtype, *sizes, self.bias))

    @property
    def in_c(self) -> int:
        return self.groups * self.group_in

    @property
    def out_c(self) -> int:
        return self.groups * self.group_out

    @cached_property
    def input_shape(self) -> Shape:
        return self._image(self.rows.size, self.cols.size, self.in_c)

    @cached_property
    def output_shape(self) -> Shape:
        """Shape of the forward result, which is also that of `out_backprop`."""
        return self._image(self.rows.out, self.cols.out, self.out_c)

    @cached_property
    def filter_shape(self) -> Shape:
        taps = (self.rows.window, self.cols.window)
        if self.depthwise:
            return (*taps, self.groups, self.group_out)
        return (*taps, self.group_in, self.out_c)

    @cached_property
    def result_shape(self) -> Shape:
        if self.kind is Kind.FORWARD:
            return self.output_shape
        return self.input_shape if self.kind is Kind.INPUT_GRADIENT else self.filter_shape

    @property
    def operand_shapes(self) -> tuple[Shape, Shape]:
        """Shapes of the two operands: input or filter, then filter or `out_backprop`."""
        return {
            Kind.FORWARD: (self.input_shape, self.filter_shape),
            Kind.INPUT_GRADIENT: (self.filter_shape, self.output_shape),
            Kind.FILTER_GRADIENT: (self.input_shape, self.output_shape),
        }[self.kind]

    @property
    def places(self) -> tuple[str, ...]:
        """Names of the places it runs on: operands in the order the operation names them, result, and one beside it."""
        beside = ("bias",) if self.bias else ()
        return ("first", "second", "result", *beside)

    @cached_property
    def operand_bytes(self) -> tuple[int, int]:
        """Bytes of the two operands."""
        first, second = (prod(shape) * self.dtype.itemsize for shape in self.operand_shapes)
        return first, second

    @cached_property
    def result_bytes(self) -> int:
        return prod(self.result_shape) * self.dtype.itemsize

    @property
    def bias_c(self) -> int:
        """Elements of the bias, or of its gradient; 0 where there is none."""
        return {"": 0, "input": self.in_c, "output": self.out_c}[self.bias]

    @property
    def adds_bias(self) -> bool:
        """Whether a bias is added to the result."""
        return self.bias != "" and self.kind is not Kind.FILTER_GRADIENT

    @cached_property
    def is_empty(self) -> bool:
        """Whether some operand or the result has no elements: the result is then all zeros, or the bias."""
        return 0 in self.input_shape or 0 in self.output_shape or 0 in self.filter_shape

    @property
    def flops(self) -> int:
        """Multiplications and additions of the plain sums, taps in the padding included."""
        taps = self.rows.window * self.cols.window
        return 2 * prod(self.output_shape) * taps * self.group_in

    def _image(self, height: int, width: int, channels: int) -> Shape:
        if self.data_format == "NHWC":
            return (self.batch, height, width, channels)
        return (self.batch, channels, height, width)


def build(
    call: Call,
    settings: Settings,
    dtype: DType,
    input_shape: Shape,
    filter_shape: Shape,
    grad_shape: Shape | None,
) -> Problem:
    """Check the shapes against each other, in the order ranks, channels, window, `grad`, and build the problem.

    `input_shape` and `filter_shape` may come from arrays or from size arguments; `input_shape` of length 2 stands for
    rows and columns, the batch then coming from `grad_shape` and the channels from the filter (one group).
    """
    function = call.function
    if len(input_shape) != 2 or call.kind is not Kind.INPUT_GRADIENT:
        check_rank(function, call.input, input_shape)
    check_rank(function, call.filter, filter_shape)
    if grad_shape is not None:
        check_rank(function, call.grad, grad_shape)
    for argument, shape in ((call.input, input_shape), (call.filter, filter_shape)):
        for position, size in enumerate(shape):
            if size < 0:
                raise ArgumentError(
                    f"{function}: `{argument}` dimension {position} must be >= 0, got {_text(shape)}."
                )

    if len(input_shape) == 2:
        assert grad_shape is not None
        (height, width), batch, in_c = input_shape, grad_shape[0], filter_shape[2]
    elif settings.data_format == "NHWC":
        batch, height, width, in_c = input_shape
    else:
        batch, in_c, height, width = input_shape
    groups, group_in, group_out = (
        _depthwise_channels(call, in_c, filter_shape)
        if call.depthwise
        else _dense_channels(call, in_c, filter_shape)
    )
    rows = _solve(call, settings, 0, height, filter_shape[0])
    cols = _solve(call, settings, 1, width, filter_shape[1])
    problem = Problem(
        kind=call.kind,
        depthwise=call.depthwise,
        dtype=dtype,
        data_format=settings.data_format,
        batch=batch,
        rows=rows,
        cols=cols,
        groups=groups,
        group_in=group_in,
        group_out=group_out,
    )
    if grad_shape is not None and grad_shape != problem.output_shape:
        raise _wrong_grad(call, problem, settings, grad_shape)
    for what, shape in (
        (call.input, problem.input_shape),
        (call.filter, problem.filter_shape),
        ("result" if call.kind is Kind.FORWARD else call.grad, problem.output_shape),
    ):
        # NumPy cannot describe an empty array either whose other dimensions overflow.
        if prod(max(size, 1) for size in shape) * dtype.itemsize > _LARGEST_BYTES:
            raise ArgumentError(
                f"{function}: `{what}` must hold fewer than 2**63 bytes, got shape {_text(shape)} of {dtype.name}."
            )
    return problem


def build_separable(
    settings: Settings, dtype: DType, image: Shape, taps: Shape, mixing: Shape
) -> tuple[Problem, Problem]:
    """Build the depthwise problem of `separable_conv2d` and the 1x1 problem on its result."""
    check_pointwise(mixing)
    first = build(SEPARABLE_DEPTHWISE, settings, dtype, image, taps, None)
    plain = replace(settings, strides=(1, 1), dilations=(1, 1), padding="VALID")
    return first, build(SEPARABLE_POINTWISE, plain, dtype, first.output_shape, mixing, None)


def check_pointwise(mixing: Sequence[int | None]) -> None:
    """Refuse a filter of `separable_conv2d` that is not 1x1; a size that is not known yet is None."""
    if len(mixing) != 4 or any(size not in (1, None) for size in mixing[:2]):
        raise ArgumentError(
            f"separable_conv2d: `pointwise_filter` must have rank 4 and shape [1, 1, C*M, O], got {_text(mixing)}."
        )


def check_rank(function: str, argument: str, shape: Shape) -> None:
    """Refuse a shape that is not 4 long."""
    if len(shape) != 4:
        raise ArgumentError(
            f"{function}: `{argument}` must be 4-dimensional, got shape {_text(shape)} "
            f"with {len(shape)} dimension{'' if len(shape) == 1 else 's'}."
        )


def _dense_channels(call: Call, in_c: int, filter_shape: Shape) -> tuple[int, int, int]:
    depth, out_c = filter_shape[2:]
    if call.kind is Kind.FORWARD:  # TensorFlow's gradients of an empty window are zeros
        _check_window(call, filter_shape)
    if depth < 1:
        raise ArgumentError(
            f"{call.function}: `{call.filter}` depth must be strictly positive, got shape {_text(filter_shape)}."
        )
    if in_c < 1:
        raise ArgumentError(f"{call.function}: `{call.input}` must have at least 1 channel, got 0.")
    if in_c % depth:
        raise ArgumentError(
            f"{call.function}: `{call.input}` depth must be evenly divisible by `{call.filter}` depth "
            f"(their quotient is the number of groups), got {in_c} and {depth}."
        )
    groups = in_c // depth
    if out_c % groups:
        raise ArgumentError(
            f"{call.function}: output depth must be evenly divisible by the number of groups "
            f"({groups} = `{call.input}` depth {in_c} / `{call.filter}` depth {depth}), got {out_c}."
        )
    return groups, depth, out_c // groups


def _depthwise_channels(call: Call, in_c: int, filter_shape: Shape) -> tuple[int, int, int]:
    depth, multiplier = filter_shape[2:]
    _check_window(call, filter_shape)
    if in_c != depth:
        raise ArgumentError(
            f"{call.function}: `{call.input}` and `{call.filter}` must have the same depth, got {in_c} and {depth}."
        )
    return in_c, 1, multiplier


def _check_window(call: Call, filter_shape: Shape) -> None:
    if min(filter_shape[:2]) < 1:
        raise ArgumentError(
            f"{call.function}: `{call.filter}` must have at least 1 row and 1 column, got shape {_text(filter_shape)}."
        )


def _solve(call: Call, settings: Settings, axis: int, size: int, window: int) -> Axis:
    name = ("rows", "columns")[axis]
    stride, dilation = settings.strides[axis], settings.dilations[axis]
    padding = settings.padding if isinstance(settings.padding, str) else settings.padding[axis]
    solved = geometry.solve(size, window, stride, dilation, padding)
    span = geometry.reach(window, dilation)
    if solved.out < 0:
        raise ArgumentError(
            f"{call.function}: computed output size would be negative: {solved.out} {name} "
            f"({_derivation(solved, settings)}, reach {span})."
        )
    if span + size + solved.before + solved.after >= _LARGEST_REACH:
        raise ArgumentError(
            f"{call.function}: {name} plus padding and reach must stay below 2**62 "
            f"({_derivation(solved, settings)}), got reach {span}."
        )
    return solved


def _derivation(axis: Axis, settings: Settings) -> str:
    parts = [f"input {axis.size}", f"filter {axis.window}", f"stride {axis.stride}"]
    if axis.dilation != 1:
        parts.append(f"dilation {axis.dilation}")
    word = settings.padding if isinstance(settings.padding, str) else None
    parts.append(word or f"padding ({axis.before}, {axis.after})")
    return ", ".join(parts)


def _wrong_grad(
    call: Call, problem: Problem, settings: Settings, grad_shape: Shape
) -> ArgumentError:
    """Say which of its sizes is wrong first."""
    order = (0, 1, 2, 3) if settings.data_format == "NHWC" else (0, 2, 3, 1)
    batch, height, width, channels = (grad_shape[at] for at in order)
    where = f"{call.function}: `{call.grad}`"
    if batch != problem.batch:
        return ArgumentError(
            f"{where} must have the batch size of `{call.input}`, {problem.batch}, got {batch}."
        )
    for name, axis, size in (("rows", problem.rows, height), ("columns", problem.cols, width)):
        if size != axis.out:
            return ArgumentError(
                f"{where} must have {axis.out} {name} ({_derivation(axis, settings)}), got {size}."
            )
    how = (
        f"`{call.filter}` depth {problem.groups} x multiplier {problem.group_out}"
        if call.depthwise
        else f"the out_depth of `{call.filter}`"
    )
    return ArgumentError(f"{where} must have {problem.out_c} channels ({how}), got {channels}.")


def _text(shape: Sequence[int | None]) -> str:
    return "[" + ", ".join(str(size) for size in shape) + "]"
