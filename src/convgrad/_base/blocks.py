"""`WithBlock`: what a ``with`` block and a decorator have in common, for objects that are both."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any, TypeVar

from .errors import ArgumentTypeError

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])

_LATER = (
    (inspect.isasyncgenfunction, "an asynchronous generator"),
    (inspect.iscoroutinefunction, "a coroutine"),
    (inspect.isgeneratorfunction, "a generator"),
)


class WithBlock(ContextDecorator):
    """A block that may also decorate a function, as long as that runs when it is called.

    Calling a generator function or a coroutine function only makes an object: its body would run when the block has
    been left, and the decorator would do nothing.
    """

    title = "convgrad"
    """What users call it."""

    def __call__(self, func: AnyFunction) -> AnyFunction:
        for is_later, what in _LATER:
            if is_later(func) or is_later(getattr(func, "__call__", None)):  # noqa: B004
                name = getattr(func, "__qualname__", type(func).__qualname__)
                raise ArgumentTypeError(
                    f"{self.title}: a decorated function must compute when it is called, got {name}, whose call "
                    f"returns {what} that runs later; write `with {self.title}(...):` inside of it."
                )
        return super().__call__(func)
