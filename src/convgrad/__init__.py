"""TensorFlow's 2-D convolutions and their gradients on CPUs, complete and correct, without TensorFlow."""

import importlib
from typing import TYPE_CHECKING, Any

from . import compat, dispatch, errors, nn, raw_ops, reference
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
from ._options import options
from ._runtime.threads import get_num_threads, set_num_threads, threads
from ._version import __version__

if TYPE_CHECKING:
    from . import graph, testing
    if name in ("graph", "jax", "testing", "torch"):
