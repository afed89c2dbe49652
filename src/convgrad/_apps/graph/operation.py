"""Nodes of a graph and what they put out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .dtypes import Dtype
from .row import OpRow
from .spec import Shape, Spec


class Output:
    """One tensor of a graph: output number `index` of a node. Compared by identity, and a key of `feeds`."""

    __slots__ = ("__weakref__", "index", "operation")

    def __init__(self, operation: Operation, index: int) -> None:
        self.operation, self.index = operation, index

    @property
    def spec(self) -> Spec:
        """Dtype and sizes, as far as they are known."""
        return self.operation.specs[self.index]

    @property
    def dtype(self) -> Dtype:
        return self.spec.dtype

    @property
    def shape(self) -> Shape:
        """Sizes, None where unknown; None as a whole if the rank is."""
        return self.spec.shape

    @property
    def name(self) -> str:
        """As TensorFlow spells it: ``node:0``."""
        return f"{self.operation.name}:{self.index}"

    @property
    def pin(self) -> str:
        """The output's name in the op's signature."""
        return self.operation.row.outputs[self.index]

    def __repr__(self) -> str:
        return f"<{self.name} {self.spec}>"


class Operation:
    """One node: an op with its inputs and attributes."""

    __slots__ = ("attrs", "graph", "inputs", "name", "number", "outputs", "row", "specs")

    def __init__(
        self,
        graph: Graph,
        name: str,
        row: OpRow,
        inputs: tuple[Output, ...],
        attrs: Mapping[str, Any],
        specs: tuple[Spec, ...],
    ) -> None:
        self.graph, self.name, self.row = graph, name, row
        self.inputs, self.attrs, self.specs = inputs, attrs, specs
        self.number = len(graph.nodes)
        """Inputs have smaller numbers: a graph cannot have a circle."""
        self.outputs = tuple(Output(self, at) for at in range(len(row.outputs)))

    @property
    def type(self) -> str:
        """Name of the op."""
        return self.row.name

    def variable(self) -> Operation:
        """Return the Variable that this node is, or updates."""
        node = self
        while node.row.updates:
            node = node.inputs[0].operation
        return node

    def __repr__(self) -> str:
        inputs = ", ".join(each.name for each in self.inputs)
        return f"<{self.type} {self.name!r} ({inputs})>"


class Graph:
    """Nodes in the order they were made."""

    def __init__(self) -> None:
        self.nodes: list[Operation] = []
        self.by_name: dict[str, Operation] = {}
        self._taken: dict[str, int] = {}

    def add(self, node: Operation) -> None:
        self.nodes.append(node)
        self.by_name[node.name] = node

    def keep(self, start: int, outputs: Iterable[Output]) -> None:
        """Drop those of the nodes from `start` on that none of the outputs depends on."""
        wanted: set[Operation] = set()
        open_ = [output.operation for output in outputs]
        while open_:
            node = open_.pop()
            if node.number >= start and node not in wanted:
                wanted.add(node)
                open_ += [each.operation for each in node.inputs]
        tail = self.nodes[start:]
        del self.nodes[start:]
        for node in tail:
            if node in wanted:
                node.number = len(self.nodes)
                self.nodes.append(node)
            else:
                del self.by_name[node.name]

    def free_name(self, name: str) -> str:
        """Return a name no node has: the one given, or with a number behind it."""
        while True:
            number = self._taken.get(name, 0)
            self._taken[name] = number + 1
            found = f"{name}_{number}" if number else name
            if found not in self.by_name and (number == 0 or found not in self._taken):
                self._taken.setdefault(found, 1)
                return found
