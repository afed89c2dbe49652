"""How a call is computed again: results to allocate, constants, and programs on places, for a record.

Places are numbered as `server` has them: inputs, then what is allocated, then constants.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from math import prod
from typing import Any

from ..._base.dtypes import DType
from ..._problem.convolution import Shape
from ..._runtime.bound import Bound
from ..records import Made, record
from .kernel import MOST_CONSTANTS, MOST_INPUTS, MOST_MADE
from .nodes import NUMBERS

_scalars: dict[tuple[float, ...], Any] = {}
"""Numbers of passes, where records point to: a few, and kept for good."""


def scalars(numbers: tuple[float, ...]) -> int:
    """Return where a pass finds its numbers."""
    array = _scalars.setdefault(numbers, (ctypes.c_double * len(numbers))(*numbers))
    return ctypes.addressof(array)


class Recipe:
    """Written in this order: results, temporaries, constants; and runs, on the places that these are."""

    def __init__(self) -> None:
        self._made: list[Made] = []
        self._returned = 0
        self._constants: list[int] = []
        self._runs: list[tuple[Bound, tuple[int, ...]]] = []

    @property
    def programs(self) -> tuple[Bound, ...]:
        """What a record runs, which lives as long as the record."""
        return tuple(program for program, _ in self._runs)

    def result(self, dtype: DType, sizes: Shape) -> int:
        """Add the op's next result; returns its place."""
        assert self._returned == len(self._made), "results come before temporaries"
        self._returned += 1
        return self.temporary(dtype, sizes)

    def temporary(self, dtype: DType, sizes: Shape) -> int:
        """Add a tensor that is needed while programs run; returns its place."""
        assert not self._constants and len(self._made) < MOST_MADE
        self._made.append(Made(NUMBERS[dtype], sizes, nbytes=prod(sizes) * dtype.itemsize))
        return MOST_INPUTS + len(self._made) - 1

    def constant(self, address: int) -> int:
        """Add an address that is the same in every call; returns its place."""
        assert len(self._constants) < MOST_CONSTANTS
        self._constants.append(address)
        return MOST_INPUTS + len(self._made) + len(self._constants) - 1

    def run(self, program: Bound, places: Iterable[int]) -> None:
        """Add a program, on numbers of places."""
        self._runs.append((program, tuple(places)))

    def words(self) -> list[int]:
        """Return what a record has behind its key."""
        return record((), self._made, self._returned, self._constants, self._runs)
