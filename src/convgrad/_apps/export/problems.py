"""What a caller names as problems: lines, files of lines, layers, networks, pages and graphs.

A word is read as the first of these that fits: a line of `_problem.text`, a layer, a network, a file; behind an @, as
other verbs have it, it is a file in any case. A file is a page if it begins as JSON or SVG does, and else lines; a
recording is such a file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..._base.errors import ArgumentError, ArgumentTypeError, ConvgradError, nearest, shown
from ..._base.files import open_regular
from ..._problem import layer_text, networks
from ..._problem import text as _problem_text
from ..._problem.convolution import Kind, Problem
from ..._problem.norm.normalisation import Normalisation
from ..graph.operation import Graph, Operation
from ..graph.scope import Scope, infer
from ..graph.spec import Spec
from ..graph.table import convolutions
from ..pages.build import build
from ..pages.files import read_page
from ..pages.page import Page
from . import recipe
from .recipe import Asked, Block

OPS = {
    "fwd": Kind.FORWARD,
    "dx": Kind.INPUT_GRADIENT,
    "dw": Kind.FILTER_GRADIENT,
}
"""The three operations on a layer, as benchmarks call them."""
_MOST_BYTES = 1 << 26
"""Of a file of lines."""


@dataclass
class Reader:
    """Collects problems. The settings are for layers, networks and graphs, as far as these do not say their own."""

    batch: int | None = None
    dtype: str | None = None
    data_format: str | None = None
    problems: dict[Asked, None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """What was left out, and why."""
    _used: set[str] = field(default_factory=set)

    def read(self, what: Any) -> None:
        """Take in whatever a caller names."""
        if isinstance(what, Problem | Normalisation | Block):
            self.problems[what] = None
        elif isinstance(what, str):
            self._text(what)
        elif isinstance(what, os.PathLike):
            self._file(Path(os.fspath(what)))
        elif isinstance(what, Page):
            self._page(what)
        elif isinstance(what, Scope):
            self._graph(what.graph)
        elif isinstance(what, Graph):
            self._graph(what)
        elif isinstance(what, Iterable):
            for each in what:
                if isinstance(each, Iterable) and not isinstance(each, str | os.PathLike):
                    raise ArgumentTypeError(
                        f"export: `problems` must be a list of texts, paths and graphs, got {shown(each)} in it."
                    )
                self.read(each)
        else:
            raise ArgumentTypeError(
                f"export: `problems` must be text, a path, a graph or a list of these, got {shown(what)}."
            )

    def lines(self, text: str, name: str) -> None:
        """Take in a file of lines."""
        self.problems.update(dict.fromkeys(recipe.read_lines(text, f"export: {name}")))

    def check_settings(self) -> None:
        """Refuse settings that nothing has used: problems that say their own do not heed them."""
        for name in ("batch", "dtype", "data_format"):
            if getattr(self, name) is not None and name not in self._used:
                users = "a layer or a network"
                if name == "batch":
                    users = "a network, or a graph that does not say its own"
                raise ArgumentError(
                    f"export: `{name}` is for {users}, got {getattr(self, name)!r} and problems that say their own."
                )

    def _text(self, text: str) -> None:
        words = text.partition("#")[0].split()
        if text.startswith("@") and "\n" not in text:
            self._file(Path(text[1:]))
        elif len(words) > 1 and _is_file(text) and not _is_line(words[0]):
            self._file(Path(text))
        elif "\n" in text or len(words) != 1:
            self.lines(text, "problems")
        elif layer_text.looks_like(words[0]):
            self._layer(words[0])
        elif words[0] in _problem_text.OPS:
            self.lines(text, "problems")  # says what is missing
        elif self._is_network(words[0]):
            self._network(words[0])
        elif _is_file(text):
            self._file(Path(text))
        else:
            known = [*networks.NETWORKS, *_problem_text.OPS]
            raise ArgumentError(
                f"export: `problems` must be lines ({_problem_text.FORM}), layers, networks or @FILE; "
                f"{shown(text)} is none of them{nearest(text, known) or '.'}"
            )

    def _is_network(self, word: str) -> bool:
        try:
            networks.find(word)
        except ValueError:
            return False
        return True

    def _settings(self) -> str:
        """Return the keys that follow a layer."""
        self._used |= {"dtype", "data_format"}
        found = (("dtype", self.dtype), ("data_format", self.data_format))
        return "".join(f" {key}={value}" for key, value in found if value is not None)

    def _layer(self, word: str) -> None:
        self.lines(word + self._settings(), "problems")

    def _network(self, word: str) -> None:
        """Take in a training step of a network: nobody asks for the gradient of the image."""
        self._used.add("batch")
        rows = networks.NETWORKS[networks.find(word)].texts()
        for number, row in enumerate(rows):
            line = f"{row}b{self.batch or 1}{self._settings()}"
            for problem in _problem_text.read_lines(line, word):
                if number or problem.kind is not Kind.INPUT_GRADIENT:
                    self.problems[problem] = None

    def _file(self, path: Path) -> None:
        try:
            with open_regular(path) as file:
                data = file.read(_MOST_BYTES + 1)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ArgumentError(
                f"export: the file {shown(str(path))} cannot be read: {reason}."
            ) from None
        if data.lstrip()[:1] in (b"{", b"<"):
            self._page(read_page(path))
            return
        if len(data) > _MOST_BYTES:
            raise ArgumentError(f"export: the file {path} has more than {_MOST_BYTES:,} bytes.")
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ArgumentError(
                f"export: the file {path} must be text in UTF-8, got byte {error.start} that is not."
            ) from None
        if not any(line.partition("#")[0].strip() for line in text.split("\n")):
            raise ArgumentError(f"export: the file {path} must hold a problem, got no line of one.")
        self.lines(text, str(path))

    def _page(self, page: Page) -> None:
        built = build(page)
        for block, reason in built.problems.items():
            self.notes.append(f"block {block} is not computed: {reason}")
        self._graph(built.scope.graph)

    def _graph(self, graph: Graph) -> None:
        types = {row.name for row in convolutions.ROWS}
        known = self._with_batch(graph)
        for node in graph.nodes:
            if node.type in types:
                specs = [known[each.operation][each.index] for each in node.inputs]
                problem = convolutions.problem_of(node, specs)
                if problem is not None:
                    self.problems[problem] = None
                    continue
                hint = "; `batch` says that of placeholders" if self.batch is None else ""
                self.notes.append(
                    f"{node.name} ({node.type}) is left out: its sizes are unknown{hint}"
                )

    def _with_batch(self, graph: Graph) -> dict[Operation, tuple[Spec, ...]]:
        """Return what is known of all outputs if placeholders whose first size is unknown hold a batch."""
        known: dict[Operation, tuple[Spec, ...]] = {}
        for node in graph.nodes:
            inputs = tuple(known[each.operation][each.index] for each in node.inputs)
            known[node] = node.specs
            shape = node.specs[0].shape if node.type == "Placeholder" else None
            if self.batch is not None and shape and shape[0] is None:
                self._used.add("batch")
                known[node] = (replace(node.specs[0], shape=(self.batch, *shape[1:])),)
            elif inputs != tuple(each.spec for each in node.inputs):
                try:
                    known[node] = infer(node.row, node.attrs, inputs)
                except ConvgradError as error:
                    raise ArgumentError(
                        f"export: `batch` must fit the graph, got {self.batch}: node {node.name!r}: {error}"
                    ) from None
        return known


def _is_file(text: str) -> bool:
    """Whether there is something of that name, a folder too; a text may be far longer than names are."""
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False


def _is_line(word: str) -> bool:
    """Whether a line of text begins with a word."""
    return word in _problem_text.OPS or layer_text.looks_like(word) or recipe.is_special(word)


def chosen(problems: Iterable[Asked], ops: Iterable[str] | None) -> list[Asked]:
    """Return the problems of some of the three operations; of all if none are named."""
    if ops is None:
        return list(problems)
    listed = [] if isinstance(ops, str) or not isinstance(ops, Iterable) else list(ops)
    if not listed or any(not isinstance(op, str) or op not in OPS for op in listed):
        raise ArgumentError(f"export: `ops` must be a list of {', '.join(OPS)}, got {shown(ops)}.")
    kinds = {OPS[op] for op in listed}
    return [problem for problem in problems if kinds & _kinds(problem)]


def _kinds(asked: Asked) -> set[Kind]:
    """Return the operations that something belongs to; batch norm backwards makes both gradients."""
    if isinstance(asked, Problem):
        return {asked.kind}
    if isinstance(asked, Normalisation) and not asked.task.name.startswith("forward"):
        return {Kind.INPUT_GRADIENT, Kind.FILTER_GRADIENT}
    return {Kind.FORWARD}
