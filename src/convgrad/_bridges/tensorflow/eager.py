"""Eager calls where TensorFlow cannot take ops of ours: tensors lend their memory, and tapes are told the derivative.

A tensor's memory is read where it is (`numpy.asarray` of one copies nothing; its method `numpy()` does). The result is
memory of ours on a 64-byte boundary, handed over by DLPack: TensorFlow ends the process at the next op on memory that
lies otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from ... import _engine
from ..._base.dtypes import DType
from ..._base.errors import AllocationError, BackendMissingError
from ..._problem import convolution
from ..._problem.convolution import OPS, Call, Kind, Problem, Settings
from ..._runtime.pointers import data_pointer
from ..._runtime.results import new_result
from . import ops
from .shapes import Partial


def compute(
    call: Call, settings: Settings, dtype: DType, result: Partial, first: Any, second: Any
) -> Any:
    """Return the result of a call on two eager tensors, whose gradient is recorded."""
    if not hasattr(first, "_numpy") or not hasattr(second, "_numpy"):
        raise BackendMissingError(
            f"{call.function}: in a graph this needs ops of ours in TensorFlow, but {ops.why_not()}; eager calls work"
        )
    shapes: dict[Kind, Any] = {
        Kind.FORWARD: (first.shape, second.shape, None),
        Kind.INPUT_GRADIENT: (result, first.shape, second.shape),
        Kind.FILTER_GRADIENT: (first.shape, result, second.shape),
    }
    image, taps, grad = (shape and tuple(shape) for shape in shapes[call.kind])
    problem = convolution.build(call, settings, dtype, image, taps, grad)
    return _differentiable(call, settings, problem)(first, second)


def _differentiable(call: Call, settings: Settings, problem: Problem) -> Any:
    """Return a function of two tensors that computes a problem, with derivatives of every order."""

    def other(kind: Kind, first: Any, second: Any) -> Any:
        row = next(each for each in OPS if (each.kind, each.depthwise) == (kind, call.depthwise))
        wanted = {
            Kind.FORWARD: problem.output_shape,
            Kind.INPUT_GRADIENT: problem.input_shape,
            Kind.FILTER_GRADIENT: problem.filter_shape,
        }[kind]
        return compute(row, settings, problem.dtype, wanted, first, second)

    @tf.custom_gradient  # type: ignore[untyped-decorator, unused-ignore]
    def run(first: Any, second: Any) -> Any:
        def grad(upstream: Any) -> Any:
            if problem.kind is Kind.FORWARD:
                return (
                    other(Kind.INPUT_GRADIENT, second, upstream),
                    other(Kind.FILTER_GRADIENT, first, upstream),
                )
            if problem.kind is Kind.INPUT_GRADIENT:
                return (
                    other(Kind.FILTER_GRADIENT, upstream, second),
                    other(Kind.FORWARD, upstream, first),
                )
            return (
                other(Kind.INPUT_GRADIENT, upstream, second),
                other(Kind.FORWARD, first, upstream),
            )

        return _run(call.function, problem, first, second), grad

    return run


def _run(function: str, problem: Problem, first: Any, second: Any) -> Any:
    one, two = np.asarray(first), np.asarray(second)
    try:
        result = new_result(problem.result_shape, problem.dtype.numpy)
        _engine.run(problem, data_pointer(one), data_pointer(two), data_pointer(result))
    except AllocationError as error:
        raise AllocationError(f"{function}: {error}.") from None
    if not problem.result_bytes:
        return tf.zeros(problem.result_shape, first.dtype)
    return _handed_over(result, first.dtype)


def _handed_over(result: Any, dtype: Any) -> Any:
    """Return an array's memory as a tensor; DLPack knows no bfloat16 of NumPy's."""
    if dtype == tf.bfloat16:
        words = tf.experimental.dlpack.from_dlpack(result.view(np.uint16).__dlpack__())
        return tf.bitcast(words, tf.bfloat16)
    return tf.experimental.dlpack.from_dlpack(result.__dlpack__())
