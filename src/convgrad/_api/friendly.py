"""The top-level functions: the operations under TensorFlow's names and order, with kinder argument forms.

Strides and dilations may be an int, a (rows, columns) pair, or 4 ints in `data_format` order. Padding may be a word in
any case, an int for all four sides, a (rows, columns) pair of ints, each for both sides of its axis, a pair of pairs
((top, bottom), (left, right)), or 4 pairs in `data_format` order. The layout may be a word in any case, and Keras'
"channels_last" and "channels_first" as well.
"""

from __future__ import annotations

from .._problem.arguments import FRIENDLY
from . import calls
from .dispatch import add_dispatch_list
from .types import Array, FlexibleInts, FlexiblePadding, Result, Sizes


@add_dispatch_list
def conv2d(
    input: Array,
    filters: Array,
    strides: FlexibleInts,
    padding: FlexiblePadding,
    data_format: str | None = "NHWC",
    dilations: FlexibleInts | None = 1,
    name: str | None = None,
) -> Result:
    """Compute a 2-D convolution, dense or grouped.

    ``y[n,p,q,k] = sum over r,s,c of x[n, p*sh + r*dh - top, q*sw + s*dw - left, c] * f[r,s,c,k]``;
    cells outside the image count as 0, and the filter is not flipped.

    Parameters
    ----------
    input : array, [n, h, w, c] or [n, c, h, w]
        half, bfloat16, float32, float64 or int32. More leading dimensions are batch too, and come back unchanged.
    filters : array, [kh, kw, c / groups, k]
        In both layouts. If its depth divides `c`, the convolution is grouped.
    strides : int, pair, or 4 ints in `data_format` order
    padding : "SAME", "VALID", int, pair, ((top, bottom), (left, right)), or 4 pairs in `data_format` order
        An int pads all four sides; (rows, columns) pads each axis by as much on both sides.
    data_format : "NHWC" or "NCHW", also written "channels_last" or "channels_first"
    dilations : as `strides`
    name : ignored

    Returns
    -------
    ndarray
        The dtype of `input`; half and bfloat16 are added in float32 or better and rounded once.

    Examples
    --------
    >>> import numpy as np, convgrad
    >>> x = np.arange(9, dtype=np.float32).reshape(1, 3, 3, 1)
    >>> convgrad.conv2d(x, np.ones((2, 2, 1, 1), np.float32), strides=1, padding="VALID")[0, :, :, 0]
    array([[ 8., 12.],
           [20., 24.]], dtype=float32)
    """
    how = (FRIENDLY, strides, padding, data_format, dilations)
    return calls.compute(calls.CONV2D, how, None, input, filters)


@add_dispatch_list
def conv2d_backprop_input(
    input_sizes: Sizes,
    filter: Array,
    out_backprop: Array,
    strides: FlexibleInts,
    padding: FlexiblePadding,
    data_format: str | None = "NHWC",
    dilations: FlexibleInts | None = 1,
    name: str | None = None,
) -> Result:
    """Compute the gradient of `conv2d` with respect to its input.

    ``dx[n,h,w,c] = sum of g[n,p,q,k] * f[r,s,c,k]`` over all ``p,q,r,s,k`` with ``h = p*sh + r*dh - top`` and
    ``w = q*sw + s*dw - left``: the adjoint of the convolution, also known as transposed convolution.

    Parameters
    ----------
    input_sizes : 4 ints in `data_format` order, or 2 ints
        Shape of the input. With 2 (rows, columns) the batch comes from `out_backprop`, the channels from `filter`.
    filter : array, [kh, kw, c / groups, k]
    out_backprop : array of the shape of conv2d's result
    strides, padding, data_format, dilations
        As given to `conv2d`.
    name : ignored

    Returns
    -------
    ndarray of shape `input_sizes`
        The dtype of `filter`.

    Examples
    --------
    >>> import numpy as np, convgrad
    >>> g = np.array([[1, 2], [3, 4]], np.float32).reshape(1, 2, 2, 1)
    >>> f = np.ones((2, 2, 1, 1), np.float32)
    >>> convgrad.conv2d_backprop_input([1, 3, 3, 1], f, g, strides=1, padding="VALID")[0, :, :, 0]
    array([[ 1.,  3.,  2.],
           [ 4., 10.,  6.],
           [ 3.,  7.,  4.]], dtype=float32)
    """
    how = (FRIENDLY, strides, padding, data_format, dilations)
    return calls.compute(calls.CONV2D_INPUT, how, input_sizes, filter, out_backprop)


@add_dispatch_list
def conv2d_backprop_filter(
    input: Array,
    filter_sizes: Sizes,
    out_backprop: Array,
    strides: FlexibleInts,
    padding: FlexiblePadding,
    data_format: str | None = "NHWC",
    dilations: FlexibleInts | None = 1,
    name: str | None = None,
) -> Result:
    """Compute the gradient of `conv2d` with respect to its filter.

    ``df[r,s,c,k] = sum over n,p,q of x[n, p*sh + r*dh - top, q*sw + s*dw - left, c] * g[n,p,q,k]``;
    cells outside the image count as 0.

    Parameters
    ----------
    input : array, [n, h, w, c] or [n, c, h, w]
    filter_sizes : 4 ints, [kh, kw, c / groups, k]
    out_backprop : array of the shape of conv2d's result
    strides, padding, data_format, dilations
        As given to `conv2d`.
    name : ignored

    Returns
    -------
    ndarray of shape `filter_sizes`
        The dtype of `input`.

    Examples
    --------
    >>> import numpy as np, convgrad
    >>> x = np.arange(9, dtype=np.float32).reshape(1, 3, 3, 1)
    >>> g = np.ones((1, 2, 2, 1), np.float32)
    >>> convgrad.conv2d_backprop_filter(x, [2, 2, 1, 1], g, strides=1, padding="VALID")[:, :, 0, 0]
    array([[ 8., 12.],
           [20., 24.]], dtype=float32)
    """
    how = (FRIENDLY, strides, padding, data_format, dilations)
    return calls.compute(calls.CONV2D_FILTER, how, filter_sizes, input, out_backprop)


@add_dispatch_list
def conv2d_transpose(
    input: Array,
    filters: Array,
    output_shape: Sizes,
    strides: FlexibleInts,
    padding: FlexiblePadding = "SAME",
    data_format: str | None = "NHWC",
    dilations: FlexibleInts | None = 1,
    name: str | None = None,
) -> Result:
    """Compute a transposed convolution: `conv2d_backprop_input` seen as a layer.

    ``y[n,h,w,c] = sum of x[n,p,q,k] * f[r,s,c,k]`` over all ``p,q,r,s,k`` with ``h = p*sh + r*dh - top`` and
    ``w = q*sw + s*dw - left``.

    Parameters
    ----------
    input : array, [n, p, q, k] or [n, k, p, q]
    filters : array, [kh, kw, channels of the result, channels of the input]
    output_shape : 4 ints in `data_format` order, or 2 ints (rows, columns)
    strides, padding, data_format, dilations
        Those of the convolution that would turn the result into `input`.
    name : ignored

    Returns
    -------
    ndarray of shape `output_shape`

    Examples
    --------
    >>> import numpy as np, convgrad
    >>> x = np.array([[1, 2], [3, 4]], np.float32).reshape(1, 2, 2, 1)
    >>> convgrad.conv2d_transpose(x, np.ones((2, 2, 1, 1), np.float32), [1, 4, 4, 1], strides=2)[0, :, :, 0]
    array([[1., 1., 2., 2.],
           [1., 1., 2., 2.],
           [3., 3., 4., 4.],
           [3., 3., 4., 4.]], dtype=float32)
    """
    how = (FRIENDLY, strides, padding, data_format, dilations)
    return calls.compute(calls.CONV2D_TRANSPOSE, how, output_shape, filters, input)


@add_dispatch_list
def depthwise_conv2d(
    input: Array,
    filter: Array,
    strides: FlexibleInts,
    padding: FlexiblePadding,
    data_format: str | None = "NHWC",
    dilations: FlexibleInts | None = 1,
    name: str | None = None,
) -> Result:
    """Compute a depthwise 2-D convolution: every channel has filters of its own.

    ``y[n,p,q,c*M+m] = sum over r,s of x[n, p*sh + r*dh - top, q*sw + s*dw - left, c] * f[r,s,c,m]``;
    cells outside the image count as 0. Strides and dilations combine freely.

    Parameters
    ----------
    input : array, [n, h, w, c] or [n, c, h, w]
        half, bfloat16, float32 or float64.
    filter : array, [kh, kw, c, m]
        In both layouts.
    strides : int, pair, or 4 ints in `data_format` order
    padding : "SAME", "VALID", int, pair, ((top, bottom), (left, right)), or 4 pairs in `data_format` order
        An int pads all four sides; (rows, columns) pads each axis by as much on both sides.
    data_format : "NHWC" or "NCHW", also written "channels_last" or "channels_first"
    dilations : as `strides`
    name : ignored

    Returns
    -------
    ndarray
        The dtype of `input`; half and bfloat16 are added in float32 or better and rounded once.

    Examples
    --------
    >>> import numpy as np, convgrad
    >>> x = np.array([[[[1, 10]], [[2, 20]], [[3, 30]]]], np.float32)      # 3 rows, 1 column, 2 channels
    >>> f = np.array([[[[1], [2]]], [[[1], [2]]]], np.float32)             # 2 rows, 1 column
    >>> convgrad.depthwise_conv2d(x, f, strides=1, padding="VALID")[0, :, 0, :]
    array([[  3.,  60.],
           [  5., 100.]], dtype=float32)
    """
    how = (FRIENDLY, strides, padding, data_format, dilations)
    return calls.compute(calls.DEPTHWISE, how, None, input, filter)


@add_dispatch_list
def depthwise_conv2d_backprop_input(
    input_sizes: Sizes,
    filter: Array,
    out_backprop: Array,
    strides: FlexibleInts,
    padding: FlexiblePadding,
    data_format: str | None = "NHWC",
    dilations: FlexibleInts | None = 1,
    name: str | None = None,
) -> Result:
    """Compute the gradient of `depthwise_conv2d` with respect to its input.

    ``dx[n,h,w,c] = sum of g[n,p,q,c*M+m] * f[r,s,c,m]`` over all ``p,q,r,s,m`` with ``h = p*sh + r*dh - top`` and
    ``w = q*sw + s*dw - left``.

    Parameters
    ----------
    input_sizes : 4 ints in `data_format` order
    filter : array, [kh, kw, c, m]
    out_backprop : array of the shape of depthwise_conv2d's result
    strides, padding, data_format, dilations
        As given to `depthwise_conv2d`.
    name : ignored

    Returns
    -------
    ndarray of shape `input_sizes`
        The dtype of `filter`.

    Examples
    --------
    >>> import numpy as np, convgrad
    >>> f = np.array([1, 2, 3], np.float32).reshape(3, 1, 1, 1)
    >>> g = np.ones((1, 5, 1, 1), np.float32)
    >>> convgrad.depthwise_conv2d_backprop_input([1, 5, 1, 1], f, g, 1, "SAME", dilations=2).ravel()
    array([3., 3., 6., 5., 5.], dtype=float32)
    """
    how = (FRIENDLY, strides, padding, data_format, dilations)
    return calls.compute(calls.DEPTHWISE_INPUT, how, input_sizes, filter, out_backprop)


@add_dispatch_list
def depthwise_conv2d_backprop_filter(
    input: Array,
    filter_sizes: Sizes,
    out_backprop: Array,
    strides: FlexibleInts,
    padding: FlexiblePadding,
    data_format: str | None = "NHWC",
    dilations: FlexibleInts | None = 1,
    name: str | None = None,
) -> Result:
    """Compute the gradient of `depthwise_conv2d` with respect to its filter.

    ``df[r,s,c,m] = sum over n,p,q of x[n, p*sh + r*dh - top, q*sw + s*dw - left, c] * g[n,p,q,c*M+m]``;
    cells outside the image count as 0.

    Parameters
    ----------
    input : array, [n, h, w, c] or [n, c, h, w]
    filter_sizes : 4 ints, [kh, kw, c, m]
    out_backprop : array of the shape of depthwise_conv2d's result
    strides, padding, data_format, dilations
        As given to `depthwise_conv2d`.
    name : ignored

    Returns
    -------
    ndarray of shape `filter_sizes`
        The dtype of `input`.

    Examples
    --------
    >>> import numpy as np, convgrad
    >>> x = np.arange(5, dtype=np.float32).reshape(1, 5, 1, 1)
    >>> g = np.ones((1, 5, 1, 1), np.float32)
    >>> convgrad.depthwise_conv2d_backprop_filter(x, [3, 1, 1, 1], g, 1, "SAME", dilations=2).ravel()
    array([ 3., 10.,  9.], dtype=float32)
    """
    how = (FRIENDLY, strides, padding, data_format, dilations)
    return calls.compute(calls.DEPTHWISE_FILTER, how, filter_sizes, input, out_backprop)


@add_dispatch_list
def separable_conv2d(
    input: Array,
    depthwise_filter: Array,
    pointwise_filter: Array,
    strides: FlexibleInts,
    padding: FlexiblePadding,
    data_format: str | None = "NHWC",
    dilations: FlexibleInts | None = 1,
    name: str | None = None,
) -> Result:
    """Compute a depthwise convolution followed by a 1x1 convolution that mixes its channels.

    ``y[n,p,q,k] = sum over i of d[n,p,q,i] * f[0,0,i,k]``, where
    ``d = depthwise_conv2d(input, depthwise_filter, strides, padding)``, rounded to the dtype of `input`.

    Parameters
    ----------
    input : array, [n, h, w, c] or [n, c, h, w]
    depthwise_filter : array, [kh, kw, c, m]
    pointwise_filter : array, [1, 1, c*m, k]
        A depth that divides ``c*m`` gives a grouped convolution.
    strides, padding, data_format, dilations
        Of the depthwise convolution.
    name : ignored

    Returns
    -------
    ndarray, [n, p, q, k] or [n, k, p, q]

    Examples
    --------
    >>> import numpy as np, convgrad
    >>> x = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
    >>> d = np.ones((2, 2, 2, 1), np.float32)
    >>> m = np.array([1, 10], np.float32).reshape(1, 1, 2, 1)
    >>> convgrad.separable_conv2d(x, d, m, strides=1, padding="VALID").item()
    172.0
    """
    how = (FRIENDLY, strides, padding, data_format, dilations)
    return calls.separable(input, depthwise_filter, pointwise_filter, how)
