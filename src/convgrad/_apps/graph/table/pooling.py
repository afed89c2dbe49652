"""MaxPool, its gradient, and the gradient of that: three ways to follow the largest cell of every window.

Windows are walked tap by tap, each a strided slice of the image; of equal cells the first in row-major order counts, as
in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...._base.errors import ArgumentError
from ...._problem import arguments, geometry
from ...._problem.arguments import RAW
from ...._problem.geometry import Axis
from .. import dtypes
from ..row import Attr, Attrs, Kernel, NodeCall, OpRow, Pin
from ..spec import Sizes, Spec, fits, merged, shape_spelled
from .rules import Grads, only, rank

if TYPE_CHECKING:
    from ..operation import Operation
    from ..scope import Scope

_REQUIRED = (Attr("ksize", "ints"), Attr("strides", "ints"), Attr("padding", "string"))
_OPTIONAL = (
    Attr("explicit_paddings", "ints", ()),
    Attr("data_format", "string", "NHWC", ("NHWC", "NCHW")),
)


class _Windows(NamedTuple):
    """Settings of a pooling, read."""

    rows: int
    """The dimension that rows are; columns follow."""
    ksize: tuple[int, int]
    strides: tuple[int, int]
    padding: Any

    def axis(self, number: int, size: int) -> Axis:
        padding: Any = self.padding if isinstance(self.padding, str) else self.padding[number]
        return geometry.solve(size, self.ksize[number], self.strides[number], 1, padding)


def _windows(function: str, attrs: Attrs) -> _Windows:
    layout = attrs["data_format"]
    settings = arguments.settings(
        function,
        RAW,
        list(attrs["strides"]),
        attrs["padding"],
        layout,
        [1, 1, 1, 1],
        list(attrs["explicit_paddings"]),
    )
    rows = 1 if layout == "NHWC" else 2
    ksize = attrs["ksize"]
    if len(ksize) != 4 or min(ksize, default=0) < 1:
        raise ArgumentError(f"{function}: `ksize` must hold 4 values above 0, got {list(ksize)}.")
    channel = 3 if rows == 1 else 1
    if ksize[0] != 1 or ksize[channel] != 1:
        raise ArgumentError(
            f"{function}: `ksize` must be 1 for images and channels ({layout}), got {list(ksize)}."
        )
    found = _Windows(rows, (ksize[rows], ksize[rows + 1]), settings.strides, settings.padding)
    for number in (0, 1):
        axis = found.axis(number, found.ksize[number])
        if max(axis.before, axis.after) >= axis.window:
            raise ArgumentError(
                f"{function}: padding must be smaller than the window, {axis.window}, or windows would be empty, "
                f"got ({axis.before}, {axis.after})."
            )
    return found


def _pooled(call: NodeCall, name: str) -> Sizes:
    """Return the shape of the pooled image, as far as it is known."""
    windows = _windows(call.row.name, call.attrs)
    shape = list(rank(call, name, 4))
    for number in (0, 1):
        at = windows.rows + number
        size = shape[at]
        if size is not None:
            axis = windows.axis(number, size)
            if (
                axis.out < 0
            ):  # one that is too large by less than a stride gives nothing, as in TensorFlow
                raise call.refuse(
                    f"windows of {windows.ksize[number]} must fit into the {('rows', 'columns')[number]} of `{name}`",
                    shape_spelled(tuple(shape)),
                )
            shape[at] = axis.out
    return tuple(shape)


def _infer(call: NodeCall) -> Sequence[Spec]:
    return [Spec(call.inputs[0].dtype, _pooled(call, "input"))]


def _like(call: NodeCall, name: str, expected: Sizes) -> None:
    found = call[name].shape
    if not fits(found, expected):
        raise call.refuse(
            f"`{name}` must have shape {shape_spelled(expected)}", shape_spelled(found)
        )


def _grad_infer(call: NodeCall) -> Sequence[Spec]:
    pooled = _pooled(call, "orig_input")
    _like(call, "orig_output", pooled)
    _like(call, "grad", pooled)
    return [Spec(call.inputs[0].dtype, call.inputs[0].shape)]


def _grad_grad_infer(call: NodeCall) -> Sequence[Spec]:
    pooled = _pooled(call, "orig_input")
    _like(call, "orig_output", pooled)
    shape = call["orig_input"].shape
    if shape is not None:
        _like(call, "grad", shape)
    return [Spec(call.inputs[0].dtype, merged(pooled, call["orig_output"].shape))]


def _taps(
    windows: _Windows, shape: Sequence[int]
) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """Yield, for every tap of the window, the cells it reads and the windows it reads them for."""
    axes = [windows.axis(number, shape[windows.rows + number]) for number in (0, 1)]
    for row in _touching(axes[0]):
        for col in _touching(axes[1]):
            cells, places = [slice(None)] * 4, [slice(None)] * 4
            for number, tap in enumerate((row, col)):
                axis = axes[number]
                shift = tap - axis.before
                first = max(0, -(shift // axis.stride))
                last = min(axis.out - 1, (axis.size - 1 - shift) // axis.stride)
                at = windows.rows + number
                places[at] = slice(first, max(first, last + 1))
                start = first * axis.stride + shift
                cells[at] = slice(start, start + (last - first) * axis.stride + 1, axis.stride)
                if last < first:
                    cells[at] = slice(0, 0)
            yield tuple(cells), tuple(places)


def _touching(axis: Axis) -> range:
    """Return the taps that meet a cell for some window: of a window larger than the image, most meet none."""
    first = axis.before - max(axis.out - 1, 0) * axis.stride
    return range(max(0, first), min(axis.window, axis.before + axis.size))


def _lowest(dtype: np.dtype[Any]) -> Any:
    return -np.inf if dtype in dtypes.FLOATS else np.iinfo(dtype).min


def _out_shape(windows: _Windows, shape: Sequence[int]) -> list[int]:
    found = list(shape)
    for number in (0, 1):
        at = windows.rows + number
        found[at] = windows.axis(number, shape[at]).out
    return found


def _pool(node: Operation) -> Kernel:
    windows = _windows(node.type, node.attrs)

    def run(x: Any) -> Any:
        result = np.full(_out_shape(windows, x.shape), _lowest(x.dtype), x.dtype)
        for cells, places in _taps(windows, x.shape):
            part = result[places]
            np.maximum(part, x[cells], out=part)
        return result

    return run


def _first_largest(windows: _Windows, x: Any, y: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield cells, windows and whether the window's largest cell is this one, each window once."""
    free = np.ones(y.shape, bool)
    for cells, places in _taps(windows, x.shape):
        mine = (x[cells] == y[places]) & free[places]
        free[places] &= ~mine
        yield cells, places, mine


def _checked(node: Operation, windows: _Windows, x: Any, y: Any, g: Any) -> None:
    pooled = _out_shape(windows, x.shape)
    wanted = pooled if node.type == "MaxPoolGrad" else list(x.shape)
    for name, array, shape in (("orig_output", y, pooled), ("grad", g, wanted)):
        if list(array.shape) != shape:
            raise ArgumentError(
                f"{node.type}: `{name}` must have shape {shape}, got {list(array.shape)}."
            )


def _pool_grad(node: Operation) -> Kernel:
    windows = _windows(node.type, node.attrs)

    def run(x: Any, y: Any, g: Any) -> Any:
        _checked(node, windows, x, y, g)
        result = np.zeros(x.shape, dtypes.wide(x.dtype))
        for cells, places, mine in _first_largest(windows, x, y):
            result[cells] += np.where(mine, g[places], 0)
        return result.astype(x.dtype, copy=False)

    return run


def _pool_grad_grad(node: Operation) -> Kernel:
    windows = _windows(node.type, node.attrs)

    def run(x: Any, y: Any, g: Any) -> Any:
        _checked(node, windows, x, y, g)
        result = np.zeros_like(y)
        for cells, places, mine in _first_largest(windows, x, y):
            np.copyto(result[places], g[cells], where=mine)
        return result

    return run


def _gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    (x,), (y,) = node.inputs, node.outputs
    return [scope.op("MaxPoolGrad", x, y, only(grads), **node.attrs)]


def _grad_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    x, y, _ = node.inputs
    other = "MaxPoolGradGrad" if node.type == "MaxPoolGrad" else "MaxPoolGrad"
    return [None, None, scope.op(other, x, y, only(grads), **node.attrs)]


_THREE = tuple(Pin(name, dtypes.NUMBERS, "T") for name in ("orig_input", "orig_output", "grad"))

ROWS = (
    OpRow(
        "MaxPool",
        "The largest cell of every window.",
        (Pin("input", dtypes.NUMBERS),),
        ("output",),
        _infer,
        _pool,
        _gradient,
        required=_REQUIRED,
        optional=_OPTIONAL,
    ),
    OpRow(
        "MaxPoolGrad",
        "The gradient of MaxPool: every window's goes to its largest cell, the first of equal ones.",
        _THREE,
        ("output",),
        _grad_infer,
        _pool_grad,
        _grad_gradient,
        required=_REQUIRED,
        optional=_OPTIONAL,
        internal=True,
    ),
    OpRow(
        "MaxPoolGradGrad",
        "The gradient of MaxPoolGrad: what lies where every window's largest cell is.",
        _THREE,
        ("output",),
        _grad_grad_infer,
        _pool_grad_grad,
        _grad_gradient,
        required=_REQUIRED,
        optional=_OPTIONAL,
    ),
)
