"""Pages and graphs as files, programs and pictures: what `convgrad.graph` offers of this room."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..._base.errors import ArgumentTypeError, shown
from ..graph.operation import Graph, Operation, Output
from ..graph.scope import Scope, as_output
from . import cpp_source as _cpp
from . import exports, files, from_graph
from . import python_source as _python
from .build import build
from .page import Page


def load(path: str | os.PathLike[str]) -> Page:
    """Read a page: one of ours (.json), or enuSpace's (.svg with its .dat, or .json).

    Nothing in a file is executed. `build(page)` makes the graph, `PageRun(build(page)).step()` runs it.
    """
    return files.read_page(path)


def save(
    what: Page | Scope | Graph,
    path: str | os.PathLike[str],
    variables: Mapping[str, Any] | None = None,
) -> None:
    """Write a page or a graph as a page file, whole or not at all.

    `variables` are values of a graph's Variables, such as `session.variables`.
    """
    page = what if isinstance(what, Page) else page_of(what, variables=variables)
    files.write_page(page, path)


def page_of(
    what: Scope | Graph, name: str = "graph", variables: Mapping[str, Any] | None = None
) -> Page:
    """Return a graph as a page: a block per node, arranged in columns."""
    return from_graph.page_of(_graph("page_of", what), name, variables)


def python_source(
    what: Scope | Graph,
    fetches: Sequence[Any] | None = None,
    feeds: Mapping[Any, Any] | None = None,
    variables: Mapping[str, Any] | None = None,
) -> str:
    """Return a Python program that builds a graph, runs it and prints what it gives.

    `fetches` are tensors, by default all that nothing else uses; `feeds` are arrays by placeholder.
    """
    graph = _graph("python_source", what)
    return _python.python_source(graph, _names(fetches), _fed(feeds), variables)


def cpp_source(
    what: Scope | Graph,
    fetches: Sequence[Any] | None = None,
    feeds: Mapping[Any, Any] | None = None,
    variables: Mapping[str, Any] | None = None,
) -> str:
    """Return the same as a C++ program for TensorFlow's client API, which convgrad's headers have."""
    graph = _graph("cpp_source", what)
    return _cpp.cpp_source(graph, _names(fetches), _fed(feeds), variables)


def svg(what: Page | Scope | Graph) -> str:
    """Return a page or a graph as a picture, with shapes and dtypes on its wires."""
    page = what if isinstance(what, Page) else page_of(what)
    return exports.export("svg", build(page))


def _graph(function: str, what: Any) -> Graph:
    if isinstance(what, Scope):
        return what.graph
    if isinstance(what, Graph):
        return what
    raise ArgumentTypeError(f"{function}: a Scope or a Graph is needed, got {shown(what)}.")


def _names(fetches: Sequence[Any] | None) -> list[str] | None:
    return None if fetches is None else [_tensor(each).name for each in fetches]


def _fed(feeds: Mapping[Any, Any] | None) -> dict[str, Any]:
    return {_tensor(key).operation.name: value for key, value in (feeds or {}).items()}


def _tensor(value: Output | Operation | Any) -> Output:
    found = as_output(value)
    if found is None:
        raise ArgumentTypeError(f"a tensor of a graph is needed, got {shown(value)}.")
    return found
