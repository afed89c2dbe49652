"""Batch norm with activation and residual, and its gradients: the functions that stand between convolutions.

Names are those of TensorFlow's `tf.compat.v1.nn.fused_batch_norm` and of the raw op below it (`scale`, `offset`,
`mean`, `variance`, `epsilon`, `data_format`, `is_training`), with their defaults, and `out_backprop` as in all
gradients; `negative_slope` is what Keras calls it. Unlike there, all settings go by keyword, and they are the same for
both functions, so that one dict serves a layer's two calls. Statistics come out as they are used: biased. Arrays are of
any kind that convolutions take.
"""

from __future__ import annotations

from .._arrays import NormRequest, adapter_of
from .._problem.norm.call import BACKWARD, FORWARD, BatchNormGradients, BatchNormResult
from .dispatch import add_dispatch_list
from .types import Array


@add_dispatch_list
def batch_norm_act(
    input: Array,
    scale: Array | None = None,
    offset: Array | None = None,
    mean: Array | None = None,
    variance: Array | None = None,
    *,
    epsilon: float = 1e-3,
    is_training: bool = True,
    activation: str | None = "none",
    negative_slope: float = 0.2,
    residual: Array | None = None,
    residual_position: str = "before",
    data_format: str | None = "NHWC",
) -> BatchNormResult:
    """Normalise each channel, scale and shift it, apply an activation, and add a residual, in two passes over memory.

    With M values ``x[n,h,w,c]`` in channel c:

    - ``mean[c] = sum over n,h,w of x[n,h,w,c] / M`` and
      ``variance[c] = sum over n,h,w of (x[n,h,w,c] - mean[c])^2 / M`` when training, else those that are given;
    - ``u[n,h,w,c] = (x[n,h,w,c] - mean[c]) / sqrt(variance[c] + epsilon) * scale[c] + offset[c]``;
    - ``y[n,h,w,c] = act(u[n,h,w,c] + r[n,h,w,c])`` with a residual r before the activation, ``act(u) + r`` with one
      after it, ``act(u)`` with none.

    Parameters
    ----------
    input : array, [n, h, w, c] or [n, c, h, w]
        half, bfloat16, float32 or float64.
    scale, offset : array, [c], optional
        Ones and zeros where they are not given. Like all that has one number per channel they are float32, and
        float64 where `input` is.
    mean, variance : array, [c]
        Given when `is_training` is False, and only then.
    epsilon : float
    is_training : bool
        Whether statistics are the batch's.
    activation : "none", "relu", "relu6", "leaky_relu", "silu", "hardswish", "gelu" or "gelu_tanh"
    negative_slope : float
        Of "leaky_relu".
    residual : array of the shape and dtype of `input`, optional
    residual_position : "before" or "after" the activation
    data_format : "NHWC" or "NCHW", also written "channels_last" or "channels_first"

    Returns
    -------
    BatchNormResult
        ``(y, mean, variance)``: y has the dtype of `input` and is rounded once. Of an empty batch mean and variance
        are NaN.

    Examples
    --------
    >>> import numpy as np, convgrad
    >>> x = np.array([1, 2, 3, 6], np.float32).reshape(1, 2, 2, 1)
    >>> result = convgrad.batch_norm_act(x, epsilon=0.5, activation="relu")
    >>> result.mean, result.variance
    (array([3.], dtype=float32), array([3.5], dtype=float32))
    >>> result.y[0, :, :, 0]
    array([[0. , 0. ],
           [0. , 1.5]], dtype=float32)
    """
    request = NormRequest(
        FORWARD,
        (epsilon, is_training, activation, negative_slope, residual_position, data_format),
        {"input": input, "residual": residual},
        {"scale": scale, "offset": offset, "mean": mean, "variance": variance},
    )
    return adapter_of(request).normalise(request)


@add_dispatch_list
def batch_norm_act_grad(
    out_backprop: Array,
    input: Array,
    scale: Array | None,
    offset: Array | None,
    mean: Array,
    variance: Array,
    *,
    epsilon: float = 1e-3,
    is_training: bool = True,
    activation: str | None = "none",
    negative_slope: float = 0.2,
    residual: Array | None = None,
    residual_position: str = "before",
    data_format: str | None = "NHWC",
) -> BatchNormGradients:
    """Compute the gradients of `batch_norm_act` with respect to its arrays, in two passes over memory.

    With u as there, ``z[n,h,w,c] = (x[n,h,w,c] - mean[c]) / sqrt(variance[c] + epsilon)`` and
    ``g[n,h,w,c] = dy[n,h,w,c] * act'(u[n,h,w,c] + r[n,h,w,c])``, or ``dy * act'(u)`` without a residual before:

    - ``doffset[c] = sum over n,h,w of g[n,h,w,c]`` and ``dscale[c] = sum over n,h,w of g[n,h,w,c] * z[n,h,w,c]``;
    - ``dx[n,h,w,c] = scale[c] / sqrt(variance[c] + epsilon) * (g[n,h,w,c] - doffset[c]/M - z[n,h,w,c] * dscale[c]/M)``
      when training, because mean and variance change with x; else the first of these terms alone;
    - ``dr = g`` of a residual before the activation, ``dr = dy`` of one after it.

    Parameters
    ----------
    out_backprop : array of the shape and dtype of `input`
        The gradient of y.
    input, scale, offset
        As given to `batch_norm_act`.
    mean, variance : array, [c]
        As `batch_norm_act` returned them.
    epsilon, is_training, activation, negative_slope, residual, residual_position, data_format
        As given to `batch_norm_act`. At a kink the derivative is PyTorch's: 0 at relu's 0 and relu6's 6, the negative
        slope at leaky_relu's 0.

    Returns
    -------
    BatchNormGradients
        ``(input, scale, offset, residual)``, each like the array it is for; those of scale and offset are there also
        where they were not given, that of a residual is None where there was none.

    Examples
    --------
    >>> import numpy as np, convgrad
    >>> x = np.array([1, 2, 3, 6], np.float32).reshape(1, 2, 2, 1)
    >>> how = dict(epsilon=0.5, activation="relu")
    >>> y, mean, variance = convgrad.batch_norm_act(x, **how)
    >>> gradients = convgrad.batch_norm_act_grad(np.ones_like(x), x, None, None, mean, variance, **how)
    >>> gradients.scale, gradients.offset
    (array([1.5], dtype=float32), array([1.], dtype=float32))
    >>> gradients.input[0, :, :, 0]
    array([[ 0.0625 , -0.03125],
           [-0.125  ,  0.09375]], dtype=float32)
    """
    request = NormRequest(
        BACKWARD,
        (epsilon, is_training, activation, negative_slope, residual_position, data_format),
        {"out_backprop": out_backprop, "input": input, "residual": residual},
        {"scale": scale, "offset": offset, "mean": mean, "variance": variance},
    )
    return adapter_of(request).normalise_back(request)
