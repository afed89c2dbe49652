"""The error family.

::

    ConvgradError
    ├── ArgumentError(ValueError)        a value or shape breaks a documented rule
    ├── ArgumentTypeError(TypeError)     a call form or an argument's type breaks one
    │   └── DTypeError                   an array's dtype is not allowed, or two arrays differ
    ├── AllocationError(MemoryError)     the result would not fit in memory
    ├── BackendMissingError(ImportError) an optional part is not installed
    ├── CompileError(RuntimeError)       LLVM refused a kernel
    └── InternalError(RuntimeError)      a promise of ours is broken; please report it

``ValueError`` and ``TypeError`` are what NumPy users and TensorFlow's graph mode expect.
A message names the function, the argument, the rule, and the value received. Open to all layers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class ConvgradError(Exception):
    """Base of all errors raised on purpose by this package."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Spelled out for tblib, with which Dask sends errors: where it finds no such method of ours, it makes
        # an empty error by `MemoryError.__new__`, which refuses to make one of a class with another base in front.
        return type(self), self.args, self.__dict__


class ArgumentError(ConvgradError, ValueError):
    """A value or shape breaks a documented rule."""


class ArgumentTypeError(ConvgradError, TypeError):
    """The form of a call, or the type of an argument, breaks a documented rule."""


class DTypeError(ArgumentTypeError):
    """An array's dtype is not allowed for the operation, or two arrays differ in dtype."""


class AllocationError(ConvgradError, MemoryError):
    """Memory for a result or a workspace could not be allocated."""


class BackendMissingError(ConvgradError, ImportError):
    """An optional part is not installed; the message names it."""


class CompileError(ConvgradError, RuntimeError):
    """LLVM refused a kernel."""


class InternalError(ConvgradError, RuntimeError):
    """A promise of ours is broken. Please report it."""


_LONGEST_SHOWN = 200


def shown(value: object) -> str:
    """Spell a value for a message: an array passed by mistake must not fill the screen.

    >>> shown(list(range(100)))
    '[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26...'
    """
    try:
        text = " ".join(repr(value).split())
    except (
        Exception
    ) as error:  # an int of 5000 digits, an object whose repr raises: our message matters more
        text = f"<{type(value).__name__}, which cannot be shown: {type(error).__name__}>"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:97]}..."


def said(error: BaseException) -> str:
    """Quote another library's error in a message of one line: those of JAX have paragraphs.

    >>> said(ValueError("two\\n  lines"))
    'ValueError: two lines'
    """
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = "it cannot be shown"
    text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text if len(text) <= _LONGEST_SAID else f"{text[: _LONGEST_SAID - 3]}..."


_LONGEST_SAID = 400


def nearest(word: str, words: Iterable[str]) -> str:
    """Return a question with the word that was probably meant, or nothing.

    >>> nearest("expalin", ["run", "explain"]), nearest("xyz", ["run"])
    ("; did you mean 'explain'?", '')
    """
    from difflib import get_close_matches  # few programs need it

    found = get_close_matches(word[:100], list(words), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""
