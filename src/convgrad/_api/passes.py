"""From the arguments of `batch_norm_act` and its gradient to their results: borrow, check, run passes on addresses.

Only NumPy's arrays, and what becomes one, come this way. A tensor of a framework is not turned into an array behind
its back: its gradients would be lost, and the framework's bridge has a function for it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .. import _engine
from .._arrays import Borrowed, framework_of
from .._arrays.holding import lend
from .._arrays.numpy import borrow
from .._base.dtypes import FLOATING, AnyArray, DType, accumulator, round_once
from .._base.errors import AllocationError, ArgumentTypeError
from .._problem.norm import PLACES, SAVED, SCALARS, Task, oracle
from .._problem.norm.call import (
    BatchNormGradients,
    BatchNormResult,
    Settings,
    Sizes,
    check_given,
    check_statistics,
    sizes,
)
from .._runtime.pointers import data_pointer
from .._runtime.results import new_result

FORWARD, BACKWARD = "batch_norm_act", "batch_norm_act_grad"
_BRIDGES = {"PyTorch": "torch", "JAX": "jax", "TensorFlow": "tensorflow"}


class _Arrays:
    """The arrays of one call: borrowed, then held still at their addresses, with new ones for its results."""

    def __init__(self, function: str, images: Mapping[str, Any], rows: Mapping[str, Any]) -> None:
        self.function = function
        for name, value in (*images.items(), *rows.items()):
            _refuse_frameworks(function, name, value)
        self.images: dict[str, Borrowed] = {}
        row: DType | None = None
        for name, value in images.items():
            self.images[name] = borrow(function, name, value, FLOATING, row)
            row = self.images[name].row
        assert row is not None
        self.row, self.parameter = row, accumulator(row)
        only = (self.parameter,)
        self.rows = {
            name: borrow(function, name, value, only, self.parameter)
            for name, value in rows.items()
        }
        self._held: list[object] = []

    def sizes(self, settings: Settings) -> Sizes:
        """Check the shapes against each other."""
        rows = {name: each.shape for name, each in self.rows.items()}
        alike = {name: each.shape for name, each in self.images.items()}
        image = alike.pop("input")
        return sizes(self.function, settings.data_format, image, alike, rows)

    def lend(self, found: Sizes) -> dict[str, int]:
        """Return the addresses of all that was borrowed, by argument."""
        numbers = found.values * found.channels
        addresses = {}
        for name, lent in (*self.images.items(), *self.rows.items()):
            count = numbers if name in self.images else found.channels
            addresses[name], held = lend(
                self.function, lent.array, lent.row, count * lent.row.itemsize
            )
            self._held.append(held)
        return addresses

    def new(self, shape: tuple[int, ...], row: DType) -> tuple[AnyArray, int]:
        """Return an array, its numbers not set, and their address; it is kept until the end of the call."""
        try:
            made = new_result(shape, row.numpy)
        except AllocationError as error:
            raise AllocationError(f"{self.function}: {error}.") from None
        self._held.append(made)
        return made, data_pointer(made)

    def new_from(self, values: AnyArray, row: DType) -> AnyArray:
        """Return a copy of our own."""
        made, _ = self.new(values.shape, row)
        made[...] = values
        return made

    def values(self, name: str) -> AnyArray | None:
        """Return a row in float64, None where it was not given."""
        if name not in self.rows:
            return None
        with np.errstate(invalid="ignore"):  # signalling NaNs
            values: AnyArray = self.rows[name].array.astype(np.float64)
        return values

    def run(self, task: Task, settings: Settings, addresses: Mapping[str, int]) -> None:
        """Carry out a task on addresses by place."""
        numbers = {"epsilon": settings.epsilon, "slope": settings.negative_slope}
        scalars = (ctypes.c_double * len(SCALARS))(*(numbers.get(name, 1.0) for name in SCALARS))
        places = {**addresses, "scalars": ctypes.addressof(scalars)}
        try:
            _engine.run(task, *(places.get(name, 0) for name in PLACES[task.name]))
        except AllocationError as error:
            raise AllocationError(f"{self.function}: {error}.") from None


def _refuse_frameworks(function: str, argument: str, value: Any) -> None:
    framework = framework_of(value)
    if framework is None:
        return
    if framework == "Dask":
        advice = (
            "statistics need all chunks: find mean and variance with Dask, and map the function over blocks with "
            "is_training=False"
        )
    else:
        gradients = f", whose gradients {framework} finds" if function == BACKWARD else ""
        advice = f"call convgrad.{_BRIDGES[framework]}.{FORWARD}{gradients}"
    raise ArgumentTypeError(
        f"{function}: `{argument}` must be an array of NumPy, got one of {framework}; {advice}."
    )


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _task(arrays: _Arrays, settings: Settings, found: Sizes) -> Task:
    """Return the forward pass of a call."""
    return Task(
        name="forward" if settings.is_training else "forward_frozen",
        dtype=arrays.row,
        data_format=settings.data_format,
        images=found.images,
        pixels=found.pixels,
        channels=found.channels,
        activation=settings.activation,
        residual=settings.residual_position if "residual" in arrays.images else "",
    )


def forward(
    settings: Settings, input: Any, residual: Any, rows: Mapping[str, Any]
) -> BatchNormResult:
    """Run `batch_norm_act`; rows are scale, offset, mean and variance, or None."""
    check_statistics(FORWARD, settings.is_training, rows["mean"], rows["variance"])
    arrays = _Arrays(FORWARD, {"input": input} | _given(residual=residual), _given(**rows))
    found = arrays.sizes(settings)
    at = arrays.lend(found)
    y, at_y = arrays.new(arrays.images["input"].shape, arrays.row)
    saved, at_saved = arrays.new((len(SAVED), found.channels), arrays.parameter)
    if found.is_empty:
        for row, name in enumerate(("mean", "variance")):
            given = arrays.values(name)
            saved[row] = np.nan if given is None else given  # the mean of nothing, as in TensorFlow
    else:
        names = {"x": "input", "residual": "residual", "weight": "scale", "bias": "offset"}
        names |= {"running_mean": "mean", "running_var": "variance"}
        places = {place: at[name] for place, name in names.items() if name in at}
        task = _task(arrays, settings, found)
        arrays.run(task, settings, {**places, "y": at_y, "saved": at_saved})
    mean, variance = (arrays.new_from(saved[row], arrays.parameter) for row in (0, 1))
    return BatchNormResult(y, mean, variance)


def backward(
    settings: Settings, out_backprop: Any, input: Any, residual: Any, rows: Mapping[str, Any]
) -> BatchNormGradients:
    """Run `batch_norm_act_grad`; rows are scale and offset, or None, and the statistics that forward returned."""
    for name in ("mean", "variance"):
        check_given(BACKWARD, name, rows[name])
    images = {"out_backprop": out_backprop, "input": input}
    arrays = _Arrays(BACKWARD, images | _given(residual=residual), _given(**rows))
    found = arrays.sizes(settings)
    at = arrays.lend(found)
    shape, row, parameter = arrays.images["input"].shape, arrays.row, arrays.parameter
    dx, at_dx = arrays.new(shape, row)
    (dscale, at_dscale), (doffset, at_doffset) = (
        arrays.new((found.channels,), parameter) for _ in range(2)
    )
    task = _task(arrays, settings, found)
    bent = task.residual == "before" and task.activation != "none"
    dresidual, at_dresidual = arrays.new(shape, row) if task.residual else (None, 0)
    if dresidual is not None and not bent:
        dresidual[...] = arrays.images["out_backprop"].array  # it is added and nothing else
    if found.is_empty:
        dscale[...] = doffset[...] = 0
        return BatchNormGradients(dx, dscale, doffset, dresidual)
    at_saved = _saved(arrays, settings)
    places = {"x": at["input"], "grad": at["out_backprop"], "saved": at_saved, "dx": at_dx}
    places |= {"dweight": at_dscale, "dbias": at_doffset}
    if bent:
        places["dresidual"] = at_dresidual
    task = replace(
        task,
        name="backward" if settings.is_training else "backward_frozen",
        wants_residual=bent,
    )
    if task.beside == "residual":
        places["beside"] = at["residual"]
    elif task.beside:
        # The derivative is told from the result; the argument itself tells it as well, whatever the slope's sign.
        _, places["beside"] = arrays.new(shape, row)
        again = {"x": at["input"], "residual": at["residual"], "saved": at_saved}
        plain = replace(task, name="apply", activation="none")
        arrays.run(plain, settings, {**again, "y": places["beside"]})
    arrays.run(task, settings, places)
    return BatchNormGradients(dx, dscale, doffset, dresidual)


def _saved(arrays: _Arrays, settings: Settings) -> int:
    """Return the address of what a forward pass would have left, from the statistics: a few numbers per channel."""
    mean, variance = arrays.values("mean"), arrays.values("variance")
    assert mean is not None and variance is not None
    with np.errstate(all="ignore"):
        rows = oracle.statistics(
            mean, variance, settings.epsilon, arrays.values("scale"), arrays.values("offset")
        )
    saved, address = arrays.new((len(SAVED), len(mean)), arrays.parameter)
    saved[...] = round_once(np.stack(rows), arrays.parameter)
    return address
