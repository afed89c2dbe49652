"""TensorFlow's tensors and variables: recognised without importing TensorFlow, computed with by its bridge.

Tensors come back as tensors, on whatever tapes watch, also inside of a `tf.function`, where a tensor is a name in a
graph and its shape may not be known yet. The bridge is imported by the first call with a tensor: if there is one,
TensorFlow is loaded.
"""

from __future__ import annotations

import sys
from typing import Any

from .._base.dtypes import DTYPES, DType
from .._base.errors import ArgumentTypeError, DTypeError
from .borrowed import Borrowed
from .request import Request

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
        from . import numpy

        found = numpy.borrow(function, argument, value, allowed, like)
        return found._replace(array=tf.constant(found.array))
    row = _ROWS.get(value.dtype.name if hasattr(value.dtype, "name") else str(value.dtype))
    if row is None or row not in allowed:
        names = ", ".join(each.name for each in allowed)
        raise DTypeError(
            f"{function}: `{argument}` must have one of the dtypes {names}, got {value.dtype!r}."
        )
    if like is not None and row is not like:
        raise DTypeError(
            f"{function}: `{argument}` must have the dtype of the arrays before it, {like.name}, got {row.name}; "
            f"convert one of them with `tf.cast`."
        )
    try:
        tensor = tf.convert_to_tensor(value)
    except Exception as error:
        raise ArgumentTypeError(
            f"{function}: `{argument}` cannot be read here ({type(error).__name__}: {error})."
        ) from error
    shape = tensor.shape
    return Borrowed(tensor, row, None if shape.rank is None else tuple(shape.as_list()))


def compute(request: Request) -> Any:
    """Compute a call on tensors whose shapes may not be known yet: what cannot be checked here is when it runs."""
    if (made := _quick(request)) is not None:
        return made
    from .._bridges.tensorflow import problems

    settings, wanted, first, second = request.read(borrow, later)
    if type(wanted) is Borrowed:
        wanted = problems.Like(wanted.array)
    apply = problems.apply_batched if request.call.batched else problems.apply
    return apply(request.call, settings, first.row, wanted, first.array, second.array)


_call: Any = None
"""The bridge's function for eager calls, once there was one."""


def _quick(request: Request) -> Any:
    """Return the result of a call on eager tensors without checks of ours, or None where they must be made."""
    global _call
    call, given, wanted, first, second, _ = request
    eager = sys.modules["tensorflow.python.framework.ops"].EagerTensor
    if type(first) is not eager or type(second) is not eager:
        return None
    if _call is None:
        from .._bridges.tensorflow import quick

        _call = quick.call
    return _call(call, given, wanted, first, second)
