"""What travels to workers: the name of one of our tasks and plain data, understood also where convgrad is missing.

Dask sends functions by reference. On a worker without the package, or with an older one, that ends in an error of the
unpickler that names neither the worker nor what to do. So what is sent is a small function by value, which looks for
the package when it arrives, and says so when it is called where there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import cloudpickle

from ..._base.version import __version__


class Task:
    """One of the functions of `tasks`, and the plain data it is called with in front of arrays."""

    __slots__ = ("name", "plain")

    def __init__(self, name: str, plain: Any) -> None:
        self.name, self.plain = name, plain

    def __call__(self, *arrays: Any) -> Any:
        from . import tasks

        return getattr(tasks, self.name)(self.plain, *arrays)

    def __reduce__(self) -> tuple[Any, ...]:
        return _ARRIVAL, (self.name, self.plain, __version__)

    def __repr__(self) -> str:
        return f"convgrad {self.name}"

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return type(self).__qualname__, self.name, self.plain, __version__


class _ByValue:
    """A function that is pickled with its code."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._pickled: bytes | None = None

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._pickled is None:
            name = self._function.__name__
            alone = FunctionType(self._function.__code__, {}, name)
            alone.__globals__[name] = alone
            # A function of a module that is not there is pickled by value. Of `__main__` it would be, too, but Dask
            # pickles a second time, and slowly, whatever has that word in it: all graphs with a task of ours.
            alone.__module__ = "convgrad, by value"
            self._pickled = cloudpickle.dumps(alone)
        return cloudpickle.loads, (self._pickled,)


def _arrived(name: str, plain: object, version: str) -> object:
    """Become a `Task` where convgrad is installed, else one that says what is missing and where.

    It passes through the scheduler, which needs no convgrad: what leaves there is what came.
    """
    problem = ""
    try:
        from convgrad._base.version import __version__ as here
        from convgrad._bridges.dask.carrier import Task as ours

        if here == version:
            return ours(name, plain)
        problem = f"it has convgrad {here}, the graph was made with {version}"
    except ImportError as error:
        problem = f"it cannot import convgrad {version} ({error})"

    class Refusing:
        def __call__(self, *arrays: object) -> object:
            import platform

            raise RuntimeError(
                f"convgrad: a worker of Dask on {platform.node()} cannot compute: {problem}; "
                f"install convgrad {version} there, with its extra `dask`."
            )

        def __reduce__(self) -> tuple[object, ...]:
            return _arrived, (name, plain, version)

        def __repr__(self) -> str:
            return f"convgrad {name}"

    return Refusing()


_ARRIVAL = _ByValue(_arrived)
