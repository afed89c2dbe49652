"""A call of a kernel that has no record yet: all checks, then the corridor, then the record of the next such call.

Calls that can have no record come here every time: empty ones, those that are computed without kernels, and images that
are padded in the batch or the channels.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ... import _engine
from ..._base.errors import ArgumentError
from ..._problem import arguments, convolution
from ..._problem.convolution import Call as Operation
from ..._problem.convolution import Kind, Problem, Settings, Shape
from ..._runtime.bound import Bound
from ..._runtime.pointers import data_pointer
from . import handles
from .capi import INT32, Library
from .nodes import NUMBERS, Node

FIRST, SECOND, VALUES, BIAS = 0, 1, 2, 3
"""Where compiled code puts a call's tensors."""
_MOST = 64
"""Values that are looked at: no tensor of sizes or pads has more than 8, and a longer one is refused by its length."""

Pads = tuple[tuple[int, int], ...]

_scalars: dict[tuple[float, ...], Any] = {}
"""Numbers of passes, where records point to: a few, and kept for good."""


def scalars(numbers: tuple[float, ...]) -> int:
    """Return where a pass finds its numbers."""
    array = _scalars.setdefault(numbers, (ctypes.c_double * len(numbers))(*numbers))
    return ctypes.addressof(array)


class Made(NamedTuple):
    """What a call leaves for the next one like it."""

    programs: tuple[Bound, ...]
    """What did it, which lives as long as the record."""
    body: list[int]
    """Of the record."""


def compute(library: Library, node: Node, context: int, tensors: Any) -> Made | None:
    """Compute a call; returns the program that did it and the body of a record, if there is one."""
    return Call(library, node, context, tensors).compute()


class Call:
    """One call, by the handles of its tensors."""

    def __init__(self, library: Library, node: Node, context: int, tensors: Any) -> None:
        self.library, self.node, self.context = library, node, context
        self.tensors: list[Any] = [tensors[at] for at in range(4)]

    def compute(self) -> Made | None:
        node = self.node
        settings, outside = node.settings, None
        if node.form in ("forward_padded", "fused_padded"):
            settings, outside = self._padded()
        problem = self._problem(settings, outside)
        made = [self._allocate(0, problem, problem.result_shape)]
        bias, bias_bytes = 0, 0
        try:
            if node.form == "filter_gradient_bias":
                bias_bytes = problem.bias_c * problem.dtype.itemsize
                made.append(self._allocate(1, problem, (problem.bias_c,)))
                bias = self._data(made[1])
            elif self.tensors[BIAS]:
                bias = self._data(self.tensors[BIAS])
            first: Any = self._data(self.tensors[FIRST])
            kept = None
            if outside is not None:
                kept = self._with_pads(problem, first, outside)
                first = data_pointer(kept)
            second = self._data(self.tensors[SECOND])
            beside = (bias,) if problem.bias else ()
            program = _engine.run(problem, first, second, self._data(made[0]), *beside)
            del kept
            behind = self.finish(problem, made[0])
        finally:
            for tensor in made:
                self.library.DeleteTensor(tensor)
        if not isinstance(program, Bound) or outside is not None or behind is None:
            return None
        later, words = behind
        body = [
            *(program.address, NUMBERS[problem.dtype], problem.result_bytes),
            *(*problem.result_shape, *(words or (bias_bytes, problem.bias_c))),
        ]
        return Made((program,) if later is None else (program, later), body)

    def finish(self, problem: Problem, result: int) -> tuple[Bound | None, list[int]] | None:
        """Do what is to be done with the result; returns a program that did it and further words of a record.

        None if there can be no record.
        """
        return None, []

    def _problem(self, settings: Settings, outside: Pads | None) -> Problem:
        """Return the problem, all checks made."""
        call, form = self.node.call, self.node.form
        first, second = (self._shape(self.tensors[at]) for at in (FIRST, SECOND))
        if outside is not None:
            first = tuple(
                size + sum(pads) for size, pads in zip(first, outside, strict=len(first) == 4)
            )
        shapes: tuple[Shape, Shape, Shape | None] = (first, second, None)
        if call.kind is Kind.INPUT_GRADIENT:
            shapes = (self._sizes(call.input, (4,) if call.depthwise else (4, 2)), first, second)
        elif call.kind is Kind.FILTER_GRADIENT:
            shapes = (first, self._sizes(call.filter, (4,)), second)
        problem = convolution.build(call, settings, self.node.dtype, *shapes)
        has_bias = bool(self.tensors[BIAS])
        if has_bias or form == "filter_gradient_bias":
            problem = replace(problem, bias="output")
        if has_bias and self._shape(self.tensors[BIAS]) != (problem.bias_c,):
            raise ArgumentError(
                f"{call.function}: `bias` must have shape [{problem.bias_c}], "
                f"got {list(self._shape(self.tensors[BIAS]))}."
            )
        return problem

    def _padded(self) -> tuple[Settings, Pads | None]:
        """Return settings with the pads of a Pad op, and all of them where the batch or the channels have some."""
        settings, function = self.node.settings, self.node.call.function
        values, shape = self._values(self.tensors[VALUES]), self._shape(self.tensors[VALUES])
        if shape != (4, 2) or min(values) < 0:
            raise ArgumentError(
                f"{function}: `paddings` must hold 4 pairs of pads >= 0, got {values} of shape {list(shape)}."
            )
        if settings.padding != "VALID":
            raise ArgumentError(
                f"{function}: `padding` must be 'VALID' beside `paddings`, got {settings.padding!r}."
            )
        pairs = tuple((values[2 * at], values[2 * at + 1]) for at in range(4))
        rows, cols = (1, 2) if settings.data_format == "NHWC" else (2, 3)
        outside = [(0, 0) if at in (rows, cols) else pair for at, pair in enumerate(pairs)]
        with_pads = replace(settings, padding=(pairs[rows], pairs[cols]))
        return with_pads, tuple(outside) if any(map(any, outside)) else None

    def _with_pads(self, problem: Problem, address: int, outside: Pads) -> Any:
        """Return a copy of the image with zeros around its batch and channels."""
        shape, dtype = self._shape(self.tensors[FIRST]), problem.dtype.numpy
        memory: Any = (ctypes.c_char * (prod(shape) * dtype.itemsize)).from_address(address)
        return np.pad(np.ndarray(shape, dtype, memory), outside)

    def _sizes(self, argument: str, lengths: tuple[int, ...]) -> Shape:
        call: Operation = self.node.call
        shape = self._shape(self.tensors[VALUES])
        if len(shape) != 1:
            raise ArgumentError(
                f"{call.function}: `{argument}` must be 1-dimensional, got a tensor of shape {list(shape)}."
            )
        return arguments.sizes(call.function, argument, self._values(self.tensors[VALUES]), lengths)

    def _values(self, tensor: int) -> list[int]:
        kind: Any = ctypes.c_int32
        if self.library.TensorType(tensor) != INT32:
            kind = ctypes.c_int64
        count = min(self.library.TensorElementCount(tensor), _MOST)
        return list((kind * count).from_address(self._data(tensor))) if count > 0 else []

    def _shape(self, tensor: int) -> Shape:
        return handles.shape(self.library, tensor)

    def _data(self, tensor: int) -> int:
        return handles.data(self.library, tensor)

    def _allocate(self, at: int, problem: Problem, shape: Shape) -> int:
        return handles.allocate(self.library, self.context, at, problem.dtype, shape)
