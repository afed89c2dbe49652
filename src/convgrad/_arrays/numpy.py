"""NumPy's adapter, which takes the rest: what becomes an array is held still while programs run on addresses."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np

from .. import _engine
from .._base.dtypes import AnyArray, DType, accumulator, round_once
from .._base.errors import AllocationError
from .._problem.arguments import Given
from .._problem.convolution import Call
from .._problem.norm import SAVED, Task, oracle
from .._problem.norm.call import BatchNormGradients, BatchNormResult
from .._runtime.bound import Bound
from .._runtime.pointers import data_pointer
from .._runtime.results import new_result
from .borrowing import borrow
from .holding import lend
from .repeated import Ready, key_of
from .request import CheckedNorm, NormRequest, Request

__all__ = ["borrow", "compute", "normalise", "normalise_back", "recognise"]


def recognise(value: Any) -> bool:
    """Take everything: what is not an array is refused when it is borrowed."""
    return True


def compute(call: Call, given: Given, wanted: Any, first: Any, second: Any) -> AnyArray:
    """Hold the operands still, make the result, fill it; the program is remembered for the next such call."""
    key = key_of(call, given, wanted, first, second)
    problem, one, two, shape = Request(call, given, wanted, first, second, key).check(borrow)
    at_first, at_second = 0, 0
    held_first: object = None
    held_second: object = None
    if not problem.is_empty:  # else nothing is read, and a copy could be large
        sizes = problem.operand_bytes
        at_first, held_first = lend(call.function, one.array, one.row, sizes[0])
        at_second, held_second = lend(call.function, two.array, two.row, sizes[1])
    try:
        # Before the plan is made: planning for sizes that no memory can hold would take for ever.
        result = new_result(shape, problem.dtype.numpy)
        program = _engine.run(problem, at_first, at_second, data_pointer(result))
    except AllocationError as error:
        raise AllocationError(f"{call.function}: {error}.") from None
    del held_first, held_second  # kept until here
    # Bytes may be in another order than the key says, and another thread may have changed a shape since.
    arrays = (one.shape, one.row.numpy, two.shape, two.row.numpy)
    if key is not None and key[1] == arrays and type(program) is Bound:
        _engine.remember(key, Ready(call.function, problem, program, shape))
    return result


# Batch norm. ----------------------------------------------------------------------------------------------------------


def normalise(request: NormRequest) -> BatchNormResult:
    """Run batch norm with activation: two passes over memory."""
    asked = request.check(borrow)
    memory, sizes = _Memory(asked), asked.sizes
    parameter = accumulator(asked.row)
    y = memory.new("y", asked.arrays["x"].shape, asked.row)
    saved = memory.new("saved", (len(SAVED), sizes.channels), parameter)
    if sizes.is_empty:
        for row, place in enumerate(("running_mean", "running_var")):
            given = memory.values(place)
            saved[row] = np.nan if given is None else given  # the mean of nothing, as in TensorFlow
    else:
        call = asked.forward(sizes)
        memory.run(call.task, call.scalars)
    mean, variance = (memory.new_from(saved[row], parameter) for row in (0, 1))
    return BatchNormResult(y, mean, variance)


def normalise_back(request: NormRequest) -> BatchNormGradients:
    """Run the gradients of batch norm: two passes, and one more where a result was kept to tell the derivative."""
    asked = request.check(borrow)
    memory, sizes = _Memory(asked), asked.sizes
    shape, row, parameter = asked.arrays["x"].shape, asked.row, accumulator(asked.row)
    call = asked.backward(sizes)
    task = call.task
    dx = memory.new("dx", shape, row)
    dscale = memory.new("dweight", (sizes.channels,), parameter)
    doffset = memory.new("dbias", (sizes.channels,), parameter)
    dresidual = memory.new("dresidual", shape, row) if task.residual else None
    if dresidual is not None and not task.wants_residual:
        dresidual[...] = asked.arrays["grad"].array  # it is added and nothing else
    if sizes.is_empty:
        dscale[...] = doffset[...] = 0
        return BatchNormGradients(dx, dscale, doffset, dresidual)
    _new_saved(memory, asked)
    if task.beside == "residual":
        memory.at["beside"] = memory.at["residual"]
    elif task.beside:
        # The derivative is told from the result; the argument itself tells it as well, whatever the slope's sign.
        memory.new("y", shape, row)
        memory.run(
            replace(asked.forward(sizes).task, name="apply", activation="none"), call.scalars
        )
        memory.at["beside"] = memory.at["y"]
    memory.run(task, call.scalars)
    return BatchNormGradients(dx, dscale, doffset, dresidual)


def _new_saved(memory: _Memory, asked: CheckedNorm) -> None:
    """Make what a forward pass would have left, from the statistics: a few numbers per channel."""
    mean, variance = memory.values("running_mean"), memory.values("running_var")
    assert mean is not None and variance is not None
    with np.errstate(all="ignore"):
        rows = oracle.statistics(
            *(mean, variance, asked.settings.epsilon),
            *(memory.values("weight"), memory.values("bias")),
        )
    parameter = accumulator(asked.row)
    saved = memory.new("saved", (len(SAVED), len(mean)), parameter)
    saved[...] = round_once(np.stack(rows), parameter)


class _Memory:
    """The arrays of one call, held still at their addresses, with new ones for its results."""

    def __init__(self, asked: CheckedNorm) -> None:
        self.at: dict[str, int] = {}
        """Addresses by place."""
        self._function, self._asked = asked.function, asked
        self._held: list[object] = []
        for place, lent in asked.arrays.items():
            size = lent.array.size * lent.row.itemsize
            self.at[place], held = lend(asked.function, lent.array, lent.row, size)
            self._held.append(held)

    def new(self, place: str, shape: tuple[int, ...], row: DType) -> AnyArray:
        """Return an array for a place, its numbers not set; it is kept until the end of the call."""
        try:
            made = new_result(shape, row.numpy)
        except AllocationError as error:
            raise AllocationError(f"{self._function}: {error}.") from None
        self._held.append(made)
        self.at[place] = data_pointer(made)
        return made

    def new_from(self, values: AnyArray, row: DType) -> AnyArray:
        """Return a copy of our own."""
        made = self.new("", values.shape, row)
        made[...] = values
        return made

    def values(self, place: str) -> AnyArray | None:
        """Return a row in float64, None where it was not given."""
        if place not in self._asked.arrays:
            return None
        with np.errstate(invalid="ignore"):  # signalling NaNs
            values: AnyArray = self._asked.arrays[place].array.astype(np.float64)
        return values

    def run(self, task: Task, scalars: tuple[float, ...]) -> None:
        """Carry out a task; places without an array have the address 0."""
        numbers = (ctypes.c_double * len(scalars))(*scalars)
        self.at["scalars"] = ctypes.addressof(numbers)
        try:
            _engine.run(task, *(self.at.get(place, 0) for place in task.places))
        except AllocationError as error:
            raise AllocationError(f"{self._function}: {error}.") from None
