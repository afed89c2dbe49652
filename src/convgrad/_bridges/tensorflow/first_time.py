"""A call of a kernel that has no record yet: all checks, then the corridor, then the record of the next such call.

Calls that can have no record come here every time: empty ones, those that are computed without kernels, and images that
are padded in the batch or the channels.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from math import prod
from typing import Any

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
from .kernel import ABSENT, FORMS, MOST_INPUTS, Form
from .nodes import Node
from .recipe import Recipe

_MOST = 64
"""Values that are looked at: no tensor of sizes or pads has more than 8, and a longer one is refused by its length."""

Pads = tuple[tuple[int, int], ...]


def compute(library: Library, node: Node, context: int, tensors: Any) -> Recipe | None:
    """Compute a call; returns how the next one like it is computed, if that needs no Python."""
    return Call(library, node, context, tensors, FORMS[node.form]).compute()


class Call:
    """One call, by the handles of its tensors."""

    def __init__(
        self, library: Library, node: Node, context: int, tensors: Any, form: Form
    ) -> None:
        self.library, self.node, self.context, self.form = library, node, context, form
        self.inputs: list[Any] = [tensors[at] for at in range(MOST_INPUTS)]
        self.first, self.second = self.inputs[form.first], self.inputs[form.second]
        self.values: Any = None if form.values == ABSENT else self.inputs[form.values]
        self.bias: Any = None if form.bias == ABSENT else self.inputs[form.bias]

    def compute(self) -> Recipe | None:
        node = self.node
        settings, outside = node.settings, None
        if node.form in ("forward_padded", "fused_padded"):
            settings, outside = self._padded()
        problem = self._problem(settings, outside)
        made = [self._allocate(0, problem, problem.result_shape)]
        try:
            if node.form == "filter_gradient_bias":
                made.append(self._allocate(1, problem, (problem.bias_c,)))
            first: Any = self._data(self.first)
            kept = None
            if outside is not None:
                kept = self._with_pads(problem, first, outside)
                first = data_pointer(kept)
            second = self._data(self.second)
            beside = [self._data(each) for each in (self.bias, *made[1:]) if each]
            program = _engine.run(problem, first, second, self._data(made[0]), *beside)
            del kept
            recipe = None
            if isinstance(program, Bound) and outside is None:
                recipe = self._recipe(problem, program)
            return self.finish(problem, made[0], recipe)
        finally:
            for tensor in made:
                self.library.DeleteTensor(tensor)

    def finish(self, problem: Problem, result: int, recipe: Recipe | None) -> Recipe | None:
        """Do what is to be done with the result; returns the recipe with that, if it has one."""
        return recipe

    def _recipe(self, problem: Problem, program: Bound) -> Recipe:
        recipe, form = Recipe(), self.form
        places = [form.first, form.second, recipe.result(problem.dtype, problem.result_shape)]
        if form.bias != ABSENT:
            places.append(form.bias)
        elif self.node.form == "filter_gradient_bias":
            places.append(recipe.result(problem.dtype, (problem.bias_c,)))
        recipe.run(program, places)
        return recipe

    def _problem(self, settings: Settings, outside: Pads | None) -> Problem:
        """Return the problem, all checks made."""
        call, form = self.node.call, self.node.form
        first, second = self._shape(self.first), self._shape(self.second)
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
        has_bias = self.bias is not None
        if has_bias or form == "filter_gradient_bias":
            problem = replace(problem, bias="output")
        if has_bias and self._shape(self.bias) != (problem.bias_c,):
            raise ArgumentError(
                f"{call.function}: `bias` must have shape [{problem.bias_c}], "
                f"got {list(self._shape(self.bias))}."
            )
        return problem

    def _padded(self) -> tuple[Settings, Pads | None]:
        """Return settings with the pads of a Pad op, and all of them where the batch or the channels have some."""
        settings, function = self.node.settings, self.node.call.function
        values, shape = self._values(self.values), self._shape(self.values)
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
        shape, dtype = self._shape(self.first), problem.dtype.numpy
        memory: Any = (ctypes.c_char * (prod(shape) * dtype.itemsize)).from_address(address)
        return np.pad(np.ndarray(shape, dtype, memory), outside)

    def _sizes(self, argument: str, lengths: tuple[int, ...]) -> Shape:
        call: Operation = self.node.call
        shape = self._shape(self.values)
        if len(shape) != 1:
            raise ArgumentError(
                f"{call.function}: `{argument}` must be 1-dimensional, got a tensor of shape {list(shape)}."
            )
        return arguments.sizes(call.function, argument, self._values(self.values), lengths)

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
