"""JAX on convgrad's kernels: functions for its arrays, and `accelerate` for models that are there.

Importing this module imports JAX; nothing else in convgrad does.
"""

try:
    import jax as _jax_itself  # noqa: F401
except ImportError as error:
    from ._base.errors import BackendMissingError

    raise BackendMissingError(
        "convgrad.jax needs JAX, which is not installed: pip install jax"
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
from ._bridges.jax.acceleration import accelerate, conv_general_dilated
from ._bridges.jax.batch_norm import batch_norm_act
from ._bridges.jax.exported import register

__all__ = [
    "MemorySetting",
    "accelerate",
    "batch_norm_act",
    "conv2d",
    "conv2d_backprop_filter",
    "conv2d_backprop_input",
    "conv2d_transpose",
    "conv_general_dilated",
    "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input",
    "register",
    "separable_conv2d",
    "tune_memory",
]
