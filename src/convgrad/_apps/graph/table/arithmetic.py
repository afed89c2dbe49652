"""Element by element, with NumPy's broadcasting; and MatMul, which runs on our own kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...._api.friendly import conv2d, conv2d_backprop_filter, conv2d_backprop_input
from ...._base.errors import ArgumentError
from .. import dtypes
from ..row import Attr, Gradient, Kernel, NodeCall, OpRow, Pin, no_gradient
from ..spec import Spec, broadcast, fits, merged, shape_spelled
from .rules import Grads, number, only, rank, same, unary, unbroadcast

if TYPE_CHECKING:
    from ..operation import Operation, Output
    from ..scope import Scope

_X, _Y = Pin("x", dtypes.NUMBERS, "T"), Pin("y", dtypes.NUMBERS, "T")


def _binary_infer(call: NodeCall) -> Sequence[Spec]:
    x, y = call.inputs
    return [Spec(x.dtype, broadcast(call.row.name, ("x", "y"), (x.shape, y.shape)))]


def _equal_infer(call: NodeCall) -> Sequence[Spec]:
    x, y = call.inputs
    return [Spec(dtypes.BOOL, broadcast(call.row.name, ("x", "y"), (x.shape, y.shape)))]


def _add_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    (x, y), g = node.inputs, only(grads)
    return [unbroadcast(scope, g, x), unbroadcast(scope, g, y)]


def _subtract_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    (x, y), g = node.inputs, only(grads)
    return [unbroadcast(scope, g, x), scope.op("Negate", unbroadcast(scope, g, y))]


def _multiply_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    (x, y), g = node.inputs, only(grads)
    return [
        unbroadcast(scope, scope.op("Multiply", g, y), x),
        unbroadcast(scope, scope.op("Multiply", g, x), y),
    ]


def _divide_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    (x, y), g = node.inputs, only(grads)
    slope = scope.op("Negate", scope.op("Div", node.outputs[0], y))
    return [
        unbroadcast(scope, scope.op("Div", g, y), x),
        unbroadcast(scope, scope.op("Multiply", g, slope), y),
    ]


def _divide(node: Operation) -> Kernel:
    if node.specs[0].dtype.kind not in "iu":
        return np.true_divide

    def towards_zero(x: Any, y: Any, out: Any = None) -> Any:
        if (y == 0).any():
            raise ArgumentError("Div: `y` must not be 0 where integers are divided.")
        quotient = np.floor_divide(x, y)
        off = (quotient * y != x) & ((x < 0) != (y < 0))
        return np.add(quotient, off, out=out, dtype=quotient.dtype, casting="unsafe")

    return towards_zero


def _add_n_infer(call: NodeCall) -> Sequence[Spec]:
    if not call.inputs:
        raise call.refuse("`inputs` must hold at least one tensor", "none")
    shape = call.inputs[0].shape
    for each in call.inputs[1:]:
        if not fits(shape, each.shape):
            raise call.refuse(
                "`inputs` must all have one shape",
                f"{shape_spelled(shape)} and {shape_spelled(each.shape)}",
            )
        shape = merged(shape, each.shape)
    return [Spec(call.inputs[0].dtype, shape)]


def _add_n(node: Operation) -> Kernel:
    dtype = node.specs[0].dtype
    wide = dtypes.wide(dtype)

    def run(*inputs: Any) -> Any:
        for each in inputs[1:]:
            if each.shape != inputs[0].shape:
                raise ArgumentError(
                    f"AddN: `inputs` must all have one shape, got {inputs[0].shape} and {each.shape}."
                )
        total = inputs[0].astype(wide)
        for each in inputs[1:]:
            total += each
        return total.astype(dtype, copy=False)

    return run


def _add_n_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    return [only(grads)] * len(node.inputs)


Slope = Callable[["Scope", "Output", "Output", "Output"], "Output"]
"""From gradient, operand and result to the operand's gradient."""


def _sloped(slope: Slope) -> Gradient:
    def gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
        return [slope(scope, only(grads), node.inputs[0], node.outputs[0])]

    return gradient


def _square_slope(scope: Scope, g: Output, x: Output, y: Output) -> Output:
    return scope.op("Multiply", g, scope.op("Multiply", x, number(scope, 2, x)))


def _root_slope(scope: Scope, g: Output, x: Output, y: Output) -> Output:
    return scope.op("Div", scope.op("Multiply", g, number(scope, 0.5, y)), y)


def _exp_slope(scope: Scope, g: Output, x: Output, y: Output) -> Output:
    return scope.op("Multiply", g, y)


def _log_slope(scope: Scope, g: Output, x: Output, y: Output) -> Output:
    return scope.op("Div", g, x)


def _negate_slope(scope: Scope, g: Output, x: Output, y: Output) -> Output:
    return scope.op("Negate", g)


def _tanh_slope(scope: Scope, g: Output, x: Output, y: Output) -> Output:
    rest = scope.op("Subtract", number(scope, 1, y), scope.op("Square", y))
    return scope.op("Multiply", g, rest)


def _sigmoid_slope(scope: Scope, g: Output, x: Output, y: Output) -> Output:
    rest = scope.op("Subtract", number(scope, 1, y), y)
    return scope.op("Multiply", g, scope.op("Multiply", y, rest))


def _sigmoid(x: Any, out: Any = None) -> Any:
    result = np.asarray(
        np.negative(x, out=out)
    )  # of an array without dimensions NumPy makes a number
    np.exp(result, out=result)
    result += x.dtype.type(1)
    return np.divide(x.dtype.type(1), result, out=result)


def _matmul_infer(call: NodeCall) -> Sequence[Spec]:
    a, b = rank(call, "a", 2), rank(call, "b", 2)
    if call.attrs["transpose_a"]:
        a = a[::-1]
    if call.attrs["transpose_b"]:
        b = b[::-1]
    if not fits((a[1],), (b[0],)):
        raise call.refuse(
            "`a` must have as many columns as `b` has rows, after transposing",
            f"{shape_spelled(a)} and {shape_spelled(b)}",
        )
    return [Spec(call.inputs[0].dtype, (a[0], b[1]))]


def product(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    """Multiply matrices by the three sums of a 1x1 convolution, whose bits do not depend on threads.

    Rows are pixels and columns channels: ``a b`` is the forward sum, ``a b'`` the input's gradient, ``a' b`` the
    filter's.
    """
    rows, inner = a.shape[::-1] if transpose_a else a.shape
    depth, columns = b.shape[::-1] if transpose_b else b.shape
    if inner != depth:
        raise ArgumentError(
            f"MatMul: `a` must have as many columns as `b` has rows, after transposing, got {inner} and {depth}."
        )
    if not rows * inner * columns:
        return np.zeros((rows, columns), a.dtype)
    if a.dtype not in dtypes.FLOATS:
        return np.matmul(a.T if transpose_a else a, b.T if transpose_b else b)
    if transpose_a and transpose_b:
        return np.ascontiguousarray(product(b, a, False, False).T)
    first, second = a.reshape(1, a.shape[0], 1, a.shape[1]), b.reshape(1, 1, *b.shape)
    if transpose_a:
        second = b.reshape(1, b.shape[0], 1, b.shape[1])
        found = conv2d_backprop_filter(first, [1, 1, rows, columns], second, 1, "VALID")
    elif transpose_b:
        found = conv2d_backprop_input([1, rows, 1, columns], second, first, 1, "VALID")
    else:
        found = conv2d(first, second, 1, "VALID")
    return found.reshape(rows, columns)


def _matmul(node: Operation) -> Kernel:
    transpose_a, transpose_b = node.attrs["transpose_a"], node.attrs["transpose_b"]
    return lambda a, b: product(a, b, transpose_a, transpose_b)


def _matmul_gradient(scope: Scope, node: Operation, grads: Grads) -> Grads:
    (a, b), g = node.inputs, only(grads)

    def times(x: Output, y: Output, transpose_x: bool, transpose_y: bool) -> Output:
        return scope.op("MatMul", x, y, transpose_a=transpose_x, transpose_b=transpose_y)

    turned_a, turned_b = node.attrs["transpose_a"], node.attrs["transpose_b"]
    to_a = times(b, g, turned_b, True) if turned_a else times(g, b, False, not turned_b)
    to_b = times(g, a, True, turned_a) if turned_b else times(a, g, not turned_a, False)
    return [to_a, to_b]


def _unary(name: str, summary: str, value: Any, slope: Slope, floats: bool = True) -> OpRow:
    pin = Pin("x", dtypes.FLOATS if floats else dtypes.NUMBERS)
    return OpRow(
        name, summary, (pin,), ("y",), same, unary(value), _sloped(slope), elementwise=True
    )


def _binary(name: str, summary: str, value: Any, gradient: Gradient) -> OpRow:
    compute = value if value is _divide else unary(value)
    return OpRow(
        name, summary, (_X, _Y), ("z",), _binary_infer, compute, gradient, elementwise=True
    )


ROWS = (
    _binary("Add", "x + y.", np.add, _add_gradient),
    _binary("Subtract", "x - y.", np.subtract, _subtract_gradient),
    _binary("Multiply", "x * y.", np.multiply, _multiply_gradient),
    _binary("Div", "x / y; integers are divided towards zero.", _divide, _divide_gradient),
    OpRow(
        "AddN",
        "The sum of tensors of one shape.",
        (Pin("inputs", dtypes.NUMBERS, "T", many=True),),
        ("sum",),
        _add_n_infer,
        _add_n,
        _add_n_gradient,
    ),
    OpRow(
        "Equal",
        "Whether x == y.",
        (Pin("x", same="T"), Pin("y", same="T")),
        ("z",),
        _equal_infer,
        unary(np.equal),
        no_gradient,
    ),
    _unary("Negate", "-x.", np.negative, _negate_slope, floats=False),
    _unary("Square", "x * x.", np.square, _square_slope, floats=False),
    _unary("Sqrt", "The square root.", np.sqrt, _root_slope),
    _unary("Exp", "e to the x.", np.exp, _exp_slope),
    _unary("Log", "The natural logarithm.", np.log, _log_slope),
    _unary("Tanh", "The hyperbolic tangent.", np.tanh, _tanh_slope),
    _unary("Sigmoid", "1 / (1 + exp(-x)).", _sigmoid, _sigmoid_slope),
    OpRow(
        "MatMul",
        "The product of two matrices, each transposed or not.",
        (Pin("a", dtypes.NUMBERS, "T"), Pin("b", dtypes.NUMBERS, "T")),
        ("product",),
        _matmul_infer,
        _matmul,
        _matmul_gradient,
        optional=(Attr("transpose_a", "bool", False), Attr("transpose_b", "bool", False)),
    ),
)
