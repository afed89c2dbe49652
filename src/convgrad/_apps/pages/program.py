"""What a program made from a graph does, before it is spelt in a language: names, feeds, first values, fetches.

Names of nodes come from pages, so they may be any text. Here they become identifiers and names that a scope takes;
the text itself only ever stands inside a literal, which the language's own module escapes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from ..._base.dtypes import AnyArray
from ..._base.errors import ArgumentError, shown
from ..graph import dtypes
from ..graph.operation import Graph, Operation, Output
from ..graph.spec import Spec, fits, shape_spelled

MOST_SPELT = 64
"""Elements of a constant that is written number by number; a larger one is written as bits."""


@dataclass(frozen=True)
class Program:
    """A graph with everything a program needs to know besides its nodes."""

    graph: Graph
    names: dict[Operation, str]
    """Identifiers, unique."""
    titles: dict[Operation, str]
    """Names that the program gives its nodes: their own, where a scope takes them."""
    placeholders: tuple[Operation, ...]
    unset: tuple[Operation, ...]
    """Variables that need a value and have none: the program takes it as it takes placeholders."""
    feeds: dict[Operation, AnyArray]
    """Values of placeholders and of unset Variables, where they were given."""
    initial: dict[Operation, AnyArray]
    """First values of Variables."""
    first: tuple[Operation, ...]
    """Assigns that give Variables their first values, one run after another."""
    fetches: tuple[Output, ...]

    @property
    def arguments(self) -> tuple[Operation, ...]:
        """What the caller gives values for."""
        return (*self.placeholders, *self.unset)

    @property
    def used(self) -> set[Operation]:
        """Nodes that something in the program refers to."""
        return {
            *(each.operation for node in self.graph.nodes for each in node.inputs),
            *(each.operation for each in self.fetches),
            *self.placeholders,
            *self.first,
        }

    def optional(self, node: Operation) -> dict[str, Any]:
        """Return the optional attributes that a node's call must name.

        Random numbers without a seed come from the node's name: where it has to change, the seed is said.
        """
        found = {
            attr.name: node.attrs[attr.name]
            for attr in node.row.optional
            if node.attrs[attr.name] != attr.default
        }
        if self.titles[node] != node.name and is_seedless(node):
            found["seed"] = crc32(node.name.encode("utf-8", "surrogatepass"))
        return found

    def inputs(self, node: Operation, reference: Callable[[Output], str]) -> list[str | list[str]]:
        """Return a node's inputs as the language writes them; those of a list pin as a list."""
        found: list[str | list[str]] = []
        for at, pin in enumerate(node.row.inputs):
            if pin.many:
                found.append([reference(each) for each in node.inputs[at:]])
            else:
                found.append(reference(node.inputs[at]))
        return found


def is_seedless(node: Operation) -> bool:
    """Return whether a node's random numbers come from its name."""
    return "seed" in node.attrs and node.attrs["seed"] == node.attrs.get("seed2") == 0


def prepare_program(
    function: str,
    graph: Graph,
    fetches: Sequence[str] | None,
    feeds: Mapping[str, Any] | None,
    initial: Mapping[str, Any] | None,
    reserved: Iterable[str],
    accepted: re.Pattern[str],
) -> Program:
    """Prepare a program; `reserved` are words that no identifier may be, `accepted` names a scope takes."""
    values = _values(function, "initial", graph, initial, ("Variable",))
    fetched = (
        _sinks(graph, values)
        if fetches is None
        else tuple(each for name in fetches for each in _fetched(function, graph, name))
    )
    first = () if fetches is not None else _first(graph, values)
    given = _values(function, "feeds", graph, feeds, ("Placeholder", "Variable"))
    owned = {node.variable() for node in first}
    return Program(
        graph,
        _identifiers(graph, reserved),
        _titles(graph, accepted),
        tuple(node for node in graph.nodes if node.type == "Placeholder"),
        tuple(node for node in _read_variables(graph, fetched) if node not in {*values, *owned}),
        given,
        values,
        first,
        fetched,
    )


def _values(
    function: str,
    argument: str,
    graph: Graph,
    values: Mapping[str, Any] | None,
    types: tuple[str, ...],
) -> dict[Operation, AnyArray]:
    found = {}
    for name, value in (values or {}).items():
        node = graph.by_name.get(name)
        if node is None or node.type not in types:
            raise ArgumentError(
                f"{function}: `{argument}` must name nodes that are a {' or '.join(types)}, got {shown(name)}."
            )
        found[node] = fitting(function, f"{argument}[{shown(name)}]", value, node.specs[0])
    return found


def fitting(function: str, argument: str, value: Any, spec: Spec) -> AnyArray:
    """Return a value as an array of a spec; numbers of Python's take its dtype, arrays must have it."""
    array = dtypes.array(function, argument, value, spec.dtype)
    if not fits(spec.shape, array.shape):
        raise ArgumentError(
            f"{function}: `{argument}` must have shape {shape_spelled(spec.shape)}, got {list(array.shape)}."
        )
    return array


def _fetched(function: str, graph: Graph, name: str) -> tuple[Output, ...]:
    """Return the outputs of a node, or one of them: `node`, `node:1`."""
    if name in graph.by_name:
        return graph.by_name[name].outputs
    base, _, digits = name.rpartition(":")
    node = graph.by_name.get(base)
    if node is None or not re.fullmatch("[0-9]{1,4}", digits) or int(digits) >= len(node.outputs):
        raise ArgumentError(
            f"{function}: `fetches` must name nodes or their outputs, such as node:0, got {shown(name)}."
        )
    return (node.outputs[int(digits)],)


def _sinks(graph: Graph, initial: Mapping[Operation, Any]) -> tuple[Output, ...]:
    """Return all outputs of nodes that nothing uses.

    Without Assigns that run before the rest; and of several updates of one Variable the first, since a session
    refuses two in one run.
    """
    used = {each.operation for node in graph.nodes for each in node.inputs}
    first, updated = set(_first(graph, initial)), set[Operation]()
    updates = any(node.row.updates for node in graph.nodes)
    found: list[Output] = []
    for node in graph.nodes:
        if node in used or node in first:
            continue
        changed = _updated(node) if updates else set[Operation]()
        if changed & updated:
            continue
        updated |= changed
        found += node.outputs
    return tuple(found)


def _updated(node: Operation) -> set[Operation]:
    """Return the Variables that computing a node changes."""
    return {each.variable() for each in upstream([node]) if each.row.updates}


def _first(graph: Graph, initial: Mapping[Operation, Any]) -> tuple[Operation, ...]:
    """Return the Assigns that nothing uses and that give a Variable without a value its first one."""
    used = {each.operation for node in graph.nodes for each in node.inputs}
    found: dict[Operation, Operation] = {}
    for node in graph.nodes:
        if node.type != "Assign" or node in used or node.variable() in initial:
            continue
        sources = {each.type for each in upstream([node.inputs[1].operation])}
        if node.inputs[0].operation is node.variable() and not sources & {
            "Variable",
            "Placeholder",
        }:
            found.setdefault(node.variable(), node)
    return tuple(found.values())


def _read_variables(graph: Graph, fetches: Sequence[Output]) -> list[Operation]:
    """Return the Variables whose values the fetches need; an Assign does not need the old one."""
    needed = upstream([each.operation for each in fetches])
    read = {each.operation for each in fetches}
    for node in needed:
        read |= {each.operation for each in node.inputs[node.type == "Assign" :]}
    return [node for node in graph.nodes if node.type == "Variable" and node in read]


def upstream(nodes: Iterable[Operation]) -> set[Operation]:
    """Return nodes and all that they are computed from."""
    found: set[Operation] = set()
    open_ = list(nodes)
    while open_:
        node = open_.pop()
        if node not in found:
            found.add(node)
            open_ += [each.operation for each in node.inputs]
    return found


def identifier(name: str, otherwise: str) -> str:
    """Return a word of small ASCII letters, digits and single underscores that begins with a letter.

    >>> identifier("layer1/Conv2D", "x"), identifier("2nd", "x"), identifier("é'\\n", "x"), identifier("层", "Relu")
    ('layer1_conv2d', 'n_2nd', 'e', 'relu')
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii").lower()
    word = re.sub("[^a-z0-9]+", "_", plain).strip("_")[:60].rstrip("_")
    if not word:
        return identifier(otherwise, "node") if otherwise else "node"
    return word if word[0].isalpha() else f"n_{word}"


def _identifiers(graph: Graph, reserved: Iterable[str]) -> dict[Operation, str]:
    words = set(reserved)
    taken = set(words)
    counts: dict[str, int] = {}
    found = {}
    for node in graph.nodes:
        base = identifier(node.name, node.type)
        word = f"{base}_" if base in words else base
        while word in taken:
            counts[base] = counts.get(base, 0) + 1
            word = f"{base}_{counts[base]}"
        taken.add(word)
        found[node] = word
    return found


def _titles(graph: Graph, accepted: re.Pattern[str]) -> dict[Operation, str]:
    taken = {node.name for node in graph.nodes if accepted.fullmatch(node.name)}
    found = {}
    for node in graph.nodes:
        title = node.name
        if not accepted.fullmatch(title):
            base, number = identifier(node.name, node.type), 0
            title = base
            while title in taken:
                number += 1
                title = f"{base}_{number}"
            taken.add(title)
        found[node] = title
    return found


def stand_in(spec: Spec) -> tuple[int, ...]:
    """Return sizes for a value nobody gave: 1 where a size is unknown.

    >>> stand_in(Spec(dtypes.INT32, (None, 3)))
    (1, 3)
    """
    return tuple(1 if size is None else size for size in spec.shape or ())


def wrapped(before: str, items: Sequence[str], behind: str, indent: int, comma: str = ",") -> str:
    """Write a list on one line of 100 characters, or else every item on a line of its own.

    >>> print(wrapped("f(", ["1", "2"], ")", 0))
    f(1, 2)
    """
    margin = " " * indent
    line = f"{margin}{before}{', '.join(items)}{behind}"
    if "\n" not in line and (len(line) <= 100 or not items):
        return line
    step = margin + "    "
    inside = ",\n".join(step + item.replace("\n", "\n    ") for item in items)
    return f"{margin}{before}\n{inside}{comma}\n{margin}{behind}"
