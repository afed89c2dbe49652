"""What kind of interpreter this is: the process's first one, and one with a global lock.

NumPy serves one interpreter of a process, and that may be a sub-interpreter (web servers). There CPython 3.11 ends the
process when the interpreter is closed and has threads left, daemons too, and hangs when it is never closed and memory
maps are. So a sub-interpreter gets neither worker threads nor the pool of result blocks; results are the same.

A free-threaded Python (3.13t, 3.14t) is refused as long as no kernel was ever run on one. What is remembered is kept in
dictionaries whose single steps are safe there; whether all the steps are in the right order has not been tried.
"""

from __future__ import annotations

import ctypes
import sys

from .._base import config


def _in_main_interpreter() -> bool:
    if not hasattr(ctypes, "pythonapi"):
        return True
    state = ctypes.PYFUNCTYPE(ctypes.c_void_p)
    try:
        current = state(("PyInterpreterState_Get", ctypes.pythonapi))
        main = state(("PyInterpreterState_Main", ctypes.pythonapi))
    except AttributeError:
        return True
    return bool(current() == main())


IN_MAIN_INTERPRETER = _in_main_interpreter()


def _refuse_free_threading() -> None:
    """Raise ImportError where Python runs without its global lock, unless the user wants to try."""
    # A lock that is on at import stays on: Python turns it on for extensions that need it, and never off.
    locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    if not locked and not config.get("free_threading"):
        raise ImportError(
            "convgrad: this Python runs without its global interpreter lock, and convgrad was tested only with it; "
            "turn the lock on with PYTHON_GIL=1 (or python -X gil=1), "
            "or set CONVGRAD_FREE_THREADING=1 to try without."
        )


_refuse_free_threading()
