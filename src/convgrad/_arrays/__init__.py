"""Arrays in and out: one module per kind of array, in an explicit table.

An adapter lends the memory of its framework's arrays to kernels, and gives results in the framework's own type. It is
found without importing the framework: an array of its type shows that it is loaded. Nothing here knows plans or
kernels; what leaves this room is an address.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .._base.dtypes import DType
from . import dask, jax, numpy, tensorflow, torch
from .holding import pin
from .numpy import borrow_any
from .tensorflow import quick

__all__ = [
    "ADAPTERS",
    "Adapter",
    "Computing",
    "Lent",
    "adapter_for",
    "borrow_any",
    "framework_of",
    "pin",
    "quick",
]

Shape = tuple[int, ...]


class Lent(Protocol):
    """A caller's array that has passed the checks of its kind and dtype."""

    @property
    def shape(self) -> Shape: ...

    @property
    def row(self) -> DType:
        """Its dtype."""
        ...

    def lend(self, function: str, nbytes: int) -> tuple[int, object]:
        """Return the address of the numbers, contiguous, aligned, native, and what keeps them there.

        There are exactly `nbytes` bytes, or an error names `function`.
        """
        ...


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
    ) -> Lent:
        """Check kind and dtype of an argument; `like` is the dtype of the arrays before it."""
        ...

    def allocate(self, shape: Shape, row: DType) -> tuple[Any, int]:
        """Return a new array, its numbers not set, and their address; raises AllocationError."""
        ...

    def reshape(self, result: Any, shape: Shape) -> Any:
        """Return a result in another shape, without a copy."""
        ...


class Computing(Protocol):
    """What a module of this folder offers instead, for arrays that remember what is done to them or compute later."""

    def recognise(self, value: Any) -> bool: ...

    def borrow(
        self,
        function: str,
        argument: str,
        value: Any,
        allowed: tuple[DType, ...],
        like: DType | None,
    ) -> Any:
        """Check kind and dtype, as an `Adapter` does; the answer has a shape and a row, and need not lend."""
        ...

    def compute(self, function: str, problem: Any, first: Any, second: Any) -> Any:
        """Return the result of a checked problem on two borrowed operands, in the framework's own type."""
        ...

    def reshape(self, result: Any, shape: Shape) -> Any: ...


class Applying(Protocol):
    """What a module of this folder offers instead, for arrays whose shapes may not be known yet."""

    def recognise(self, value: Any) -> bool: ...

    def later(self, value: Any) -> bool:
        """Tell whether a vector of sizes has no values yet."""
        ...

    def borrow(
        self,
        function: str,
        argument: str,
        value: Any,
        allowed: tuple[DType, ...],
        like: DType | None,
    ) -> Any:
        """Check kind and dtype, as an `Adapter` does; of the answer's shape sizes may be None, or the whole."""
        ...

    def apply(
        self, call: Any, settings: Any, wanted: Any, first: Any, second: Any, batched: bool = False
    ) -> Any:
        """Return the result of a call: make the checks that can be made, leave the others to when there are values.

        `wanted` is the shape of a gradient: ints, sizes that are known later, or a borrowed array of that shape.
        """
        ...


ADAPTERS: tuple[Adapter | Computing | Applying, ...] = (dask, torch, jax, tensorflow, numpy)
"""Asked in order; the last one takes everything, or says what is wrong with it."""


def adapter_for(*values: Any, sizes: Any = None) -> Any:
    """Return the adapter of a call: of the first kind in the table that any of its arrays is of.

    Sizes that are not known yet decide too: what is computed from them is not known yet either.
    """
    for adapter in ADAPTERS[:-1]:
        if any(adapter.recognise(value) for value in values):
            return adapter
        if sizes is not None and (later := getattr(adapter, "later", None)) and later(sizes):
            return adapter
    return ADAPTERS[-1]


_FRAMEWORKS = {dask: "Dask", torch: "PyTorch", jax: "JAX", tensorflow: "TensorFlow"}


def framework_of(value: Any) -> str | None:
    """Return whose array a value is, None for NumPy's and for what becomes one."""
    kinds = (name for adapter, name in _FRAMEWORKS.items() if adapter.recognise(value))
    return None if type(value) is np.ndarray else next(kinds, None)
