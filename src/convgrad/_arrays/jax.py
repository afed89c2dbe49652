"""JAX's arrays: recognised without importing JAX, and computed with by the bridge to it.

Arrays come back as arrays of JAX, concrete or traced, under `jit`, `grad`, `vmap` and all other transforms. The bridge
is imported by the first call with such an array: if there is one, JAX is loaded.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .._base.dtypes import DType
from .._base.errors import ArgumentError, ArgumentTypeError, said
from .._problem.arguments import Given
from .._problem.convolution import Call
from .._problem.norm.call import BatchNormGradients, BatchNormResult
from .borrowed import Borrowed
from .borrowing import borrow_beside, check_dtype
from .request import NormRequest, Request


def recognise(value: Any) -> bool:
    """Tell whether `value` is an array of JAX, or stands for one that is traced. If it is, JAX is loaded."""
    if type(value) is np.ndarray:  # sooner than JAX's own check, which takes 1 us
        return False
    array = getattr(sys.modules.get("jax"), "Array", None)
    return isinstance(array, type) and isinstance(value, array)


def borrow(
    function: str, argument: str, value: Any, allowed: tuple[DType, ...], like: DType | None
) -> Borrowed:
    """Return an array of an allowed dtype; whatever NumPy takes beside an array of JAX goes with it."""
    if not recognise(value):
        return borrow_beside(function, argument, value, allowed, like)
    _check_place(function, argument, value)
    row = check_dtype(function, argument, value.dtype, allowed, like)
    return Borrowed(value, row, _sizes(function, argument, value))


def compute(call: Call, given: Given, wanted: Any, first: Any, second: Any) -> Any:
    """Compute a call on arrays of JAX; the result is one."""
    from .._bridges.jax import sums

    problem, one, two, shape = Request(call, given, wanted, first, second).check(borrow)
    made = sums.compute(
        problem,
        *(
            # An image may have more leading dimensions than the problem, which counts them as one.
            each.array if each.shape == needed else each.array.reshape(needed)
            for each, needed in zip((one, two), problem.operand_shapes, strict=True)
        ),
    )
    return made if shape == problem.result_shape else made.reshape(shape)


def normalise(request: NormRequest) -> BatchNormResult:
    """Compute batch norm on arrays of JAX; gradients flow to all of them, from all results."""
    from .._bridges.jax import batch_norm

    asked = request.check(borrow)
    made = batch_norm.normalise(asked.settings, asked.row, asked.operands)
    return BatchNormResult(*made)


def normalise_back(request: NormRequest) -> BatchNormGradients:
    """Compute the gradients of batch norm, which can be differentiated again."""
    from .._bridges.jax import batch_norm

    asked = request.check(borrow)
    made = batch_norm.normalise_back(asked.settings, asked.row, asked.operands)
    return BatchNormGradients(*made)


def _check_place(function: str, argument: str, value: Any) -> None:
    jax = sys.modules["jax"]
    if isinstance(value, jax.core.Tracer):  # where it will be is not known yet
        return
    if value.is_deleted():
        raise ArgumentError(
            f"{function}: `{argument}` must be an array that still exists, got one that was deleted or donated."
        )
    for device in value.devices():
        if device.platform != "cpu":
            raise ArgumentTypeError(
                f"{function}: `{argument}` must be an array in the memory of the CPU, got one on {device}; "
                f"use `jax.device_put`."
            )


def _sizes(function: str, argument: str, value: Any) -> tuple[int, ...]:
    try:
        return tuple(int(size) for size in value.shape)
    except Exception as error:  # of an export with symbolic sizes
        raise ArgumentError(
            f"{function}: `{argument}` must have a shape of known sizes, got {value.shape} ({said(error)})."
        ) from None
