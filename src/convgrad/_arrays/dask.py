"""Dask's arrays: recognised without importing Dask, and planned by the bridge to it.

A call makes all checks, computes nothing, and returns an array of Dask. The bridge is imported by the first call with
such an array: if there is one, Dask is loaded.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .._base.dtypes import DType
from .._base.errors import ArgumentError, ArgumentTypeError
from .._problem.arguments import Given
from .._problem.convolution import Call
from .._problem.norm.call import BatchNormGradients, BatchNormResult
from .borrowed import Borrowed
from .borrowing import borrow_beside, check_dtype
from .request import NormRequest, Request


def recognise(value: Any) -> bool:
    """Tell whether `value` is an array of Dask. If it is, Dask is loaded."""
    if type(value) is np.ndarray:
        return False
    array = getattr(sys.modules.get("dask.array"), "Array", None)
    return isinstance(array, type) and isinstance(value, array)


def borrow(
    function: str, argument: str, value: Any, allowed: tuple[DType, ...], like: DType | None
) -> Borrowed:
    """Return an array of an allowed dtype; whatever NumPy takes beside an array of Dask goes with it."""
    if not recognise(value):
        return borrow_beside(function, argument, value, allowed, like)
    row = check_dtype(function, argument, value.dtype, allowed, like)
    if hasattr(value, "expr"):
        raise ArgumentTypeError(
            f"{function}: `{argument}` must be an array of Dask that has a graph, got an expression of Dask's query "
            f"planning, which is experimental; set `array.query-planning` to False before Dask is imported."
        )
    if type(value._meta) is not np.ndarray:
        raise ArgumentTypeError(
            f"{function}: `{argument}` must be an array of Dask whose chunks are arrays of NumPy, "
            f"got chunks of type {type(value._meta).__name__}."
        )
    if any(size != size for sizes in value.chunks for size in sizes):
        raise ArgumentError(
            f"{function}: `{argument}` must have chunks of known sizes, got {value.chunks}; "
            f"call its `compute_chunk_sizes()` first."
        )
    return Borrowed(value, row, tuple(int(size) for size in value.shape))


def compute(call: Call, given: Given, wanted: Any, first: Any, second: Any) -> Any:
    """Return the array of Dask that a call on such arrays makes, not computed yet."""
    from .._bridges.dask import graph

    problem, one, two, shape = Request(call, given, wanted, first, second).check(borrow)
    made = graph.compute(
        call.function,
        problem,
        *(
            # An image may have more leading dimensions than the problem, which counts them as one.
            each.array if each.shape == needed else _without_empty(each.array).reshape(needed)
            for each, needed in zip((one, two), problem.operand_shapes, strict=True)
        ),
    )
    return made if shape == problem.result_shape else made.reshape(shape)


def normalise(request: NormRequest) -> BatchNormResult:
    """Return batch norm on such arrays, not computed yet."""
    from .._bridges.dask import norm

    asked = request.check(borrow)
    return BatchNormResult(*norm.normalise(asked.settings, asked.row, asked.operands))


def normalise_back(request: NormRequest) -> BatchNormGradients:
    """Return the gradients of batch norm on such arrays, not computed yet."""
    from .._bridges.dask import norm

    asked = request.check(borrow)
    return BatchNormGradients(*norm.normalise_back(asked.settings, asked.row, asked.operands))


def _without_empty(array: Any) -> Any:
    """Return an array without chunks that have no cells, which Dask's `reshape` does not expect."""
    if isinstance(array, np.ndarray) or all(all(sizes) for sizes in array.chunks):
        return array
    return array.rechunk(
        tuple(tuple(size for size in sizes if size) or (0,) for sizes in array.chunks)
    )
