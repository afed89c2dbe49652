"""What runs in a worker: arrays in, an array out. `graph` says what is computed, as plain data in front of the arrays.

A chunk is checked when it arrives: Dask believes what an array's maker declared, and a kernel must not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ... import _engine
from ..._base import config, dtypes
from ..._base.dtypes import AnyArray, DType
from ..._base.errors import AllocationError, ArgumentError, InternalError
from ..._base.fp_mode import default_mode
from ..._problem import text as _problem_text
from ..._problem.convolution import Kind, Problem
from ..._runtime.pointers import data_pointer
from ..._runtime.results import new_result
from . import share
from .carrier import Task
from .norm_tasks import norm_inner, norm_moved, norm_moved_together, norm_sums, normalise

__all__ = [
    "add",
    "around",
    "assemble",
    "block",
    "cut",
    "given",
    "norm_inner",
    "norm_moved",
    "norm_moved_together",
    "norm_sums",
    "normalise",
    "zeros",
]
"""What a `Task` may name."""

Taken = tuple[AnyArray, tuple[int, ...]]
"""A piece that has arrived, and where it goes."""
Placed = tuple[tuple[int, ...], tuple[tuple[int, int], ...] | None, tuple[int, ...]]
"""Of a piece: the shape of the chunk it comes in, what of it is taken (None: all), and where that goes."""


def cut(plain: tuple[str, str, Placed], chunk: Any) -> AnyArray:
    """Return a strip of a chunk, as a copy: a view would keep the whole chunk in memory."""
    function, dtype, (shape, inside, _) = plain
    return np.array(_taken(_checked(function, dtype, shape, chunk), inside), order="C")


def assemble(plain: tuple[str, str, tuple[int, ...], tuple[Placed, ...]], *chunks: Any) -> AnyArray:
    """Put an array together from pieces of chunks; a chunk that is the whole of it is taken as it is."""
    function, dtype, shape, pieces = plain
    taken = _all_taken(function, dtype, pieces, chunks)
    return _put_together(function, dtype, tuple((0, size) for size in shape), taken)


def given(_: None, task: Task, *chunks: Any) -> Any:
    """Run the task of a block, where Dask hands it over as data."""
    return task(*chunks)


def around(plain: tuple[int, int, tuple[Any, ...]], *chunks: Any) -> AnyArray:
    """Compute a block of which an operand comes as a chunk and a list of strips, between which the chunk belongs."""
    number, at, of_block = plain
    before, chunk, strips, behind = (
        chunks[:number],
        chunks[number],
        chunks[number + 1],
        chunks[number + 2 :],
    )
    return block(of_block, *before, *strips[:at], chunk, *strips[at:], *behind)


def block(plain: tuple[Any, ...], *chunks: Any) -> AnyArray:
    """Compute one problem on operands that come in pieces."""
    function, text, switches, dtype, lead, boxes, beside = plain
    operands: list[AnyArray] = []
    pieces: list[Taken] = []
    problem, at = _problem(text), 0
    for number, (shape, placed) in enumerate(boxes):
        ours = chunks[at : at + len(placed)]
        at += len(placed)
        taken = _all_taken(function, dtype, placed, ours)
        if beside is not None and number == beside[0]:
            pieces, whole = taken, taken[beside[1]][0]
        else:
            whole = _put_together(function, dtype, tuple((0, size) for size in shape), taken)
        operands.append(_wide(whole, problem.dtype))
    with config.scope(**dict(switches)), share.limited():
        result = _run(function, problem, operands)
        if beside is not None:
            result = _with_bands(function, dtype, beside, pieces, operands, result)
    return result if lead is None else _behind(function, problem.dtype, lead, result)


def _with_bands(
    function: str,
    dtype: str,
    beside: tuple[int, int, Any],
    pieces: list[Taken],
    operands: list[AnyArray],
    result: AnyArray,
) -> AnyArray:
    """Compute what neighbours add along the edges of a chunk."""
    haloed, _, bands = beside
    for text, inside, at in bands:
        problem = _problem(text)
        place = tuple(slice(begin, end) for begin, end in at)
        strip = _wide(_put_together(function, dtype, inside, pieces), problem.dtype)
        other = operands[1 - haloed]
        if problem.kind is Kind.FILTER_GRADIENT:
            part = _run(function, problem, (strip, other[place]))
            # Infinities of both signs make a NaN, as in one sum.
            with default_mode(), np.errstate(all="ignore"):
                result = np.add(result, part, dtype=np.float64)
        else:
            both = (strip, other) if haloed == 0 else (other, strip)
            result[place] = _run(function, problem, both)
    return result


def zeros(plain: tuple[str, str, tuple[int, ...]]) -> AnyArray:
    """Return a block to which nothing is added."""
    function, dtype, shape = plain
    result = _new(function, shape, _row(dtype))
    result[...] = 0
    return result


def add(dtype: str, *parts: AnyArray) -> AnyArray:
    """Add partial sums in their order, in float64, or as ints that wrap around; "" leaves the sum as it is."""
    kind = np.int32 if parts[0].dtype == np.int32 else np.float64
    row = _row(dtype) if dtype else None
    # Infinities of both signs make a NaN, as in one sum.
    with default_mode(), np.errstate(all="ignore"):
        total: Any = parts[0].astype(kind)
        for part in parts[1:]:
            total += part
        if row is None or row.numpy == total.dtype:
            return np.asarray(total)
        return dtypes.round_once(total, row)


def _run(function: str, problem: Problem, operands: Sequence[AnyArray]) -> AnyArray:
    result = _new(function, problem.result_shape, problem.dtype)
    first, second = (
        np.require(array, dtype=problem.dtype.numpy, requirements=("C", "A")) for array in operands
    )
    if (first.nbytes, second.nbytes) != problem.operand_bytes:
        raise InternalError(f"{function}: a block's operands do not fit it; please report this")
    try:
        _engine.run(problem, *map(data_pointer, (first, second, result)))
    except AllocationError as error:
        raise AllocationError(f"{function}: {error}.") from None
    return result


def _behind(
    function: str, row: DType, lead: tuple[tuple[int, ...], tuple[int, ...]], result: AnyArray
) -> AnyArray:
    """Return a result behind rows and columns of zeros."""
    shape, at = lead
    whole = zeros((function, row.name, shape))
    place = tuple(slice(begin, begin + size) for begin, size in zip(at, result.shape, strict=True))
    whole[place] = result
    return whole


def _new(function: str, shape: tuple[int, ...], row: DType) -> AnyArray:
    try:
        return new_result(shape, row.numpy)
    except AllocationError as error:
        raise AllocationError(f"{function}: {error}.") from None


def _checked(function: str, dtype: str, shape: tuple[int, ...], chunk: Any) -> AnyArray:
    array: AnyArray = chunk if type(chunk) is np.ndarray else np.asarray(chunk)
    row = _row(dtype)
    if array.shape != shape or dtypes.find(array.dtype) is not row:
        raise ArgumentError(
            f"{function}: a chunk must have the shape {list(shape)} and the dtype {dtype}, as its Dask array says, "
            f"got {list(array.shape)} of {array.dtype}."
        )
    return array


def _all_taken(
    function: str, dtype: str, placed: Sequence[Placed], chunks: Sequence[Any]
) -> list[Taken]:
    return [
        (_taken(_checked(function, dtype, shape, chunk), inside), at)
        for (shape, inside, at), chunk in zip(placed, chunks, strict=True)
    ]


def _put_together(
    function: str, dtype: str, wanted: Sequence[tuple[int, int]], pieces: Sequence[Taken]
) -> AnyArray:
    """Return a range of what pieces make up; one of them as it is, if that is all."""
    if len(pieces) == 1 and all(
        (begin, end - begin) == (at, size)
        for (begin, end), at, size in zip(wanted, pieces[0][1], pieces[0][0].shape, strict=True)
    ):
        return pieces[0][0]
    result = _new(function, tuple(end - begin for begin, end in wanted), _row(dtype))
    for array, at in pieces:
        source, place = [], []
        for (begin, end), start, size in zip(wanted, at, array.shape, strict=True):
            first, last = max(begin, start), min(end, start + size)
            source.append(slice(first - start, max(last, first) - start))
            place.append(slice(first - begin, max(last, first) - begin))
        if all(each.start < each.stop for each in place):
            result[tuple(place)] = array[tuple(source)]
    return result


def _taken(array: AnyArray, inside: tuple[tuple[int, int], ...] | None) -> AnyArray:
    if inside is None:
        return array
    part: AnyArray = array[tuple(slice(begin, end) for begin, end in inside)]
    return part


def _wide(array: AnyArray, row: DType) -> AnyArray:
    """Return an array in a problem's dtype: the one it has, but for partial sums of half and bfloat16."""
    wide: AnyArray = array.astype(row.numpy, copy=False)
    return wide


@lru_cache(maxsize=4096)
def _problem(text: str) -> Problem:
    return _problem_text.read(text)


@lru_cache(maxsize=32)
def _row(name: str) -> DType:
    return next(row for row in dtypes.DTYPES if row.name == name)
