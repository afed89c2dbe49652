"""From arguments to a result, for every door: borrow the arrays, build the problem, run it.

The order of checks is TensorFlow's: call form, words and lists (`_arguments`), then dtypes, ranks, channels, window,
`out_backprop`. Nothing is allocated before all of them have passed.

A repeated call does none of this: see `repeated`.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from .. import _arrays, _engine
from .._arrays import Adapter, Lent
from .._base.dtypes import FLOATING, INT32, AnyArray, DType
from .._base.errors import AllocationError
from .._problem import arguments, convolution
from .._problem.convolution import Call, Kind, Problem, Settings, Shape
from .._runtime.bound import Bound
from .repeated import Given, Key, Ready, again, key_of, read, signature

CONV2D = convolution.CONV2D
CONV2D_INPUT = convolution.CONV2D_INPUT
CONV2D_FILTER = convolution.CONV2D_FILTER
CONV2D_TRANSPOSE = convolution.CONV2D_TRANSPOSE
DEPTHWISE = convolution.DEPTHWISE
DEPTHWISE_INPUT = convolution.DEPTHWISE_INPUT
DEPTHWISE_FILTER = convolution.DEPTHWISE_FILTER


def forward(call: Call, input: Any, filter: Any, given: Given) -> AnyArray:
    """Run conv2d or depthwise_conv2d on a rank-4 input."""
    key = key_of(call, given, input, filter, None)
    ready = _engine.memory.get(key)
    if ready is not None:
        return again(ready, input, filter)
    if key is None and (made := _arrays.quick(call, given, None, input, filter)) is not None:
        return made
    settings, _, key = read(call, given, None, key)
    adapter = _arrays.adapter_for(input, filter)
    x = adapter.borrow(call.function, call.input, input, _allowed(call), None)
    f = adapter.borrow(call.function, call.filter, filter, _allowed(call), x.row)
    return _carry_out(call, settings, adapter, None, x, f, key)


def forward_batched(call: Call, input: Any, filter: Any, given: Given) -> AnyArray:
    """Run conv2d on an input of rank 4 or more: all but the last three dimensions are batch."""
    if type(input) is np.ndarray and input.ndim == 4:
        return forward(call, input, filter, given)
    if (made := _arrays.quick(call, given, None, input, filter)) is not None:
        return made
    settings = arguments.settings(call.function, *given)
    adapter = _arrays.adapter_for(input, filter)
    x = adapter.borrow(call.function, call.input, input, _allowed(call), None)
    f = adapter.borrow(call.function, call.filter, filter, _allowed(call), x.row)
    shaped: AnyArray
    if (apply := getattr(adapter, "apply", None)) is not None:
        shaped = apply(call, settings, None, x, f, batched=True)
        return shaped
    leading = x.shape[:-3]
    shape = x.shape if len(x.shape) <= 4 else (prod(leading), *x.shape[-3:])
    problem = convolution.build(call, settings, x.row, shape, f.shape, None)
    result = _compute(call.function, problem, adapter, x, f)
    if len(x.shape) <= 4:
        return result
    shaped = adapter.reshape(result, (*leading, *problem.output_shape[1:]))
    return shaped


def input_gradient(call: Call, sizes: Any, filter: Any, grad: Any, given: Given) -> AnyArray:
    """Run the gradient of the input from a size vector."""
    key = key_of(call, given, filter, grad, sizes)
    ready = _engine.memory.get(key)
    if ready is not None:
        return again(ready, filter, grad)
    if key is None and (made := _arrays.quick(call, given, sizes, filter, grad)) is not None:
        return made
    settings, sizes, key = read(call, given, sizes, key)
    adapter = _arrays.adapter_for(filter, grad, sizes=sizes)
    wanted = _sizes(call, adapter, call.input, sizes, (4,) if call.depthwise else (4, 2))
    f = adapter.borrow(call.function, call.filter, filter, _allowed(call), None)
    g = adapter.borrow(call.function, call.grad, grad, _allowed(call), f.row)
    return _carry_out(call, settings, adapter, wanted, f, g, key)


def filter_gradient(call: Call, input: Any, sizes: Any, grad: Any, given: Given) -> AnyArray:
    """Run the gradient of the filter from a size vector."""
    key = key_of(call, given, input, grad, sizes)
    ready = _engine.memory.get(key)
    if ready is not None:
        return again(ready, input, grad)
    if key is None and (made := _arrays.quick(call, given, sizes, input, grad)) is not None:
        return made
    settings, sizes, key = read(call, given, sizes, key)
    adapter = _arrays.adapter_for(input, grad, sizes=sizes)
    wanted = _sizes(call, adapter, call.filter, sizes, (4,))
    x = adapter.borrow(call.function, call.input, input, _allowed(call), None)
    g = adapter.borrow(call.function, call.grad, grad, _allowed(call), x.row)
    return _carry_out(call, settings, adapter, wanted, x, g, key)


def input_gradient_like(call: Call, input: Any, filter: Any, grad: Any, given: Given) -> AnyArray:
    """Run the gradient of the input from an array of the input's shape, whose values are not read."""
    settings = arguments.settings(call.function, *given)
    adapter = _arrays.adapter_for(input, filter, grad)
    x = adapter.borrow(call.function, call.input, input, _allowed(call), None)
    f = adapter.borrow(call.function, call.filter, filter, _allowed(call), x.row)
    g = adapter.borrow(call.function, call.grad, grad, _allowed(call), x.row)
    if x.shape is not None:
        convolution.check_rank(
            call.function, call.input, x.shape
        )  # 2 sizes are legal, a matrix is not
    return _carry_out(call, settings, adapter, x, f, g)


def filter_gradient_like(call: Call, input: Any, filter: Any, grad: Any, given: Given) -> AnyArray:
    """Run the gradient of the filter from an array of the filter's shape, whose values are not read."""
    settings = arguments.settings(call.function, *given)
    adapter = _arrays.adapter_for(input, filter, grad)
    x = adapter.borrow(call.function, call.input, input, _allowed(call), None)
    f = adapter.borrow(call.function, call.filter, filter, _allowed(call), x.row)
    g = adapter.borrow(call.function, call.grad, grad, _allowed(call), x.row)
    return _carry_out(call, settings, adapter, f, x, g)


def transpose(call: Call, input: Any, filter: Any, shape: Any, given: Given) -> AnyArray:
    """Run conv2d_transpose: the input gradient whose `out_backprop` is called input and comes first."""
    if (made := _arrays.quick(call, given, shape, filter, input)) is not None:
        return made
    settings = arguments.settings(call.function, *given)
    adapter = _arrays.adapter_for(input, filter, sizes=shape)
    wanted = _sizes(call, adapter, call.input, shape, (4, 2))
    g = adapter.borrow(call.function, call.grad, input, _allowed(call), None)
    f = adapter.borrow(call.function, call.filter, filter, _allowed(call), g.row)
    return _carry_out(call, settings, adapter, wanted, f, g)


def separable(input: Any, depthwise_filter: Any, pointwise_filter: Any, given: Given) -> AnyArray:
    """Run a depthwise convolution, then a 1x1 convolution of stride 1."""
    function = convolution.SEPARABLE_DEPTHWISE.function
    settings = arguments.settings(function, *given)
    adapter = _arrays.adapter_for(input, depthwise_filter, pointwise_filter)
    x = adapter.borrow(function, "input", input, FLOATING, None)
    f = adapter.borrow(function, "depthwise_filter", depthwise_filter, FLOATING, x.row)
    mixing = adapter.borrow(function, "pointwise_filter", pointwise_filter, FLOATING, x.row)
    if (apply := getattr(adapter, "apply", None)) is not None:
        if mixing.shape is not None:
            convolution.check_pointwise(mixing.shape)
        plain = replace(settings, strides=(1, 1), dilations=(1, 1), padding="VALID")
        made = apply(convolution.SEPARABLE_DEPTHWISE, settings, None, x, f)
        image = adapter.borrow(function, "depthwise result", made, FLOATING, x.row)
        result: AnyArray = apply(convolution.SEPARABLE_POINTWISE, plain, None, image, mixing)
        return result
    first, second = convolution.build_separable(settings, x.row, x.shape, f.shape, mixing.shape)
    between = _compute(function, first, adapter, x, f)
    lent = adapter.borrow(function, "depthwise result", between, FLOATING, x.row)
    return _compute(function, second, adapter, lent, mixing)


def _sizes(call: Call, adapter: Adapter, argument: str, value: Any, lengths: Shape) -> Any:
    """Return a size vector as Python integers, or as it is where it has no values yet."""
    later = getattr(adapter, "later", None)
    if later is not None and later(value):
        return value
    return arguments.sizes(call.function, argument, value, lengths)


def _carry_out(
    call: Call,
    settings: Settings,
    adapter: Adapter,
    wanted: Any,
    first: Lent,
    second: Lent,
    key: Key | None = None,
) -> AnyArray:
    """Check the shapes against each other and compute; `wanted` is the shape of a gradient, or an array that has it."""
    result: AnyArray
    if (apply := getattr(adapter, "apply", None)) is not None:
        result = apply(call, settings, wanted, first, second)
        return result
    shape: Any = getattr(wanted, "shape", wanted)
    shapes = {
        Kind.FORWARD: (first.shape, second.shape, None),
        Kind.INPUT_GRADIENT: (shape, first.shape, second.shape),
        Kind.FILTER_GRADIENT: (first.shape, shape, second.shape),
    }[call.kind]
    problem = convolution.build(call, settings, first.row, *shapes)
    return _compute(call.function, problem, adapter, first, second, key)


def _compute(
    function: str,
    problem: Problem,
    adapter: Adapter,
    first: Lent,
    second: Lent,
    key: Key | None = None,
) -> AnyArray:
    """Hold the operands still, make the result, fill it; remember the program under `key`."""
    result: AnyArray
    if (compute := getattr(adapter, "compute", None)) is not None:
        result = compute(function, problem, first, second)
        return result
    at_first, at_second = 0, 0
    held_first: object = None
    held_second: object = None
    if not problem.is_empty:  # else nothing is read, and a copy could be large
        sizes = problem.operand_bytes
        at_first, held_first = first.lend(function, sizes[0])
        at_second, held_second = second.lend(function, sizes[1])
    try:
        # Before the plan is made: planning for sizes that no memory can hold would take for ever.
        result, at_result = adapter.allocate(problem.result_shape, problem.dtype)
        program = _engine.run(problem, at_first, at_second, at_result)
    except AllocationError as error:
        raise AllocationError(f"{function}: {error}.") from None
    del held_first, held_second  # kept until here
    if key is not None and type(program) is Bound and key[1] == signature(first, second):
        _engine.remember(key, Ready(function, problem, program))
    return result


def _allowed(call: Call) -> tuple[DType, ...]:
    """TensorFlow documents int32 for conv2d and its input gradient only."""
    if call.depthwise or call.kind is Kind.FILTER_GRADIENT:
        return FLOATING
    return (*FLOATING, INT32)
