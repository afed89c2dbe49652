"""TensorFlow's `tf.nn` convolutions. `compat.v2.nn` holds the same objects."""

from ._api.v2 import (
    conv2d,
    conv2d_transpose,
    depthwise_conv2d,
    depthwise_conv2d_backprop_filter,
    depthwise_conv2d_backprop_input,
    separable_conv2d,
)

__all__ = [
    "conv2d",
    "conv2d_transpose",
    "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input",
    "separable_conv2d",
]
