"""What matters of a tensor to a kernel: dtype, sizes and strides, as plain integers.

Tensors are described as PyTorch has them: images are [n, c, h, w] and filters [o, i, kh, kw], whatever their order in
memory, which the strides tell. Nothing here knows PyTorch's types, so a description can come from a tensor or from the
words a compiled handler collected.
"""

from __future__ import annotations

from typing import NamedTuple

from ..._base import dtypes
from ..._base.dtypes import DType

Four = tuple[int, int, int, int]

DTYPES: dict[int, DType] = {row.torch: row for row in dtypes.DTYPES}
"""By the number PyTorch's C interface gives a dtype."""
NUMBERS = {row: number for number, row in DTYPES.items()}


class Tensor(NamedTuple):
    """A tensor of four dimensions without its data."""

    dtype: int
    """A number of `DTYPES`, or of a dtype we do not know."""
    sizes: Four
    strides: Four


class Given(NamedTuple):
    """A tensor a handler was given, of one or four dimensions."""

    dimensions: int
    tensor: Tensor
    """That of a vector has its size and stride in front, and zeros."""


def nhwc_strides(sizes: Four) -> Four:
    """Return the strides of an image [n, c, h, w] that lies in memory as n, h, w, c."""
    _, c, h, w = sizes
    return (h * w * c, 1, w * c, c)


def nchw_strides(sizes: Four) -> Four:
    """Return the strides of an image that lies in memory as it is written."""
    _, c, h, w = sizes
    return (c * h * w, h * w, w, 1)


def lies_as(tensor: Tensor, strides: Four) -> bool:
    """Tell whether a tensor lies in memory as these strides say; those of dimensions of size 1 say nothing."""
    return all(
        size == 1 or there == wanted
        for size, there, wanted in zip(tensor.sizes, tensor.strides, strides, strict=True)
    )


def prefers_channels_last(tensor: Tensor) -> bool:
    """Tell which memory format PyTorch itself sees in strides that fit both: True for channels_last.

    >>> prefers_channels_last(Tensor(6, (2, 1, 4, 4), (16, 1, 4, 1)))
    True
    >>> prefers_channels_last(Tensor(6, (2, 1, 4, 4), (16, 16, 4, 1)))
    False
    """
    sizes, strides = tensor.sizes, tensor.strides
    if strides[1] == 0:
        return False
    least = 0
    for dim in (1, 3, 2, 0):
        if sizes[dim] == 0 or strides[dim] < least or (dim == 0 and least == strides[1]):
            return False
        least = strides[dim] * max(1, sizes[dim])
    return True


def layout(tensor: Tensor) -> str | None:
    """Return the layout in which kernels can read an image where it lies, or None."""
    if lies_as(tensor, nhwc_strides(tensor.sizes)):
        return "NHWC"
    return "NCHW" if lies_as(tensor, nchw_strides(tensor.sizes)) else None
