"""TensorFlow's `tf.compat.v2`: `nn` and `raw_ops`."""

from . import nn, raw_ops

__all__ = ["nn", "raw_ops"]
