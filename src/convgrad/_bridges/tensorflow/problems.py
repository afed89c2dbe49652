"""A call of the corridor, computed on tensors: checks as far as shapes are known, then one op."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.framework import tensor_util

from ..._base.dtypes import DType
from ..._base.errors import ArgumentError, ArgumentTypeError
from ..._problem.convolution import SEPARABLE_POINTWISE, Call, Kind, Settings, Shape, check_rank
from . import eager, ops
from .attributes import attrs_of
from .shapes import Partial, result_shape

_LARGEST_INT32 = 2**31 - 1


def shape_of(tensor: Any) -> Partial:
    """Return what is known of a tensor's shape."""
    shape = tensor.shape
    return None if shape.rank is None else tuple(shape.as_list())


def apply(
    call: Call, settings: Settings, dtype: DType, wanted: Any, first: Any, second: Any
) -> Any:
    """Return the result of a call on two operands.

    `wanted` is the result's shape of a gradient: ints, a vector of sizes that is not known yet, or a tensor of that
    shape in a tuple of its own.
    """
    if call is SEPARABLE_POINTWISE and (shape_of(second) or (None,))[:2] != (1, 1):
        second = tf.ensure_shape(second, [1, 1, None, None])  # any window would do for the op
    one, two = shape_of(first), shape_of(second)
    if call.kind is Kind.FORWARD:
        shape = result_shape(call, settings, dtype, one, two, None)
        inputs: tuple[Any, ...] = (first, second)
    else:
        sizes, target = _sizes(call, wanted)
        if call.kind is Kind.INPUT_GRADIENT:
            shape = result_shape(call, settings, dtype, target, one, two)
            inputs = (sizes, first, second)
        else:
            shape = result_shape(call, settings, dtype, one, target, two)
            inputs = (first, sizes, second)
    if not ops.available():
        return eager.compute(call, settings, dtype, shape, first, second)
    attrs = attrs_of(settings)
    return ops.execute((call.kind, call.depthwise), inputs, attrs, shape)


def _sizes(call: Call, wanted: Any) -> tuple[Any, Partial]:
    """Return sizes as an op takes them, and what is known of them."""
    if isinstance(wanted, Like):
        shape = shape_of(wanted.tensor)
        argument = call.input if call.kind is Kind.INPUT_GRADIENT else call.filter
        if shape is not None and len(shape) != 4:
            check_rank(call.function, argument, tuple(size or 0 for size in shape))
        return tf.shape(wanted.tensor), shape
    if isinstance(wanted, tuple):
        return _constant(wanted), wanted
    return _vector(call, wanted)


class Like:
    """A tensor whose shape is wanted, and whose values are not read."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


def _constant(sizes: Shape) -> Any:
    """Return sizes that fit what an op takes; those that do not were refused, or will be."""
    wide = any(abs(size) > _LARGEST_INT32 for size in sizes)
    clipped = [max(-(2**63), min(size, 2**63 - 1)) for size in sizes]
    return tf.constant(clipped, tf.int64 if wide else tf.int32)


def _vector(call: Call, wanted: Any) -> tuple[Any, Partial]:
    argument = call.input if call.kind is Kind.INPUT_GRADIENT else call.filter
    sizes = tf.convert_to_tensor(wanted)
    if sizes.dtype not in (tf.int32, tf.int64):
        raise ArgumentTypeError(
            f"{call.function}: `{argument}` must hold integers (int32 or int64), got {sizes.dtype.name}."
        )
    if sizes.shape.rank not in (None, 1):
        raise ArgumentError(
            f"{call.function}: `{argument}` must be 1-dimensional, got a tensor of shape {sizes.shape}."
        )
    length = sizes.shape[0] if sizes.shape.rank == 1 else None
    if length is not None and length not in call.lengths:
        wished = " values or ".join(map(str, call.lengths))
        raise ArgumentError(
            f"{call.function}: `{argument}` must hold {wished} values, got {length}."
        )
    if length is None:
        return sizes, None
    known = tensor_util.constant_value_as_shape(sizes)
    return sizes, tuple(known.as_list())


def apply_batched(
    call: Call, settings: Settings, dtype: DType, wanted: Any, first: Any, second: Any
) -> Any:
    """Return the result of a forward pass on an input of rank 4 or more, all but the last three being batch."""
    rank = first.shape.rank
    if rank is None or rank <= 4:
        return apply(call, settings, dtype, wanted, first, second)
    whole = tf.shape(first)
    folded = tf.reshape(first, tf.concat([[-1], whole[-3:]], 0))
    folded.set_shape([None, *first.shape[-3:]])
    made = apply(call, settings, dtype, wanted, folded, second)
    result = tf.reshape(made, tf.concat([whole[:-3], tf.shape(made)[1:]], 0))
    result.set_shape([*first.shape[:-3], *made.shape[1:]])
    return result
