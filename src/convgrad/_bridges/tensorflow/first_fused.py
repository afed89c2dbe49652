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
from . import first_time, kernel
from .capi import Library
from .first_time import Made
from .fusions import NONE, Fused
from .nodes import NUMBERS, Node


def compute(library: Library, node: Node, context: int, tensors: Any) -> Made | None:
    """Compute a call; returns the programs that did it and the body of a record, if there is one."""
    return _FusedCall(library, node, context, tensors).compute()


class _FusedCall(first_time.Call):
    """One call, by the handles of its inputs in their order."""

    def __init__(self, library: Library, node: Node, context: int, tensors: Any) -> None:
        assert node.fused is not None
        self.fused: Fused = node.fused
        self.inputs: list[Any] = [tensors[at] for at in range(kernel.MOST_INPUTS)]
        pads = self.inputs[self.fused.inputs] if node.form == "fused_padded" else None
        bias = self.inputs[self.fused.bias] if self.fused.bias != NONE else None
        super().__init__(library, node, context, (*self.inputs[:2], pads, bias))

    def finish(self, problem: Problem, result: int) -> tuple[Bound | None, list[int]] | None:
        """Run the pass; returns its program and the words of a record behind those of the convolution."""
        fused = self.fused
        self._check(problem)
        if not fused.has_pass or not problem.result_bytes:
            return None, self._words(problem, None, [])
        task = _task(problem, fused)
        call = Normalisation(task, None, fused.epsilon, fused.slope)
        where: dict[str, int] = {"scalars": first_time.scalars(call.scalars)}
        if fused.rows == NONE:
            where["saved"] = _unchanged(accumulator(problem.dtype), problem.out_c)
        fixed = [where.get(place, 0) for place in call.places]
        image = self._data(result)
        where |= {"x": image, "y": image}
        if fused.residual != NONE:
            where["residual"] = self._data(self.inputs[fused.residual])
        if fused.rows != NONE:
            for at, place in enumerate(("weight", "bias", "running_mean", "running_var")):
                where[place] = self._data(self.inputs[fused.rows + at])
            saved = np.empty((len(SAVED), problem.out_c), accumulator(problem.dtype).numpy)
            where["saved"] = saved.ctypes.data
        program = _engine.program(task)
        _engine.run(task, *(where.get(place, 0) for place in call.places))
        return (
            (program, self._words(problem, program, fixed)) if isinstance(program, Bound) else None
        )

    def _words(self, problem: Problem, program: Bound | None, fixed: list[int]) -> list[int]:
        fused = self.fused
        return [
            *(fused.bias, 0 if program is None else program.address, fused.residual, fused.rows),
            *(NUMBERS[accumulator(problem.dtype)], len(SAVED), problem.out_c),
            *(*fixed, *[0] * (kernel.MOST_PLACES - len(fixed))),
        ]

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


def _task(problem: Problem, fused: Fused) -> Task:
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
    """What `_norm` calls saved, of a batch norm that changes nothing; records point to it, so it is kept for good."""
    rows = {"scale": 1, "inverse": 1, "variance": 1}
    saved = np.zeros((len(SAVED), channels), dtype.numpy)
    for at, name in enumerate(SAVED):
        saved[at] = rows.get(name, 0)
    saved.flags.writeable = False
    return saved


def _unchanged(dtype: DType, channels: int) -> int:
    address: int = _unchanged_rows(dtype, channels).ctypes.data
    return address
