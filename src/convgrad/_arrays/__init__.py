"""Arrays in and out: one module per kind of array, in an explicit table.

An adapter reads a call on its framework's arrays, a convolution or a batch norm, and computes it, with results in the
framework's own type. It is found without importing the framework: an array of its type shows that it is loaded.
Nothing here knows plans or kernels; what leaves this room for the engine is an address.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .._base.dtypes import DType
from .._problem.arguments import Given
from .._problem.convolution import Call
from .._problem.norm.call import BatchNormGradients, BatchNormResult
from . import dask, jax, numpy, tensorflow, torch
from .borrowed import Borrowed
from .borrowing import borrow_any
from .holding import pin
from .request import Like, NormRequest

__all__ = [
    "ADAPTERS",
    "Adapter",
    "Borrowed",
    "Like",
    "NormRequest",
    "adapter_for",
    "adapter_of",
    "borrow_any",
    "pin",
]


class Adapter(Protocol):
    """What a module of this folder offers."""

    def recognise(self, value: Any) -> bool:
        """Tell whether a value is of this kind, without importing anything."""
        ...

    def borrow(
        self,
        function: str,
        argument: str,
        value: Any,
        allowed: tuple[DType, ...],
        like: DType | None,
    ) -> Borrowed:
        """Check kind and dtype of an argument; `like` is the dtype of the arrays before it.

        What is of another kind, given beside an array of this one, is made one of these or refused.
        """
        ...

    def compute(self, call: Call, given: Given, wanted: Any, first: Any, second: Any) -> Any:
        """Return the result of a call on two arrays, now or later, in the framework's own type.

        All is as the caller wrote it; `wanted` says the shape of a gradient, as sizes or `Like` an array. A `Request`
        reads it, with this adapter's `borrow`: its `check` makes all checks, its `read` those that need no shapes.
        """
        ...

    def normalise(self, request: NormRequest) -> BatchNormResult:
        """Return batch norm with activation, in the framework's own type: the request's `check` reads it."""
        ...

    def normalise_back(self, request: NormRequest) -> BatchNormGradients:
        """Return its gradients."""
        ...


ADAPTERS: tuple[Adapter, ...] = (dask, torch, jax, tensorflow, numpy)
"""Asked in order; the last one takes everything, or says what is wrong with it."""

_of_type: dict[type, Adapter] = {np.ndarray: numpy}
"""Adapters by the types they have recognised: asking each of them takes microseconds."""
_MOST_TYPES = 64


def adapter_for(first: Any, second: Any, *more: Any, sizes: Any = None) -> Adapter:
    """Return the adapter of a call: of the first kind in the table that any of its arrays is of.

    Sizes that are not known yet decide too: what is computed from them is not known yet either.
    """
    kind = type(first)
    found = _of_type.get(kind) if kind is type(second) and not more else None
    if found is None:
        values = (first, second, *more)
        found = next(each for each in ADAPTERS if any(map(each.recognise, values)))
        if found.recognise(first) and found is not numpy and len(_of_type) < _MOST_TYPES:
            _of_type[kind] = found
    if found is numpy and sizes is not None and tensorflow.later(sizes):
        return tensorflow
    return found


def adapter_of(request: NormRequest) -> Adapter:
    """Return the adapter of a batch norm, by the same rule."""
    values = request.values
    if all(type(each) is np.ndarray for each in values):
        return numpy
    return next(each for each in ADAPTERS if any(map(each.recognise, values)) or each is numpy)
