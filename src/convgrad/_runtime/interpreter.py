"""Whether this is the process's first interpreter.

NumPy serves one interpreter of a process, and that may be a sub-interpreter (web servers). There CPython 3.11 ends the
process when the interpreter is closed and has threads left, daemons too, and hangs when it is never closed and memory
maps are. So a sub-interpreter gets neither worker threads nor the pool of result blocks; results are the same.
"""

from __future__ import annotations

import ctypes


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
