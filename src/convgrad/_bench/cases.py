"""A case is one operation on one problem: its operands, our call, and the numbers a right result must show.

Operands are made from a fixed seed, so every process builds the same ones and only the expected numbers travel.
Problems of more than `FULL_CHECK` products are checked in part: some images, groups and channels, always the first
and the last, each exactly as far as its own sum reaches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .problems import Problem

Array = npt.NDArray[Any]

DTYPES: dict[str, Any] = {
    "float32": np.float32,
    "float64": np.float64,
    "half": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
}

WRONG = {"float32": 1e-4, "float64": 1e-10, "half": 3e-2, "bfloat16": 1e-1}
"""Largest error over largest value from which a result is wrong, not merely sloppy: some peers add in 16 bits."""

FULL_CHECK = 100_000_000


@dataclass(frozen=True)
class Case:
    """What one row of the report is about."""

    problem: Problem
    op: str
    dtype: str = "float32"
    layout: str = "NHWC"


@dataclass(frozen=True)
class Operands:
    """Input and output gradient in the case's layout, the filter in TensorFlow's."""

    x: Array
    f: Array
    g: Array


@lru_cache(maxsize=1)
def operands(problem: Problem, dtype: str, layout: str) -> Operands:
    """Return the operands of all three operations, in memory as NumPy hands it out."""
    random = np.random.default_rng(0)
    kind: Any = DTYPES[dtype]
    shapes = (problem.input_shape(layout), problem.filter_shape, problem.output_shape(layout))
    x, f, g = (random.standard_normal(shape, dtype=np.float32).astype(kind) for shape in shapes)
    return Operands(x, f, g)


def operands_of(case: Case) -> Operands:
    return operands(case.problem, case.dtype, case.layout)


def our_call(case: Case, arrays: Operands, module: Any = None) -> Callable[[], Array]:
    """Return the public convgrad call of a case; `module` may be ``convgrad.reference`` instead."""
    if module is None:
        import convgrad as module
    problem = case.problem
    family = "conv2d" if problem.is_dense else "depthwise_conv2d"
    how = {
        "strides": problem.stride,
        "padding": problem.padding,
        "data_format": case.layout,
        "dilations": problem.dilation,
    }
    if case.op == "fwd":
        forward = getattr(module, family)
        return lambda: forward(arrays.x, arrays.f, **how)
    if case.op == "dx":
        input_gradient = getattr(module, f"{family}_backprop_input")
        sizes = problem.input_shape(case.layout)
        return lambda: input_gradient(sizes, arrays.f, arrays.g, **how)
    filter_gradient = getattr(module, f"{family}_backprop_filter")
    return lambda: filter_gradient(arrays.x, problem.filter_shape, arrays.g, **how)


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

    def error(self, case: Case, result: Array) -> float:
        """Return the largest difference over the largest right value; NaN if any number is not finite."""
        part = self.part(case, result)
        return float(np.abs(part.astype(np.float64) - self.values).max() / (self.largest or 1.0))

    def part(self, case: Case, result: Array) -> Array:
        if case.op == "dw":
            return _filter_part(case.problem, result, self.groups, self.ins, self.outs)
        channels = self.outs if case.op == "fwd" else self.ins
        return _image_part(case, result, self.images, self.groups, channels)


def expect(case: Case) -> Expected:
    """Compute the numbers `case` must give, in float64 by ``convgrad.reference``."""
    return expect_from(case, operands_of(case))


def expect_from(case: Case, arrays: Operands) -> Expected:
    """The same for operands of the caller's."""
    from .. import reference

    problem = case.problem
    groups = problem.group_count
    per_in, per_out = problem.channels // groups, problem.out_c // groups
    whole = problem.flops(effective=False) <= 2 * FULL_CHECK
    images = _pick(problem.batch, None if whole or case.op == "dw" else 2)
    some_groups = _pick(groups, None if whole else 16)
    ins = _pick(per_in, None if whole or case.op == "fwd" else 8)
    outs = _pick(per_out, None if whole or case.op == "dx" else 8)
    part = Operands(
        _image_part(case, arrays.x, images, some_groups, ins),
        _filter_part(problem, arrays.f, some_groups, ins, outs),
        _image_part(case, arrays.g, images, some_groups, outs),
    )
    kept = len(some_groups)
    small = replace(
        problem,
        batch=len(images),
        channels=kept * len(ins),
        outputs=kept * len(outs) if problem.is_dense else problem.outputs,
        groups=kept if problem.is_dense else problem.groups,
    )
    values = our_call(replace(case, problem=small), part, reference)()
    return Expected(images, some_groups, ins, outs, values, float(np.abs(values).max()))


def _pick(count: int, limit: int | None) -> Array:
    if limit is None or count <= limit:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, limit).round().astype(np.intp))


def _image_part(case: Case, array: Array, images: Array, groups: Array, channels: Array) -> Array:
    """Cut images and channels out of an image tensor, giving one of the same layout."""
    last = array if case.layout == "NHWC" else array.transpose(0, 2, 3, 1)
    n, h, w, _ = last.shape
    split = last.reshape(n, h, w, case.problem.group_count, -1)
    cut = split[images][:, :, :, groups][..., channels].reshape(len(images), h, w, -1)
    return cut if case.layout == "NHWC" else np.ascontiguousarray(cut.transpose(0, 3, 1, 2))


def _filter_part(problem: Problem, array: Array, groups: Array, ins: Array, outs: Array) -> Array:
    """Cut channels out of a filter; a depthwise filter has its groups where a dense one has its inputs."""
    r, s = array.shape[:2]
    if not problem.is_dense:
        return array[:, :, groups][..., outs]
    split = array.reshape(r, s, array.shape[2], problem.groups, -1)
    return split[:, :, ins][:, :, :, groups][..., outs].reshape(r, s, len(ins), -1)
