"""Keras on JAX and on TensorFlow: the functions of `convgrad` take their arrays, also those that are only traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from ..._api import friendly
from . import padding
from .activations import AppliedActivation
from .settings import LayerSettings


def convolve(image: Any, kernel: Any, bias: Any, how: LayerSettings) -> Any:
    """Convolve with a kernel [kh, kw, c / groups, o]."""
    return _biased(
        friendly.conv2d(
            image, kernel, how.strides, how.padding.upper(), how.data_format, how.dilation
        ),
        bias,
        how,
    )


def depthwise(image: Any, kernel: Any, bias: Any, how: LayerSettings) -> Any:
    """Convolve every channel by itself, with a kernel [kh, kw, c, multiplier]."""
    return _biased(
        friendly.depthwise_conv2d(
            image, kernel, how.strides, how.padding.upper(), how.data_format, how.dilation
        ),
        bias,
        how,
    )


def transpose(image: Any, kernel: Any, bias: Any, how: LayerSettings) -> Any:
    """Apply a transposed convolution with a kernel [kh, kw, o, c]."""
    window = tuple(kernel.shape[:2])
    cut = padding.crops(how.padding, window, how.strides, how.dilation, how.output_padding)
    shape = keras.ops.shape(image)
    sizes = padding.transposed_size(
        how.rows_and_columns(shape), window, how.strides, how.dilation, cut
    )
    channels = kernel.shape[2]
    top, bottom, left, right = cut
    sides = [(top, max(bottom, 0)), (left, max(right, 0))]
    if how.channels_last:
        whole = (shape[0], *sizes, channels)
        pads = [(0, 0), *sides, (0, 0)]
    else:
        whole = (shape[0], channels, *sizes)
        pads = [(0, 0), (0, 0), *sides]
    return _biased(
        friendly.conv2d_backprop_input(
            _sizes(whole), kernel, image, how.strides, pads, how.data_format, how.dilation
        ),
        bias,
        how,
    )


def normalizing(batch_norm_act: Callable[..., tuple[Any, Any, Any]]) -> Callable[..., Any]:
    """Return a backend's batch norm for layers: by an image's own statistics or given ones, which it returns too."""

    def batch_norm(
        image: Any,
        scale: Any,
        offset: Any,
        statistics: Any,
        epsilon: float,
        activation: AppliedActivation,
        data_format: str,
    ) -> tuple[Any, Any, Any]:
        mean, variance = statistics or (None, None)
        return batch_norm_act(
            image,
            scale,
            offset,
            mean=mean,
            variance=variance,
            epsilon=epsilon,
            activation=activation.name,
            negative_slope=activation.slope,
            data_format=data_format,
        )

    return batch_norm


def _sizes(sizes: tuple[Any, ...]) -> Any:
    """Return sizes as they are, or in a tensor if some of them are known only when a graph runs."""
    if all(isinstance(each, int) for each in sizes):
        return sizes
    return keras.ops.stack([keras.ops.cast(each, "int32") for each in sizes])


def _biased(result: Any, bias: Any, how: LayerSettings) -> Any:
    if bias is None:
        return result
    shape = (1, 1, 1, -1) if how.channels_last else (1, -1, 1, 1)
    return keras.ops.add(result, keras.ops.reshape(bias, shape))
