"""What must hold when somebody ends a trace from outside: Ctrl-C, a time limit, a signal's handler.

While `torch.fx` traces, it replaces `nn.Module.__call__`, `nn.Module.__getattr__` and functions of `math` for the
whole process. It puts them back in a `finally`, and an exception that arrives inside of that leaves them: then no model
of the process works any more.
"""

from __future__ import annotations

import dis
import math
import signal
import sys
from functools import partial
from types import CodeType, TracebackType
from typing import Any

from torch import fx, nn

_FLAG = "_is_fx_tracing_flag"
_MISSING = object()
_OF_CODE = tuple(
    kind
    for kind in Exception.__subclasses__()
    if kind.__module__ == "builtins" and kind is not MemoryError
)
"""What goes wrong in programs: a `TypeError`, a `RuntimeError`, and so on, with all that is derived from them."""


class Patches:
    """What `torch.fx` replaces while it traces modules of a model, as it was before."""

    def __init__(self, model: nn.Module) -> None:
        self._profile = sys.getprofile()
        self._tracer: Any = sys.modules.get("torch.fx._symbolic_trace", fx)
        self._flag = getattr(self._tracer, _FLAG, _MISSING)
        self._patcher = getattr(self._tracer, "CURRENT_PATCHER", None)
        self._methods = {name: nn.Module.__dict__[name] for name in ("__call__", "__getattr__")}
        functions = {id(value) for value in vars(math).values() if callable(value)}
        spaces: dict[int, dict[str, Any]] = {id(vars(math)): vars(math)}
        for module in model.modules():
            space = getattr(type(module).forward, "__globals__", None)
            if space is not None:
                spaces[id(space)] = space
        self._entries: list[tuple[dict[str, Any], str, Any]] = [
            (space, name, value)
            for space in spaces.values()
            for name, value in space.items()
            if id(value) in functions
        ]
        wrapped: Any = getattr(self._tracer, "_wrapped_fns_to_patch", {})
        for (_, name), space in wrapped.items():
            self._entries.append((space, name, space.get(name, _MISSING)))

    def undo(self) -> None:
        """Put back what is not as it was. To be called twice: an exception may end the first call."""
        if sys.getprofile() is not self._profile:
            sys.setprofile(self._profile)
        for name, value in self._methods.items():
            if nn.Module.__dict__[name] is not value:
                setattr(nn.Module, name, value)
        if self._flag is not _MISSING:
            setattr(self._tracer, _FLAG, self._flag)
        # Its list of patches may be gone through once more, whenever the generator that was left in the middle is
        # collected, which asks for it to be there. So it stays, and has nothing left to do.
        patcher: Any = getattr(self._tracer, "CURRENT_PATCHER", None)
        if patcher is not None and patcher is not self._patcher:
            patcher.patches_made.clear()
        for space, name, value in self._entries:
            if space.get(name, _MISSING) is not value:
                if value is _MISSING:
                    del space[name]
                else:
                    space[name] = value


def from_outside(error: Exception) -> bool:
    """Tell whether an exception that ended a trace is not about the forward, and must reach the code that waits for it.

    That is what a signal's handler raised, whatever its class; `TimeoutError` and `MemoryError`; and an exception of a
    class of its own that no `raise` raised, but another thread did.
    """
    if isinstance(error, TimeoutError | MemoryError):
        return True
    handlers = _handlers()
    last: TracebackType | None = None
    at = error.__traceback__
    while at is not None:
        if at.tb_frame.f_code in handlers:
            return True
        last, at = at, at.tb_next
    if isinstance(error, _OF_CODE) or last is None:
        return False
    instruction = last.tb_frame.f_code.co_code[last.tb_lasti]
    return dis.opname[instruction] not in ("RAISE_VARARGS", "RERAISE")


def _handlers() -> set[CodeType]:
    """Return the code of all functions that signals call."""
    found: set[CodeType] = set()
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        if not callable(handler):
            continue
        while isinstance(handler, partial):
            handler = handler.func
        for each in (handler, vars(type(handler)).get("__call__")):
            code = getattr(each, "__code__", None)
            if isinstance(code, CodeType):
                found.add(code)
    return found
