"""A module's `forward` as a graph, where it is the same graph at every call; else the reason why it may not be.

`torch.fx` runs a `forward` once, on proxies, and records what is done to them. What Python does beside that is not
recorded: a branch taken by chance, an attribute set, a block of `with`. So everything the forward calls is watched
(`watching`), and whatever could make a later call differ is refused by name. What it reads of the module's own
attributes is part of the graph (`forwards` compares them); that the attributes of its children stay is taken for
granted.
"""

from __future__ import annotations

import copy
import inspect
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import fx, nn

from .interruptions import from_outside
from .watching import Untraceable, Watch, unseen


def hooked(module: nn.Module) -> bool:
    """Tell whether a call of a module does more than its class says."""
    there = module.__dict__
    return bool(
        there["_forward_hooks"]
        or there["_forward_pre_hooks"]
        or there["_backward_hooks"]
        or there["_backward_pre_hooks"]
    )


class Replacement:
    """A forward of ours in the place of a module's own, which does the same."""


def inlined(module: nn.Module) -> bool:
    """Tell whether a module does nothing but call its children one after the other."""
    kind = type(module)
    replaced = module.__dict__.get("forward")
    return (
        (replaced is None or isinstance(replaced, Replacement))
        and isinstance(module, nn.Sequential)
        and kind.forward is nn.Sequential.forward
        and kind.__iter__ is nn.Sequential.__iter__
        and kind.__call__ is nn.Module.__call__
        and not hooked(module)
    )


class _Proxy(fx.Proxy):
    """A proxy that records `a += b` as what it is: the usual one makes it `a = a + b`, which writes elsewhere."""


def _in_place(name: str) -> Any:
    function = getattr(operator, name)

    def method(self: fx.Proxy, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", function, (self, other), {})

    return method


for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
):
    setattr(_Proxy, f"__i{_name}__", _in_place(f"i{_name}"))


_KNOWN = (
    list,
    dict,
    fx.immutable_collections.immutable_list,
    fx.immutable_collections.immutable_dict,
)


def _like(value: Any) -> str:
    return "dict" if isinstance(value, dict) else "list"


class _Tracer(fx.Tracer):
    # A buffer decides no branch unseen.
    proxy_buffer_attributes = True

    def __init__(self, watch: Watch | None) -> None:
        super().__init__()
        self._watch = watch

    def proxy(self, node: fx.Node) -> fx.Proxy:
        return _Proxy(node, self)

    def create_args_for_root(self, root_fn: Callable[..., Any], *args: Any) -> Any:
        function, given = super().create_args_for_root(root_fn, *args)
        watch = self._watch
        if watch is None:
            return function, given
        # Only what the forward itself does is watched, not how the tracer gets ready.
        return lambda *each: watch.watched(function, *each), given

    def create_proxy(self, *args: Any, **kwargs: Any) -> fx.Proxy:
        return unseen(super().create_proxy, *args, **kwargs)

    def getattr(self, *args: Any) -> Any:
        return unseen(super().getattr, *args)

    def create_arg(self, a: Any) -> Any:
        kind = type(a)
        if isinstance(a, dict | list) and kind not in _KNOWN:
            raise Untraceable(f"it makes a {kind.__name__}, which a graph would make a {_like(a)}")
        return super().create_arg(a)

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return not inlined(m)


@dataclass(frozen=True)
class Traced:
    """What became of a trace."""

    graph: fx.Graph | None
    reason: str
    """Why there is no graph."""
    names: frozenset[str] = frozenset()
    """Names of all attributes that may have been read on the way, and others."""


def trace(module: nn.Module, training: bool) -> Traced:
    """Return what a module does in training or in evaluation."""
    kind: Any = type(module)
    forward = kind.forward
    if not inspect.isfunction(forward) or hasattr(forward, "__wrapped__"):
        return Traced(None, "its forward is decorated")
    for name, parameter in list(inspect.signature(forward).parameters.items())[1:]:
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            return Traced(None, f"its forward takes *{name}")
        if parameter.default is not parameter.empty:
            return Traced(None, f"its forward has an optional argument, {name}")
    # One after the other is all that a sequence does.
    watch = None if inlined(module) else Watch(module)
    attributes = _Attributes(module)
    made: fx.Graph | None = None
    reason = ""
    try:
        module.__dict__["training"] = training
        made = _Tracer(watch).trace(module)
    except Exception as error:
        if not isinstance(error, Untraceable) and from_outside(error):
            raise
        said = str(error).strip().splitlines()
        words = said[0][:120] if said else type(error).__name__
        reason = f"torch.fx cannot trace its forward: {words}"
    finally:
        # Twice, because an interrupt may end the first.
        try:
            attributes.put_back()
        finally:
            attributes.put_back()
    names = frozenset() if watch is None else frozenset(watch.names)
    if watch is not None and watch.found:
        reason = f"its forward {watch.found}"
    elif not reason and attributes.changed:
        reason = "its forward changes its attributes"
    return Traced(None if reason else made, reason, names)


class _Attributes:
    """A module's attributes as they were before a trace."""

    def __init__(self, module: nn.Module) -> None:
        self._there = module.__dict__
        self._kept = {
            name: dict(value) if type(value) is dict else value
            for name, value in self._there.items()
        }
        self._contents = [
            (value, copy.copy(value))
            for value in self._there.values()
            if type(value) in (list, dict, set)
        ]
        self.changed = False
        """Whether a trace did something to them."""

    def put_back(self) -> None:
        there, kept = self._there, self._kept
        there["training"] = kept["training"]
        for name in [name for name in there if name not in kept]:
            self.changed = True
            del there[name]
        for name, value in kept.items():
            found = there.get(name)
            if type(value) is dict and type(found) is dict:
                if found.keys() != value.keys() or any(
                    found[key] is not value[key] for key in value
                ):
                    self.changed = True
                    found.clear()
                    found.update(value)
            elif found is not value:
                self.changed = True
                there[name] = value
        for value, before in self._contents:
            if value != before:
                self.changed = True
                value.clear()
                value.extend(before) if type(value) is list else value.update(before)
