"""What a `forward` calls while it is traced: the first thing a graph cannot repeat, and which attributes it may read.

A profile function sees every call. Watching was nine tenths of what a trace took, so PyTorch's own tracer works unseen
(`unseen`), and what is known to be harmless is looked up in a set.
"""

from __future__ import annotations

import dis
import math
import operator
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from types import CodeType, FrameType
from typing import Any, TypeVar

from torch import nn

_Made = TypeVar("_Made")

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
"""Instructions that ask for a type, and of what: a proxy's type is not a tensor's."""
_CHANGING = (
    *("append", "extend", "insert", "pop", "popitem", "remove", "discard", "clear", "sort"),
    *("reverse", "update", "add", "setdefault"),
)
"""Methods that change their container: for those that the forward has made itself only."""
COMPILED = (operator.attrgetter, operator.methodcaller, operator.itemgetter, partial)
"""Kinds of callables that read attributes, or call something that does, without code that names them."""
_DEPTH = 3
_OURS = __name__.rpartition(".")[0]
_TRACER = ("torch.fx.", f"{_OURS}.tracing", f"{_OURS}.watching")
_GRAD_MODE = ("_set_grad_enabled", "_enter_dual_level", "set_autocast_enabled")
_CALLING = {
    getattr(nn.Module, name).__code__
    for name in ("__getattr__", "__call__", "_wrapped_call_impl", "_call_impl", "_slow_forward")
    if hasattr(getattr(nn.Module, name, None), "__code__")
}
"""How modules find their parameters and are called: they read what every module has, and what their caller asks for."""


class Untraceable(Exception):
    """Why a module's forward is left as it is."""


def unseen(function: Callable[..., _Made], *args: Any, **kwargs: Any) -> _Made:
    """Call a function of PyTorch's tracer without looking at what it calls."""
    watching = sys.getprofile()
    sys.setprofile(None)
    try:
        return function(*args, **kwargs)
    finally:
        sys.setprofile(watching)


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


@lru_cache(1024)
def _read(code: CodeType) -> tuple[str, frozenset[str]]:
    """Return what code does that a graph cannot repeat, and the names in it, with those that `getattr` is given."""
    refused = ""
    names = set(code.co_names) - {"getattr"}
    instructions = list(dis.get_instructions(code))
    for at, each in enumerate(instructions):
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME") and each.argval == "getattr":
            names.add(_named(instructions[at + 1 :]))
        if refused:
            continue
        if each.opname in _REFUSED:
            refused = _REFUSED[each.opname]
        elif each.argval and _TYPES.get(each.opname) == each.argval:
            refused = "asks for types"
    return refused, frozenset(names)


def _named(following: list[dis.Instruction]) -> str:
    """Return what is read by `getattr(some.thing, "name")`, or its own name: it may read anything."""
    for at, each in enumerate(following):
        if at and each.opname == "LOAD_CONST" and isinstance(each.argval, str):
            return each.argval
        if each.opname not in ("LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_ATTR"):
            break
    return "getattr"


def _given_a_module(frame: FrameType) -> bool:
    code = frame.f_code
    given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    there = frame.f_locals
    return any(isinstance(there.get(name), nn.Module) for name in given)


class Watch:
    """Looks at everything a forward of others' calls."""

    def __init__(self, module: nn.Module) -> None:
        self.found = ""
        """What it does that a graph cannot repeat."""
        self.names: set[str] = set()
        """All names in code that had a module at hand: attributes it read are among them."""
        self._own = list(_containers(module.__dict__, _DEPTH))
        self._known: set[CodeType] = set()
        """Code that needs no second look, wherever it is called from."""
        self._seen: set[CodeType] = set()
        self._spaces: dict[str, bool | None] = {}
        """Whose the code of a module of Python's is, as far as its name tells."""

    def watched(self, function: Callable[..., _Made], *args: Any) -> _Made:
        before = sys.getprofile()
        try:
            sys.setprofile(self._event)
            return function(*args)
        finally:
            sys.setprofile(before)

    def _event(self, frame: FrameType, event: str, function: Any) -> None:
        """Note what cannot be repeated, and end the trace before it is done: it may leave proxies behind."""
        if event == "call":
            if frame.f_code in self._known or self.found:
                return
            self._look_at_call(frame)
        elif event == "c_call" and not self.found:
            name = getattr(function, "__name__", "")
            if function is getattr and "getattr" not in frame.f_code.co_names:
                self.names.add("getattr")
            if name in _GRAD_MODE:
                self.found = "switches autograd or autocast"
            elif self._is_theirs(frame) and not self._harmless(function, name, frame):
                self.found = f"calls {name or repr(function)}"
        else:
            return
        if self.found:
            raise Untraceable(self.found)

    def _whose(self, space: str) -> bool | None:
        """Tell whether code of a module of Python's is the model's; None where that depends on who calls it."""
        if space not in self._spaces:
            root = space.split(".")[0]
            known: bool | None = None
            if root == "torch" or space.startswith(_OURS):
                known = False
            # What is neither of a library nor in a module, such as a named tuple's code, belongs to its caller.
            elif space == "__main__" or (
                space in sys.modules and root not in sys.stdlib_module_names
            ):
                known = True
            self._spaces[space] = known
        return self._spaces[space]

    def _is_theirs(self, at: FrameType | None) -> bool:
        """Tell whether code is the model's, or was called by it; PyTorch's own is known, and so is what that calls."""
        while at is not None:
            known = self._whose(str(at.f_globals.get("__name__", "")))
            if known is not None:
                return known
            at = at.f_back
        return False

    def _look_at_call(self, frame: FrameType) -> None:
        code = frame.f_code
        space = str(frame.f_globals.get("__name__", ""))
        theirs = self._is_theirs(frame)
        if code.co_name == "decorate_context":
            self.found = "calls a function decorated with a mode of PyTorch's"
        elif space == "torch.utils.checkpoint":
            self.found = "has activation checkpoints"
        elif theirs:
            if code not in self._seen:
                self._seen.add(code)
                self.found, names = _read(code)
                self.names |= names
                if any(isinstance(frame.f_globals.get(name), COMPILED) for name in names):
                    self.names.add("getattr")
            if self._whose(space):
                self._known.add(code)
        elif code.co_name.startswith("is_") and self._is_theirs(frame.f_back):
            self.found = f"calls {code.co_name}"
        elif code in _CALLING or space.startswith(_TRACER):
            if not code.co_name.startswith("is_"):
                self._known.add(code)
        elif _given_a_module(frame):
            self.names |= _read(code)[1]

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
