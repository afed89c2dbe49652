"""Which of Keras's activation layers a fused pass computes, and by what name."""

from __future__ import annotations

from typing import Any, NamedTuple

import keras

from ..._problem import activations


class AppliedActivation(NamedTuple):
    """An activation in our words."""

    name: str
    slope: float = 0.0
    """Of leaky_relu."""


_SLOPE = 0.2
"""What Keras's function of leaky_relu has by default."""
_FUNCTIONS: dict[Any, AppliedActivation] = {
    getattr(keras.activations, row.keras): AppliedActivation(
        row.name, _SLOPE if row.has_slope else 0.0
    )
    for row in activations.ROWS
    if row.keras
}
"""Functions of Keras with their defaults: that of a layer `Activation("relu")`."""
LAYERS = (keras.layers.Activation, keras.layers.ReLU, keras.layers.LeakyReLU)


def activation_of(layer: Any) -> AppliedActivation | None:
    """Return what a layer applies, None if a fused pass cannot: classes that are derived may do anything.

    >>> layers = keras.layers.ReLU(6), keras.layers.ReLU(threshold=1.0), keras.layers.LeakyReLU(0.1)
    >>> tuple(map(activation_of, layers))
    (AppliedActivation(name='relu6', slope=0.0), None, AppliedActivation(name='leaky_relu', slope=0.1))
    """
    if type(layer) not in LAYERS:
        return None
    if isinstance(layer, keras.layers.Activation):
        return _FUNCTIONS.get(layer.activation)
    slope = float(layer.negative_slope)
    if isinstance(layer, keras.layers.ReLU):
        if layer.threshold or layer.max_value not in (None, 6) or (layer.max_value and slope):
            return None
        if layer.max_value:
            return AppliedActivation("relu6")
    return AppliedActivation("leaky_relu", slope) if slope else AppliedActivation("relu")
