"""TensorFlow's tensors and variables: recognised without importing TensorFlow, computed with by its bridge.

Tensors come back as tensors, on whatever tapes watch, also inside of a `tf.function`, where a tensor is a name in a
graph and its shape may not be known yet. The bridge is imported by the first call with a tensor: if there is one,
TensorFlow is loaded.
"""

from __future__ import annotations

import sys
from typing import Any

from .._base.dtypes import DTYPES, AnyArray, DType
from .._base.errors import ArgumentTypeError, DTypeError

_ROWS = {row.numpy.name: row for row in DTYPES}
"""By what TensorFlow's dtypes are called."""


class Borrowed:
    """A tensor that has passed the checks, and its dtype's row."""

    __slots__ = ("row", "tensor")

    def __init__(self, tensor: Any, row: DType) -> None:
        self.tensor, self.row = tensor, row

    @property
    def shape(self) -> Any:
        """Its shape, as far as it is known: sizes may be None, and the whole too."""
        shape = self.tensor.shape
        return None if shape.rank is None else tuple(shape.as_list())


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


_call: Any = None
"""The bridge's function for eager calls, once there was one."""


def quick(call: Any, given: Any, sizes: Any, first: Any, second: Any) -> AnyArray | None:
    """Return the result of a call on eager tensors without checks of ours, or None where they must be made."""
    global _call
    ops = sys.modules.get("tensorflow.python.framework.ops")
    if ops is None or type(first) is not ops.EagerTensor or type(second) is not ops.EagerTensor:
        return None
    if _call is None:
        from .._bridges.tensorflow import quick as bridge

        _call = bridge.call
    made: AnyArray | None = _call(call, given, sizes, first, second)
    return made


def borrow(
    function: str, argument: str, value: Any, allowed: tuple[DType, ...], like: DType | None
) -> Borrowed:
    """Return a tensor of an allowed dtype; whatever NumPy takes beside a tensor becomes one."""
    tf = sys.modules["tensorflow"]
    if not recognise(value):
        from . import numpy

        array = numpy.borrow(function, argument, value, allowed, like)
        return Borrowed(tf.constant(array.array), array.row)
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
    return Borrowed(tensor, row)


def apply(
    call: Any, settings: Any, wanted: Any, first: Borrowed, second: Borrowed, batched: bool = False
) -> Any:
    """Compute a call on tensors whose shapes may not be known yet: what cannot be checked here is when it runs."""
    from .._bridges.tensorflow import problems

    if isinstance(wanted, Borrowed):
        wanted = problems.Like(wanted.tensor)
    compute = problems.apply_batched if batched else problems.apply
    return compute(call, settings, first.row, wanted, first.tensor, second.tensor)
