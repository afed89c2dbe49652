"""TensorFlow's `tf.nn` functions: names, order, defaults and accepted forms as documented there."""

from __future__ import annotations

from .._problem.arguments import DEPTHWISE, FLEXIBLE, STRICT
from . import calls
from .dispatch import add_dispatch_list
from .types import Array, FlexibleInts, Padding, Result, Sizes, StrictInts


@add_dispatch_list
def conv2d(
    input: Array,
    filters: Array,
    strides: FlexibleInts | None,
    padding: Padding,
    data_format: str | None = "NHWC",
    dilations: FlexibleInts | None = None,
    name: str | None = None,
) -> Result:
    """Compute a 2-D convolution, as `tf.nn.conv2d`.

    ``y[n,p,q,k] = sum over r,s,c of x[n, p*sh + r*dh - top, q*sw + s*dw - left, c] * f[r,s,c,k]``

    Parameters
    ----------
    input : array, [batch..., h, w, c] or [batch..., c, h, w]
    filters : array, [kh, kw, c / groups, k]
    strides, dilations : int, or 1, 2 or 4 ints; None means 1
    padding : "SAME", "VALID" or 4 pairs in `data_format` order
    data_format : "NHWC" or "NCHW"
    name : ignored

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad import nn
    >>> nn.conv2d(np.ones((1, 3, 3, 1), np.float32), np.ones((3, 3, 1, 1), np.float32), 2, "SAME")[0, :, :, 0]
    array([[4., 4.],
           [4., 4.]], dtype=float32)
    """
    how = (FLEXIBLE, strides, padding, data_format, dilations)
    return calls.compute(calls.CONV2D, how, None, input, filters)


@add_dispatch_list
def conv2d_transpose(
    input: Array,
    filters: Array,
    output_shape: Sizes,
    strides: FlexibleInts | None,
    padding: Padding = "SAME",
    data_format: str | None = "NHWC",
    dilations: FlexibleInts | None = None,
    name: str | None = None,
) -> Result:
    """Compute a transposed convolution, as `tf.nn.conv2d_transpose`.

    ``y[n,h,w,c] = sum of x[n,p,q,k] * f[r,s,c,k]`` over all ``p,q,r,s,k`` with ``h = p*sh + r*dh - top`` and
    ``w = q*sw + s*dw - left``: the gradient of `conv2d` with respect to its input.

    Parameters
    ----------
    input : array, [n, p, q, k] or [n, k, p, q]
    filters : array, [kh, kw, channels of the result, channels of the input]
    output_shape : 4 ints in `data_format` order, or 2 (rows, columns)
    strides, dilations : int, or 1, 2 or 4 ints; None means 1
    padding : "SAME", "VALID" or 4 pairs in `data_format` order
    data_format : "NHWC" or "NCHW"
    name : ignored

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad import nn
    >>> x = np.ones((1, 2, 2, 1), np.float32)
    >>> nn.conv2d_transpose(x, np.ones((3, 3, 1, 1), np.float32), [1, 4, 4, 1], 2)[0, :, :, 0]
    array([[1., 1., 2., 1.],
           [1., 1., 2., 1.],
           [2., 2., 4., 2.],
           [1., 1., 2., 1.]], dtype=float32)
    """
    how = (FLEXIBLE, strides, padding, data_format, dilations)
    return calls.compute(calls.CONV2D_TRANSPOSE, how, output_shape, filters, input)


@add_dispatch_list
def depthwise_conv2d(
    input: Array,
    filter: Array,
    strides: StrictInts,
    padding: Padding,
    data_format: str | None = None,
    dilations: StrictInts | None = None,
    name: str | None = None,
) -> Result:
    """Compute a depthwise 2-D convolution, as `tf.nn.depthwise_conv2d`.

    ``y[n,p,q,c*M+m] = sum over r,s of x[n, p*sh + r*dh - top, q*sw + s*dw - left, c] * f[r,s,c,m]``

    Parameters
    ----------
    input : array, [n, h, w, c] or [n, c, h, w]
    filter : array, [kh, kw, c, m]
    strides : list or tuple of 4 ints in `data_format` order
    padding : "SAME", "VALID" or 4 pairs in `data_format` order
    data_format : "NHWC" or "NCHW"
    dilations : 2 ints (rows, columns), or None for 1; may be combined with strides
    name : ignored

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad import nn
    >>> x = np.ones((1, 3, 3, 1), np.float32)
    >>> nn.depthwise_conv2d(x, np.ones((3, 3, 1, 1), np.float32), [1, 2, 2, 1], "SAME")[0, :, :, 0]
    array([[4., 4.],
           [4., 4.]], dtype=float32)
    """
    how = (DEPTHWISE, strides, padding, data_format, dilations)
    return calls.compute(calls.DEPTHWISE, how, None, input, filter)


@add_dispatch_list
def depthwise_conv2d_backprop_input(
    input_sizes: Sizes,
    filter: Array,
    out_backprop: Array,
    strides: StrictInts,
    padding: Padding,
    data_format: str | None = "NHWC",
    dilations: StrictInts | None = [1, 1, 1, 1],
    name: str | None = None,
) -> Result:
    """Compute the gradient of a depthwise convolution with respect to its input.

    ``dx[n,h,w,c] = sum of g[n,p,q,c*M+m] * f[r,s,c,m]`` over all ``p,q,r,s,m`` with ``h = p*sh + r*dh - top`` and
    ``w = q*sw + s*dw - left``. Unlike TensorFlow's, it honours `dilations`.

    Parameters
    ----------
    input_sizes : 4 ints in `data_format` order
    filter : array, [kh, kw, c, m]
    out_backprop : array of the shape of the forward result
    strides, dilations : list or tuple of 4 ints in `data_format` order
    padding : "SAME", "VALID" or 4 pairs in `data_format` order
    data_format : "NHWC" or "NCHW"
    name : ignored

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad import nn
    >>> f, g = np.ones((3, 1, 1, 1), np.float32), np.ones((1, 4, 1, 1), np.float32)
    >>> nn.depthwise_conv2d_backprop_input([1, 4, 1, 1], f, g, [1, 1, 1, 1], "SAME").ravel()
    array([2., 3., 3., 2.], dtype=float32)
    """
    how = (STRICT, strides, padding, data_format, dilations)
    return calls.compute(calls.DEPTHWISE_INPUT, how, input_sizes, filter, out_backprop)


@add_dispatch_list
def depthwise_conv2d_backprop_filter(
    input: Array,
    filter_sizes: Sizes,
    out_backprop: Array,
    strides: StrictInts,
    padding: Padding,
    data_format: str | None = "NHWC",
    dilations: StrictInts | None = [1, 1, 1, 1],
    name: str | None = None,
) -> Result:
    """Compute the gradient of a depthwise convolution with respect to its filter.

    ``df[r,s,c,m] = sum over n,p,q of x[n, p*sh + r*dh - top, q*sw + s*dw - left, c] * g[n,p,q,c*M+m]``.
    Unlike TensorFlow's, it honours `dilations`.

    Parameters
    ----------
    input : array, [n, h, w, c] or [n, c, h, w]
    filter_sizes : 4 ints, [kh, kw, c, m]
    out_backprop : array of the shape of the forward result
    strides, dilations : list or tuple of 4 ints in `data_format` order
    padding : "SAME", "VALID" or 4 pairs in `data_format` order
    data_format : "NHWC" or "NCHW"
    name : ignored

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad import nn
    >>> x = np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1)
    >>> nn.depthwise_conv2d_backprop_filter(x, [3, 1, 1, 1], np.ones_like(x), [1, 1, 1, 1], "SAME").ravel()
    array([3., 6., 6.], dtype=float32)
    """
    how = (STRICT, strides, padding, data_format, dilations)
    return calls.compute(calls.DEPTHWISE_FILTER, how, filter_sizes, input, out_backprop)


@add_dispatch_list
def separable_conv2d(
    input: Array,
    depthwise_filter: Array,
    pointwise_filter: Array,
    strides: StrictInts,
    padding: Padding,
    data_format: str | None = None,
    dilations: StrictInts | None = None,
    name: str | None = None,
) -> Result:
    """Compute a depthwise convolution, then a 1x1 convolution, as `tf.nn.separable_conv2d`.

    ``y[n,p,q,k] = sum over i of d[n,p,q,i] * f[0,0,i,k]`` with ``d`` the depthwise result.

    Parameters
    ----------
    input : array, [n, h, w, c] or [n, c, h, w]
    depthwise_filter : array, [kh, kw, c, m]
    pointwise_filter : array, [1, 1, c*m, k]
    strides : list or tuple of 4 ints in `data_format` order
    padding : "SAME", "VALID" or 4 pairs in `data_format` order
    data_format : "NHWC" or "NCHW"
    dilations : 2 ints (rows, columns), or None for 1
    name : ignored

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad import nn
    >>> x, d = np.ones((1, 2, 2, 2), np.float32), np.ones((2, 2, 2, 1), np.float32)
    >>> nn.separable_conv2d(x, d, np.ones((1, 1, 2, 1), np.float32), [1, 1, 1, 1], "VALID").item()
    8.0
    """
    how = (DEPTHWISE, strides, padding, data_format, dilations)
    return calls.separable(input, depthwise_filter, pointwise_filter, how)


# TensorFlow 2 carries its deprecated spellings as data, without a warning; tools that read the mark find it here too.
for _function, _names in (
    (depthwise_conv2d_backprop_input, ("nn.depthwise_conv2d_native_backprop_input",)),
    (depthwise_conv2d_backprop_filter, ("nn.depthwise_conv2d_native_backprop_filter",)),
):
    setattr(_function, "_tf_deprecated_api_names", _names)  # noqa: B010  # mypy knows no such attribute
