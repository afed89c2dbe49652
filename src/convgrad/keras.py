"""Keras 3 on convgrad's kernels: `accelerate` a model, on the backends PyTorch, JAX and TensorFlow.

Importing this module imports Keras and the backend it is set to; nothing else in convgrad does.
"""

from ._base.errors import BackendMissingError as _BackendMissingError

try:
    import keras as _keras_itself
except ImportError as error:
    if error.name == "keras":
        raise _BackendMissingError(
            "convgrad.keras needs Keras 3, which is not installed: pip install keras"
        ) from error
    raise _BackendMissingError(
        f"convgrad.keras needs Keras 3, which could not be imported ({error}); its backend must be installed, which "
        f"KERAS_BACKEND names: pip install torch, jax or tensorflow-cpu"
    ) from error

if not hasattr(_keras_itself, "KerasTensor") or _keras_itself.__version__.startswith("2."):
    raise _BackendMissingError(
        f"convgrad.keras needs Keras 3, and {_keras_itself.__version__} is installed: pip install 'keras>=3'"
    )

from ._base.memory import MemorySetting, tune_memory
from ._bridges.keras.acceleration import accelerate, restore
from ._bridges.report import Layer, Report

__all__ = ["Layer", "MemorySetting", "Report", "accelerate", "restore", "tune_memory"]
