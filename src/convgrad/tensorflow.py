"""TensorFlow on convgrad's kernels: call the functions with tensors, or `install` the kernels in TensorFlow's own ops.

Importing this module imports TensorFlow; nothing else in convgrad does. It registers the ops that graphs with our
functions consist of, so a program that loads such a graph from a file imports it first.
"""

try:
    import tensorflow as _tensorflow_itself  # noqa: F401
except ImportError as error:
    from ._base.errors import BackendMissingError

    raise BackendMissingError(
        "convgrad.tensorflow needs TensorFlow, which is not installed: pip install tensorflow"
    ) from error

from ._api.friendly import (
    conv2d,
    conv2d_backprop_filter,
    conv2d_backprop_input,
    conv2d_transpose,
    depthwise_conv2d,
    depthwise_conv2d_backprop_filter,
    depthwise_conv2d_backprop_input,
    separable_conv2d,
)
from ._base.memory import MemorySetting, tune_memory
from ._bridges.tensorflow.batch_norm import batch_norm_act
from ._bridges.tensorflow.batch_norm import register as _register_gradient
from ._bridges.tensorflow.installation import Installed, install, installed
from ._bridges.tensorflow.ops import available as _register_ops

__all__ = [
    "Installed",
    "MemorySetting",
    "batch_norm_act",
    "conv2d",
    "conv2d_backprop_filter",
    "conv2d_backprop_input",
    "conv2d_transpose",
    "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input",
    "install",
    "installed",
    "separable_conv2d",
    "tune_memory",
]

_register_ops()
_register_gradient()
