"""A module's `forward` as a graph, where it is the same graph at every call; else the reason why it may not be.

`torch.fx` runs a `forward` once, on proxies, and records what is done to them. What Python does beside that is not
recorded: a branch taken by chance, an attribute set, a block of `with`. So everything the forward calls is watched, and
whatever could make a later call differ is refused by name. What it reads of the module's own attributes is part of the
graph (`forwards` compares them); that the attributes of its children stay is taken for granted.
"""

from __future__ import annotations

import copy
import dis
import inspect
import math
import operator
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import CodeType, FrameType
from typing import Any

from torch import fx, nn

_HARMLESS = (len, getattr, abs, min, max, sum, sorted, any, all, divmod, pow, round, iter, next)
_METHODS = (list, dict, tuple, str, set, frozenset, slice, range)
"""Builtin methods of these are harmless, unless they are attributes of the module."""
_BY_CHANCE = (
    "rand",
    "bernoulli",
    "normal",
    "multinomial",
    "poisson",
    "empty",
    "seed",
    "is_",
    "get_",
)
"""How names of functions of PyTorch begin whose answers differ from call to call."""
_REFUSED = {
    "STORE_ATTR": "sets attributes",
    "DELETE_ATTR": "deletes attributes",
    "STORE_GLOBAL": "sets global variables",
    "DELETE_GLOBAL": "deletes global variables",
    "BEFORE_WITH": "has a block of `with`",
    "SETUP_WITH": "has a block of `with`",
    "PUSH_EXC_INFO": "handles exceptions",
    "SETUP_FINALLY": "handles exceptions",
    "STORE_SUBSCR": "writes into containers",
    "DELETE_SUBSCR": "writes into containers",
    "MATCH_CLASS": "asks for types",
}
_TYPES = {"LOAD_GLOBAL": "type", "LOAD_NAME": "type", "LOAD_ATTR": "__class__"}
"""Instructions that ask for a type, and of what: a proxy's is no tensor's."""
_CHANGING = (
    *("append", "extend", "insert", "pop", "popitem", "remove", "discard", "clear", "sort"),
    *("reverse", "update", "add", "setdefault"),
)
"""Methods that change their container: for those that the forward has made itself only."""
_DEPTH = 3
_OURS = __name__.rpartition(".")[0]
_GRAD_MODE = ("_set_grad_enabled", "_enter_dual_level", "set_autocast_enabled")


class Untraceable(Exception):
    """Why a module's forward is left as it is."""


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


def _refilled(value: Any, before: Any) -> bool:
    """Give a container back what was in it; tells whether that was missing."""
    if value == before:
        return False
    value.clear()
    value.extend(before) if type(value) is list else value.update(before)
    return True


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

    def proxy(self, node: fx.Node) -> fx.Proxy:
        return _Proxy(node, self)

    def create_arg(self, a: Any) -> Any:
        kind = type(a)
        if isinstance(a, dict | list) and kind not in _KNOWN:
            raise Untraceable(f"it makes a {kind.__name__}, which a graph would make a {_like(a)}")
        return super().create_arg(a)

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return not inlined(m)


def graph(module: nn.Module, training: bool) -> fx.Graph:
    """Return what a module does in training or in evaluation; raises `Untraceable`."""
    kind: Any = type(module)
    forward = kind.forward
    if not inspect.isfunction(forward) or hasattr(forward, "__wrapped__"):
        raise Untraceable("its forward is decorated")
    for name, parameter in list(inspect.signature(forward).parameters.items())[1:]:
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            raise Untraceable(f"its forward takes *{name}")
        if parameter.default is not parameter.empty:
            raise Untraceable(f"its forward has an optional argument, {name}")
    kept = {
        name: dict(value) if type(value) is dict else value
        for name, value in module.__dict__.items()
    }
    contents = [
        (value, copy.copy(value))
        for value in module.__dict__.values()
        if type(value) in (list, dict, set)
    ]
    watch = _Watch(module)
    try:
        module.__dict__["training"] = training
        # One after the other is all that a sequence does.
        with nullcontext() if inlined(module) else watch.watching():
            made = _Tracer().trace(module)
    except Exception as error:
        if watch.found:
            raise Untraceable(f"its forward {watch.found}") from None
        said = str(error).strip().splitlines()
        raise Untraceable(
            f"torch.fx cannot trace its forward: {said[0][:120] if said else type(error).__name__}"
        ) from None
    finally:
        changed = _put_back(module, kept)
        for value, before in contents:
            changed |= _refilled(value, before)
    if watch.found:
        raise Untraceable(f"its forward {watch.found}")
    if changed:
        raise Untraceable("its forward changes its attributes")
    return made


def _put_back(module: nn.Module, kept: dict[str, Any]) -> bool:
    """Undo what tracing did to a module's attributes; tells whether there was anything."""
    there = module.__dict__
    there["training"] = kept["training"]
    changed = False
    for name in [name for name in there if name not in kept]:
        del there[name]
        changed = True
    for name, value in kept.items():
        found = there.get(name)
        if type(value) is dict and type(found) is dict:
            if found.keys() != value.keys() or any(found[key] is not value[key] for key in value):
                found.clear()
                found.update(value)
                changed = True
        elif found is not value:
            there[name] = value
            changed = True
    return changed


def _is_theirs(frame: FrameType | None) -> bool:
    """Tell whether code is the model's, or was called by it: not PyTorch's own, which we know, nor what that calls."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        root = name.split(".")[0]
        if root == "torch" or name.startswith(_OURS):
            return False
        # What is neither of a library nor in a module, such as a named tuple's code, is who calls it.
        if name == "__main__" or (name in sys.modules and root not in sys.stdlib_module_names):
            return True
        frame = frame.f_back
    return False


def _containers(value: Any, depth: int) -> Iterator[Any]:
    """Return the containers in one, and in objects in it."""
    inside = value.values() if isinstance(value, dict) else value
    for each in list(inside):
        if isinstance(each, _METHODS):
            yield each
        if depth and isinstance(each, list | tuple | set | dict):
            yield from _containers(each, depth - 1)
        elif depth and not callable(each) and type(getattr(each, "__dict__", None)) is dict:
            yield from _containers(each.__dict__, depth - 1)


def _made_here(owner: Any, frame: FrameType) -> bool:
    """Tell whether a container is a forward's own: a local variable, and nobody else's as far as can be seen."""
    outside = (*frame.f_code.co_freevars, *frame.f_code.co_names)
    here = [name for name, value in frame.f_locals.items() if value is owner]
    if not here or any(name in frame.f_code.co_freevars for name in here):
        return False
    return not any(frame.f_globals.get(name) is owner for name in outside)


class _Watch:
    """Looks at everything a forward of others' calls."""

    def __init__(self, module: nn.Module) -> None:
        self.found = ""
        """What it does that a graph cannot repeat."""
        self._own = list(_containers(module.__dict__, _DEPTH))
        self._seen: set[CodeType] = set()

    @contextmanager
    def watching(self) -> Iterator[None]:
        before = sys.getprofile()
        sys.setprofile(self._event)
        try:
            yield
        finally:
            sys.setprofile(before)

    def _event(self, frame: FrameType, event: str, function: Any) -> None:
        """Note what cannot be repeated, and end the trace before it is done: it may leave proxies behind."""
        if not self.found:
            self._look(frame, event, function)
            if self.found:
                raise Untraceable(self.found)

    def _look(self, frame: FrameType, event: str, function: Any) -> None:
        theirs = _is_theirs(frame)
        if event == "call":
            name = frame.f_code.co_name
            module = str(frame.f_globals.get("__name__", ""))
            if name == "decorate_context":
                self.found = "calls a function decorated with a mode of PyTorch's"
            elif module == "torch.utils.checkpoint":
                self.found = "has activation checkpoints"
            elif not theirs and name.startswith("is_") and _is_theirs(frame.f_back):
                self.found = f"calls {name}"
            elif theirs and frame.f_code not in self._seen:
                self._seen.add(frame.f_code)
                self._look_at(frame.f_code)
        elif event == "c_call":
            name = getattr(function, "__name__", "")
            if name in _GRAD_MODE:
                self.found = "switches autograd or autocast"
            elif theirs and not self._harmless(function, name, frame):
                self.found = f"calls {name or repr(function)}"

    def _look_at(self, code: CodeType) -> None:
        for instruction in dis.get_instructions(code):
            if instruction.opname in _REFUSED:
                self.found = _REFUSED[instruction.opname]
                return
            if instruction.argval and _TYPES.get(instruction.opname) == instruction.argval:
                self.found = "asks for types"
                return

    def _harmless(self, function: Any, name: str, frame: FrameType) -> bool:
        if function in _HARMLESS:
            return True
        owner = getattr(function, "__self__", None)
        if isinstance(owner, _METHODS):
            if any(owner is each for each in self._own):
                return False
            return name not in _CHANGING or _made_here(owner, frame)
        if owner in (math, operator):
            return True
        operators = getattr(function, "__qualname__", "").startswith("_VariableFunctionsClass.")
        theirs = operators or getattr(owner, "__name__", "").startswith("torch._C.")
        return theirs and not name.lstrip("_").startswith(_BY_CHANCE)
