"""TensorFlow's `tf.raw_ops`: keywords only, strides and dilations 4 long, explicit padding as 8 flat numbers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

from .._arrays import Like
from .._base.errors import ArgumentTypeError
from .._problem.arguments import RAW, Given
from . import calls
from .dispatch import as_it_is
from .types import Array, Result, Sizes, StrictInts

P = ParamSpec("P")
R = TypeVar("R")

_CONV2D = replace(calls.CONV2D, function="Conv2D", filter="filter", batched=False)
_CONV2D_INPUT = replace(calls.CONV2D_INPUT, function="Conv2DBackpropInput")
_CONV2D_FILTER = replace(calls.CONV2D_FILTER, function="Conv2DBackpropFilter")
_CONV2D_INPUT_V2 = replace(calls.CONV2D_INPUT, function="Conv2DBackpropInputV2", input="input")
_CONV2D_FILTER_V2 = replace(calls.CONV2D_FILTER, function="Conv2DBackpropFilterV2", filter="filter")
_DEPTHWISE = replace(calls.DEPTHWISE, function="DepthwiseConv2dNative")
_DEPTHWISE_INPUT = replace(calls.DEPTHWISE_INPUT, function="DepthwiseConv2dNativeBackpropInput")
_DEPTHWISE_FILTER = replace(calls.DEPTHWISE_FILTER, function="DepthwiseConv2dNativeBackpropFilter")

SIX = (_CONV2D, _CONV2D_INPUT, _CONV2D_FILTER, _DEPTHWISE, _DEPTHWISE_INPUT, _DEPTHWISE_FILTER)
"""The six operations under the names their arguments have here, which are also those of graphs."""


def keywords_only(function: Callable[P, R]) -> Callable[P, R]:
    """Refuse positional, missing and unknown arguments with a message that names the possible keywords."""
    signature = inspect.signature(function)
    possible = list(signature.parameters)
    required = {
        name
        for name, parameter in signature.parameters.items()
        if parameter.default is inspect.Parameter.empty
    }

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        name = function.__name__
        if args:
            raise ArgumentTypeError(
                f"{name}: only keyword arguments are taken (possible keys: {possible}), got {len(args)} positional."
            )
        if missing := sorted(required - kwargs.keys()):
            raise ArgumentTypeError(
                f"{name}: missing arguments {missing} (possible keys: {possible})."
            )
        if unknown := sorted(kwargs.keys() - signature.parameters.keys()):
            raise ArgumentTypeError(
                f"{name}: unknown arguments {unknown} (possible keys: {possible})."
            )
        return function(*args, **kwargs)

    return as_it_is(call)


def _given(
    strides: Any, padding: Any, explicit_paddings: Any, data_format: Any, dilations: Any
) -> Given:
    explicit = [] if explicit_paddings is None else explicit_paddings
    return RAW, strides, padding, data_format, dilations, explicit


@keywords_only
def Conv2D(
    *,
    input: Array,
    filter: Array,
    strides: StrictInts,
    padding: str,
    use_cudnn_on_gpu: bool | None = True,
    explicit_paddings: StrictInts | None = [],
    data_format: str | None = "NHWC",
    dilations: StrictInts | None = [1, 1, 1, 1],
    name: str | None = None,
) -> Result:
    """Compute a 2-D convolution.

    ``y[n,p,q,k] = sum over r,s,c of x[n, p*sh + r*dh - top, q*sw + s*dw - left, c] * f[r,s,c,k]``

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad import raw_ops
    >>> x, f = np.ones((1, 2, 2, 1), np.float32), np.ones((2, 2, 1, 1), np.float32)
    >>> raw_ops.Conv2D(input=x, filter=f, strides=[1, 1, 1, 1], padding="EXPLICIT",
    ...                explicit_paddings=[0, 0, 1, 0, 0, 0, 0, 0]).ravel()
    array([2., 4.], dtype=float32)
    """
    how = _given(strides, padding, explicit_paddings, data_format, dilations)
    return calls.compute(_CONV2D, how, None, input, filter)


@keywords_only
def Conv2DBackpropInput(
    *,
    input_sizes: Sizes,
    filter: Array,
    out_backprop: Array,
    strides: StrictInts,
    padding: str,
    use_cudnn_on_gpu: bool | None = True,
    explicit_paddings: StrictInts | None = [],
    data_format: str | None = "NHWC",
    dilations: StrictInts | None = [1, 1, 1, 1],
    name: str | None = None,
) -> Result:
    """Compute the gradient of `Conv2D` with respect to its input.

    ``dx[n,h,w,c] = sum of g[n,p,q,k] * f[r,s,c,k]`` over all ``p,q,r,s,k`` with ``h = p*sh + r*dh - top`` and
    ``w = q*sw + s*dw - left``

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad import raw_ops
    >>> f, g = np.ones((3, 1, 1, 1), np.float32), np.ones((1, 4, 1, 1), np.float32)
    >>> raw_ops.Conv2DBackpropInput(input_sizes=[1, 4, 1, 1], filter=f, out_backprop=g, strides=[1, 1, 1, 1],
    ...                             padding="SAME").ravel()
    array([2., 3., 3., 2.], dtype=float32)
    """
    how = _given(strides, padding, explicit_paddings, data_format, dilations)
    return calls.compute(_CONV2D_INPUT, how, input_sizes, filter, out_backprop)


@keywords_only
def Conv2DBackpropFilter(
    *,
    input: Array,
    filter_sizes: Sizes,
    out_backprop: Array,
    strides: StrictInts,
    padding: str,
    use_cudnn_on_gpu: bool | None = True,
    explicit_paddings: StrictInts | None = [],
    data_format: str | None = "NHWC",
    dilations: StrictInts | None = [1, 1, 1, 1],
    name: str | None = None,
) -> Result:
    """Compute the gradient of `Conv2D` with respect to its filter.

    ``df[r,s,c,k] = sum over n,p,q of x[n, p*sh + r*dh - top, q*sw + s*dw - left, c] * g[n,p,q,k]``

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad import raw_ops
    >>> x = np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1)
    >>> raw_ops.Conv2DBackpropFilter(input=x, filter_sizes=[3, 1, 1, 1], out_backprop=np.ones_like(x),
    ...                              strides=[1, 1, 1, 1], padding="SAME").ravel()
    array([3., 6., 6.], dtype=float32)
    """
    how = _given(strides, padding, explicit_paddings, data_format, dilations)
    return calls.compute(_CONV2D_FILTER, how, filter_sizes, input, out_backprop)


@keywords_only
def Conv2DBackpropInputV2(
    *,
    input: Array,
    filter: Array,
    out_backprop: Array,
    strides: StrictInts,
    padding: str,
    use_cudnn_on_gpu: bool | None = True,
    explicit_paddings: StrictInts | None = [],
    data_format: str | None = "NHWC",
    dilations: StrictInts | None = [1, 1, 1, 1],
    name: str | None = None,
) -> Result:
    """Compute the gradient of `Conv2D` with respect to its input, of which only the shape is used.

    ``dx[n,h,w,c] = sum of g[n,p,q,k] * f[r,s,c,k]`` over all ``p,q,r,s,k`` with ``h = p*sh + r*dh - top`` and
    ``w = q*sw + s*dw - left``

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad import raw_ops
    >>> x, f = np.ones((1, 4, 1, 1), np.float32), np.ones((3, 1, 1, 1), np.float32)
    >>> raw_ops.Conv2DBackpropInputV2(input=x, filter=f, out_backprop=x, strides=[1, 1, 1, 1],
    ...                               padding="SAME").ravel()
    array([2., 3., 3., 2.], dtype=float32)
    """
    how = _given(strides, padding, explicit_paddings, data_format, dilations)
    return calls.compute(_CONV2D_INPUT_V2, how, Like(input), filter, out_backprop)


@keywords_only
def Conv2DBackpropFilterV2(
    *,
    input: Array,
    filter: Array,
    out_backprop: Array,
    strides: StrictInts,
    padding: str,
    use_cudnn_on_gpu: bool | None = True,
    explicit_paddings: StrictInts | None = [],
    data_format: str | None = "NHWC",
    dilations: StrictInts | None = [1, 1, 1, 1],
    name: str | None = None,
) -> Result:
    """Compute the gradient of `Conv2D` with respect to its filter, of which only the shape is used.

    ``df[r,s,c,k] = sum over n,p,q of x[n, p*sh + r*dh - top, q*sw + s*dw - left, c] * g[n,p,q,k]``

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad import raw_ops
    >>> x, f = np.ones((1, 4, 1, 1), np.float32), np.ones((3, 1, 1, 1), np.float32)
    >>> raw_ops.Conv2DBackpropFilterV2(input=x, filter=f, out_backprop=x, strides=[1, 1, 1, 1],
    ...                                padding="SAME").ravel()
    array([3., 4., 3.], dtype=float32)
    """
    how = _given(strides, padding, explicit_paddings, data_format, dilations)
    return calls.compute(_CONV2D_FILTER_V2, how, Like(filter), input, out_backprop)


@keywords_only
def DepthwiseConv2dNative(
    *,
    input: Array,
    filter: Array,
    strides: StrictInts,
    padding: str,
    explicit_paddings: StrictInts | None = [],
    data_format: str | None = "NHWC",
    dilations: StrictInts | None = [1, 1, 1, 1],
    name: str | None = None,
) -> Result:
    """Compute a depthwise 2-D convolution.

    ``y[n,p,q,c*M+m] = sum over r,s of x[n, p*sh + r*dh - top, q*sw + s*dw - left, c] * f[r,s,c,m]``

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad import raw_ops
    >>> x, f = np.ones((1, 4, 4, 1), np.float32), np.ones((2, 2, 1, 1), np.float32)
    >>> raw_ops.DepthwiseConv2dNative(input=x, filter=f, strides=[1, 2, 2, 1], padding="VALID").ravel()
    array([4., 4., 4., 4.], dtype=float32)
    """
    how = _given(strides, padding, explicit_paddings, data_format, dilations)
    return calls.compute(_DEPTHWISE, how, None, input, filter)


@keywords_only
def DepthwiseConv2dNativeBackpropInput(
    *,
    input_sizes: Sizes,
    filter: Array,
    out_backprop: Array,
    strides: StrictInts,
    padding: str,
    explicit_paddings: StrictInts | None = [],
    data_format: str | None = "NHWC",
    dilations: StrictInts | None = [1, 1, 1, 1],
    name: str | None = None,
) -> Result:
    """Compute the gradient of `DepthwiseConv2dNative` with respect to its input.

    ``dx[n,h,w,c] = sum of g[n,p,q,c*M+m] * f[r,s,c,m]`` over all ``p,q,r,s,m`` with ``h = p*sh + r*dh - top`` and
    ``w = q*sw + s*dw - left``

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad import raw_ops
    >>> f, g = np.ones((3, 1, 1, 1), np.float32), np.ones((1, 4, 1, 1), np.float32)
    >>> raw_ops.DepthwiseConv2dNativeBackpropInput(input_sizes=[1, 4, 1, 1], filter=f, out_backprop=g,
    ...                                            strides=[1, 1, 1, 1], padding="SAME").ravel()
    array([2., 3., 3., 2.], dtype=float32)
    """
    how = _given(strides, padding, explicit_paddings, data_format, dilations)
    return calls.compute(_DEPTHWISE_INPUT, how, input_sizes, filter, out_backprop)


@keywords_only
def DepthwiseConv2dNativeBackpropFilter(
    *,
    input: Array,
    filter_sizes: Sizes,
    out_backprop: Array,
    strides: StrictInts,
    padding: str,
    explicit_paddings: StrictInts | None = [],
    data_format: str | None = "NHWC",
    dilations: StrictInts | None = [1, 1, 1, 1],
    name: str | None = None,
) -> Result:
    """Compute the gradient of `DepthwiseConv2dNative` with respect to its filter.

    ``df[r,s,c,m] = sum over n,p,q of x[n, p*sh + r*dh - top, q*sw + s*dw - left, c] * g[n,p,q,c*M+m]``

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad import raw_ops
    >>> x = np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1)
    >>> raw_ops.DepthwiseConv2dNativeBackpropFilter(input=x, filter_sizes=[3, 1, 1, 1], strides=[1, 1, 1, 1],
    ...                                             out_backprop=np.ones_like(x), padding="SAME").ravel()
    array([3., 6., 6.], dtype=float32)
    """
    how = _given(strides, padding, explicit_paddings, data_format, dilations)
    return calls.compute(_DEPTHWISE_FILTER, how, filter_sizes, input, out_backprop)
