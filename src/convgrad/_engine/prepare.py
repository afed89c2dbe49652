"""From a problem to something that runs: choose the plan, load its kernels, bind the program.

This is the heavy half of the engine. It is imported by the first call that computes something, because the planner, the
algorithms and the compiler take longer to import than all the rest of the package.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .. import _kernels as _algorithms
from .._base import headroom
from .._base.dtypes import AnyArray
from .._base.errors import InternalError
from .._compiler import jit
from .._compiler.jit import functions
from .._compiler.jit.functions import Functions
from .._compiler.kernel import Kernel, spelled
from .._compiler.targets import Target
from .._kernels import reference
from .._kernels.norm import plan as _norm_plan
from .._kernels.plan import Plan, Step
from .._kernels.shared import filter_order as filter_orders
from .._kernels.shared import statistics
from .._problem.convolution import Kind, Problem, Shape
from .._problem.norm import Task
from .._problem.norm import without_kernels as without_kernels_of_passes
from .._runtime import code
from .._runtime.bound import Bound
from .._runtime.parfor import ParforSource
from .._runtime.program import PLACES, Launch, Program
from .._runtime.state import STATE_BLOCK, State
from . import planner

Executable = Bound | Callable[[int, int, int, int], None]
"""What fills the memory at the third address from that at the first two: a program, or a function of Python where there
are no kernels. The fourth is the bias's, 0 where there is none. The memory is contiguous, aligned, native and of the
planned shapes."""

Passes = Bound | Callable[[int], None]
"""What carries out a task of `_norm` on a block of addresses: a program, whose first operand it is, or a function."""

Four = tuple[int, int, int, int]

_SERIAL_FILTER = 64 << 10
"""Bytes of a filter that are reordered sooner than another thread could be asked."""


def executable(problem: Problem) -> Executable:
    """Return what computes a problem on this machine."""
    headroom.ask(8 * headroom.FOR_LOOPS, "to plan")
    target = jit.host_target()
    plan = planner.choose(problem, target)
    if not plan.steps:
        return without_kernels(problem)
    if problem.statistics and not plan.shares:
        raise InternalError(f"{plan.algorithm} writes no statistics; please report this")
    return bind(plan, target)


def statistics_shares(problem: Problem) -> int:
    """Return how many shares of statistics a problem's kernels would write; 0: none, or too slowly."""
    if problem.is_empty or problem.bias or problem.kind is Kind.FILTER_GRADIENT:
        return 0
    headroom.ask(8 * headroom.FOR_LOOPS, "to plan")
    problem = replace(problem, statistics=True)
    target = jit.host_target()
    plan = planner.choose(problem, target)
    if not plan.shares or not statistics.pays(plan, target):
        return 0
    _loaded(identities(plan), target)
    return plan.shares


def bind(plan: Plan, target: Target, state: State = STATE_BLOCK) -> Bound:
    """Load a plan's kernels and bind its program to them."""
    return bind_to(program(plan), _loaded(identities(plan), target), state)


def _loaded(kernels: tuple[Any, ...], target: Target) -> list[Kernel]:
    return [
        jit.load(identity, partial(_algorithms.emit, identity, target), target)
        for identity in kernels
    ]


def bind_to(program: Program, kernels: list[Kernel], state: State = STATE_BLOCK) -> Bound:
    """Bind a program to its kernels, in its order of them; the entry that runs it is there afterwards."""
    code.ensure(load_runtime)
    return Bound(program, [(each.address, each.scratch_bytes) for each in kernels], kernels, state)


def filter_order(sizes: Four, order: str, size: int, back: bool) -> Executable:
    """Return what reorders a filter [o, i, kh, kw] of elements of some bytes; see `_algorithms.shared.filter_order`.

    It reads its first operand only.
    """
    outputs, channels, *window = sizes
    target = jit.host_target()
    lanes = filter_orders.lanes_for(size, target)
    step = filter_orders.step(size, order, back, channels, window[0] * window[1], outputs, lanes)
    serial = channels * window[0] * window[1] * outputs * size < _SERIAL_FILTER
    return bind_to(_numbered((step,), serial=serial), _loaded((step.kernel,), target))


def filter_order_without_kernels(sizes: Four, order: str, size: int, back: bool) -> Executable:
    """Return the same as NumPy does it: it needs no compiler."""
    o, i, kh, kw = sizes
    theirs, axes = (
        ((o, i, kh, kw), (2, 3, 1, 0)) if order == "OIHW" else ((o, kh, kw, i), (1, 2, 3, 0))
    )
    dtype = np.dtype(f"u{size}")

    def execute(first: int, second: int, result: int, bias: int = 0) -> None:
        places = (first, result) if back else (result, first)
        ours, other = (
            _array_at(places[0], (kh, kw, i, o), dtype),
            _array_at(places[1], theirs, dtype),
        )
        if back:
            other.transpose(axes)[...] = ours
        else:
            ours[...] = other.transpose(axes)

    return execute


def passes(task: Task) -> Passes:
    """Return the program of a task of `_norm`."""
    target = jit.host_target()
    return bind_passes(_norm_plan.plan(task, target), target)


def bind_passes(launches: _norm_plan.Launches, target: Target) -> Bound:
    """Load the kernels of a task's launches, or of some of them, and bind their program."""
    kernels = [
        jit.load(identity, partial(_norm_plan.emit, identity, target), target)
        for identity in _kernels(launches.steps)
    ]
    return bind_to(_numbered(*launches), kernels)


def passes_without(task: Task) -> Passes:
    """Return the same as NumPy does it: it needs no compiler."""
    return without_kernels_of_passes.execute(task)


def program(plan: Plan) -> Program:
    """Return a plan as plain numbers; its kernels are those of `identities`."""
    return _numbered(plan.steps, plan.partial_bytes, plan.packed_bytes, plan.serial)


def _numbered(
    steps: tuple[Step, ...], partial_bytes: int = 0, packed_bytes: int = 0, serial: bool = False
) -> Program:
    names = {identity: number for number, identity in enumerate(_kernels(steps))}
    launches = []
    for step in steps:
        operands = step.operands
        if step.table:
            assert operands[-1] == "table", operands
            operands = operands[:-1]
        launches.append(
            Launch(
                names[step.kernel],
                tuple(PLACES.index(operand) for operand in operands),
                step.words,
                step.items,
                step.grain,
                step.scratch_bytes,
                step.table,
                step.least,
            )
        )
    return Program(
        tuple(f"{type(identity).__module__}.{spelled(identity)}" for identity in names),
        tuple(launches),
        partial_bytes,
        packed_bytes,
        serial,
    )


def identities(plan: Plan) -> tuple[Any, ...]:
    """Return the kernels of a plan, each once, in the order they are first used."""
    return _kernels(plan.steps)


def _kernels(steps: tuple[Step, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(step.kernel for step in steps))


_kept: list[Kernel] = []
"""Workers live in the loop until the process ends."""


def load_runtime(source: ParforSource) -> dict[str, int]:
    """Compile the entry and the parallel loop, or find them on disk; returns the addresses of their functions."""
    return load_functions(source)


def load_functions(source: Functions, imports: Mapping[str, int] | None = None) -> dict[str, int]:
    """Compile functions that are no kernels, or find them on disk; returns their addresses. They are never unloaded."""
    target = jit.host_target()
    kernel = jit.load(source, partial(functions.table, source), target, imports or {})
    _kept.append(kernel)
    addresses = (ctypes.c_int64 * len(source.symbols))()
    write = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    write(kernel.address)(ctypes.addressof(addresses), 0, 1, None)
    return dict(zip(source.symbols, addresses, strict=True))


def without_kernels(problem: Problem) -> Callable[[int, int, int, int], None]:
    """Return the reference for a problem: it needs no compiler. Statistics are taken by kernels only."""
    if problem.statistics:
        raise InternalError("the reference writes no statistics; please report this")

    def execute(first: int, second: int, result: int, bias: int = 0) -> None:
        shapes = {
            Kind.FORWARD: (problem.input_shape, problem.filter_shape),
            Kind.INPUT_GRADIENT: (problem.filter_shape, problem.output_shape),
            Kind.FILTER_GRADIENT: (problem.input_shape, problem.output_shape),
        }[problem.kind]
        dtype = problem.dtype.numpy
        places = zip((first, second, result), (*shapes, problem.result_shape), strict=True)
        arrays = [_array_at(place, shape, dtype) for place, shape in places]
        beside = _array_at(bias, (problem.bias_c,), dtype) if problem.bias else None
        reference.run(problem, arrays[0], arrays[1], arrays[2], beside)

    return execute


def _array_at(address: int, shape: Shape, dtype: np.dtype[Any]) -> AnyArray:
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    memory: Any = (ctypes.c_char * size).from_address(address)
    array: AnyArray = np.ndarray(shape, dtype, memory)
    return array
