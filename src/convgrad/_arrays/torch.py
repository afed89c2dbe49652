"""PyTorch's tensors: recognised without importing PyTorch, and computed with by the bridge to it.

Tensors come back as tensors, with their gradients recorded. The bridge is imported by the first call with a tensor:
if there is one, PyTorch is loaded. The oracle, which answers in NumPy's float64, takes a tensor as a plain array on its
own memory; NumPy has no bfloat16, so such a tensor is seen through 16-bit integers.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .._base.dtypes import BFLOAT16, DTYPES, AnyArray, DType
from .._base.errors import ArgumentTypeError
from .._problem.arguments import Given
from .._problem.convolution import Call
from .._problem.norm.call import BatchNormGradients, BatchNormResult
from .borrowed import Borrowed, check_row
from .request import NormRequest, Request

_ROWS = {f"torch.{row.numpy.name}": row for row in DTYPES}
"""By what PyTorch's dtypes are called."""


def recognise(value: Any) -> bool:
    """Tell whether `value` is a tensor of PyTorch. If it is, PyTorch is loaded."""
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return isinstance(tensor, type) and isinstance(value, tensor)


def borrow(
    function: str, argument: str, value: Any, allowed: tuple[DType, ...], like: DType | None
) -> Borrowed:
    """Return a tensor of an allowed dtype; whatever NumPy takes beside a tensor becomes one."""
    if recognise(value):
        value = _as_autocast_wants(value)
    return _borrow_as_it_is(function, argument, value, allowed, like)


def _borrow_as_it_is(
    function: str, argument: str, value: Any, allowed: tuple[DType, ...], like: DType | None
) -> Borrowed:
    if not recognise(value):
        from .borrowing import borrow_beside

        beside = borrow_beside(function, argument, value, allowed, like)
        return beside._replace(array=_tensor(beside.array, beside.row))
    if value.device.type not in ("cpu", "meta"):
        raise ArgumentTypeError(
            f"{function}: `{argument}` must be a tensor in the memory of the CPU, got one on {value.device}."
        )
    if str(value.layout) != "torch.strided":
        raise ArgumentTypeError(
            f"{function}: `{argument}` must be a dense tensor, got layout {value.layout}; use `.to_dense()`."
        )
    found = _ROWS.get(str(value.dtype))
    row = check_row(function, argument, found, value.dtype, allowed, like, ".to()")
    return Borrowed(value, row, tuple(int(size) for size in value.shape))


def compute(call: Call, given: Given, wanted: Any, first: Any, second: Any) -> Any:
    """Compute a call on tensors: the result is one, with a gradient where the operands ask for it."""
    from .._bridges.torch import problems

    problem, one, two, shape = Request(call, given, wanted, first, second).check(borrow)
    made = problems.compute(problem, one.array, two.array)
    return made if shape == problem.result_shape else made.reshape(shape)


def normalise(request: NormRequest) -> BatchNormResult:
    """Compute batch norm on tensors; autocast leaves them as they are, as it does for PyTorch's own."""
    from .._bridges.torch import normalising

    asked = request.check(_borrow_as_it_is)
    return BatchNormResult(*normalising.normalise(asked.settings, asked.operands))


def normalise_back(request: NormRequest) -> BatchNormGradients:
    """Compute the gradients of batch norm on tensors, recorded where an operand asks for it."""
    from .._bridges.torch import normalising

    asked = request.check(_borrow_as_it_is)
    return BatchNormGradients(*normalising.normalise_back(asked.settings, asked.operands))


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


def _tensor(array: AnyArray, row: DType) -> Any:
    """Return an array as a tensor, on the array's memory where that may be written to."""
    torch = sys.modules["torch"]
    if not array.flags.writeable:  # PyTorch has no tensors that must not be written to, and warns
        array = array.copy()
    if row is BFLOAT16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _as_autocast_wants(value: Any) -> Any:
    """Return a tensor in the dtype of the autocast block around the call, as PyTorch's convolutions take it."""
    torch = sys.modules["torch"]
    if not torch.is_autocast_enabled("cpu"):
        return value
    narrow = (torch.float32, torch.float16, torch.bfloat16)
    return value.to(torch.get_autocast_dtype("cpu")) if value.dtype in narrow else value
