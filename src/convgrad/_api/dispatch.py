"""Dispatch on user types: handlers that answer where the normal implementation refuses.

TensorFlow's fallback dispatch, with its rules: the normal implementation runs first; only if it raises `TypeError` or
`ValueError` are the function's handlers asked, in order of registration, then the global ones; the first answer that is
not `NOT_SUPPORTED` is returned, and if nobody answers the original exception is raised unchanged. Handlers made with
`dispatch_for_api` are asked *before* the normal implementation, for types that would otherwise be converted to arrays.

A dispatchable function carries its handlers itself, so aliases, being one object, share them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from .._base.errors import ArgumentTypeError, shown

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

_FALLBACK = "_convgrad_fallback_handlers"
_TYPED = "_convgrad_typed_handlers"


class _NotSupported:
    def __repr__(self) -> str:
        return "NOT_SUPPORTED"


NOT_SUPPORTED = _NotSupported()
"""What a handler returns to say that a call is not its own."""


class OpDispatcher:
    """A handler for one function; override `handle` and call `register(function)`."""

    NOT_SUPPORTED = NOT_SUPPORTED

    def handle(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the answer to a call the normal implementation refused, or `NOT_SUPPORTED`."""
        return NOT_SUPPORTED

    def register(self, function: Callable[..., Any]) -> None:
        """Append this handler to the function's list."""
        _handlers(function, _FALLBACK).append(self)


class GlobalOpDispatcher:
    """A handler for all dispatchable functions; override `handle` and call `register()`."""

    NOT_SUPPORTED = NOT_SUPPORTED

    def handle(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return the answer to a refused call of `function`, or `NOT_SUPPORTED`."""
        return NOT_SUPPORTED

    def register(self) -> None:
        """Append this handler to the global list."""
        _global_handlers.append(self)


_global_handlers: list[GlobalOpDispatcher] = []


def add_dispatch_list(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function dispatchable by giving it an empty list of handlers."""
    if hasattr(function, _FALLBACK):
        raise AssertionError(f"{function!r} already has a dispatch list")

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if typed:
            answer = _ask_typed(typed, args, kwargs)
            if answer is not NOT_SUPPORTED:
                return cast(R, answer)
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError):
            answer = _ask(call, args, kwargs) if fallback or _global_handlers else NOT_SUPPORTED
            if answer is NOT_SUPPORTED:
                raise
            return cast(R, answer)

    fallback: list[OpDispatcher] = []
    typed: list[_TypedHandler] = []
    setattr(call, _FALLBACK, fallback)
    setattr(call, _TYPED, typed)
    return as_it_is(call)


def as_it_is(function: F) -> F:
    """Let TensorFlow's AutoGraph call a function as it is.

    Else it would rewrite the Python inside of it for a `tf.function`, where it branches on arguments, not on tensors,
    and warn of the syntax that it does not know. It asks for this name, whether or not TensorFlow was loaded by then.
    """
    function.autograph_info__ = {}  # type: ignore[attr-defined]
    return function


def dispatch_for_types(function: Callable[..., Any], *types: type) -> Callable[[F], F]:
    """Decorate a handler asked when a refused call holds an instance of one of `types`.

    An argument, positional or keyword, or a direct element of a list or tuple argument, may be that instance.

    >>> import convgrad
    >>> class Doubled:
    ...     def __init__(self, array): self.array = array
    >>> @dispatch_for_types(convgrad.nn.conv2d, Doubled)
    ... def conv2d_doubled(input, filters, strides, padding, data_format="NHWC", dilations=None, name=None):
    ...     return 2 * convgrad.nn.conv2d(input.array, filters, strides, padding)
    >>> convgrad.nn.conv2d(Doubled([[[[3.0]]]]), [[[[1.0]]]], 1, "SAME")
    array([[[[6.]]]], dtype=float32)
    """
    expected = inspect.signature(function)
    _check_types("dispatch_for_types", types)

    def decorate(handler: F) -> F:
        _check_signature(expected, inspect.signature(handler))
        _TypeDispatcher(function, handler, types).register(function)
        return handler

    return decorate


def dispatch_for_api(
    function: Callable[..., Any], *signatures: dict[str, type]
) -> Callable[[F], F]:
    """Decorate a handler asked *before* the normal implementation.

    Each signature maps parameter names to types; a call matches if all parameters of one signature hold instances.
    """
    handlers = _handlers(function, _TYPED)
    expected = inspect.signature(function)
    for signature in signatures:
        if not isinstance(signature, dict):
            raise ArgumentTypeError(
                f"dispatch_for_api: a signature must be a dict of types by name, got {shown(signature)}."
            )
        _check_types("dispatch_for_api", tuple(signature.values()))
        if unknown := sorted(signature.keys() - expected.parameters.keys(), key=str):
            raise AssertionError(f"{function.__name__} has no parameter {unknown}")

    def decorate(handler: F) -> F:
        handlers.append(_TypedHandler(expected, handler, signatures))
        return handler

    return decorate


def _check_types(function: str, types: tuple[Any, ...]) -> None:
    for each in types:
        try:
            isinstance(None, each)
        except TypeError:
            raise ArgumentTypeError(f"{function}: {shown(each)} must be a type.") from None


class _TypeDispatcher(OpDispatcher):
    def __init__(
        self, function: Callable[..., Any], handler: Callable[..., Any], types: tuple[type, ...]
    ) -> None:
        self._handler, self._types = handler, types
        known = inspect.signature(handler).parameters
        self._absent = {
            name: parameter.default
            for name, parameter in inspect.signature(function).parameters.items()
            if name not in known
        }
        self._signature = inspect.signature(function)

    def handle(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not any(self._holds(value) for value in (*args, *kwargs.values())):
            return NOT_SUPPORTED
        if self._absent:
            args, kwargs = self._without_absent(args, kwargs)
        return self._handler(*args, **kwargs)

    def _holds(self, value: Any) -> bool:
        if isinstance(value, list | tuple):
            # As the base class goes through it: a subclass may never end.
            items = list.__iter__(value) if isinstance(value, list) else tuple.__iter__(value)
            return any(isinstance(item, self._types) for item in items)
        return isinstance(value, self._types)

    def _without_absent(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Drop the optional arguments the handler does not take; they must have their defaults."""
        given = self._signature.bind(*args, **kwargs).arguments
        for name, default in self._absent.items():
            if name in given and not _is_default(given[name], default):
                raise AssertionError(f"the handler does not take `{name}`={given[name]!r}")
        return (), {name: value for name, value in given.items() if name not in self._absent}


def _is_default(value: Any, default: Any) -> bool:
    """Compare without trusting `==`, which arrays and user types answer with something else."""
    return value is default or (type(value) is type(default) and bool(value == default))


class _TypedHandler:
    def __init__(
        self,
        expected: inspect.Signature,
        handler: Callable[..., Any],
        signatures: tuple[dict[str, type], ...],
    ) -> None:
        self._expected, self._handler, self._signatures = expected, handler, signatures

    def ask(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            given = self._expected.bind(*args, **kwargs).arguments
        except TypeError:
            return NOT_SUPPORTED  # a malformed call: the normal implementation says what is wrong
        for signature in self._signatures:
            if all(isinstance(given.get(name), kind) for name, kind in signature.items()):
                return self._handler(*args, **kwargs)
        return NOT_SUPPORTED


def _ask_typed(handlers: list[_TypedHandler], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    for handler in handlers:
        answer = handler.ask(args, kwargs)
        if answer is not NOT_SUPPORTED:
            return answer
    return NOT_SUPPORTED


def _ask(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    for handler in _handlers(function, _FALLBACK):
        answer = handler.handle(args, kwargs)
        if answer is not NOT_SUPPORTED:
            return answer
    for everyone in _global_handlers:
        answer = everyone.handle(function, args, kwargs)
        if answer is not NOT_SUPPORTED:
            return answer
    return NOT_SUPPORTED


def _handlers(function: Callable[..., Any], attribute: str) -> list[Any]:
    handlers = getattr(function, attribute, None)
    if handlers is None:
        raise AssertionError(f"{function!r} is not dispatchable")
    result: list[Any] = handlers
    return result


def _check_signature(expected: inspect.Signature, actual: inspect.Signature) -> None:
    """A handler takes the same required parameters in the same order; optional ones may be missing."""
    wanted, found = list(expected.parameters.values()), list(actual.parameters.values())
    required = [each.name for each in wanted if each.default is inspect.Parameter.empty]
    theirs = [each.name for each in found if each.default is inspect.Parameter.empty]
    if theirs != required:
        raise AssertionError(f"the handler must require {required} in this order, got {theirs}")
    names = [each.name for each in wanted]
    positions = [names.index(each.name) if each.name in names else -1 for each in found]
    if -1 in positions or positions != sorted(positions):
        raise AssertionError(
            f"the handler's parameters must be among {names}, in this order, got {[each.name for each in found]}"
        )
