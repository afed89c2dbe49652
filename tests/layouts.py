"""The ways an array may lie in memory: the same numbers, other strides, bytes, places and owners."""

from __future__ import annotations

import ml_dtypes
import numpy as np


class Subclass(np.ndarray):
    """An ndarray subclass with habits of its own, none of which may leak."""

    def __array_finalize__(self, parent):
        self.tag = "mine"

    def __array_ufunc__(self, *args, **kwargs):
        raise AssertionError("arithmetic of the subclass was used")

    def __getitem__(self, index):
        raise AssertionError("indexing of the subclass was used")


def strided(x):
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1] + 1), x.dtype)
    wide[..., 1::2] = x
    return wide[..., 1::2]


def offset(x):
    """The last elements of a longer buffer: contiguous, but not where an allocator would put them."""
    memory = np.zeros(x.size + 3, x.dtype)
    memory[3:] = x.ravel()
    return memory[3:].reshape(x.shape)


def unaligned(x):
    memory = np.zeros(x.nbytes + 1, np.uint8)
    result = memory[1:].view(x.dtype).reshape(x.shape)
    result[...] = x
    return result


def swapped(x):
    if x.dtype == ml_dtypes.bfloat16:
        return x.view(np.uint16).byteswap().view(x.dtype.newbyteorder())
    return x.astype(x.dtype.newbyteorder())


def read_only(x):
    result = x.copy()
    result.setflags(write=False)
    return result


def in_bytes(x):
    """A view of immutable Python bytes."""
    return np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape)


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": strided,
    "reversed": lambda x: x[::-1, ::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1, ::-1],
    "axes swapped": lambda x: x.swapaxes(1, 2).copy().swapaxes(1, 2),
    "offset": offset,
    "read-only": read_only,
    "unaligned": unaligned,
    "unaligned Fortran": lambda x: unaligned(x.T.copy()).T,
    "byte-swapped": swapped,
    "byte-swapped and strided": lambda x: swapped(x.repeat(2, axis=0))[::2],
    "in bytes": in_bytes,
    "subclass": lambda x: x.copy().view(Subclass),
}
