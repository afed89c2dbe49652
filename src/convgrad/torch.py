"""PyTorch on convgrad's kernels: `accelerate` a model, `patch` PyTorch, or call the functions.

Importing this module imports PyTorch; nothing else in convgrad does.
"""

try:
    import torch as _torch_itself  # noqa: F401
except ImportError as error:
    from ._base.errors import BackendMissingError

    raise BackendMissingError(
        "convgrad.torch needs PyTorch, which is not installed: pip install torch"
    ) from error

from . import nn as _nn
from . import raw_ops as _raw_ops
from ._api.friendly import conv2d as _conv2d
from ._api.friendly import (
    conv2d_backprop_filter,
    conv2d_backprop_input,
    conv2d_transpose,
    depthwise_conv2d,
    depthwise_conv2d_backprop_filter,
    depthwise_conv2d_backprop_input,
    separable_conv2d,
)
from ._base.memory import MemorySetting, tune_memory
from ._bridges.report import Fused, Layer, Report
from ._bridges.torch.acceleration import accelerate, restore
from ._bridges.torch.compiling import allow_in_graph as _allow_in_graph
from ._bridges.torch.functional import conv2d, conv_transpose2d
from ._bridges.torch.modules import Conv2d, ConvTranspose2d, Linear
from ._bridges.torch.norm import batch_norm_act
from ._bridges.torch.patching import Patched, patch, unpatch
from .compat.v1 import nn as _v1_nn

__all__ = [
    "Conv2d",
    "ConvTranspose2d",
    "Fused",
    "Layer",
    "Linear",
    "MemorySetting",
    "Patched",
    "Report",
    "accelerate",
    "batch_norm_act",
    "conv2d",
    "conv2d_backprop_filter",
    "conv2d_backprop_input",
    "conv2d_transpose",
    "conv_transpose2d",
    "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input",
    "patch",
    "restore",
    "separable_conv2d",
    "tune_memory",
    "unpatch",
]

_allow_in_graph(getattr(door, name) for door in (_nn, _v1_nn, _raw_ops) for name in door.__all__)
_allow_in_graph(
    (
        *(_conv2d, conv2d_backprop_input, conv2d_backprop_filter, conv2d_transpose),
        *(depthwise_conv2d, depthwise_conv2d_backprop_input, depthwise_conv2d_backprop_filter),
        separable_conv2d,
    )
)
