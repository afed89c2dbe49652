"""The default floating-point mode for what Python and NumPy compute, whatever the calling thread's mode is.

Kernels see to it themselves (`_compiler/codegen/fp_mode.py`). What is left are the reference and the oracle, sums that
join parts, graphs, and all that is computed when a problem is planned and its kernels are written: a prediction that is
rounded upward might choose another plan, and a constant might get another last digit.

The C library sets the mode. Windows' has no function for it that knows flushing to zero; there the caller's mode holds.
"""

from __future__ import annotations

import ctypes
from typing import Any

_BYTES = 256
"""Of the block the mode is saved in; the C libraries we know take 8 to 32."""

# Variables, because Python computes with constants when it compiles. Half a unit and less of 1, and the smallest
# subnormal number: the first two sums are 1 only when rounded to nearest, the product is 0 if it or its operand is
# flushed.
_one, _little, _smallest = 1.0, 2.0**-55, 5e-324


def is_default() -> bool:
    """Tell whether this thread rounds to nearest and keeps subnormal numbers.

    >>> is_default()
    True
    """
    return _one + _little == _one == _one - _little and _smallest * (_one + _one) != 0.0


class default_mode:
    """Compute in the default mode inside the ``with`` block; the caller's mode is restored after it.

    0.4 us where that is the caller's mode, 6 us where it is not (Zen 4).

    >>> with default_mode():
    ...     5e-324 * 2
    1e-323
    """

    __slots__ = ("_saved",)

    def __init__(self) -> None:
        self._saved: Any = None

    def __enter__(self) -> None:
        if not is_default() and (functions := _functions()) is not None:
            saved = (ctypes.c_char * _BYTES)()
            functions.fegetenv(saved)
            self._saved = saved
            functions.fesetenv(functions.default)

    def __exit__(self, *unused: object) -> None:
        if self._saved is not None:
            functions = _functions()
            assert functions is not None
            functions.fesetenv(self._saved)


class _Functions:
    """Two functions of the C library, and what stands for the default there."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.fegetenv = library.fegetenv
        self.fesetenv = library.fesetenv
        self.default: Any
        try:
            self.default = ctypes.byref(ctypes.c_char.in_dll(library, "_FE_DFL_ENV"))  # Apple's
        except ValueError:
            self.default = ctypes.c_void_p(-1)  # glibc's and musl's


_found: _Functions | None = None
_missing = False


def _functions() -> _Functions | None:
    """Return the functions, looked up by the first call in another mode; None where there are none."""
    global _found, _missing
    if _found is None and not _missing:
        for name in (None, "libm.so.6"):
            try:
                _found = _Functions(ctypes.CDLL(name))
                break
            except (OSError, AttributeError, TypeError):  # no such library or function; Windows
                continue
        _missing = _found is None
    return _found
