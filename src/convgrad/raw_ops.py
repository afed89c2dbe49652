"""TensorFlow's `tf.raw_ops` convolutions: keyword arguments only."""

from ._api.raw import (
    Conv2D,
    Conv2DBackpropFilter,
    Conv2DBackpropFilterV2,
    Conv2DBackpropInput,
    Conv2DBackpropInputV2,
    DepthwiseConv2dNative,
    DepthwiseConv2dNativeBackpropFilter,
    DepthwiseConv2dNativeBackpropInput,
)

__all__ = [
    "Conv2D",
    "Conv2DBackpropFilter",
    "Conv2DBackpropFilterV2",
    "Conv2DBackpropInput",
    "Conv2DBackpropInputV2",
    "DepthwiseConv2dNative",
    "DepthwiseConv2dNativeBackpropFilter",
    "DepthwiseConv2dNativeBackpropInput",
]
