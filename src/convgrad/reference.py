"""The oracle: the six operations in float64, or in exact integers, and batch norm, written to be obviously right.

Test your own kernels against it. Every function takes the arguments of the top-level function of the same name,
operands of any real dtype, and returns float64. With ``exact=True`` the operands must hold whole numbers
(of any dtype), and the result is computed without rounding: int64 where every intermediate sum is known to fit, an
object array of Python ints otherwise.

With ``bits=True`` both operands must have one dtype, and the result, in that dtype, has the very bits that the kernels
give on every CPU with a fused multiply-add: the contract of sums (docs/sums.md) as a program, with an fma of its own.
Slow: 3 to 40 million products a second.

It shares the argument checks and the geometry with the rest of the package, and no kernel: one tap at a time, one
whole-array expression per tap, added in a fixed order. Expect roughly 0.1 to 1 GFLOP/s. Batch norm divides and takes
roots, so there is no exact form of it.

>>> import numpy as np
>>> from convgrad import reference
>>> x = np.array([1, 2, 3], np.float16).reshape(1, 3, 1, 1)
>>> reference.depthwise_conv2d_backprop_filter(x, [2, 1, 1, 1], x, 1, "SAME", exact=True).ravel()
array([14,  8])
>>> reference.depthwise_conv2d_backprop_filter(x, [2, 1, 1, 1], x, 1, "SAME", bits=True).ravel()
array([14.,  8.], dtype=float16)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ._arrays import borrow_any, pin
from ._base import config, headroom
from ._base.dtypes import DOUBLE, AnyArray, DType, find
from ._base.errors import ArgumentError, ArgumentTypeError, DTypeError, shown
from ._base.fp_mode import default_mode
from ._problem import convolution, oracle
from ._problem.arguments import FRIENDLY, settings, sizes
from ._problem.convolution import Call, Kind, Problem, Settings, Shape
from ._problem.norm import call as _batch_norm
from ._problem.norm import oracle as _formulas
from ._problem.norm.call import BatchNormGradients, BatchNormResult
from ._problem.sums import specification, winograd

__all__ = [
    "batch_norm_act",
    "batch_norm_act_grad",
    "conv2d",
    "conv2d_backprop_filter",
    "conv2d_backprop_input",
    "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input",
]


def conv2d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = 1,
    *,
    exact: bool = False,
    bits: bool = False,
) -> AnyArray:
    """``y[n,p,q,k] = sum over r,s,c of x[n, p*sh + r*dh - top, q*sw + s*dw - left, c] * f[r,s,c,k]``.

    >>> conv2d([[[[2.0]]]], [[[[3.0]]]], 1, "SAME").item()
    6.0
    """
    how = (strides, padding, data_format, dilations)
    return _forward(convolution.CONV2D, input, filters, how, (exact, bits))


def conv2d_backprop_input(
    input_sizes: Any,
    filter: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = 1,
    *,
    exact: bool = False,
    bits: bool = False,
) -> AnyArray:
    """``dx[n,h,w,c] = sum of g[n,p,q,k] * f[r,s,c,k]`` where tap (r, s) of output (p, q) reads cell (h, w).

    >>> conv2d_backprop_input([1, 1, 1, 1], [[[[3.0]]]], [[[[2.0]]]], 1, "SAME").item()
    6.0
    """
    how = (strides, padding, data_format, dilations)
    return _input_gradient(
        convolution.CONV2D_INPUT, input_sizes, (4, 2), filter, out_backprop, how, (exact, bits)
    )


def conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = 1,
    *,
    exact: bool = False,
    bits: bool = False,
) -> AnyArray:
    """``df[r,s,c,k] = sum over n,p,q of x[n, p*sh + r*dh - top, q*sw + s*dw - left, c] * g[n,p,q,k]``.

    >>> conv2d_backprop_filter([[[[2.0]]]], [1, 1, 1, 1], [[[[3.0]]]], 1, "SAME").item()
    6.0
    """
    how = (strides, padding, data_format, dilations)
    return _filter_gradient(
        convolution.CONV2D_FILTER, input, filter_sizes, out_backprop, how, (exact, bits)
    )


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = 1,
    *,
    exact: bool = False,
    bits: bool = False,
) -> AnyArray:
    """``y[n,p,q,c*M+m] = sum over r,s of x[n, p*sh + r*dh - top, q*sw + s*dw - left, c] * f[r,s,c,m]``.

    >>> depthwise_conv2d([[[[2.0, 1.0]]]], [[[[3.0], [5.0]]]], 1, "SAME").ravel()
    array([6., 5.])
    """
    how = (strides, padding, data_format, dilations)
    return _forward(convolution.DEPTHWISE, input, filter, how, (exact, bits))


def depthwise_conv2d_backprop_input(
    input_sizes: Any,
    filter: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = 1,
    *,
    exact: bool = False,
    bits: bool = False,
) -> AnyArray:
    """``dx[n,h,w,c] = sum of g[n,p,q,c*M+m] * f[r,s,c,m]`` where tap (r, s) of output (p, q) reads cell (h, w).

    >>> depthwise_conv2d_backprop_input([1, 1, 1, 1], [[[[3.0, 1.0]]]], [[[[2.0, 4.0]]]], 1, "SAME").item()
    10.0
    """
    how = (strides, padding, data_format, dilations)
    return _input_gradient(
        convolution.DEPTHWISE_INPUT, input_sizes, (4,), filter, out_backprop, how, (exact, bits)
    )


def depthwise_conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = 1,
    *,
    exact: bool = False,
    bits: bool = False,
) -> AnyArray:
    """``df[r,s,c,m] = sum over n,p,q of x[n, p*sh + r*dh - top, q*sw + s*dw - left, c] * g[n,p,q,c*M+m]``.

    >>> depthwise_conv2d_backprop_filter([[[[2.0]]]], [1, 1, 1, 1], [[[[3.0]]]], 1, "SAME").item()
    6.0
    """
    how = (strides, padding, data_format, dilations)
    return _filter_gradient(
        convolution.DEPTHWISE_FILTER, input, filter_sizes, out_backprop, how, (exact, bits)
    )


def batch_norm_act(
    input: Any,
    scale: Any = None,
    offset: Any = None,
    mean: Any = None,
    variance: Any = None,
    *,
    epsilon: float = 1e-3,
    is_training: bool = True,
    activation: str | None = "none",
    negative_slope: float = 0.2,
    residual: Any = None,
    residual_position: str = "before",
    data_format: str | None = "NHWC",
) -> BatchNormResult:
    """``y = act((x - mean[c]) / sqrt(variance[c] + epsilon) * scale[c] + offset[c])``, and a residual.

    >>> batch_norm_act([[[[2.0], [4.0]]]], epsilon=3.0).y.ravel()
    array([-0.5,  0.5])
    """
    function = "reference.batch_norm_act"
    how = _batch_norm.settings(
        *(function, epsilon, is_training, activation, negative_slope, residual_position),
        data_format,
    )
    _batch_norm.check_statistics(function, how.is_training, mean, variance)
    rows = {"scale": scale, "offset": offset, "mean": mean, "variance": variance}
    call = _BatchNorm(function, how, {"input": input, "residual": residual}, rows)
    return call.forward()


def batch_norm_act_grad(
    out_backprop: Any,
    input: Any,
    scale: Any,
    offset: Any,
    mean: Any,
    variance: Any,
    *,
    epsilon: float = 1e-3,
    is_training: bool = True,
    activation: str | None = "none",
    negative_slope: float = 0.2,
    residual: Any = None,
    residual_position: str = "before",
    data_format: str | None = "NHWC",
) -> BatchNormGradients:
    """The derivatives of `batch_norm_act`, through mean and variance too where they are the batch's.

    >>> batch_norm_act_grad([[[[1.0], [3.0]]]], [[[[2.0], [4.0]]]], None, None, [3.0], [1.0], epsilon=3.0).input.ravel()
    array([-0.375,  0.375])
    """
    function = "reference.batch_norm_act_grad"
    how = _batch_norm.settings(
        *(function, epsilon, is_training, activation, negative_slope, residual_position),
        data_format,
    )
    for name, value in (("mean", mean), ("variance", variance)):
        _batch_norm.check_given(function, name, value)
    images = {"out_backprop": out_backprop, "input": input, "residual": residual}
    rows = {"scale": scale, "offset": offset, "mean": mean, "variance": variance}
    return _BatchNorm(function, how, images, rows).backward()


class _BatchNorm:
    """One call, its images as float64 [n, c, p], its rows as float64 [c]."""

    def __init__(
        self,
        function: str,
        how: _batch_norm.Settings,
        images: dict[str, Any],
        rows: dict[str, Any],
    ) -> None:
        self._how = how
        arrays = {
            name: borrow_any(function, name, value)
            for name, value in (images | rows).items()
            if value is not None or name in ("input", "out_backprop")
        }
        shapes = {name: each.shape for name, each in arrays.items()}
        self._shape = shapes["input"]
        _batch_norm.check_shapes(
            function,
            how.data_format,
            self._shape,
            {name: shapes[name] for name in images if name in shapes and name != "input"},
            {name: shapes[name] for name in rows if name in shapes},
        )
        self.sizes = how.sizes(self._shape)
        held = [pin(function, each) for each in arrays.values()]
        with default_mode(), np.errstate(invalid="ignore"):  # signalling NaNs
            wide = {name: each.astype(np.float64) for name, each in arrays.items()}
        del held  # all are copies now
        self._rows = {name: wide.get(name) for name in rows}
        self._images = {name: self._channels_first(wide[name]) for name in images if name in wide}

    def _channels_first(self, image: AnyArray) -> AnyArray:
        first = image if self._how.data_format == "NCHW" else image.transpose(0, 3, 1, 2)
        return first.reshape(self.sizes.images, self.sizes.channels, self.sizes.pixels)

    def _back(self, image: AnyArray) -> AnyArray:
        if self._how.data_format == "NHWC":
            image = image.transpose(0, 2, 1)
        return np.ascontiguousarray(image.reshape(self._shape))

    def _statistics(self, mean: AnyArray, variance: AnyArray) -> _formulas.Statistics:
        rows = self._rows
        return _formulas.statistics(
            mean, variance, self._how.epsilon, rows["scale"], rows["offset"]
        )

    def _argument(self, given: _formulas.Statistics) -> AnyArray:
        """Return what the activation is applied to."""
        before = self._how.residual_position == "before"
        beside = self._images.get("residual") if before else None
        return _formulas.argument(self._images["input"], given, beside)

    def forward(self) -> BatchNormResult:
        mean, variance = self._rows["mean"], self._rows["variance"]
        with default_mode(), np.errstate(all="ignore"):
            if mean is None or variance is None:
                mean, variance = np.full((2, self.sizes.channels), np.nan)
                if not self.sizes.is_empty:
                    mean, variance = _formulas.moments(self._images["input"])
            u = self._argument(self._statistics(mean, variance))
            y = _formulas.activated(self._how.activation, u, self._how.negative_slope)
            if "residual" in self._images and self._how.residual_position == "after":
                y = y + self._images["residual"]
        return BatchNormResult(self._back(y), mean, variance)

    def backward(self) -> BatchNormGradients:
        mean, variance = self._rows["mean"], self._rows["variance"]
        assert mean is not None and variance is not None
        grad, residual = self._images["out_backprop"], None
        with default_mode(), np.errstate(all="ignore"):
            given = self._statistics(mean, variance)
            slope = _formulas.derivative(
                self._how.activation, self._argument(given), self._how.negative_slope
            )
            frozen = not self._how.is_training
            found = _formulas.gradients(self._images["input"], given, grad * slope, frozen)
        if "residual" in self._images:
            before = self._how.residual_position == "before"
            residual = self._back(found.residual if before else grad.copy())
        return BatchNormGradients(self._back(found.x), found.weight, found.bias, residual)


def _forward(row: Call, input: Any, filter: Any, how: tuple[Any, ...], ways: _Ways) -> AnyArray:
    call = _MINE[row]
    chosen = settings(call.function, FRIENDLY, *how)
    x = borrow_any(call.function, call.input, input)
    f = borrow_any(call.function, call.filter, filter)
    return _run(call, chosen, x.shape, f.shape, None, (x, f), ways)


def _input_gradient(
    row: Call,
    input_sizes: Any,
    lengths: tuple[int, ...],
    filter: Any,
    grad: Any,
    how: tuple[Any, ...],
    ways: _Ways,
) -> AnyArray:
    call = _MINE[row]
    chosen = settings(call.function, FRIENDLY, *how)
    shape = sizes(call.function, call.input, input_sizes, lengths)
    f = borrow_any(call.function, call.filter, filter)
    g = borrow_any(call.function, call.grad, grad)
    return _run(call, chosen, shape, f.shape, g.shape, (f, g), ways)


def _filter_gradient(
    row: Call, input: Any, filter_sizes: Any, grad: Any, how: tuple[Any, ...], ways: _Ways
) -> AnyArray:
    call = _MINE[row]
    chosen = settings(call.function, FRIENDLY, *how)
    shape = sizes(call.function, call.filter, filter_sizes, (4,))
    x = borrow_any(call.function, call.input, input)
    g = borrow_any(call.function, call.grad, grad)
    return _run(call, chosen, x.shape, shape, g.shape, (x, g), ways)


_Ways = tuple[bool, bool]
"""`exact` and `bits`, as given."""

_MINE = {row: replace(row, function=f"reference.{row.function}") for row in convolution.OPS}


def _run(
    call: Call,
    chosen: Settings,
    input_shape: Shape,
    filter_shape: Shape,
    grad_shape: Shape | None,
    operands: tuple[AnyArray, AnyArray],
    ways: _Ways,
) -> AnyArray:
    exact, bits = ways
    for name, value in zip(("exact", "bits"), ways, strict=True):
        if not isinstance(value, bool | np.bool_):
            raise ArgumentTypeError(
                f"{call.function}: `{name}` must be True or False, got {shown(value)}."
            )
    if exact and bits:
        raise ArgumentError(
            f"{call.function}: `exact` and `bits` must not both be True: bits are those of rounded sums."
        )
    row = _dtype_of_bits(call, operands) if bits else DOUBLE
    problem = convolution.build(call, chosen, row, input_shape, filter_shape, grad_shape)
    held = [pin(call.function, each) for each in operands]
    if exact or bits:
        copies = (
            operands[0].copy(),
            operands[1].copy(),
        )  # read several times: no writer may come between
    if bits:
        del held
        numbers = winograd.numerical_class(problem, config.get("winograd"))
        if reason := specification.why_not(problem, numbers):
            raise ArgumentError(
                f'{call.function}: with bits=True {reason}; options(winograd="off") gives plain sums.'
            )
        headroom.ask(headroom.FOR_LOOPS + 32 * (copies[0].size + copies[1].size), "to add up")
        return np.ascontiguousarray(specification.compute(problem, *copies, numbers=numbers)[0])
    if exact:
        with default_mode():
            first, second = _whole_numbers(call, problem, copies)
    else:
        with default_mode(), np.errstate(invalid="ignore"):  # signalling NaNs
            first, second = (each.astype(np.float64) for each in operands)
    del held  # both are copies now
    return np.ascontiguousarray(oracle.compute(problem, first, second))


def _dtype_of_bits(call: Call, operands: tuple[AnyArray, AnyArray]) -> DType:
    """Return the dtype of both operands, which decides in what sums are kept."""
    first, second = (find(each.dtype) for each in operands)
    if first is None or first is not second or first not in call.allowed:
        names = ", ".join(row.name for row in call.allowed)
        raise DTypeError(
            f"{call.function}: with bits=True both operands must have the same dtype out of {names}, "
            f"got {operands[0].dtype} and {operands[1].dtype}."
        )
    return first


def _whole_numbers(
    call: Call, problem: Problem, operands: tuple[AnyArray, AnyArray]
) -> tuple[AnyArray, AnyArray]:
    """Return the operands as integers wide enough for every partial sum."""
    largest, total = 0, _terms(problem)
    for each in operands:
        if each.dtype.kind not in "iub":
            wide = each if each.dtype.itemsize > 8 else each.astype(np.float64)
            if not (np.isfinite(wide).all() and (wide == np.rint(wide)).all()):
                raise ArgumentError(
                    f"{call.function}: with exact=True both operands must hold whole numbers only."
                )
        here = max(abs(int(each.min())), abs(int(each.max()))) if each.size else 0
        largest, total = max(largest, here), total * here
    if max(largest, total) < 2**63:
        return operands[0].astype(np.int64), operands[1].astype(np.int64)
    as_int = np.frompyfunc(int, 1, 1)
    return np.asarray(as_int(operands[0])), np.asarray(as_int(operands[1]))


def _terms(problem: Problem) -> int:
    """How many products at most are added into one number of the result."""
    taps = problem.rows.window * problem.cols.window
    if problem.kind is Kind.FORWARD:
        return taps * problem.group_in
    if problem.kind is Kind.INPUT_GRADIENT:
        return taps * problem.group_out
    return problem.batch * problem.rows.out * problem.cols.out
