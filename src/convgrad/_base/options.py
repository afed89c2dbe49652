"""`options`: the switches a program may set for a block of its own."""

from __future__ import annotations

from typing import Any

from . import config
from .errors import ArgumentError, shown

_PUBLIC = {"winograd": config.WINOGRAD, "pool": config.POOLS}
"""Switches that change how things are computed, and the values they take."""


def options(**values: Any) -> config.Scope:
    """Set options for the calls inside the ``with`` block; other contexts do not see.

    Parameters
    ----------
    winograd : "off", "auto" or "fast"
        Whether 3x3 convolutions of stride 1 may use Winograd's algorithms, which multiply less and add before they
        multiply. "auto", the default, takes those whose errors stay within what is promised for all algorithms; "fast"
        also takes those with errors about seven times as large; "off" takes none.
    pool : "own", "openmp" or "auto"
        Whose threads share the work. "auto", the default, takes those of the OpenMP runtime in a process that has
        imported PyTorch, which keeps them busy between calls, and our own elsewhere. "openmp" takes them wherever
        such a runtime is loaded. Results are the same bits.

    Examples
    --------
    >>> import numpy as np, convgrad
    >>> x, f = np.ones((1, 16, 16, 32), np.float32), np.ones((3, 3, 32, 32), np.float32)
    >>> with convgrad.options(winograd="off"):
    ...     convgrad.conv2d(x, f, 1, "VALID").max()
    np.float32(288.0)
    """
    for name, value in values.items():
        if name not in _PUBLIC:
            raise ArgumentError(
                f"options: `{' '.join(name.split())[:80]}` is an unknown option; known are {', '.join(_PUBLIC)}."
            )
        # Of exactly that type: an object equal to everything would become part of every key.
        if type(value) is not str or value not in _PUBLIC[name]:
            words = ", ".join(map(repr, _PUBLIC[name]))
            raise ArgumentError(f"options: `{name}` must be one of {words}, got {shown(value)}.")
    return config.scope(**values)
