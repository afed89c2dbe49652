"""What runs in a worker: arrays in, an array out. `graph` says what is computed, as plain data in front of the arrays.

A chunk is checked when it arrives: Dask believes what an array's maker declared, and a kernel must not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from .. import _config, _dtypes, _engine, _problem_text
from .._dtypes import AnyArray, DType
from .._errors import AllocationError, ArgumentError, InternalError
from .._problem import Problem
from .._runtime.pointers import data_pointer
from .._runtime.results import new_result
from . import share

Placed = tuple[tuple[int, ...], tuple[tuple[int, int], ...] | None, tuple[int, ...]]
"""Of a piece: the shape of the chunk it comes in, what of it is taken (None: all), and where that goes."""


def cut(plain: tuple[str, str, Placed], chunk: Any) -> AnyArray:
    """Return a strip of a chunk; a copy, so that the chunk can be forgotten, where that is less."""
    function, dtype, (shape, inside, _) = plain
    strip = _taken(_checked(function, dtype, shape, chunk), inside)
    return strip if strip.flags.c_contiguous else np.ascontiguousarray(strip)


def assemble(plain: tuple[str, str, tuple[int, ...], tuple[Placed, ...]], *chunks: Any) -> AnyArray:
    """Put an array together from pieces of chunks; a chunk that is the whole of it is taken as it is."""
    function, dtype, shape, pieces = plain
    if len(pieces) == 1:
        (found, inside, _), (chunk,) = pieces[0], chunks
        return _taken(_checked(function, dtype, found, chunk), inside)
    result = _new(function, shape, _row(dtype))
    for (found, inside, at), chunk in zip(pieces, chunks, strict=True):
        taken = _taken(_checked(function, dtype, found, chunk), inside)
        place = tuple(
            slice(begin, begin + size) for begin, size in zip(at, taken.shape, strict=True)
        )
        result[place] = taken
    return result


def block(plain: tuple[Any, ...], *chunks: Any) -> AnyArray:
    """Compute one problem on operands that come in pieces."""
    function, text, switches, dtype, lead, boxes = plain
    problem = _problem(text)
    operands, taken = [], 0
    for shape, pieces in boxes:
        ours = chunks[taken : taken + len(pieces)]
        taken += len(pieces)
        array = assemble((function, dtype, shape, pieces), *ours)
        operands.append(array if problem.dtype.name == dtype else _wide(array, problem.dtype))
    del chunks
    with _config.scope(**dict(switches)), share.limited():
        result = _run(function, problem, operands)
    return result if lead is None else _behind(function, problem.dtype, lead, result)


def zeros(plain: tuple[str, str, tuple[int, ...]]) -> AnyArray:
    """Return a block to which nothing is added."""
    function, dtype, shape = plain
    result = _new(function, shape, _row(dtype))
    result[...] = 0
    return result


def add(dtype: str, *parts: AnyArray) -> AnyArray:
    """Add partial sums in their order, in float64, or as ints that wrap around; "" leaves the sum as it is."""
    kind = np.int32 if parts[0].dtype == np.int32 else np.float64
    with np.errstate(all="ignore"):  # infinities of both signs make a NaN, as in one sum
        total: Any = parts[0].astype(kind)
        for part in parts[1:]:
            total += part
    row = _row(dtype) if dtype else None
    if row is None or row.numpy == total.dtype:
        return np.asarray(total)
    return _dtypes.round_once(total, row)


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
    if array.shape != shape or _dtypes.find(array.dtype) is not row:
        raise ArgumentError(
            f"{function}: a chunk must have the shape {list(shape)} and the dtype {dtype}, as its Dask array says, "
            f"got {list(array.shape)} of {array.dtype}."
        )
    return array


def _taken(array: AnyArray, inside: tuple[tuple[int, int], ...] | None) -> AnyArray:
    if inside is None:
        return array
    part: AnyArray = array[tuple(slice(begin, end) for begin, end in inside)]
    return part


def _wide(array: AnyArray, row: DType) -> AnyArray:
    wide: AnyArray = array.astype(row.numpy)
    return wide


@lru_cache(maxsize=4096)
def _problem(text: str) -> Problem:
    return _problem_text.read(text)


@lru_cache(maxsize=32)
def _row(name: str) -> DType:
    return next(row for row in _dtypes.DTYPES if row.name == name)
