"""A page in other languages: Python, C++, a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .built import Built
from .cpp_source import cpp_source
from .page import Note
from .python_source import python_source
from .svg import svg_of

LANGUAGES = {"python": "a Python program", "cpp": "a C++ program", "svg": "a picture"}
"""By the name of the option."""


def export(language: str, built: Built, fetch: Sequence[str] = ()) -> str:
    """Return a page in a language; `fetch` names the tensors a program computes, by default all that sessions fetch."""
    if language == "svg":
        shapes = {
            (id, pin): spec for id, pins in built.specs().items() for pin, spec in pins.items()
        }
        notes = [*built.notes, *(Note(id, problem) for id, problem in built.problems.items())]
        return svg_of(replace(built.page, notes=notes), shapes)
    names = [built.find(name).name for name in fetch]
    if not names:
        names = [each.name for session in built.sessions for each in session.fetches]
    feeds = {built.find(id).operation.name: value for id, value in built.fed.items()}
    write = python_source if language == "python" else cpp_source
    return write(built.scope.graph, names or None, feeds, built.variables)
