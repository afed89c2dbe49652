"""Which of Keras's activation layers a fused pass computes, and by what name."""

from __future__ import annotations

from typing import Any, NamedTuple

import keras

from ..._problem import activations


class Activation(NamedTuple):
    """An activation in our words."""

    name: str
    slope: float = 0.0
    """Of leaky_relu."""


_SLOPE = 0.2
"""What Keras's function of leaky_relu has by default."""
_FUNCTIONS: dict[Any, Activation] = {
    getattr(keras.activations, row.keras): Activation(row.name, _SLOPE if row.has_slope else 0.0)
    for row in activations.ROWS
    if row.keras
}
"""Functions of Keras with their defaults: that of a layer `Activation("relu")`."""
LAYERS = (keras.layers.Activation, keras.layers.ReLU, keras.layers.LeakyReLU)


def of(layer: Any) -> Activation | None:
    """Return what a layer applies, None if a fused pass cannot: classes that are derived may do anything.

    >>> of(keras.layers.ReLU(6)), of(keras.layers.ReLU(threshold=1.0)), of(keras.layers.LeakyReLU(0.1))
    (Activation(name='relu6', slope=0.0), None, Activation(name='leaky_relu', slope=0.1))
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
            return Activation("relu6")
    return Activation("leaky_relu", slope) if slope else Activation("relu")
