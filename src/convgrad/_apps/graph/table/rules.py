"""Shape rules and gradients that several rows share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

from ...._base.errors import AllocationError
from ..dtypes import Dtype
from ..row import Infer, NodeCall
from ..spec import Shape, Sizes, Spec, shape_spelled, total

if TYPE_CHECKING:
    from ..operation import Operation, Output
    from ..scope import Scope

Grads = Sequence["Output | None"]


def same(call: NodeCall) -> Sequence[Spec]:
    """One output like the first input."""
    first = call.inputs[0]
    return [Spec(first.dtype, first.shape)]


def rank(call: NodeCall, name: str, wanted: int) -> Sizes:
    """Return an input's sizes, all unknown if its rank is; refuse another rank."""
    shape = call[name].shape
    if shape is None:
        return (None,) * wanted
    if len(shape) != wanted:
        raise call.refuse(
            f"`{name}` must have {wanted} dimensions", f"shape {shape_spelled(shape)}"
        )
    return shape


def scalar(call: NodeCall, name: str) -> None:
    """Refuse an input that is known not to be one number."""
    shape = call[name].shape
    if shape is not None and shape != ():
        raise call.refuse(f"`{name}` must be a scalar", f"shape {shape_spelled(shape)}")


def vector(call: NodeCall, name: str) -> Sizes | None:
    """Return the numbers of a vector input as far as they are known, None if not even their count is."""
    spec = call[name]
    if spec.shape is None:
        return None
    if len(spec.shape) != 1:
        raise call.refuse(f"`{name}` must be a vector", f"shape {shape_spelled(spec.shape)}")
    if isinstance(spec.value, tuple):
        return spec.value
    return None if spec.shape[0] is None else (None,) * spec.shape[0]


def shape_of_vector(call: NodeCall, name: str) -> Shape:
    """Return a vector input that says a shape, with None where a size is unknown."""
    found = vector(call, name)
    if found is not None and any(size is not None and size < 0 for size in found):
        raise call.refuse(f"`{name}` must hold sizes >= 0", list(found))
    return found


def room(sizes: Sequence[int], dtype: Dtype) -> None:
    """Refuse a result larger than the machine's memory, which systems promise and then end processes for.

    The session says whose result it is.
    """
    most = _memory()
    if prod(max(size, 1) for size in sizes) * dtype.itemsize > most:
        raise AllocationError(
            f"the result must fit into the machine's memory of {most:,} bytes, "
            f"got shape {list(sizes)} of {dtype.name}"
        )


@cache
def _memory() -> int:
    """Return the bytes of memory there are; what an address can name where the system does not say."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has none of them
        found = 0
    return found if found > 0 else 2**63 - 1


def attribute(name: str) -> Infer:
    """Return the rule of a source whose dtype and shape are attributes."""

    def infer(call: NodeCall) -> Sequence[Spec]:
        return [Spec(call.attrs["dtype"], call.attrs[name])]

    return infer


def axes_of(call: NodeCall, name: str, shape: Sizes) -> tuple[int, ...] | None:
    """Return the axes an input names, counted from the front and in order; None if they are unknown."""
    spec = call[name]
    if spec.shape is not None and len(spec.shape) > 1:
        raise call.refuse(
            f"`{name}` must be a scalar or a vector", f"shape {shape_spelled(spec.shape)}"
        )
    value: Any = spec.value
    if isinstance(value, int):
        value = (value,)
    if value is None or None in value:
        return None
    return checked_axes(call, name, value, len(shape))


def checked_axes(call: NodeCall, name: str, axes: Sequence[int], count: int) -> tuple[int, ...]:
    """Return axes counted from the front, in order; refuse what is outside or named twice."""
    for axis in axes:
        if not -count <= axis < count:
            raise call.refuse(f"`{name}` must lie in [{-count}, {count})", axis)
    found = sorted(axis % count for axis in axes)
    if len(set(found)) < len(found):
        raise call.refuse(f"`{name}` must name every dimension once at most", list(axes))
    return tuple(found)


def filled(call: NodeCall, name: str, shape: Shape, wanted: Sizes) -> Sizes:
    """Return the shape a reshape gives: at most one -1, as many elements as before."""
    count = None if shape is None else total(shape)
    holes = [at for at, size in enumerate(wanted) if size == -1]
    if len(holes) > 1:
        raise call.refuse(f"`{name}` must hold at most one -1", list(wanted))
    if any(size is not None and size < -1 for size in wanted):
        raise call.refuse(f"`{name}` must hold sizes >= 0 or one -1", list(wanted))
    rest = total(tuple(size for size in wanted if size != -1))
    result = tuple(None if size == -1 else size for size in wanted)
    if count is None or rest is None:
        return result
    if not holes:
        if rest != count:
            raise call.refuse(
                f"`{name}` must have as many elements as the tensor, {count} of shape {shape_spelled(shape)}",
                f"{rest} of shape {shape_spelled(result)}",
            )
        return result
    if rest == 0 or count % rest:
        raise call.refuse(
            f"`{name}` must leave a whole size for -1, with {count} elements of shape {shape_spelled(shape)}",
            list(wanted),
        )
    return tuple(count // rest if at in holes else size for at, size in enumerate(result))


def unbroadcast(scope: Scope, grad: Output, operand: Output) -> Output:
    """Return a gradient summed over what its operand was repeated along."""
    known = operand.spec.is_known and grad.spec.is_known
    if known and operand.shape == grad.shape:
        return grad
    return scope.op("SumToShape", grad, scope.op("Shape", operand))


def zeros_like(scope: Scope, tensor: Output) -> Output:
    """Return zeros of a tensor's shape and dtype."""
    zero = scope.constant(0, tensor.dtype)
    return scope.op("BroadcastTo", zero, scope.op("Shape", tensor))


def number(scope: Scope, value: float, like: Output) -> Output:
    """Return a constant scalar of a tensor's dtype."""
    return scope.constant(value, like.dtype)


def only(grads: Grads) -> Output:
    """Return the gradient of a node's first output, which is there if the node's rule was asked."""
    assert grads[0] is not None
    return grads[0]


def unary(value: Any) -> Any:
    """Return a compute rule of one NumPy function, which can write into its operand."""

    def compute(node: Operation) -> Any:
        return value

    return compute
