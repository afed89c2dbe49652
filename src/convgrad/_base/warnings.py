"""Warnings that point at the caller's line: the one way in which this package warns.

A call passes through a number of our functions that depends on the door, so no fixed `stacklevel` is right. The frames
are walked instead, until one is not ours. Python 3.12 can do that by itself (`skip_file_prefixes`), older ones cannot.
"""

from __future__ import annotations

import sys
import warnings
from types import FrameType


def warn(message: str) -> None:
    """Give a RuntimeWarning with the file and line outside the package that led here."""
    frame = sys._getframe()
    while frame.f_back is not None and not _is_outside(frame):
        frame = frame.f_back
    space = frame.f_globals
    warnings.warn_explicit(
        message,
        RuntimeWarning,
        filename=frame.f_code.co_filename,
        lineno=frame.f_lineno,
        module=space.get("__name__"),
        registry=space.setdefault("__warningregistry__", {}),
        module_globals=space,
    )


_HOUSE = warn.__code__.co_filename.removesuffix("_base/warnings.py")
"""How the names of our files begin: the folder, or the folder in an archive, as the interpreter writes it."""


def _is_outside(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    # `import convgrad` is the caller's line, not what the interpreter runs to import.
    return not file.startswith(_HOUSE) and not file.startswith("<frozen importlib")
