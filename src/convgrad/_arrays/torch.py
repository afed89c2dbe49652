"""PyTorch's tensors as plain arrays on their own memory, without importing PyTorch.

NumPy asks a tensor for its array, and PyTorch refuses that for bfloat16, which NumPy itself does not have. Such a
tensor is seen through 16-bit integers instead. What PyTorch refuses for other dtypes (memory of another device, sparse
layouts, a gradient that would be lost) is refused for bfloat16 too.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .._dtypes import BFLOAT16, AnyArray


def recognise(value: Any) -> bool:
    """Tell whether `value` is a tensor of PyTorch. If it is, PyTorch is loaded."""
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return isinstance(tensor, type) and isinstance(value, tensor)


def as_ndarray(value: Any) -> AnyArray:
    """Return the memory of a tensor as an array, or raise what PyTorch raises where that cannot be."""
    torch = sys.modules["torch"]
    array: AnyArray
    if value.dtype is not torch.bfloat16:
        array = np.asarray(value)
        return array
    # A view of another dtype has no gradient, so PyTorch itself would not object below.
    if value.requires_grad and torch.is_grad_enabled():
        raise RuntimeError("the tensor requires grad; give tensor.detach() instead")
    array = value.detach().view(torch.int16).numpy()
    return array.view(BFLOAT16.numpy)
