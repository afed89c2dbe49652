"""TensorFlow's `tf.compat`: `v1` and `v2`, each with `nn` and `raw_ops`."""

from . import v1, v2

__all__ = ["v1", "v2"]
