"""Every switch and environment variable of the package, typed, in one table.

A switch is a row of `SWITCHES`. Its value is, in this order: what an enclosing `scope()` set, what `set_default()`
set for the process, what the environment said when first asked, the row's default. A value in the environment
that cannot be read is reported once as a warning and otherwise ignored: a typo must not stop a program.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Switch:
    """One row: where a setting comes from and what it means."""

    name: str
    variable: str
    """The environment variable."""
    parse: Callable[[str], Any]
    """Turns the variable's text into a value; raises ValueError with the rule it breaks."""
    default: Any
    meaning: str
    """One sentence for the documentation, which is generated from this table."""


_ROWS: tuple[Switch, ...] = ()

SWITCHES = {row.name: row for row in _ROWS}

_NOTHING: dict[str, Any] = {}
_scoped: ContextVar[dict[str, Any]] = ContextVar("convgrad_config", default=_NOTHING)
_process: dict[str, Any] = {}
_environment: dict[str, Any] = {}


def get(name: str) -> Any:
    """Return the value of a switch as seen by the calling context."""
    scoped = _scoped.get()
    if name in scoped:
        return scoped[name]
    if name in _process:
        return _process[name]
    if name not in _environment:
        _environment[name] = _read(SWITCHES[name])
    return _environment[name]


def set_default(name: str, value: Any) -> None:
    """Set a switch for the whole process."""
    _process[SWITCHES[name].name] = value


@contextmanager
def scope(**values: Any) -> Iterator[None]:
    """Set switches for the calling context until the block ends."""
    unknown = values.keys() - SWITCHES.keys()
    assert not unknown, f"no such switch: {sorted(unknown)}"
    token = _scoped.set({**_scoped.get(), **values})
    try:
        yield
    finally:
        _scoped.reset(token)


def _read(row: Switch) -> Any:
    text = os.environ.get(row.variable)
    if text is None or not text.strip():
        return row.default
    try:
        return row.parse(text.strip())
    except ValueError as error:
        warnings.warn(
            f"convgrad: {row.variable}={text!r} is ignored: {error}", RuntimeWarning, stacklevel=2
        )
        return row.default
