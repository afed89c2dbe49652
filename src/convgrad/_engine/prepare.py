"""From a problem to something that runs: choose the plan, load its kernels, bind the program.

This is the heavy half of the engine. It is imported by the first call that computes something, because the planner, the
algorithms and the compiler take longer to import than all the rest of the package.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from .. import _kernels as families
from .._base import config, headroom
from .._base.dtypes import AnyArray
from .._compiler import jit
from .._compiler.jit import functions
from .._compiler.jit.functions import Functions
from .._compiler.kernel import Kernel, spelled
from .._compiler.targets import Target
from .._kernels import reference
from .._kernels.norm import plan as _norm_plan
from .._kernels.plan import Plan, Step
from .._kernels.shared import filter_order as filter_orders
from .._problem.convolution import Kind, Problem, Shape
from .._problem.filter_order import FilterOrder
from .._problem.norm import Task
from .._problem.norm import without_kernels as without_kernels_of_passes
from .._problem.sums.winograd import numerical_class
from .._runtime import code
from .._runtime.bound import Bound
from .._runtime.parfor import ParforSource
from .._runtime.program import MEMORY, Launch, Program
from .._runtime.state import STATE_BLOCK, State
from . import planner

Asked = Problem | Task | FilterOrder
"""What can be computed; each has `places`."""
Executable = Bound | Callable[..., None]
"""What computes it on the addresses of its places: a program, or a function of Python where there are no kernels. The
memory is contiguous, aligned, native and of the planned shapes."""

_SERIAL_FILTER = 64 << 10
"""Bytes of a filter that are reordered sooner than another thread could be asked."""


def program(asked: Asked) -> Executable:
    """Return what computes what is asked on this machine."""
    if isinstance(asked, Problem):
        return _convolution(asked)
    if isinstance(asked, Task):
        return _passes(asked)
    return _filter_order(asked)


def without_kernels(asked: Asked) -> Executable:
    """Return the same as the reference or NumPy does it: that needs no compiler."""
    if isinstance(asked, Problem):
        return _reference(asked)
    if isinstance(asked, Task):
        return without_kernels_of_passes.executor(asked)
    return _filter_order_in_numpy(asked)


def _convolution(problem: Problem) -> Executable:
    headroom.ask(8 * headroom.FOR_LOOPS, "to plan")
    target = jit.host_target()
    plan = planner.choose(problem, target)
    if not plan.steps:
        return _reference(problem)
    return bind(plan, target)


def bind(plan: Plan, target: Target, state: State = STATE_BLOCK) -> Bound:
    """Load a plan's kernels and bind its program to them."""
    return bind_to(numbered(plan), _loaded(identities(plan), target), state)


def _loaded(kernels: tuple[Any, ...], target: Target) -> list[Kernel]:
    return [
        jit.load(identity, partial(families.emit, identity, target), target) for identity in kernels
    ]


def bind_to(program: Program, kernels: list[Kernel], state: State = STATE_BLOCK) -> Bound:
    """Bind a program to its kernels, in its order of them; the entry that runs it is there afterwards."""
    code.ensure(load_runtime)
    return Bound(program, [(each.address, each.scratch_bytes) for each in kernels], kernels, state)


def _filter_order(asked: FilterOrder) -> Executable:
    outputs, channels, *window = asked.sizes
    target = jit.host_target()
    lanes = filter_orders.lanes_for(asked.size, target)
    sizes = (channels, window[0] * window[1], outputs)
    step = filter_orders.step(asked.size, asked.order, asked.back, *sizes, lanes)
    serial = channels * window[0] * window[1] * outputs * asked.size < _SERIAL_FILTER
    numbers = _numbered((step,), asked.places, serial=serial)
    return bind_to(numbers, _loaded((step.kernel,), target))


def _filter_order_in_numpy(asked: FilterOrder) -> Executable:
    o, i, kh, kw = asked.sizes
    theirs, axes = (
        ((o, i, kh, kw), (2, 3, 1, 0)) if asked.order == "OIHW" else ((o, kh, kw, i), (1, 2, 3, 0))
    )
    dtype = np.dtype(f"u{asked.size}")

    def execute(first: int, result: int) -> None:
        places = (first, result) if asked.back else (result, first)
        ours, other = (
            _array_at(places[0], (kh, kw, i, o), dtype),
            _array_at(places[1], theirs, dtype),
        )
        if asked.back:
            other.transpose(axes)[...] = ours
        else:
            ours[...] = other.transpose(axes)

    return execute


def _passes(task: Task) -> Executable:
    target = jit.host_target()
    return bind_passes(_norm_plan.plan(task, target), task.places, target)


def numbered_passes(task: Task, target: Target) -> tuple[Program, tuple[Any, ...]]:
    """Return a task's program as plain numbers, and the identities of its kernels in its order of them."""
    launches = _norm_plan.plan(task, target)
    memory = (launches.partial_bytes, launches.packed_bytes, launches.serial)
    return _numbered(launches.steps, task.places, *memory), _kernels(launches.steps)


def bind_passes(launches: _norm_plan.Launches, places: tuple[str, ...], target: Target) -> Bound:
    """Load the kernels of a task's launches, or of some of them, and bind their program."""
    kernels = [
        jit.load(identity, partial(_norm_plan.emit, identity, target), target)
        for identity in _kernels(launches.steps)
    ]
    memory = (launches.partial_bytes, launches.packed_bytes, launches.serial)
    return bind_to(_numbered(launches.steps, places, *memory), kernels)


def numbered(plan: Plan) -> Program:
    """Return a plan as plain numbers; its kernels are those of `identities`."""
    memory = (plan.partial_bytes, plan.packed_bytes, plan.serial)
    return _numbered(plan.steps, plan.problem.places, *memory)


def _numbered(
    steps: tuple[Step, ...],
    places: tuple[str, ...],
    partial_bytes: int = 0,
    packed_bytes: int = 0,
    serial: bool = False,
) -> Program:
    known = {**MEMORY, **{name: number for number, name in enumerate(places)}}
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
                tuple(known[operand] for operand in operands),
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
        places,
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
    """Compile functions that are not kernels, or find them on disk; returns their addresses. Never unloaded."""
    target = jit.host_target()
    kernel = jit.load(source, partial(functions.address_table, source), target, imports or {})
    _kept.append(kernel)
    addresses = (ctypes.c_int64 * len(source.symbols))()
    write = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    write(kernel.address)(ctypes.addressof(addresses), 0, 1, None)
    return dict(zip(source.symbols, addresses, strict=True))


def _reference(problem: Problem) -> Executable:
    """Return the reference for a problem."""
    numbers = numerical_class(problem, config.get("winograd"))

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
        headroom.ask(2 * headroom.FOR_LOOPS, "to add up")
        reference.fill(problem, numbers, arrays[0], arrays[1], arrays[2], beside)

    return execute


def _array_at(address: int, shape: Shape, dtype: np.dtype[Any]) -> AnyArray:
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    memory: Any = (ctypes.c_char * size).from_address(address)
    array: AnyArray = np.ndarray(shape, dtype, memory)
    return array
