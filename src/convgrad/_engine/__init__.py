"""The corridor: what is asked and the addresses of its places in, filled memory out.

What is asked (`Asked`: a convolution, a task of batch norm's, a filter's order) becomes an `Executable` once
(`prepare`). From then on a call is a look-up and one foreign call. Arrays are
not known here: the caller has borrowed them and holds them still.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from .._base import config
from .._base.errors import CompileError, InternalError
from .._base.fp_mode import default_mode
from .._base.warnings import warn
from .._problem.convolution import Problem
from .._runtime.bound import Bound
from .._runtime.run import run as _run_program

if TYPE_CHECKING:
    from .prepare import Asked, Executable

Made = TypeVar("Made")

memory: dict[Hashable, Any] = {}
"""What calls have found out, by keys of theirs, and executables, by problem and switches. It is one memory so that all
who point to a program forget it together."""
_LARGEST = 8192
"""Entries remembered; a program with more of them starts over."""
_MOST_TABLES = 128 << 20
"""Bytes of programs they may hold together. One has some 20 KB; of a 31x31 window it can be 34 MB."""
_tables = 0
"""Bytes of programs they hold."""


def run(asked: Asked, *addresses: int) -> Executable | None:
    """Compute what is asked on its places; returns what did it, None for a problem with nothing to add up.

    `addresses` are those of `asked.places`, in this order. The memory must be contiguous, aligned, in native byte order
    and of the sizes asked for. A convolution's fourth place is the bias, which a filter gradient writes.
    """
    if isinstance(asked, Problem) and (asked.is_empty or asked.bias):
        _check_places(asked, addresses)
        if asked.is_empty:
            _fill_empty(asked, addresses)
            return None
    found = program(asked)
    execute(found, *addresses)
    return found


def execute(prepared: Executable, *addresses: int) -> None:
    """Run what `program` returned on the addresses of its places."""
    if isinstance(prepared, Bound):
        _run_program(prepared, *addresses)
    else:
        prepared(*addresses)


def _check_places(problem: Problem, addresses: Sequence[int]) -> None:
    beside = addresses[3] if len(addresses) > 3 else 0
    if problem.bias and not beside and problem.bias_c:
        raise InternalError("a problem with a bias was run without one; please report this")


def _fill_empty(problem: Problem, addresses: Sequence[int]) -> None:
    if problem.bias:
        from . import prepare

        # There may be pixels to add up all the same: a gradient of the bias where the filter has no taps.
        execute(prepare.without_kernels(problem), *addresses)
    elif problem.result_bytes:
        ctypes.memset(addresses[2], 0, problem.result_bytes)


def program(asked: Asked) -> Executable:
    """Return what computes what is asked, as the switches stand; prepared the first time."""
    # The switches that decide what runs: whether kernels may, which of them, and for which target.
    key = (asked, config.deciding())
    found: Executable | None = memory.get(key)
    if found is None:
        if isinstance(asked, Problem) and (file := config.get("record")) is not None:
            from . import record  # few programs need it

            record.note(file, asked)
        with default_mode():
            from . import prepare  # takes longer to import than all that is imported so far

            if getattr(sys.modules.get(__name__), "run", None) is not run:
                # The line above has found the other import's module, for which our classes are strangers.
                raise InternalError(
                    "convgrad was imported a second time (its modules were taken out of sys.modules), "
                    "and this function belongs to the first import; use the functions of the second."
                )
            found = _compiled(
                lambda: prepare.program(asked), lambda: prepare.without_kernels(asked)
            )
        remember(key, found, found.nbytes if type(found) is Bound else 0)
    return found


def remember(key: Hashable, value: Any, nbytes: int = 0) -> None:
    """Keep something for later calls, or start over where too much is kept."""
    global _tables
    if len(memory) >= _LARGEST or _tables + nbytes > _MOST_TABLES:
        memory.clear()
        _tables = 0
    memory[key] = value
    _tables += nbytes


def _compiled(kernels: Callable[[], Made], without: Callable[[], Made]) -> Made:
    """Return what a compiler makes, unless it is switched off or there is none."""
    try:
        if config.get("kernels"):
            return kernels()
    except CompileError as error:
        _warn_once(str(error))
    return without()


_warned = False


def _warn_once(reason: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warn(f"convgrad: kernels cannot be compiled here, so the slow reference is used: {reason}")
