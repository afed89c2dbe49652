"""The corridor: a problem and its operands in, a filled result out.

A plan becomes an `Executable` once: its kernels are loaded and its words packed. From then on a call is a look-up, a
result array, the pointers, and the launch.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np

from . import _algorithms, _arrays, _jit, _planner
from ._algorithms import reference
from ._dtypes import AnyArray
from ._errors import AllocationError, CompileError
from ._kernel import KernelSource
from ._plan import Plan
from ._problem import Problem
from ._runtime.launch import launch
from ._runtime.parfor import ParforSource
from ._runtime.pointers import data_pointer, pack_words
from ._runtime.results import new_result
from ._runtime.threads import set_loader
from ._targets import Target

Executable = Callable[[AnyArray, AnyArray, AnyArray], None]
"""Fills the third array from the first two; all are C-contiguous, aligned, native and of the planned shapes."""

_PLACES = ("first", "second", "result", "partial")
_BYTE = np.dtype(np.uint8)
_executables: dict[tuple[Problem, Target], Executable] = {}
_LARGEST = 4096
"""Executables remembered; a program with more problems than that starts over."""


def run(function: str, problem: Problem, first: AnyArray, second: AnyArray) -> AnyArray:
    """Compute a problem; `function` is whom an error should name."""
    dtype = problem.dtype
    if problem.is_empty:
        result = _new_result(function, problem)
        result[...] = 0
        return result
    execute = executable(problem)
    first, second = _arrays.contiguous(first, dtype), _arrays.contiguous(second, dtype)
    result = _new_result(function, problem)
    execute(first, second, result)
    return result


def _new_result(function: str, problem: Problem) -> AnyArray:
    try:
        return new_result(problem.result_shape, problem.dtype.numpy)
    except AllocationError as error:
        raise AllocationError(f"{function}: {error}.") from None


def executable(problem: Problem) -> Executable:
    """Return what computes the problem on this machine; the reference where nothing can be compiled."""
    try:
        target = _jit.host_target()
        found = _executables.get((problem, target))
        if found is None:
            if len(_executables) >= _LARGEST:
                _executables.clear()
            found = _executables[problem, target] = prepare(
                _planner.choose(problem, target), target
            )
        return found
    except CompileError as error:
        _warn_once(str(error))
        return _reference(problem)


def prepare(plan: Plan, target: Target) -> Executable:
    """Load a plan's kernels and pack its words."""
    if not plan.steps:
        return _reference(plan.problem)
    launches = []
    for step in plan.steps:
        kernel = _jit.load(step.kernel, partial(_algorithms.emit, step.kernel, target), target)
        words = pack_words(*step.words)
        scratch = step.scratch_bytes + kernel.scratch_bytes
        operands = tuple(_PLACES.index(operand) for operand in step.operands)
        launches.append((kernel.address, operands, words, step.items, step.grain, scratch))
    partial_bytes, threads = plan.partial_bytes, 1 if plan.serial else None

    def execute(first: AnyArray, second: AnyArray, result: AnyArray) -> None:
        places = (data_pointer(first), data_pointer(second), data_pointer(result), 0)
        if partial_bytes:
            sums = new_result((partial_bytes,), _BYTE)
            places = (*places[:3], data_pointer(sums))
        for address, operands, words, items, grain, scratch in launches:
            pointers = pack_words(*[places[operand] for operand in operands])
            launch(address, pointers + words, items, grain, scratch, threads)

    return execute


def _load_parfor(source: ParforSource) -> dict[str, int]:
    """Compile the parallel loop like any kernel: one that writes the addresses of the loop's functions to its words.

    They are local to the object (`dso_local`), so that it needs no table of imports to be loaded.
    """
    symbol = f"{source.name}_table"
    stores = "".join(
        f"  %at{i} = getelementptr i64, ptr %args, i64 {i}\n  store ptr @{name}, ptr %at{i}, align 8\n"
        for i, name in enumerate(source.symbols)
    )
    table = f"define void @{symbol}(ptr %args, i64 %begin, i64 %end, ptr %scratch) {{\n{stores}  ret void\n}}\n"
    text = source.text.replace("define void @", "define dso_local void @") + table
    kernel = _jit.load(source, lambda: KernelSource(symbol, text), _jit.host_target())
    addresses = (ctypes.c_int64 * len(source.symbols))()
    write = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    write(kernel.address)(ctypes.addressof(addresses), 0, 1, None)
    return dict(zip(source.symbols, addresses, strict=True))


set_loader(_load_parfor)


def _reference(problem: Problem) -> Executable:
    def execute(first: AnyArray, second: AnyArray, result: AnyArray) -> None:
        reference.run(problem, first, second, result)

    return execute


_warned = False


def _warn_once(reason: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"convgrad: kernels cannot be compiled here, so the slow reference is used: {reason}",
            RuntimeWarning,
            stacklevel=2,
        )
