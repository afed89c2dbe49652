"""A call of a fused convolution that has no record yet: the convolution, then the pass over its result, in place."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ... import _engine
from ..._base.dtypes import DType, accumulator
from ..._base.errors import ArgumentError
from ..._problem.convolution import Problem
from ..._problem.norm import Task
from ..._problem.norm.normalisation import Normalisation
from ..._problem.norm.task import SAVED
from ..._runtime.bound import Bound
from ..records import NOWHERE
from . import first_time
from .capi import Library
from .fusions import NONE, FusedOps
from .kernel import ABSENT, MOST_INPUTS, Form
from .nodes import Node
from .recipe import Recipe, scalars


def compute(library: Library, node: Node, context: int, tensors: Any) -> Recipe | None:
    """Compute a call; returns how the next one like it is computed, if that needs no Python."""
    assert node.fused is not None
    values = node.fused.inputs if node.form == "fused_padded" else ABSENT
    form = Form(0, 1, values=values, bias=node.fused.bias)
    return _FusedCall(library, node, context, tensors, form).compute()


class _FusedCall(first_time.Call):
    """One call, by the handles of its inputs in their order."""

    @property
    def fused(self) -> FusedOps:
        assert self.node.fused is not None
        return self.node.fused

    def finish(self, problem: Problem, result: int, recipe: Recipe | None) -> Recipe | None:
        """Run the pass over the result, in place."""
        fused = self.fused
        self._check(problem)
        if not fused.has_pass or not problem.result_bytes:
            return recipe
        task, sums = _task(problem, fused), accumulator(problem.dtype)
        call = Normalisation(task, None, fused.epsilon, fused.slope)
        inputs = {} if fused.residual == NONE else {"residual": fused.residual}
        constants = {"scalars": scalars(call.scalars)}
        if fused.rows == NONE:
            constants["saved"] = _unchanged(sums, problem.out_c)
        else:
            rows = ("weight", "bias", "running_mean", "running_var")
            inputs |= {place: fused.rows + at for at, place in enumerate(rows)}
        where = {place: self._data(self.inputs[at]) for place, at in inputs.items()} | constants
        where["x"] = where["y"] = self._data(result)
        saved = np.empty((len(SAVED), problem.out_c), sums.numpy)
        where.setdefault("saved", saved.ctypes.data)
        _engine.run(task, *(where.get(place, 0) for place in call.places))
        program = _engine.program(task)
        if recipe is None or not isinstance(program, Bound):
            return None
        places = {**inputs, "x": MOST_INPUTS, "y": MOST_INPUTS}
        if fused.rows != NONE:
            places["saved"] = recipe.temporary(sums, saved.shape)
        places |= {place: recipe.constant(address) for place, address in constants.items()}
        recipe.run(program, (places.get(place, NOWHERE) for place in call.places))
        return recipe

    def _check(self, problem: Problem) -> None:
        fused, function = self.fused, self.node.call.function
        if fused.residual != NONE:
            shape = self._shape(self.inputs[fused.residual])
            if shape != problem.output_shape:
                raise ArgumentError(
                    f"{function}: what is added must have the result's shape {list(problem.output_shape)}, "
                    f"got {list(shape)}."
                )
        for at in range(4 if fused.rows != NONE else 0):
            shape = self._shape(self.inputs[fused.rows + at])
            if shape != (problem.out_c,):
                raise ArgumentError(
                    f"{function}: a row of batch norm must have shape [{problem.out_c}], got {list(shape)}."
                )


def _task(problem: Problem, fused: FusedOps) -> Task:
    batch, *_ = problem.output_shape
    pixels = int(np.prod(problem.output_shape, dtype=object)) // (batch * problem.out_c)
    return Task(
        name="apply" if fused.rows == NONE else "forward_frozen",
        dtype=problem.dtype,
        data_format="NHWC" if problem.data_format == "NHWC" else "NCHW",
        images=batch,
        pixels=pixels,
        channels=problem.out_c,
        activation=fused.activation,
        residual="" if fused.residual == NONE else "before",
    )


@functools.cache
def _unchanged_rows(dtype: DType, channels: int) -> Any:
    """What `_problem.norm` calls saved, of a batch norm that changes nothing; kept for good, as records point to it."""
    rows = {"scale": 1, "inverse": 1, "variance": 1}
    saved = np.zeros((len(SAVED), channels), dtype.numpy)
    for at, name in enumerate(SAVED):
        saved[at] = rows.get(name, 0)
    saved.flags.writeable = False
    return saved


def _unchanged(dtype: DType, channels: int) -> int:
    address: int = _unchanged_rows(dtype, channels).ctypes.data
    return address
