"""One line about work that takes longer than a second, for the person who waits for it."""

from __future__ import annotations

import sys
import time

_PATIENCE = 1.0
"""Seconds until something is said."""
_BETWEEN = 0.2


class Progress:
    """How far `accelerate(fuse=True)` is, on stderr: a line that changes on terminals, one line elsewhere."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted and sys.stderr is not None
        self._next = time.monotonic() + _PATIENCE
        self._shown = 0
        """How long the line is that stands on the terminal."""

    def at(self, done: int, total: int) -> None:
        """Say that so many modules of a model are done, if it is time to."""
        if not self._wanted or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _BETWEEN
        text = f"convgrad: fusing layers, {done} of {total} modules are done"
        if sys.stderr.isatty():
            self._shown = len(text)
            self._write(f"\r{text}")
        else:
            self._write(f"{text}\n")
            self._wanted = False

    def end(self) -> None:
        if self._shown:
            self._write(f"\r{' ' * self._shown}\r")

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):
            self._wanted = False
