"""Tasks on addresses without a compiler: the oracle, rounded."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._base.dtypes import AnyArray, DType, by_short, round_once
from ..._base.fp_mode import default_mode
from . import oracle
from .task import SAVED, SCALARS, Task


def executor(task: Task) -> Callable[..., None]:
    """Return a function that carries out a task on the addresses of its places."""

    def run(*addresses: int) -> None:
        memory = _Memory(task, dict(zip(task.places, addresses, strict=True)))
        # Infinities minus themselves: kernels do not warn either.
        with default_mode(), np.errstate(all="ignore"):
            if task.name in ("forward", "forward_frozen", "apply"):
                _forward(task, memory)
            elif task.name in ("backward", "backward_frozen"):
                _backward(task, memory)
            else:
                _scaling(task, memory)

    return run


class _Memory:
    """What lies at the addresses of a task, read and written as float64; images as [n, c, p]."""

    def __init__(self, task: Task, addresses: dict[str, int]) -> None:
        self._task, self._addresses = task, addresses
        self._parameter = by_short(task.parameter)

    def __contains__(self, name: str) -> bool:
        return self._addresses.get(name, 0) != 0

    def _array(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> AnyArray:
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        memory: Any = (ctypes.c_char * size).from_address(self._addresses[name])
        array: AnyArray = np.ndarray(shape, dtype, memory)
        return array

    def image(self, name: str) -> oracle.Array:
        found = self._array(name, self._task.shape, self._task.dtype.numpy).astype(np.float64)
        return found if self._task.data_format == "NCHW" else found.transpose(0, 2, 1)

    def set_image(self, name: str, values: oracle.Array) -> None:
        stored = values if self._task.data_format == "NCHW" else values.transpose(0, 2, 1)
        self._set(name, stored, self._task.dtype)

    def row(self, name: str) -> oracle.Array | None:
        if name not in self:
            return None
        return self._array(name, (self._task.channels,), self._parameter.numpy).astype(np.float64)

    def set_row(self, name: str, values: oracle.Array) -> None:
        self._set(name, values, self._parameter)

    def pair(self, name: str) -> oracle.Array:
        shape = (self._task.images, self._task.channels)
        return self._array(name, shape, self._task.dtype.numpy).astype(np.float64)[:, :, None]

    def set_pair(self, name: str, values: oracle.Array) -> None:
        self._set(name, values, self._task.dtype)

    def _set(self, name: str, values: oracle.Array, row: DType) -> None:
        self._array(name, values.shape, row.numpy)[...] = round_once(values, row)

    def saved(self) -> oracle.Statistics:
        shape = (len(SAVED), self._task.channels)
        rows = self._array("saved", shape, self._parameter.numpy).astype(np.float64)
        return oracle.Statistics(*rows)

    def scalars(self) -> dict[str, float]:
        numbers = self._array("scalars", (len(SCALARS),), np.dtype(np.float64))
        return dict(zip(SCALARS, numbers.tolist(), strict=True))

    def moments(self) -> tuple[oracle.Array, oracle.Array]:
        """Return the batch's mean and variance."""
        return oracle.moments(self.image("x"))


def _forward(task: Task, memory: _Memory) -> None:
    scalars = memory.scalars()
    if task.name == "apply":
        found = memory.saved()
    else:
        running_mean, running_var = memory.row("running_mean"), memory.row("running_var")
        if task.name == "forward":
            mean, variance = memory.moments()
            momentum = scalars["momentum"]
            for name, old, new in (
                ("running_mean", running_mean, mean),
                ("running_var", running_var, variance * scalars["unbiased"]),
            ):
                if old is not None:
                    memory.set_row(name, (1 - momentum) * old + momentum * new)
        else:
            assert running_mean is not None and running_var is not None
            mean, variance = running_mean, running_var
        found = oracle.statistics(
            mean, variance, scalars["epsilon"], memory.row("weight"), memory.row("bias")
        )
        memory.set_row("saved", np.stack(found))
    before = memory.image("residual") if task.residual == "before" else None
    u = oracle.argument(memory.image("x"), found, before)
    y = oracle.activated(task.activation, u, scalars["slope"])
    memory.set_image("y", y + memory.image("residual") if task.residual == "after" else y)


def _backward(task: Task, memory: _Memory) -> None:
    x, given, slope = memory.image("x"), memory.saved(), memory.scalars()["slope"]
    # The derivative of what is told from its result is the same there: at y as at u.
    if task.beside == "y":
        u = memory.image("beside")
    else:
        u = oracle.argument(x, given, memory.image("beside") if task.beside else None)
    inner = memory.image("grad") * oracle.derivative(task.activation, u, slope)
    found = oracle.gradients(x, given, inner, task.name == "backward_frozen")
    if task.wants_x:
        memory.set_image("dx", found.x)
    if task.wants_residual:
        memory.set_image("dresidual", found.residual)
    if task.wants_parameters:
        memory.set_row("dweight", found.weight)
        memory.set_row("dbias", found.bias)


def _scaling(task: Task, memory: _Memory) -> None:
    if task.name == "pool":
        memory.set_pair("pooled", memory.image("x").mean(axis=2))
    elif task.name == "pool_gradient":
        share = memory.pair("dpooled") / task.pixels
        whole = memory.image("grad") if "grad" in memory else np.zeros((1, 1, task.pixels))
        memory.set_image("dx", whole + share)
    elif task.name == "scale":
        memory.set_image("y", memory.image("x") * memory.pair("factor"))
    else:
        grad = memory.image("grad")
        memory.set_pair("dfactor", (grad * memory.image("x")).sum(axis=2))
        memory.set_image("dx", grad * memory.pair("factor"))
