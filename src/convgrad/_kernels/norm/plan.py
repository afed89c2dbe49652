"""A task as launches of kernels: which, over how many items, with which words; all of it data."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from ..._base.errors import InternalError
from ..._compiler.codegen import arithmetic, element
from ..._compiler.kernel import KernelSource
from ..._compiler.targets import Target
from ..._problem.norm.task import PLACES, Task
from ..plan import Step
from . import apply, finish, gradient, scaling, statistics, sums, totals

_BLOCK = 32 << 10
"""Bytes of an image that a second pass goes through forwards before it goes to those in front."""
_MOST_SHARES = 32
"""Of the values of a channel; as many threads have work at least."""
_LEAST_VALUES = 64
"""Of a share."""
_SERIAL = 96 << 10
"""Bytes of an image below which the calling thread is done before another has begun."""
_WIDE = 8

EMITTERS: dict[type, Callable[[Any, Target], KernelSource]] = {
    statistics.StatisticsKernel: statistics.emit,
    finish.FinishKernel: finish.emit,
    apply.ApplyKernel: apply.emit,
    sums.SumsKernel: sums.emit,
    totals.CoefficientsKernel: totals.emit_coefficients,
    totals.TotalsKernel: totals.emit_totals,
    gradient.NormGradientKernel: gradient.emit,
    scaling.ScalingKernel: scaling.emit,
}


class Launches(NamedTuple):
    """What a program is made of."""

    steps: tuple[Step, ...]
    partial_bytes: int
    packed_bytes: int
    serial: bool


def emit(kernel: Hashable, target: Target) -> KernelSource:
    """Write the kernel with this identity."""
    return EMITTERS[type(kernel)](kernel, target)


def plan(task: Task, target: Target) -> Launches:
    """Return the launches of a task."""
    if task.name in ("forward", "forward_frozen", "apply"):
        steps, partial, packed = _forward(task, target)
    elif task.name in ("backward", "backward_frozen"):
        steps, partial, packed = _backward(task, target)
    elif task.name in ("pool", "scale_gradient"):
        steps, partial, packed = _summing(task, target)
    else:
        steps, partial, packed = _scaling(task)
    size = task.images * task.pixels * task.channels * task.dtype.itemsize
    return Launches(tuple(steps), partial, packed, serial=size < _SERIAL)


Parts = tuple[list[Step], int, int]


def _forward(task: Task, target: Target) -> Parts:
    steps = []
    partial = 0
    source = "running" if task.name == "forward_frozen" else "shares"
    shares = 0
    if task.name == "forward":
        shares = _shares(task, 1)
        partial = shares * len(statistics.ROWS) * task.channels * _WIDE
        kernel = statistics.StatisticsKernel(task.dtype.short, _planes(task))
        steps.append(
            _step(
                *(task, kernel, statistics.WORDS, shares * _columns(task)),
                grain=_grain(task),
                scratch=0 if _planes(task) else 3 * _row_bytes(task, target),
                channels=task.channels,
                images=task.images,
                pixels=task.pixels,
                shares=shares,
                padded=_padded(task, target),
            )
        )
    if task.name != "apply":
        blocks = -(-task.channels // finish.BLOCK)
        ending = finish.FinishKernel(task.parameter, source)
        steps.append(
            _step(task, ending, finish.WORDS, blocks, channels=task.channels, shares=shares)
        )
    last = apply.ApplyKernel(task.dtype.short, _planes(task), task.activation, task.residual)
    steps.append(_blocks(task, last, apply.WORDS, groups=1))
    return steps, partial, 0


def _backward(task: Task, target: Target) -> Parts:
    steps = []
    frozen = task.name == "backward_frozen"
    partial = packed = 0
    if not frozen or task.wants_parameters or task.wants_residual:
        kernel = sums.SumsKernel(
            "backward",
            *(task.dtype.short, _planes(task), task.activation, task.beside),
            task.wants_residual,
        )
        shares = _shares(task, 1)
        partial = shares * sums.COUNT["backward"] * task.channels * _WIDE
        steps.append(_sums(task, kernel, target, 1, shares, out="dresidual"))
        if task.wants_parameters or (task.wants_x and not frozen):
            packed = len(totals.COEFFICIENTS) * task.channels * element(task.parameter).size
            steps.append(
                _step(
                    task,
                    totals.CoefficientsKernel(task.parameter, frozen),
                    totals.COEFFICIENT_WORDS,
                    -(-task.channels // totals.BLOCK),
                    channels=task.channels,
                    shares=shares,
                    values=task.values,
                )
            )
    if task.wants_x:
        # What was written for the residual is g already, but 16 bits of it would be rounded twice.
        inner = task.wants_residual and task.dtype.short == task.parameter
        last = gradient.NormGradientKernel(
            *(task.dtype.short, _planes(task)),
            *(("none", "") if inner else (task.activation, task.beside)),
            frozen,
        )
        grad = "dresidual" if inner else "grad"
        steps.append(_blocks(task, last, gradient.WORDS, groups=1, names={"grad": grad}))
    return steps, partial, packed


def _summing(task: Task, target: Target) -> Parts:
    kernel = sums.SumsKernel(task.name, task.dtype.short, _planes(task))
    shares = 1 if _planes(task) else _shares(task, task.images)
    blocks = -(-task.channels // totals.BLOCK)
    total = _step(
        task,
        totals.TotalsKernel(task.dtype.short, mean=task.name == "pool"),
        totals.TOTAL_WORDS,
        task.images * blocks,
        grain=max(1, task.images * blocks // 16),
        names={"result": "pooled" if task.name == "pool" else "dfactor"},
        channels=task.channels,
        shares=shares,
        pixels=task.pixels,
        blocks=blocks,
    )
    partial = task.images * shares * task.channels * _WIDE
    return [_sums(task, kernel, target, task.images, shares, out="dx"), total], partial, 0


def _scaling(task: Task) -> Parts:
    kernel = scaling.ScalingKernel(task.name, task.dtype.short, _planes(task))
    names = (
        {"image": "x", "factor": "factor", "out": "y"}
        if task.name == "scale"
        else {"image": "grad", "factor": "dpooled", "out": "dx"}
    )
    return [_blocks(task, kernel, scaling.WORDS, groups=task.images, names=names)], 0, 0


def _sums(
    task: Task, kernel: sums.SumsKernel, target: Target, groups: int, shares: int, out: str
) -> Step:
    count = sums.COUNT[kernel.job]
    return _step(
        *(task, kernel, sums.WORDS, groups * shares * _columns(task)),
        grain=_grain(task),
        scratch=0 if kernel.planes else count * _row_bytes(task, target),
        names={"out": out},
        channels=task.channels,
        images=task.images // groups,
        pixels=task.pixels,
        groups=groups,
        values=task.values // groups,
        shares=shares,
        padded=_padded(task, target),
    )


def _blocks(
    task: Task,
    kernel: Hashable,
    words: tuple[str, ...],
    groups: int,
    names: dict[str, str] | None = None,
) -> Step:
    """Return a launch over blocks of the image, from its end."""
    unit = task.pixels if _planes(task) else task.channels
    if _planes(task):
        groups, values = 1, task.images * task.channels
    else:
        values = task.values // groups
    block = max(1, min(values, _BLOCK // (unit * task.dtype.itemsize)))
    blocks = -(-values // block)
    return _step(
        task,
        kernel,
        words,
        groups * blocks,
        names=names,
        channels=task.channels,
        pixels=task.pixels,
        groups=groups,
        values=values,
        blocks=blocks,
        block=block,
        items=groups * blocks,
    )


def _step(
    task: Task,
    kernel: Hashable,
    words: tuple[str, ...],
    count: int,
    grain: int = 1,
    scratch: int = 0,
    names: dict[str, str] | None = None,
    **values: int,
) -> Step:
    """Return a launch; the number of a place is looked up by its name, or by the one it goes by in the task."""
    places = PLACES[task.name]
    for word in words:
        if word.startswith("at_"):
            name = word.removeprefix("at_")
            there = (names or {}).get(name, name)
            # A place that a task does not have is one that its kernel does not look at.
            values[word] = places.index(there) if there in places else 0
    if values.keys() != set(words):
        wrong = sorted(values.keys() ^ set(words))
        raise InternalError(f"the words {wrong} of {kernel!r} do not fit; please report this")
    numbers = [values[word] for word in words]
    return Step(kernel, ("places", "partial", "packed"), tuple(numbers), count, grain, scratch)


def _planes(task: Task) -> bool:
    return task.data_format == "NCHW"


def _columns(task: Task) -> int:
    return task.channels if _planes(task) else 1


def _grain(task: Task) -> int:
    """Channels are claimed some at a time, so that 16 threads have four claims each."""
    return max(1, task.channels // 64) if _planes(task) else 1


def _shares(task: Task, groups: int) -> int:
    """Return in how many shares each of some groups is added up: enough for threads, if it can be a multiple of 4."""
    most = max(1, -(-_MOST_SHARES // groups))
    if _planes(task):
        return max(1, min(most, task.images // groups, -(-_MOST_SHARES // task.channels)))
    shares = max(1, min(most, task.values // groups // _LEAST_VALUES))
    return shares - shares % 4 if shares > 4 else shares


def _padded(task: Task, target: Target) -> int:
    lanes = target.lanes(arithmetic(element(task.dtype.short)).size)
    return -(-task.channels // lanes) * lanes


def _row_bytes(task: Task, target: Target) -> int:
    return _padded(task, target) * element(task.parameter).size
