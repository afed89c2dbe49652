"""`Scope`: where nodes are made, named and checked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..._base.errors import ArgumentError, ArgumentTypeError, ConvgradError, shown
from . import dtypes
from .dtypes import Dtype
from .operation import Graph, Operation, Output
from .row import NodeCall, OpRow, Pin, canonical
from .spec import Spec
from .table import CONST, TABLE

_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")


@lru_cache(maxsize=8192)
def _may_be_a_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


class Answer(int):
    """A truth value that may be asked as Python does, ``scope.ok``, or as C++ does, ``scope.ok()``."""

    def __call__(self) -> bool:
        return bool(self)

    def __repr__(self) -> str:
        return repr(bool(self))


@dataclass(frozen=True)
class Status:
    """How building has gone: the first error, if there was one."""

    error: ConvgradError | None = None

    @property
    def ok(self) -> Answer:
        return Answer(self.error is None)

    @property
    def message(self) -> str:
        return "" if self.error is None else str(self.error)

    def __call__(self) -> Status:
        """``scope.status()`` is C++'s way to ask."""
        return self

    def __bool__(self) -> bool:
        return self.error is None

    def __str__(self) -> str:
        return self.message or "OK"


class _Shared:
    """What all scopes of one graph have together."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.status = Status()
        self.scopes: dict[str, int] = {}


class Scope:
    """A place in a graph under construction.

    Every op takes one as its first argument. An op that breaks a rule raises; the first such error is also kept in
    `status`, as C++ programs expect.

    >>> scope = Scope.new_root_scope()
    >>> layer = scope.new_sub_scope("layer")
    >>> layer.op("Const", value=1).operation.name, layer.with_op_name("one").op("Const", value=1).operation.name
    ('layer/Const', 'layer/one')
    >>> scope.ok()
    True
    """

    def __init__(self, shared: _Shared, prefix: str = "", op_name: str = "") -> None:
        self._shared, self._prefix, self._op_name = shared, prefix, op_name

    @classmethod
    def new_root_scope(cls) -> Scope:
        """Return a scope with a new, empty graph."""
        return cls(_Shared())

    def new_sub_scope(self, name: str) -> Scope:
        """Return a scope whose nodes' names begin with this one's and `name`; a second one of a name gets a number."""
        self._check_name("new_sub_scope", name)
        whole = f"{self._prefix}{name}"
        number = self._shared.scopes.get(whole, 0)
        self._shared.scopes[whole] = number + 1
        return Scope(self._shared, f"{whole}_{number}/" if number else f"{whole}/")

    def with_op_name(self, name: str) -> Scope:
        """Return the same scope, whose nodes get this name."""
        self._check_name("with_op_name", name)
        return Scope(self._shared, self._prefix, name)

    @property
    def graph(self) -> Graph:
        return self._shared.graph

    @property
    def status(self) -> Status:
        """The first error of building, in any scope of this graph."""
        return self._shared.status

    @property
    def ok(self) -> Answer:
        """Whether no op was refused."""
        return self.status.ok

    def op(self, name: str, *inputs: Any, **attrs: Any) -> Output:
        """Add a node by the name of its op and return its first output; for sources that are written by programs."""
        row = TABLE.get(name)
        if row is None:
            raise ArgumentError(f"Scope.op: there is no op {shown(name)}.")
        if len(inputs) != len(row.inputs):
            pins = ", ".join(pin.name for pin in row.inputs) or "none"
            error = ArgumentTypeError(f"{name}: the inputs are {pins}, got {len(inputs)} of them.")
            raise self.refused(row, error)
        return self.add(row, inputs, attrs).outputs[0]

    def constant(self, value: Any, dtype: Dtype | None = None) -> Output:
        """Return a constant, of a dtype if one is given."""
        with np.errstate(all="ignore"):
            return self.op(
                "Const", value=np.asarray(value) if dtype is None else np.asarray(value, dtype)
            )

    def add(
        self, row: OpRow, inputs: Sequence[Any], attrs: Mapping[str, Any], *, read: bool = False
    ) -> Operation:
        """Check everything that is known and add a node; attributes that are `read` are in canonical form."""
        graph = self.graph
        before = len(graph.nodes)
        name = graph.free_name(self._prefix + (self._op_name or row.name))
        try:
            given = attrs if read else canonical_attributes(row, attrs)
            found = self._inputs(row, inputs)
            specs = tuple(each.spec for each in found)
            outputs = infer(row, given, specs)
        except ConvgradError as error:
            graph.keep(before, ())  # constants that were made for it
            raise self._refusal(name, error) from None
        node = Operation(graph, name, row, found, given, outputs)
        graph.add(node)
        return node

    def refused(self, row: OpRow, error: ConvgradError) -> ConvgradError:
        """Return an error of a call with the name the node would have had, and keep it in `status`."""
        return self._refusal(
            self.graph.free_name(self._prefix + (self._op_name or row.name)), error
        )

    def _refusal(self, name: str, error: ConvgradError) -> ConvgradError:
        named = type(error)(f"node {name!r}: {error}")
        if self._shared.status.error is None:
            self._shared.status = Status(named)
        return named

    def _inputs(self, row: OpRow, given: Sequence[Any]) -> tuple[Output, ...]:
        """Return the inputs as outputs of nodes; numbers and arrays become constants."""
        pins = row.inputs
        if row.plain and all(type(value) is Output for value in given):
            if any(value.operation.graph is not self.graph for value in given):
                raise ArgumentError(f"{row.name}: all inputs must be of the scope's graph.")
            return tuple(given)
        flat: list[tuple[Pin, Any]] = []
        for pin, value in zip(pins, given, strict=True):
            if not pin.many:
                flat.append((pin, value))
                continue
            if isinstance(value, str | bytes | dict) or not hasattr(value, "__iter__"):
                raise ArgumentTypeError(
                    f"{row.name}: `{pin.name}` must be a list of tensors, got {shown(value)}."
                )
            flat += [(pin, each) for each in value]
        tensors = [as_output(value) for _, value in flat]
        letters: dict[str, Dtype] = {}
        for (pin, value), tensor in zip(flat, tensors, strict=True):
            if tensor is not None:  # before any number is read as one of its dtype
                self._check_tensor(row, pin, tensor)
            if pin.same and tensor is not None:
                letters.setdefault(pin.same, tensor.dtype)
            elif pin.same and isinstance(value, np.ndarray | np.generic):
                letters.setdefault(pin.same, value.dtype)
        found = []
        for (pin, value), tensor in zip(flat, tensors, strict=True):
            if tensor is None:
                tensor = self._literal(row, pin, value, letters.get(pin.same))
            if pin.ref and tensor.operation.variable().row.name != "Variable":
                raise ArgumentError(
                    f"{row.name}: `{pin.name}` must be a Variable, got {tensor.name!r}, a {tensor.operation.type}."
                )
            found.append(tensor)
        return tuple(found)

    def _check_tensor(self, row: OpRow, pin: Pin, tensor: Output) -> None:
        if tensor.operation.graph is not self.graph:
            raise ArgumentError(
                f"{row.name}: `{pin.name}` must be of the same graph, got {tensor.name!r} of another."
            )
        row.check_allowed(pin, tensor.dtype)

    def _literal(self, row: OpRow, pin: Pin, value: Any, dtype: Dtype | None) -> Output:
        if dtype is None and pin.allowed <= dtypes.INDICES and isinstance(value, list | tuple):
            dtype = dtypes.INT32  # an empty list of axes is not a list of floats
        array = dtypes.array(row.name, pin.name, value, dtype)
        name = f"{self._op_name}/{pin.name}" if self._op_name else ""
        plain = Scope(self._shared, self._prefix, name)
        return plain.add(CONST, (), {"value": array}).outputs[0]

    def _check_name(self, function: str, name: str) -> None:
        if not isinstance(name, str) or not _may_be_a_name(name):
            raise ArgumentError(
                f"Scope.{function}: `name` must be letters, digits and _ . - / and begin with a letter or digit, "
                f"got {shown(name)}."
            )


def infer(row: OpRow, attrs: Mapping[str, Any], specs: tuple[Spec, ...]) -> tuple[Spec, ...]:
    """Return what is known of a node's outputs, or raise the error that its inputs cause.

    Remembered: after each edit, a page asks again for all that did not change, and a convolution's rule takes 30 us.
    """
    if row is CONST:
        return tuple(row.infer(NodeCall(row, attrs, specs)))
    key = (row, *(attrs[attr.name] for attr in row.attrs), specs)
    found = _inferred.get(key)
    if found is None:
        row.check_dtypes(specs)
        found = tuple(row.infer(NodeCall(row, attrs, specs)))
        if len(_inferred) >= _MOST_INFERRED:
            _inferred.clear()
        _inferred[key] = found
    return found


_inferred: dict[Any, tuple[Spec, ...]] = {}
_MOST_INFERRED = 8192
"""Some 1 KB each."""


def as_output(value: Any) -> Output | None:
    """Return the tensor a value is or stands for; None for numbers and arrays."""
    if isinstance(value, Output):
        return value
    node = value if isinstance(value, Operation) else getattr(value, "operation", None)
    if not isinstance(node, Operation):
        return None
    if len(node.outputs) != 1:
        raise ArgumentTypeError(
            f"{node.type}: {node.name!r} has outputs {', '.join(node.row.outputs)}: name one of them."
        )
    return node.outputs[0]


def canonical_attributes(row: OpRow, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all attributes of a node in canonical form, those left out by their defaults."""
    found: dict[str, Any] = {}
    for attr in row.attrs:
        if attr.name in given:
            found[attr.name] = canonical(row.name, attr, given[attr.name])
        elif attr in row.required:
            raise ArgumentTypeError(f"{row.name}: `{attr.name}` is missing.")
        else:
            found[attr.name] = attr.default
    if unknown := sorted(given.keys() - found.keys()):
        known = ", ".join(found) or "none"
        raise ArgumentTypeError(
            f"{row.name}: there is no attribute `{unknown[0]}` (there are: {known})."
        )
    return found
