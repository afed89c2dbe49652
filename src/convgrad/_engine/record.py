"""Write down the problems a program asks for, as lines that `explain`, `bench`, `check` and `export` take.

Imported by the engine where the switch names a file, and asked only about problems nothing is remembered of. A file
that cannot be written must not stop a program: it costs one warning.
"""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

from .._base.files import open_regular
from .._base.warnings import warn
from .._problem import text as _problem_text
from .._problem.convolution import Problem

_seen: set[tuple[str, Problem]] = set()
"""The engine may forget a problem, or meet it again under other switches."""
_places: dict[str, Path] = {}
"""Where a file was when it was first written to: a program may change its folder."""
_given_up: set[str] = set()


def note(file: str, problem: Problem) -> None:
    """Append a problem's line to a file, the first time in this process; lines speak of no bias."""
    problem = replace(problem, bias="")
    if file in _given_up or (file, problem) in _seen:
        return
    _seen.add((file, problem))
    try:
        _append(_places.setdefault(file, Path(file).absolute()), _problem_text.write(problem))
    except (OSError, ValueError) as error:
        _given_up.add(file)
        reason = getattr(error, "strerror", None) or error
        warn(f"convgrad: problems cannot be recorded in {file!r}, and no more are tried: {reason}")


def _append(path: Path, line: str) -> None:
    """Add a line in one piece: other threads and processes may be writing to the same file.

    A pipe that nobody reads is refused instead of waited for. A file whose last line has no end gets one first.
    """
    how = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    how |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    before = "\n" if _is_cut(path) else ""
    data = f"{before}{line}\n".encode()
    descriptor = os.open(path, how, 0o666)
    try:
        if os.write(descriptor, data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(descriptor)


def _is_cut(path: Path) -> bool:
    """Whether a file ends within a line: edited by hand, or written to a full disk."""
    try:
        with open_regular(path) as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:  # there is none, or nothing in it
        return False
