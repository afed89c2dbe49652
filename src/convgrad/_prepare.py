"""From a problem to something that runs: choose the plan, load its kernels, pack its words.

This is the heavy half of the engine. It is imported by the first call that computes something, because the planner, the
algorithms and the compiler take longer to import than all the rest of the package.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial

import numpy as np

from . import _algorithms, _headroom, _jit, _planner
from ._algorithms import reference
from ._dtypes import AnyArray
from ._kernel import Kernel, KernelSource
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

_PLACES = ("first", "second", "result", "partial", "packed")
_BYTE = np.dtype(np.uint8)


def executable(problem: Problem) -> tuple[Executable, int]:
    """Return what computes a problem on this machine, and the bytes of tables it holds."""
    _headroom.ask(8 * _headroom.FOR_LOOPS, "to plan")
    target = _jit.host_target()
    plan = _planner.choose(problem, target)
    return prepare(plan, target), sum(len(step.table) for step in plan.steps)


def prepare(plan: Plan, target: Target) -> Executable:
    """Load a plan's kernels and pack its words."""
    if not plan.steps:
        return without_kernels(plan.problem)
    launches, tables, kernels = [], [], []
    for step in plan.steps:
        kernel = _jit.load(step.kernel, partial(_algorithms.emit, step.kernel, target), target)
        kernels.append(kernel)
        words = pack_words(*step.words)
        operands = step.operands
        if step.table:
            # The table is as constant as the words, so its address is one of them.
            assert operands[-1] == "table", operands
            tables.append(np.frombuffer(step.table, np.int64).copy())
            words = pack_words(data_pointer(tables[-1])) + words
            operands = operands[:-1]
        scratch = step.scratch_bytes + kernel.scratch_bytes
        places = tuple(_PLACES.index(operand) for operand in operands)
        launches.append((kernel.address, places, words, step.items, step.grain, scratch))
    partial_bytes, threads = plan.partial_bytes, 1 if plan.serial else None
    packed_bytes = plan.packed_bytes

    def execute(
        first: AnyArray,
        second: AnyArray,
        result: AnyArray,
        _: object = (tables, kernels),  # what the launches point into
    ) -> None:
        places = (data_pointer(first), data_pointer(second), data_pointer(result), 0, 0)
        if partial_bytes or packed_bytes:
            # Held until the last kernel is done: they own the memory.
            sums, packed = (new_result((n,), _BYTE) for n in (partial_bytes, packed_bytes))
            places = (*places[:3], data_pointer(sums), data_pointer(packed))
        for address, operands, words, items, grain, scratch in launches:
            pointers = pack_words(*[places[operand] for operand in operands])
            launch(address, pointers + words, items, grain, scratch, threads)

    return execute


_loops: list[Kernel] = []
"""Workers live in the loop until the process ends."""


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
    _loops.append(kernel)
    addresses = (ctypes.c_int64 * len(source.symbols))()
    write = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    write(kernel.address)(ctypes.addressof(addresses), 0, 1, None)
    return dict(zip(source.symbols, addresses, strict=True))


set_loader(_load_parfor)


def without_kernels(problem: Problem) -> Executable:
    """Return the reference for a problem: it needs no compiler."""

    def execute(first: AnyArray, second: AnyArray, result: AnyArray) -> None:
        reference.run(problem, first, second, result)

    return execute
