"""Tensors as the C interface has them: handles, asked for shape and address; results made in TensorFlow's memory."""

from __future__ import annotations

import ctypes
from math import prod

from ..._base.dtypes import DType
from ..._base.errors import AllocationError
from ..._problem.convolution import Shape
from .capi import Library
from .nodes import NUMBERS


def shape(library: Library, tensor: int) -> Shape:
    return tuple(library.Dim(tensor, at) for at in range(library.NumDims(tensor)))


def data(library: Library, tensor: int) -> int:
    """Return where a tensor's numbers are: an empty one has none."""
    return library.TensorData(tensor) or 0


def allocate(library: Library, context: int, at: int, dtype: DType, sizes: Shape) -> int:
    """Return the tensor of a result."""
    nbytes = prod(sizes) * dtype.itemsize
    dims = (ctypes.c_int64 * len(sizes))(*sizes)
    with library.status() as status:
        made: int | None = library.AllocateOutput(
            *(context, at, NUMBERS[dtype], dims, len(sizes), nbytes), status
        )
        if library.GetCode(status) or not made:
            raise AllocationError(
                f"no memory for a result of {nbytes:,} bytes ({library.Message(status).decode(errors='replace')})"
            )
    return made
