"""TensorFlow's `tf.compat.v1.nn` functions: old names beside new ones, in the order of version 1.

The depthwise gradients are the objects of `v2`, under their plain and their `native` names, as in TensorFlow.
"""

from __future__ import annotations

from dataclasses import replace

from .._problem.arguments import DEPTHWISE, FLEXIBLE, STRICT, either
from . import calls
from .dispatch import add_dispatch_list
from .types import Array, FlexibleInts, Padding, Result, Sizes, StrictInts
from .v2 import depthwise_conv2d_backprop_filter as depthwise_conv2d_backprop_filter
from .v2 import depthwise_conv2d_backprop_input as depthwise_conv2d_backprop_input

_CONV2D = replace(calls.CONV2D, filter="filter")
_TRANSPOSE = replace(calls.CONV2D_TRANSPOSE, filter="filter", grad="value")
_NATIVE = replace(calls.DEPTHWISE, function="depthwise_conv2d_native")


@add_dispatch_list
def conv2d(
    input: Array,
    filter: Array | None = None,
    strides: FlexibleInts | None = None,
    padding: Padding | None = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = "NHWC",
    dilations: FlexibleInts | None = [1, 1, 1, 1],
    name: str | None = None,
    filters: Array | None = None,
) -> Result:
    """Compute a 2-D convolution, as `tf.compat.v1.nn.conv2d`.

    ``y[n,p,q,k] = sum over r,s,c of x[n, p*sh + r*dh - top, q*sw + s*dw - left, c] * f[r,s,c,k]``

    Parameters
    ----------
    input : array, [batch..., h, w, c] or [batch..., c, h, w]
    filter, filters : array, [kh, kw, c / groups, k]
        One of the two names.
    strides, dilations : int, or 1, 2 or 4 ints; None means 1
    padding : "SAME", "VALID" or 4 pairs in `data_format` order
    data_format : "NHWC" or "NCHW"
    use_cudnn_on_gpu, name : ignored

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad.compat.v1 import nn
    >>> x, f = np.ones((1, 2, 2, 1), np.float32), np.ones((2, 2, 1, 1), np.float32)
    >>> nn.conv2d(x, f, [1, 1, 1, 1], "VALID").item()
    4.0
    """
    filter = either("conv2d", "filter", filter, "filters", filters)
    how = (FLEXIBLE, strides, padding, data_format, dilations)
    return calls.compute(_CONV2D, how, None, input, filter)


@add_dispatch_list
def conv2d_backprop_input(
    input_sizes: Sizes,
    filter: Array | None = None,
    out_backprop: Array | None = None,
    strides: StrictInts | None = None,
    padding: Padding | None = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = "NHWC",
    dilations: StrictInts | None = [1, 1, 1, 1],
    name: str | None = None,
    filters: Array | None = None,
) -> Result:
    """Compute the gradient of a convolution with respect to its input.

    ``dx[n,h,w,c] = sum of g[n,p,q,k] * f[r,s,c,k]`` over all ``p,q,r,s,k`` with ``h = p*sh + r*dh - top`` and
    ``w = q*sw + s*dw - left``

    Parameters
    ----------
    input_sizes : 4 ints in `data_format` order, or 2 (rows, columns)
    filter, filters : array, [kh, kw, c / groups, k]
        One of the two names.
    out_backprop : array of the shape of the forward result
    strides, dilations : list or tuple of 4 ints in `data_format` order
    padding : "SAME", "VALID" or 4 pairs in `data_format` order
    data_format : "NHWC" or "NCHW"
    use_cudnn_on_gpu, name : ignored

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad.compat.v1 import nn
    >>> f, g = np.ones((3, 1, 1, 1), np.float32), np.ones((1, 4, 1, 1), np.float32)
    >>> nn.conv2d_backprop_input([1, 4, 1, 1], f, g, [1, 1, 1, 1], "SAME").ravel()
    array([2., 3., 3., 2.], dtype=float32)
    """
    filter = either("conv2d_backprop_input", "filter", filter, "filters", filters)
    how = (STRICT, strides, padding, data_format, dilations)
    return calls.compute(calls.CONV2D_INPUT, how, input_sizes, filter, out_backprop)


@add_dispatch_list
def conv2d_backprop_filter(
    input: Array,
    filter_sizes: Sizes,
    out_backprop: Array,
    strides: StrictInts,
    padding: Padding,
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = "NHWC",
    dilations: StrictInts | None = [1, 1, 1, 1],
    name: str | None = None,
) -> Result:
    """Compute the gradient of a convolution with respect to its filter.

    ``df[r,s,c,k] = sum over n,p,q of x[n, p*sh + r*dh - top, q*sw + s*dw - left, c] * g[n,p,q,k]``

    Parameters
    ----------
    input : array, [n, h, w, c] or [n, c, h, w]
    filter_sizes : 4 ints, [kh, kw, c / groups, k]
    out_backprop : array of the shape of the forward result
    strides, dilations : list or tuple of 4 ints in `data_format` order
    padding : "SAME", "VALID" or 4 pairs in `data_format` order
    data_format : "NHWC" or "NCHW"
    use_cudnn_on_gpu, name : ignored

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad.compat.v1 import nn
    >>> x = np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1)
    >>> nn.conv2d_backprop_filter(x, [3, 1, 1, 1], np.ones_like(x), [1, 1, 1, 1], "SAME").ravel()
    array([3., 6., 6.], dtype=float32)
    """
    how = (STRICT, strides, padding, data_format, dilations)
    return calls.compute(calls.CONV2D_FILTER, how, filter_sizes, input, out_backprop)


@add_dispatch_list
def conv2d_transpose(
    value: Array | None = None,
    filter: Array | None = None,
    output_shape: Sizes | None = None,
    strides: FlexibleInts | None = None,
    padding: Padding = "SAME",
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: Array | None = None,
    filters: Array | None = None,
    dilations: FlexibleInts | None = None,
) -> Result:
    """Compute a transposed convolution, as `tf.compat.v1.nn.conv2d_transpose`.

    ``y[n,h,w,c] = sum of x[n,p,q,k] * f[r,s,c,k]`` over all ``p,q,r,s,k`` with ``h = p*sh + r*dh - top`` and
    ``w = q*sw + s*dw - left``

    Parameters
    ----------
    value, input : array, [n, p, q, k] or [n, k, p, q]
        One of the two names.
    filter, filters : array, [kh, kw, channels of the result, channels of the input]
        One of the two names.
    output_shape : 4 ints in `data_format` order, or 2 (rows, columns)
    strides, dilations : int, or 1, 2 or 4 ints; None means 1
    padding : "SAME", "VALID" or 4 pairs in `data_format` order
    data_format : "NHWC" or "NCHW"
    name : ignored

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad.compat.v1 import nn
    >>> x = np.array([1, 2], np.float32).reshape(1, 2, 1, 1)
    >>> nn.conv2d_transpose(x, np.ones((2, 1, 1, 1), np.float32), [1, 4, 1, 1], [1, 2, 1, 1]).ravel()
    array([1., 1., 2., 2.], dtype=float32)
    """
    value = either("conv2d_transpose", "value", value, "input", input)
    filter = either("conv2d_transpose", "filter", filter, "filters", filters)
    how = (FLEXIBLE, strides, padding, data_format, dilations)
    return calls.compute(_TRANSPOSE, how, output_shape, filter, value)


@add_dispatch_list
def depthwise_conv2d(
    input: Array,
    filter: Array,
    strides: StrictInts,
    padding: Padding,
    rate: StrictInts | None = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: StrictInts | None = None,
) -> Result:
    """Compute a depthwise 2-D convolution, as `tf.compat.v1.nn.depthwise_conv2d`.

    ``y[n,p,q,c*M+m] = sum over r,s of x[n, p*sh + r*dh - top, q*sw + s*dw - left, c] * f[r,s,c,m]``

    Parameters
    ----------
    input : array, [n, h, w, c] or [n, c, h, w]
    filter : array, [kh, kw, c, m]
    strides : list or tuple of 4 ints in `data_format` order
    padding : "SAME", "VALID" or 4 pairs in `data_format` order
    rate, dilations : 2 ints (rows, columns), or None for 1
        One of the two names; may be combined with strides.
    name : ignored
    data_format : "NHWC" or "NCHW"

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad.compat.v1 import nn
    >>> x = np.arange(5, dtype=np.float32).reshape(1, 5, 1, 1)
    >>> nn.depthwise_conv2d(x, np.ones((2, 1, 1, 1), np.float32), [1, 1, 1, 1], "VALID", [3, 1]).ravel()
    array([3., 5.], dtype=float32)
    """
    rate = either("depthwise_conv2d", "rate", rate, "dilations", dilations)
    how = (DEPTHWISE, strides, padding, data_format, rate)
    return calls.compute(calls.DEPTHWISE, how, None, input, filter)


@add_dispatch_list
def depthwise_conv2d_native(
    input: Array,
    filter: Array,
    strides: StrictInts,
    padding: Padding,
    data_format: str | None = "NHWC",
    dilations: StrictInts | None = [1, 1, 1, 1],
    name: str | None = None,
) -> Result:
    """Compute a depthwise 2-D convolution; the older spelling of `depthwise_conv2d`.

    ``y[n,p,q,c*M+m] = sum over r,s of x[n, p*sh + r*dh - top, q*sw + s*dw - left, c] * f[r,s,c,m]``

    Parameters
    ----------
    input : array, [n, h, w, c] or [n, c, h, w]
    filter : array, [kh, kw, c, m]
    strides, dilations : list or tuple of 4 ints in `data_format` order
    padding : "SAME", "VALID" or 4 pairs in `data_format` order
    data_format : "NHWC" or "NCHW"
    name : ignored

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad.compat.v1 import nn
    >>> x = np.ones((1, 4, 4, 1), np.float32)
    >>> nn.depthwise_conv2d_native(x, np.ones((2, 2, 1, 1), np.float32), [1, 2, 2, 1], "VALID").ravel()
    array([4., 4., 4., 4.], dtype=float32)
    """
    how = (STRICT, strides, padding, data_format, dilations)
    return calls.compute(_NATIVE, how, None, input, filter)


@add_dispatch_list
def separable_conv2d(
    input: Array,
    depthwise_filter: Array,
    pointwise_filter: Array,
    strides: StrictInts,
    padding: Padding,
    rate: StrictInts | None = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: StrictInts | None = None,
) -> Result:
    """Compute a depthwise convolution, then a 1x1 convolution, as `tf.compat.v1.nn.separable_conv2d`.

    ``y[n,p,q,k] = sum over i of d[n,p,q,i] * f[0,0,i,k]`` with ``d`` the depthwise result.

    Parameters
    ----------
    input : array, [n, h, w, c] or [n, c, h, w]
    depthwise_filter : array, [kh, kw, c, m]
    pointwise_filter : array, [1, 1, c*m, k]
    strides : list or tuple of 4 ints in `data_format` order
    padding : "SAME", "VALID" or 4 pairs in `data_format` order
    rate, dilations : 2 ints (rows, columns), or None for 1
        One of the two names.
    name : ignored
    data_format : "NHWC" or "NCHW"

    Examples
    --------
    >>> import numpy as np
    >>> from convgrad.compat.v1 import nn
    >>> x, d = np.ones((1, 2, 2, 2), np.float32), np.ones((2, 2, 2, 1), np.float32)
    >>> nn.separable_conv2d(x, d, np.ones((1, 1, 2, 1), np.float32), [1, 1, 1, 1], "VALID").item()
    8.0
    """
    rate = either("separable_conv2d", "rate", rate, "dilations", dilations)
    how = (DEPTHWISE, strides, padding, data_format, rate)
    return calls.separable(input, depthwise_filter, pointwise_filter, how)


depthwise_conv2d_native_backprop_input = depthwise_conv2d_backprop_input
depthwise_conv2d_native_backprop_filter = depthwise_conv2d_backprop_filter
setattr(depthwise_conv2d_native, "_tf_deprecated_api_names", ("nn.depthwise_conv2d_native",))  # noqa: B010  # mypy knows no such attribute
