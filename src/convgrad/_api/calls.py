"""From a door to a result: a call that was made before is run again, any other goes to the adapter of its arrays."""

from __future__ import annotations

from typing import Any

from .. import _engine
from .._arrays import Adapter, Like, adapter_for, numpy
from .._arrays.repeated import again, key_of
from .._base.dtypes import FLOATING, AnyArray
from .._problem import arguments, convolution
from .._problem.arguments import FLEXIBLE, Given
from .._problem.convolution import SEPARABLE_DEPTHWISE, SEPARABLE_POINTWISE, Call

CONV2D = convolution.CONV2D
CONV2D_INPUT = convolution.CONV2D_INPUT
CONV2D_FILTER = convolution.CONV2D_FILTER
CONV2D_TRANSPOSE = convolution.CONV2D_TRANSPOSE
DEPTHWISE = convolution.DEPTHWISE
DEPTHWISE_INPUT = convolution.DEPTHWISE_INPUT
DEPTHWISE_FILTER = convolution.DEPTHWISE_FILTER


def compute(call: Call, given: Given, wanted: Any, first: Any, second: Any) -> AnyArray:
    """Run one of the three sums on its two arrays: input and filter, filter and gradient, or input and gradient.

    `wanted` says the shape of a gradient: sizes, or `Like` an array; it is None for a forward pass.
    """
    key = key_of(call, given, wanted, first, second)
    ready = _engine.memory.get(key)
    if ready is not None:
        return again(ready, first, second)
    if key is not None:  # of NumPy's arrays and plain arguments
        adapter: Adapter = numpy
    elif type(wanted) is Like:
        adapter = adapter_for(first, second, wanted.array)
    else:
        adapter = adapter_for(first, second, sizes=wanted)
    made: AnyArray = adapter.compute(call, given, wanted, first, second)
    return made


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
