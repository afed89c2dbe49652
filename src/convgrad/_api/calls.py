"""From arguments to a result, for every door: borrow the arrays, build the problem, run it.

The order of checks is TensorFlow's: call form, words and lists (done by the doors through `_arguments`), then dtypes,
ranks, channels, window, `out_backprop`. Nothing is allocated before all of them have passed.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from .. import _arguments, _arrays, _engine, _problem
from .._dtypes import FLOATING, INT32, AnyArray, DType
from .._errors import ArgumentError
from .._problem import Call, Kind, Problem, Settings, Shape

CONV2D = _problem.CONV2D
CONV2D_INPUT = _problem.CONV2D_INPUT
CONV2D_FILTER = _problem.CONV2D_FILTER
CONV2D_TRANSPOSE = replace(
    CONV2D_INPUT, function="conv2d_transpose", input="output_shape", filter="filters", grad="input"
)
DEPTHWISE = _problem.DEPTHWISE
DEPTHWISE_INPUT = _problem.DEPTHWISE_INPUT
DEPTHWISE_FILTER = _problem.DEPTHWISE_FILTER
SEPARABLE_DEPTHWISE = replace(DEPTHWISE, function="separable_conv2d", filter="depthwise_filter")
SEPARABLE_POINTWISE = replace(
    CONV2D, function="separable_conv2d", input="depthwise result", filter="pointwise_filter"
)


def forward(call: Call, input: Any, filter: Any, settings: Settings) -> AnyArray:
    """Run conv2d or depthwise_conv2d on a rank-4 input."""
    known = _known(call, settings, input, filter, None)
    if known is not None:
        return _engine.run(call.function, known, input, filter)
    x, dtype = _arrays.borrow(call.function, call.input, input, _allowed(call), None)
    f, _ = _arrays.borrow(call.function, call.filter, filter, _allowed(call), dtype)
    problem = _problem.build(call, settings, dtype, x.shape, f.shape, None)
    _remember(call, settings, x, f, None, problem)
    return _engine.run(call.function, problem, x, f)


def forward_batched(call: Call, input: Any, filter: Any, settings: Settings) -> AnyArray:
    """Run conv2d on an input of rank 4 or more: all but the last three dimensions are batch."""
    if type(input) is np.ndarray and input.ndim == 4:
        return forward(call, input, filter, settings)
    x, dtype = _arrays.borrow(call.function, call.input, input, _allowed(call), None)
    if x.ndim <= 4:
        return forward(call, x, filter, settings)
    f, _ = _arrays.borrow(call.function, call.filter, filter, _allowed(call), dtype)
    leading = x.shape[:-3]
    problem = _problem.build(call, settings, dtype, (prod(leading), *x.shape[-3:]), f.shape, None)
    result = _engine.run(call.function, problem, x.reshape(problem.input_shape), f)
    shaped: AnyArray = result.reshape(*leading, *result.shape[1:])
    return shaped


def input_gradient(call: Call, sizes: Any, filter: Any, grad: Any, settings: Settings) -> AnyArray:
    """Run the gradient of the input from a size vector."""
    known = _known(call, settings, filter, grad, sizes)
    if known is not None:
        return _engine.run(call.function, known, filter, grad)
    lengths = (4,) if call.depthwise else (4, 2)
    shape = _arguments.sizes(call.function, call.input, sizes, lengths)
    return _input_gradient(call, shape, filter, grad, settings, None)


def filter_gradient(call: Call, input: Any, sizes: Any, grad: Any, settings: Settings) -> AnyArray:
    """Run the gradient of the filter from a size vector."""
    known = _known(call, settings, input, grad, sizes)
    if known is not None:
        return _engine.run(call.function, known, input, grad)
    shape = _arguments.sizes(call.function, call.filter, sizes, (4,))
    x, dtype = _arrays.borrow(call.function, call.input, input, _allowed(call), None)
    return _filter_gradient(call, x, shape, grad, settings, dtype)


def input_gradient_like(
    call: Call, input: Any, filter: Any, grad: Any, settings: Settings
) -> AnyArray:
    """Run the gradient of the input from an array of the input's shape, whose values are not read."""
    x, dtype = _arrays.borrow(call.function, call.input, input, _allowed(call), None)
    f, _ = _arrays.borrow(call.function, call.filter, filter, _allowed(call), dtype)
    g, _ = _arrays.borrow(call.function, call.grad, grad, _allowed(call), dtype)
    _problem.check_rank(call.function, call.input, x.shape)  # 2 sizes are legal, a matrix is not
    return _input_gradient(call, x.shape, f, g, settings, dtype)


def filter_gradient_like(
    call: Call, input: Any, filter: Any, grad: Any, settings: Settings
) -> AnyArray:
    """Run the gradient of the filter from an array of the filter's shape, whose values are not read."""
    x, dtype = _arrays.borrow(call.function, call.input, input, _allowed(call), None)
    f, _ = _arrays.borrow(call.function, call.filter, filter, _allowed(call), dtype)
    return _filter_gradient(call, x, f.shape, grad, settings, dtype)


def transpose(call: Call, input: Any, filter: Any, shape: Any, settings: Settings) -> AnyArray:
    """Run conv2d_transpose: the input gradient whose `out_backprop` is called input and comes first."""
    sizes = _arguments.sizes(call.function, call.input, shape, (4, 2))
    g, dtype = _arrays.borrow(call.function, call.grad, input, _allowed(call), None)
    return _input_gradient(call, sizes, filter, g, settings, dtype)


def separable(
    input: Any, depthwise_filter: Any, pointwise_filter: Any, settings: Settings
) -> AnyArray:
    """Run a depthwise convolution, then a 1x1 convolution of stride 1."""
    function = SEPARABLE_DEPTHWISE.function
    x, dtype = _arrays.borrow(function, "input", input, FLOATING, None)
    f, _ = _arrays.borrow(function, "depthwise_filter", depthwise_filter, FLOATING, dtype)
    mixing, _ = _arrays.borrow(function, "pointwise_filter", pointwise_filter, FLOATING, dtype)
    if mixing.ndim != 4 or mixing.shape[:2] != (1, 1):
        raise ArgumentError(
            f"{function}: `pointwise_filter` must have rank 4 and shape [1, 1, C*M, O], got {list(mixing.shape)}."
        )
    first = _problem.build(SEPARABLE_DEPTHWISE, settings, dtype, x.shape, f.shape, None)
    pointwise = replace(settings, strides=(1, 1), dilations=(1, 1), padding="VALID")
    second = _problem.build(
        SEPARABLE_POINTWISE, pointwise, dtype, first.output_shape, mixing.shape, None
    )
    return _engine.run(function, second, _engine.run(function, first, x, f), mixing)


def _input_gradient(
    call: Call, shape: Shape, filter: Any, grad: Any, settings: Settings, like: DType | None
) -> AnyArray:
    f, dtype = _arrays.borrow(call.function, call.filter, filter, _allowed(call), like)
    g, _ = _arrays.borrow(call.function, call.grad, grad, _allowed(call), dtype)
    problem = _problem.build(call, settings, dtype, shape, f.shape, g.shape)
    _remember(call, settings, f, g, shape, problem)
    return _engine.run(call.function, problem, f, g)


def _filter_gradient(
    call: Call, x: AnyArray, shape: Shape, grad: Any, settings: Settings, dtype: DType
) -> AnyArray:
    g, _ = _arrays.borrow(call.function, call.grad, grad, _allowed(call), dtype)
    problem = _problem.build(call, settings, dtype, x.shape, shape, g.shape)
    _remember(call, settings, x, g, shape, problem)
    return _engine.run(call.function, problem, x, g)


_MOST_REMEMBERED = 4096
"""Problems kept for all settings together; a program with more of them starts over."""
_count = 0
_filled: list[dict[tuple[object, ...], Problem]] = []
"""The dictionaries of the settings that hold any."""


def _known(call: Call, settings: Settings, first: Any, second: Any, sizes: Any) -> Problem | None:
    """Return the problem of a call whose every check has passed before.

    All that the checks look at is in the key: whose call it is, the settings, exact arrays' shapes and dtypes, sizes.
    """
    if type(first) is not np.ndarray or type(second) is not np.ndarray:
        return None
    if sizes is not None:
        if (type(sizes) is not tuple and type(sizes) is not list) or set(map(type, sizes)) != {int}:
            return None
        sizes = tuple(sizes)
    key = (call, first.shape, first.dtype, second.shape, second.dtype, sizes)
    return settings.problems.get(key)


def _remember(
    call: Call,
    settings: Settings,
    first: AnyArray,
    second: AnyArray,
    sizes: Shape | None,
    problem: Problem,
) -> None:
    global _count
    if _count >= _MOST_REMEMBERED:
        _count = 0
        with contextlib.suppress(IndexError):  # another thread may be at it too
            while True:
                _filled.pop().clear()
    key = (call, first.shape, first.dtype, second.shape, second.dtype, sizes)
    if not settings.problems:
        _filled.append(settings.problems)
    settings.problems[key] = problem
    _count += 1


def _allowed(call: Call) -> tuple[DType, ...]:
    """TensorFlow documents int32 for conv2d and its input gradient only."""
    if call.depthwise or call.kind is Kind.FILTER_GRADIENT:
        return FLOATING
    return (*FLOATING, INT32)
