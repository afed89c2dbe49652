"""A call that was made before: nothing is checked again, one program is looked up and run.

All that the checks look at is in the key: whose call it is, the settings, shapes, dtypes and sizes by their exact
values, and the switches that decide what runs. What is remembered is the program. This is the path of every small call,
so it is counted in tenths of microseconds, and it is NumPy's alone.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from .._base import config
from .._base.dtypes import AnyArray
from .._base.errors import AllocationError
from .._problem.arguments import Given, NotPlain, plain
from .._problem.convolution import Call, Problem, Shape
from .._runtime import code, threads
from .._runtime.bound import Bound
from .._runtime.pointers import data_pointer
from .._runtime.results import new_result
from .._runtime.run import try_again
from .holding import C_ALIGNED, lend
from .request import Key


class Ready:
    """A call whose every check has passed before, and the program it came to."""

    __slots__ = (
        *("address", "call", "chunks", "first_bytes", "function", "program"),
        *("result_dtype", "result_shape", "row", "second_bytes", "serial"),
    )

    def __init__(self, function: str, problem: Problem, program: Bound, shape: Shape) -> None:
        self.function, self.program = function, program
        self.address, self.serial = program.address, program.serial
        self.chunks = program.chunks
        self.call = code.entry_call()
        self.first_bytes, self.second_bytes = problem.operand_bytes
        self.result_shape, self.row = shape, problem.dtype
        self.result_dtype = problem.dtype.numpy


_INTS = {int}


def key_of(call: Call, given: Given, sizes: Any, first: Any, second: Any) -> Key | None:
    """Return what a call of plain arrays with plain settings is remembered by, or None for another call."""
    if type(first) is not np.ndarray or type(second) is not np.ndarray:
        return None
    forms, strides, padding, layout, dilations = given if len(given) == 5 else given[:5]
    try:
        if type(strides) is not int:
            strides = plain(strides)
        if type(padding) is not str:
            padding = plain(padding)
        if type(layout) is not str:
            layout = plain(layout)
        if type(dilations) is not int:
            dilations = plain(dilations)
        explicit = () if len(given) == 5 else plain(given[5])
        if sizes is not None:
            if type(sizes) is not tuple and type(sizes) is not list:
                return None
            sizes = tuple(sizes)
            if set(map(type, sizes)) != _INTS:
                return None
    except NotPlain:
        return None
    settings = (call, sizes, forms, strides, padding, layout, dilations, explicit)
    arrays = (first.shape, first.dtype, second.shape, second.dtype)
    return settings, arrays, config.deciding()


def again(
    ready: Ready,
    first: AnyArray,
    second: AnyArray,
    # Bound here: a global lookup costs 20 ns, and this is the path of every small call.
    pointer: Any = data_pointer,
    pack: Any = code.pack_call[3],
) -> AnyArray:
    """Run a remembered call: shapes and dtypes are those it was checked with, or memory is not what it was."""
    row = ready.row
    held_first: object = ref(first)
    held_second: object = ref(second)
    if (
        first.base is None
        and second.base is None
        and first.flags.num & C_ALIGNED == C_ALIGNED
        and second.flags.num & C_ALIGNED == C_ALIGNED
        and first.nbytes == ready.first_bytes
        and second.nbytes == ready.second_bytes
    ):
        at_first, at_second = pointer(first), pointer(second)
    else:
        at_first, held_first = lend(ready.function, first, row, ready.first_bytes)
        at_second, held_second = lend(ready.function, second, row, ready.second_bytes)
    try:
        result = new_result(ready.result_shape, ready.result_dtype)
        count, pool = (1, 0) if ready.serial else threads.ready(ready.chunks)
        words = pack(ready.address, count, pool, at_first, at_second, pointer(result))
        status = ready.call(words)
        if status:
            try_again(ready.program, words, status)
    except AllocationError as error:
        raise AllocationError(f"{ready.function}: {error}.") from None
    del held_first, held_second  # kept until here
    return result
