"""Run-time words by name: a kernel's `WORDS` say which it reads, in the order they lie in memory.

A plan hands words over as numbers in a row. The code that fills them in names each, so that neither side counts places.
The rows of a plan's table are treated alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._base.errors import InternalError
from ..._compiler.codegen import Int, KernelBuilder, Pointer

FARTHEST = 2**31 - 1
"""The largest number of a table of 32-bit ones."""


def in_order(names: Sequence[str], /, **values: int) -> tuple[int, ...]:
    """Return the words of a kernel in its own order; all of them must be given, and nothing else.

    >>> in_order(("rows", "cols"), cols=3, rows=2)
    (2, 3)
    """
    if len(set(names)) < len(names) or values.keys() != set(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        missing = [name for name in names if name not in values]
        unknown = [name for name in values if name not in names]
        raise InternalError(
            f"the words of a kernel do not fit: missing {missing}, unknown {unknown}, listed twice {twice};"
            " please report this"
        )
    return tuple(values[name] for name in names)


def narrow(numbers: Sequence[int] | np.ndarray[Any, np.dtype[np.int64]]) -> bytes:
    """Return a table of 32-bit numbers as bytes, in whole 64-bit words; all must fit, which the caller has seen to.

    >>> narrow([1, -2, 3]).hex()
    '01000000feffffff0300000000000000'
    """
    wide = np.asarray(numbers, np.int64)
    found = np.zeros(len(wide) + len(wide) % 2, np.int32)
    found[: len(wide)] = wide
    if (found[: len(wide)] != wide).any():
        raise InternalError(
            f"a table of 32-bit numbers has {wide.min()} to {wide.max()}; please report this"
        )
    return found.tobytes()


def arguments(k: KernelBuilder, pointers: int, names: Sequence[str]) -> dict[str, Int]:
    """Return the words of a kernel by name; as many pointers stand before them."""
    return {name: k.arg_i64(pointers + i) for i, name in enumerate(names)}


def load_word(row: Pointer, names: Sequence[str], name: str) -> Int:
    """Read one word of a row of a table."""
    return row.offset(names.index(name)).load_int()


def load_row(row: Pointer, names: Sequence[str]) -> dict[str, Int]:
    """Read a row of a table, all of it."""
    return {name: load_word(row, names, name) for name in names}
