"""Passes over images that stand between convolutions: batch norm with activation and residual, pooling and scaling.

`task` describes them, `oracle` says what they compute, `plan` and the modules of kernels how. Nothing here knows
convolution, arrays of frameworks, or threads.
"""

from ..activations import ACTIVATIONS
from .task import PLACES, SAVED, SCALARS, Task, kept_beside

__all__ = ["ACTIVATIONS", "PLACES", "SAVED", "SCALARS", "Task", "kept_beside"]
