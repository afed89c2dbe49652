"""The corridor: a problem and three or four addresses in, filled memory out.

A problem becomes an `Executable` once (`_prepare`). From then on a call is a look-up and one foreign call. Arrays are
not known here: who calls has borrowed them and holds them still.
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
    from .._problem.norm import Task
    from .prepare import Executable, Passes

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


def run(problem: Problem, first: int, second: int, result: int, bias: int = 0) -> Executable | None:
    """Fill the memory at `result` from the operands; returns what did it, None for a problem with nothing to add up.

    `bias` is read, or filled by a filter gradient, if the problem has one; statistics go there, if it has those. The
    memory must be contiguous, aligned, in native byte order and of the problem's sizes.
    """
    if problem.bias and not bias and problem.bias_c:
        raise InternalError("a problem with a bias was run without one; please report this")
    if problem.statistics and not bias:
        raise InternalError(
            "a problem with statistics was run without a place for them; please report this"
        )
    if problem.is_empty:
        if problem.statistics:
            raise InternalError("an empty problem has no statistics; please report this")
        if problem.bias:
            from . import prepare

            # There may be pixels to add up all the same: a gradient of the bias where the filter has no taps.
            prepare.without_kernels(problem)(first, second, result, bias)
        elif problem.result_bytes:
            ctypes.memset(result, 0, problem.result_bytes)
        return None
    execute = executable(problem)
    if isinstance(execute, Bound):
        _run_program(execute, first, second, result, bias)
    else:
        execute(first, second, result, bias)
    return execute


def executable(problem: Problem) -> Executable:
    """Return what computes a problem, as the switches stand; prepared the first time."""
    # The switches that decide what runs: whether kernels may, which of them, and for which target.
    key = (problem, config.deciding())
    found: Executable | None = memory.get(key)
    if found is None:
        if (file := config.get("record")) is not None:
            from . import record  # few programs need it

            record.note(file, problem)
        with default_mode():
            found = _prepared(problem)
        remember(key, found, found.nbytes if type(found) is Bound else 0)
    return found


def statistics_shares(problem: Problem) -> int:
    """Return how many shares of statistics a problem writes if it is run with `statistics`, as the switches stand.

    They are [shares][3][channels] of float64; see `Plan.shares`. 0 means that whoever wants them has to read the
    result: this plan cannot take them, or not faster than that. The problem is then to be run without `statistics`;
    the result has the same bits either way.
    """
    key = ("statistics_shares", problem, config.deciding())
    found: int | None = memory.get(key)
    if found is None:
        with default_mode():
            from . import prepare

            found = _compiled(lambda: prepare.statistics_shares(problem), lambda: 0)
        remember(key, found)
    return found


def remember(key: Hashable, value: Any, nbytes: int = 0) -> None:
    """Keep something for later calls, or start over where too much is kept."""
    global _tables
    if len(memory) >= _LARGEST or _tables + nbytes > _MOST_TABLES:
        memory.clear()
        _tables = 0
    memory[key] = value
    _tables += nbytes


def filter_order(sizes: tuple[int, int, int, int], order: str, size: int, back: bool) -> Executable:
    """Return what brings a filter [o, i, kh, kw] from the order OIHW or OHWI into the kernels', or back."""
    key = ("filter_order", sizes, order, size, back, config.deciding())
    found: Executable | None = memory.get(key)
    if found is None:
        with default_mode():
            from . import prepare

            found = _compiled(
                lambda: prepare.filter_order(sizes, order, size, back),
                lambda: prepare.filter_order_without_kernels(sizes, order, size, back),
            )
        remember(key, found)
    return found


def passes(task: Task) -> Passes:
    """Return what carries out a task of `_norm`, as the switches stand; prepared the first time."""
    key = (task, config.deciding())
    found: Passes | None = memory.get(key)
    if found is None:
        with default_mode():
            from . import prepare

            found = _compiled(lambda: prepare.passes(task), lambda: prepare.passes_without(task))
        remember(key, found, found.nbytes if type(found) is Bound else 0)
    return found


def run_passes(task: Task, addresses: Sequence[int]) -> None:
    """Carry out a task on the memory at some addresses: those of `_norm.PLACES`, in order, all as described there."""
    run_prepared(passes(task), addresses)


def run_prepared(execute: Passes, addresses: Sequence[int]) -> None:
    """Carry out what `passes` returned."""
    block = (ctypes.c_int64 * len(addresses))(*addresses)
    if isinstance(execute, Bound):
        _run_program(execute, ctypes.addressof(block), 0, 0)
    else:
        execute(ctypes.addressof(block))


def _prepared(problem: Problem) -> Executable:
    """Prepare what computes a problem; the reference where nothing can be compiled."""
    from . import prepare  # takes longer to import than all that is imported so far

    if getattr(sys.modules.get(__name__), "run", None) is not run:
        # The line above has found the other import's module, for which our classes are strangers.
        raise InternalError(
            "convgrad was imported a second time (its modules were taken out of sys.modules), "
            "and this function belongs to the first import; use the functions of the second."
        )
    return _compiled(lambda: prepare.executable(problem), lambda: prepare.without_kernels(problem))


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
