"""Graphs of many modules by few traces: one that is like another has the same graph.

What a forward does on proxies is decided by its class, by the structure of modules under it, and by the attributes it
reads, of its own and of its children. Which names were read is known of a trace (`watching`). A module of the same
class and structure with the same values under these names would have read the same, step by step, so it is not traced
again. Channels, which differ from block to block, are hardly ever read.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from torch import fx, nn

from .tracing import Replacement, Traced, inlined, trace
from .watching import COMPILED, Untraceable

_ANY = frozenset(
    (
        *("getattr", "hasattr", "vars", "dir", "attrgetter", "methodcaller", "eval", "exec"),
        *("__dict__", "__getattribute__", "__getattr__", "__getstate__"),
    )
)
"""Names by which code may read attributes that it does not name."""
_TENSORS = frozenset(("_parameters", "_buffers"))
"""Code that names these may see tensors instead of proxies: its graph is for one module only."""
_USUAL = frozenset(nn.Module().__dict__) - {"training"}
"""What every module has: looked at by itself, or no matter for a trace."""
_DEPTH = 4


class Traces:
    """Graphs of modules, traced once for all that are alike."""

    def __init__(self) -> None:
        self._kept: dict[type, dict[frozenset[str] | None, dict[Hashable, list[Traced]]]] = {}
        self._unseen: dict[type, bool] = {}

    def graphs(self, module: nn.Module) -> list[fx.Graph]:
        """Return what a module does in training and in evaluation, or one graph for both; raises `Untraceable`."""
        found = self._look_up(module)
        graphs = []
        for each in found:
            if each.graph is None:
                raise Untraceable(each.reason)
            graphs.append(each.graph)
        return graphs

    def _look_up(self, module: nn.Module) -> list[Traced]:
        alike = self._kept.setdefault(type(module), {})
        for names, by_value in alike.items():
            found = by_value.get(_signature(module, names))
            if found is not None:
                return found
        made = [trace(module, True)]
        names = made[0].names
        unseen = any(self._reads_unseen(type(each)) for each in module.modules())
        if made[0].graph is not None and ("training" in names or names & _ANY or unseen):
            made.append(trace(module, False))
            names |= made[1].names
        if not names & _TENSORS and not unseen:
            key = None if names & _ANY else names
            alike.setdefault(key, {})[_signature(module, key)] = made
        return made

    def _reads_unseen(self, kind: type) -> bool:
        if kind not in self._unseen:
            self._unseen[kind] = _reads_unseen(kind)
        return self._unseen[kind]


class _Same:
    """A value that is equal to nothing but itself."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _signature(root: nn.Module, names: frozenset[str] | None) -> Hashable:
    """Return all that decides the graph of a module, if it reads attributes of these names, or of any."""
    numbers: dict[int, int] = {}
    for each in root.modules():
        numbers[id(each)] = len(numbers)
    tensors: dict[int, int] = {}
    rows = []
    for each in root.modules():
        there = each.__dict__
        read = [
            (name, _told(value))
            for name, value in there.items()
            if (name in names if names is not None else True)
            and name not in _USUAL
            and not (each is root and name == "training")
            and not isinstance(value, Replacement)
        ]
        rows.append(
            (
                type(each),
                inlined(each),
                tuple(
                    (name, None if child is None else numbers[id(child)])
                    for name, child in each._modules.items()
                ),
                # A tensor with two names is known by the first.
                *(
                    tuple(
                        (name, None if one is None else tensors.setdefault(id(one), len(tensors)))
                        for name, one in held.items()
                    )
                    for held in (each._parameters, each._buffers)
                ),
                tuple(read),
            )
        )
    return tuple(rows)


def _told(value: Any, depth: int = _DEPTH) -> Hashable:
    """Return what a value says: equal for plain values that are alike; anything else is equal to itself alone."""
    kind = type(value)
    if kind in (bool, int, str, bytes, type(None)):
        return kind, value
    if kind is float:
        return kind, value.hex()
    if depth and kind in (tuple, list):
        return kind, tuple(_told(each, depth - 1) for each in value)
    if depth and kind in (set, frozenset):
        return kind, frozenset(_told(each, depth - 1) for each in value)
    if depth and kind is dict:
        return kind, tuple(
            (_told(key, depth - 1), _told(each, depth - 1)) for key, each in value.items()
        )
    return _Same(value)


def _reads_unseen(kind: type) -> bool:
    """Tell whether objects of a class have attributes that are kept or read by compiled code, where no name is seen."""
    for each in kind.__mro__:
        for name, member in vars(each).items():
            read = member.fget if isinstance(member, property) else member
            if name == "__slots__" or isinstance(read, COMPILED):
                return True
    return False
