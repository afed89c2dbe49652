"""What a layer of Keras says about its convolution, read once per call."""

from __future__ import annotations

from typing import Any, NamedTuple

from .padding import Two


class LayerSettings(NamedTuple):
    """How a convolution is computed, without its tensors."""

    strides: Two
    padding: str
    """valid or same"""
    dilation: Two
    channels_last: bool
    output_padding: Two | None = None
    """Of transposed convolutions."""

    @property
    def data_format(self) -> str:
        """In TensorFlow's words."""
        return "NHWC" if self.channels_last else "NCHW"

    def rows_and_columns(self, shape: Any) -> Any:
        return tuple(shape[1:3] if self.channels_last else shape[2:4])

    def channels(self, shape: Any) -> Any:
        return shape[3] if self.channels_last else shape[1]


def settings_of(layer: Any) -> LayerSettings:
    """Return the settings of a layer."""
    return LayerSettings(
        tuple(layer.strides),
        layer.padding,
        tuple(layer.dilation_rate),
        layer.data_format == "channels_last",
        getattr(layer, "output_padding", None),
    )


POINTWISE = ((1, 1), "valid", (1, 1))
"""Strides, padding and dilation of the second half of a separable convolution."""
