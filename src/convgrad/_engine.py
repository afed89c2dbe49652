"""The corridor: a problem and its operands in, a filled result out.

A problem becomes an `Executable` once (`_prepare`). From then on a call is a look-up, a result array, and the launch.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from . import _arrays, _config
from ._dtypes import AnyArray
from ._errors import AllocationError, CompileError, InternalError
from ._problem import Problem
from ._runtime.results import new_result
from ._warnings import warn

if TYPE_CHECKING:
    from ._prepare import Executable

_Key = tuple[Problem, bool, str | None, int | None, str]
_executables: dict[_Key, Executable] = {}
_LARGEST = 4096
"""Executables remembered; a program with more problems than that starts over."""
_MOST_TABLES = 128 << 20
"""Bytes of tables they may hold together. One has some 20 KB; of a 31x31 window it can be 34 MB."""
_tables = 0
"""Bytes of tables they hold."""


def run(function: str, problem: Problem, first: AnyArray, second: AnyArray) -> AnyArray:
    """Compute a problem; `function` is whom an error should name."""
    dtype = problem.dtype
    if problem.is_empty:
        result = _new_result(function, problem)
        result[...] = 0
        return result
    # The switches that decide what runs: whether kernels may, which of them, and for which target.
    key = (
        problem,
        _config.get("kernels"),
        _config.get("target"),
        _config.get("vector_bits"),
        _config.get("winograd"),
    )
    execute = _executables.get(key)
    sizes = problem.operand_bytes
    first, first_held = _arrays.hold(function, first, dtype, sizes[0])
    second, second_held = _arrays.hold(function, second, dtype, sizes[1])
    result = _new_result(function, problem)
    if execute is None:
        # After the memory was had: planning for sizes no memory can hold would take for ever.
        execute = _remember(key)
    execute(first, second, result)
    del first_held, second_held  # kept until here
    return result


def _new_result(function: str, problem: Problem) -> AnyArray:
    try:
        return new_result(problem.result_shape, problem.dtype.numpy)
    except AllocationError as error:
        raise AllocationError(f"{function}: {error}.") from None


def _remember(key: _Key) -> Executable:
    """Prepare what computes a problem; the reference where nothing can be compiled."""
    from . import _prepare  # takes longer to import than all that is imported so far

    if getattr(sys.modules.get(__name__), "run", None) is not run:
        # The line above has found the other import's module, for which our classes are strangers.
        raise InternalError(
            "convgrad was imported a second time (its modules were taken out of sys.modules), "
            "and this function belongs to the first import; use the functions of the second."
        )
    problem, kernels, *_ = key
    tables = 0
    try:
        if kernels:
            found, tables = _prepare.executable(problem)
        else:
            found = _prepare.without_kernels(problem)
    except CompileError as error:
        _warn_once(str(error))
        found = _prepare.without_kernels(problem)
    global _tables
    if len(_executables) >= _LARGEST or _tables + tables > _MOST_TABLES:
        _executables.clear()
        _tables = 0
    _executables[key] = found
    _tables += tables
    return found


_warned = False


def _warn_once(reason: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warn(f"convgrad: kernels cannot be compiled here, so the slow reference is used: {reason}")
