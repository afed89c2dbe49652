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
from ._api.normalise import batch_norm_act, batch_norm_act_grad
from ._base.options import options
from ._base.version import __version__
from ._problem.norm.call import BatchNormGradients, BatchNormResult
from ._runtime.threads import get_num_threads, set_num_threads, threads

if TYPE_CHECKING:
    from . import graph, testing
    from . import jax as jax
    from . import keras as keras
    from . import tensorflow as tensorflow
    from . import torch as torch
    from ._apps.explain import Explanation, explain
    from ._apps.export.door import export

__all__ = [
    "BatchNormGradients",
    "BatchNormResult",
    "Explanation",
    "__version__",
    "batch_norm_act",
    "batch_norm_act_grad",
    "compat",
    "conv2d",
    "conv2d_backprop_filter",
    "conv2d_backprop_input",
    "conv2d_transpose",
    "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input",
    "dispatch",
    "errors",
    "explain",
    "export",
    "get_num_threads",
    "graph",
    "nn",
    "options",
    "raw_ops",
    "reference",
    "separable_conv2d",
    "set_num_threads",
    "testing",
    "threads",
]
# Bridges (`jax`, `keras`, `tensorflow`, `torch`) are not listed: `from convgrad import *` must work where a framework
# is absent, and not import it where it is there.


def __getattr__(name: str) -> Any:
    """Import what few programs need on first use: the planner takes as long to import as all the rest."""
    if name in ("Explanation", "explain"):
        from ._apps import explain as _explain

        return getattr(_explain, name)
    if name == "export":
        from ._apps.export import door

        return door.export
    if name in ("graph", "jax", "keras", "tensorflow", "testing", "torch"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
