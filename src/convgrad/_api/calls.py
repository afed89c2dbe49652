"""From a door to a result: a call that was made before is run again, any other goes to the adapter of its arrays."""

from __future__ import annotations

from typing import Any
from weakref import ref

from .. import _engine
from .._arrays import Adapter, Like, adapter_for, numpy
from .._arrays.holding import C_ALIGNED, lend
from .._arrays.repeated import Ready, key_of
from .._base.dtypes import FLOATING, AnyArray
from .._base.errors import AllocationError
from .._problem import arguments, convolution
from .._problem.arguments import FLEXIBLE, Given
from .._problem.convolution import SEPARABLE_DEPTHWISE, SEPARABLE_POINTWISE, Call
from .._runtime import code, threads
from .._runtime.pointers import data_pointer
from .._runtime.results import new_result
from .._runtime.run import try_again

CONV2D = convolution.CONV2D
CONV2D_INPUT = convolution.CONV2D_INPUT
CONV2D_FILTER = convolution.CONV2D_FILTER
CONV2D_TRANSPOSE = convolution.CONV2D_TRANSPOSE
DEPTHWISE = convolution.DEPTHWISE
DEPTHWISE_INPUT = convolution.DEPTHWISE_INPUT
DEPTHWISE_FILTER = convolution.DEPTHWISE_FILTER


def compute(
    call: Call,
    given: Given,
    wanted: Any,
    first: Any,
    second: Any,
    # Bound here: a global lookup costs 20 ns, and this is the path of every small call.
    pointer: Any = data_pointer,
    pack: Any = code.pack_call[3],
) -> AnyArray:
    """Run one of the three sums on its two arrays: input and filter, filter and gradient, or input and gradient.

    `wanted` says the shape of a gradient: sizes, or `Like` an array; it is None for a forward pass.
    A call that was made before is run here and now: its key holds all that was checked then, but not memory.
    """
    key = key_of(call, given, wanted, first, second)
    ready: Ready | None = _engine.memory.get(key)
    if ready is None:
        if key is not None:  # of NumPy's arrays and plain arguments
            adapter: Adapter = numpy
        elif type(wanted) is Like:
            adapter = adapter_for(first, second, wanted.array)
        else:
            adapter = adapter_for(first, second, sizes=wanted)
        made: AnyArray = adapter.compute(call, given, wanted, first, second)
        return made
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
        at_first, held_first = lend(ready.function, first, ready.row, ready.first_bytes)
        at_second, held_second = lend(ready.function, second, ready.row, ready.second_bytes)
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


def separable(input: Any, depthwise_filter: Any, pointwise_filter: Any, given: Given) -> AnyArray:
    """Run a depthwise convolution, then a 1x1 convolution of stride 1; both are checked before the first runs."""
    function = SEPARABLE_DEPTHWISE.function
    settings = arguments.settings(function, *given)
    borrow = adapter_for(input, depthwise_filter, pointwise_filter).borrow
    x = borrow(function, "input", input, FLOATING, None)
    taps = borrow(function, "depthwise_filter", depthwise_filter, FLOATING, x.row)
    mixing = borrow(function, "pointwise_filter", pointwise_filter, FLOATING, x.row)
    shapes = (x.shape, taps.shape, mixing.shape)
    if all(shape is not None and None not in shape for shape in shapes):
        convolution.build_separable(settings, x.row, *shapes)
    elif mixing.shape is not None:
        convolution.check_pointwise(mixing.shape)
    made = compute(SEPARABLE_DEPTHWISE, given, None, x.array, taps.array)
    plain = (FLEXIBLE, 1, "VALID", settings.data_format, 1)
    return compute(SEPARABLE_POINTWISE, plain, None, made, mixing.array)
