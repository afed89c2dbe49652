"""A contest is one operation on one layer: its operands, our call, and the numbers a right result must show.

Operands are made from a fixed seed, so every process builds the same ones and only the expected numbers travel.
Layers of more than `FULL_CHECK` products are checked in part: some images, groups and channels, always the first
and the last, with all the terms of their sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._problem.convolution import OPS as CALLS
from ..._problem.convolution import Kind, Problem, Settings, build
from ..._problem.text import Line, write
from .layers import DTYPES, OPS, Layer

Array = npt.NDArray[Any]

WRONG = {"float32": 1e-4, "float64": 1e-10, "half": 3e-2, "bfloat16": 1e-1}
"""Largest error over largest value above which a result is wrong, not merely imprecise: some peers add in 16 bits."""

KINDS = dict(zip(OPS, Kind, strict=True))

FULL_CHECK = 100_000_000
MOST_VALUES = 2_000_000
"""Numbers of one group and image that are checked in part, with two channels at least."""


@dataclass(frozen=True)
class Contest:
    """What one row of the report is about."""

    layer: Layer
    op: str
    dtype: str = "float32"
    layout: str = "NHWC"

    @property
    def problem(self) -> Problem:
        """The same as the planner knows it."""
        layer = self.layer
        kind = KINDS[self.op]
        call = next(c for c in CALLS if c.kind is kind and c.depthwise is not layer.is_dense)
        how = Settings(layer.strides, layer.dilations, layer.padding, self.layout)
        shapes = (layer.input_shape(self.layout), layer.filter_shape)
        return build(call, how, DTYPES[self.dtype], *shapes, None)


def of_line(line: Line) -> Contest:
    """Return the contest that a problem's line asks for; `ValueError` where there is nothing to measure.

    >>> from convgrad._problem.text import read_line
    >>> contest = of_line(read_line("conv2d_backprop_input 8x3x6x6 3x3x3x8 strides=2,1 data_format=NCHW"))
    >>> contest.layer.text, contest.op, contest.layout
    ('6x6x3k3s2x1o8b8', 'dx', 'NCHW')
    """
    problem = line.problem
    if problem.is_empty:
        raise ValueError(f"{write(problem)}: it is empty, so that there is nothing to measure")
    if problem.dtype.name not in DTYPES:
        raise ValueError(f"{write(problem)}: dtype must be one of {', '.join(DTYPES)}")
    dense = not problem.depthwise
    layer = Layer(
        problem.batch,
        problem.rows.size,
        problem.cols.size,
        problem.in_c,
        problem.rows.window,
        problem.cols.window,
        stride=line.settings.strides,
        dilation=line.settings.dilations,
        multiplier=1 if dense else problem.group_out,
        outputs=problem.out_c if dense else 0,
        groups=problem.groups if dense else 1,
        padding=line.settings.padding,
    )
    op = next(op for op, kind in KINDS.items() if kind is problem.kind)
    return Contest(layer, op, problem.dtype.name, problem.data_format)


@dataclass(frozen=True)
class Tensors:
    """Input and output gradient in the contest's layout, the filter in TensorFlow's."""

    x: Array
    f: Array
    g: Array


@lru_cache(maxsize=2)
def operands(layer: Layer, dtype: str, layout: str) -> Tensors:
    """Return the operands of all three operations, in NumPy's memory; either layout has the same numbers."""
    if layout == "NCHW":
        last = operands(layer, dtype, "NHWC")
        return Tensors(_channels_first(last.x), last.f, _channels_first(last.g))
    random = np.random.default_rng(0)
    kind = DTYPES[dtype].numpy
    shapes = (layer.input_shape(layout), layer.filter_shape, layer.output_shape(layout))
    x, f, g = (random.standard_normal(shape, dtype=np.float32).astype(kind) for shape in shapes)
    return Tensors(x, f, g)


def _channels_first(array: Array) -> Array:
    return np.ascontiguousarray(array.transpose(0, 3, 1, 2))


def operands_of(contest: Contest) -> Tensors:
    return operands(contest.layer, contest.dtype, contest.layout)


def our_call(contest: Contest, arrays: Tensors, module: Any = None) -> Callable[[], Array]:
    """Return the public convgrad call of a contest; `module` may be ``convgrad.reference`` instead."""
    if module is None:
        import convgrad as module
    layer = contest.layer
    family = "conv2d" if layer.is_dense else "depthwise_conv2d"
    how = {
        "strides": layer.stride,
        "padding": layer.padding,
        "data_format": contest.layout,
        "dilations": layer.dilation,
    }
    if contest.op == "fwd":
        forward = getattr(module, family)
        return lambda: forward(arrays.x, arrays.f, **how)
    if contest.op == "dx":
        input_gradient = getattr(module, f"{family}_backprop_input")
        sizes = layer.input_shape(contest.layout)
        return lambda: input_gradient(sizes, arrays.f, arrays.g, **how)
    filter_gradient = getattr(module, f"{family}_backprop_filter")
    return lambda: filter_gradient(arrays.x, layer.filter_shape, arrays.g, **how)


@dataclass(frozen=True)
class Expected:
    """Part of the right result, and where in the result it stands."""

    images: Array
    groups: Array
    ins: Array
    """Input channels within a group."""
    outs: Array
    """Output channels within a group."""
    values: Array
    largest: float

    def error(self, contest: Contest, result: Array) -> float:
        """Return the largest difference over the largest right value; NaN if any number is not finite."""
        part = self.part(contest, result)
        return float(np.abs(part.astype(np.float64) - self.values).max() / (self.largest or 1.0))

    def in_layout(self, contest: Contest, layout: str) -> Expected:
        """Return the same for the same contest in another layout, whose operands are the same numbers."""
        if layout == contest.layout or contest.op == "dw":
            return self
        first = layout == "NCHW"
        values = self.values.transpose((0, 3, 1, 2) if first else (0, 2, 3, 1))
        return replace(self, values=np.ascontiguousarray(values))

    def part(self, contest: Contest, result: Array) -> Array:
        if contest.op == "dw":
            return _filter_part(contest.layer, result, self.groups, self.ins, self.outs)
        channels = self.outs if contest.op == "fwd" else self.ins
        return _image_part(contest, result, self.images, self.groups, channels)


def expect(contest: Contest) -> Expected:
    """Compute the numbers `contest` must give, in float64 by ``convgrad.reference``."""
    return expect_from(contest, operands_of(contest))


def expect_from(contest: Contest, arrays: Tensors) -> Expected:
    """The same for the caller's operands."""
    from ... import reference

    layer = contest.layer
    groups = layer.group_count
    per_in, per_out = layer.channels // groups, layer.out_c // groups
    whole = layer.flops(effective=False) <= 2 * FULL_CHECK
    images = _pick(layer.batch, None if whole or contest.op == "dw" else 2)
    some_groups = _pick(groups, None if whole else 16)
    pixels = layer.out_h * layer.out_w if contest.op == "fwd" else layer.height * layer.width
    some = 8 if contest.op == "dw" else max(2, min(8, MOST_VALUES // pixels))
    ins = _pick(per_in, None if whole or contest.op == "fwd" else some)
    outs = _pick(per_out, None if whole or contest.op == "dx" else some)
    part = Tensors(
        _image_part(contest, arrays.x, images, some_groups, ins),
        _filter_part(layer, arrays.f, some_groups, ins, outs),
        _image_part(contest, arrays.g, images, some_groups, outs),
    )
    kept = len(some_groups)
    small = replace(
        layer,
        batch=len(images),
        channels=kept * len(ins),
        outputs=kept * len(outs) if layer.is_dense else layer.outputs,
        groups=kept if layer.is_dense else layer.groups,
    )
    values = our_call(replace(contest, layer=small), part, reference)()
    return Expected(images, some_groups, ins, outs, values, float(np.abs(values).max()))


def _pick(count: int, limit: int | None) -> Array:
    if limit is None or count <= limit:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, limit).round().astype(np.intp))


def _image_part(
    contest: Contest, array: Array, images: Array, groups: Array, channels: Array
) -> Array:
    """Cut images and channels out of an image tensor, giving one of the same layout."""
    last = array if contest.layout == "NHWC" else array.transpose(0, 2, 3, 1)
    n, h, w, _ = last.shape
    split = last.reshape(n, h, w, contest.layer.group_count, -1)
    cut = split[images][:, :, :, groups][..., channels].reshape(len(images), h, w, -1)
    return cut if contest.layout == "NHWC" else np.ascontiguousarray(cut.transpose(0, 3, 1, 2))


def _filter_part(layer: Layer, array: Array, groups: Array, ins: Array, outs: Array) -> Array:
    """Cut channels out of a filter; a depthwise filter has its groups where a dense one has its inputs."""
    r, s = array.shape[:2]
    if not layer.is_dense:
        return array[:, :, groups][..., outs]
    split = array.reshape(r, s, array.shape[2], layer.groups, -1)
    return split[:, :, ins][:, :, :, groups][..., outs].reshape(r, s, len(ins), -1)
