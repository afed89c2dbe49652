"""Opening files that somebody named: regular ones only, and without waiting.

A pipe waits for a writer that may never come, and a device may never end.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_KINDS = (
    (stat.S_ISDIR, "folder"),
    (stat.S_ISFIFO, "pipe"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
)


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; raises an `OSError` whose `strerror` says why it cannot be."""
    waiting = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    descriptor = os.open(path, os.O_RDONLY | waiting | getattr(os, "O_BINARY", 0))
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    kind = next((name for test, name in _KINDS if test(mode)), "special file")
    raise OSError(errno.EINVAL, f"it is a {kind}, not a regular file", str(path))
