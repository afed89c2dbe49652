"""TensorFlow's tensors and variables: recognised without importing TensorFlow, computed with by its bridge.

Tensors come back as tensors, on whatever tapes watch, also inside of a `tf.function`, where a tensor is a name in a
graph and its shape may not be known yet. The bridge is imported by the first call with a tensor: if there is one,
TensorFlow is loaded.
"""

from __future__ import annotations

import sys
from typing import Any

from .._base.dtypes import DTYPES, DType
from .._base.errors import ArgumentTypeError
from .._problem.arguments import Given
from .._problem.convolution import Call
from .._problem.norm.call import BatchNormGradients, BatchNormResult
from .borrowed import Borrowed, check_row
from .borrowing import borrow as borrow_plain
from .request import NormRequest, Request

_ROWS = {row.numpy.name: row for row in DTYPES}
"""By what TensorFlow's dtypes are called."""


def recognise(value: Any) -> bool:
    """Tell whether `value` is a tensor or a variable of TensorFlow. If it is, TensorFlow is loaded."""
    types = sys.modules.get("tensorflow.python.types.core")
    return types is not None and isinstance(value, types.Tensor)


def later(value: Any) -> bool:
    """Tell whether a vector of sizes is not known before a graph is run."""
    if type(value) in (list, tuple):
        return any(later(item) for item in value)
    if not recognise(value):
        return False
    return not sys.modules["tensorflow"].executing_eagerly() and not hasattr(value, "_numpy")


def borrow(
    function: str, argument: str, value: Any, allowed: tuple[DType, ...], like: DType | None
) -> Borrowed:
    """Return a tensor of an allowed dtype; whatever NumPy takes beside a tensor becomes one."""
    tf = sys.modules["tensorflow"]
    if not recognise(value):
        beside = borrow_plain(function, argument, value, allowed, like)
        return beside._replace(array=tf.constant(beside.array))
    name = value.dtype.name if hasattr(value.dtype, "name") else str(value.dtype)
    row = check_row(function, argument, _ROWS.get(name), f"tf.{name}", allowed, like, "tf.cast")
    try:
        tensor = tf.convert_to_tensor(value)
    except Exception as error:
        raise ArgumentTypeError(
            f"{function}: `{argument}` cannot be read here ({type(error).__name__}: {error})."
        ) from error
    shape = tensor.shape
    return Borrowed(tensor, row, None if shape.rank is None else tuple(shape.as_list()))


_call: Any = None
"""The bridge's function for eager calls, once there was one."""


def compute(call: Call, given: Given, wanted: Any, first: Any, second: Any) -> Any:
    """Compute a call on tensors whose shapes may not be known yet: what cannot be checked here is when it runs."""
    global _call
    if _call is None:
        from .._bridges.tensorflow import quick

        _call = quick.call
    made = _call(call, given, wanted, first, second)
    if made is not None:
        return made
    from .._bridges.tensorflow import problems

    request = Request(call, given, wanted, first, second)
    settings, shape, one, two = request.read(borrow, later)
    if type(shape) is Borrowed:
        shape = problems.Like(shape.array)
    apply = problems.apply_batched if call.batched else problems.apply
    return apply(call, settings, one.row, shape, one.array, two.array)


def normalise(request: NormRequest) -> BatchNormResult:
    """Compute batch norm on tensors whose shapes may not be known yet, on whatever tapes watch."""
    from .._bridges.tensorflow import batch_norm

    asked = request.check(borrow)
    made = batch_norm.normalise(asked.settings, asked.row, asked.operands)
    return BatchNormResult(*made)


def normalise_back(request: NormRequest) -> BatchNormGradients:
    """Compute the gradients of batch norm, which can be differentiated again."""
    from .._bridges.tensorflow import batch_norm

    asked = request.check(borrow)
    made = batch_norm.normalise_back(asked.settings, asked.row, asked.operands)
    return BatchNormGradients(*made)
