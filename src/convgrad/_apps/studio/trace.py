"""Which cells of which inputs made a cell of a result, and with what numbers.

A rule per op lists the terms; what has none names its inputs as a whole. Terms are added up in float64, so their sum is
the value up to the rounding of the op's own type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from ..._base.dtypes import AnyArray
from ..._base.errors import ArgumentError
from ..._problem import geometry
from ..._problem.formula import formula
from ..graph import dtypes
from ..graph.operation import Operation
from ..graph.spec import Spec
from ..graph.table.convolutions import problem_of
from . import trace_convolutions
from .summaries import number
from .trace_convolutions import MOST_ADDED, Cells

_CUT = ("Div", "Mean")
"""Ops whose whole numbers lose what is behind the point."""
MOST_TERMS = 4096
"""Terms that are listed; all of them are added."""

Index = tuple[int, ...]
Source = tuple[str | None, str | None]
"""Block and pin an input comes from; None for a literal."""


@dataclass
class Terms:
    """Groups of terms: each a list of factors, and what becomes of their values."""

    formula: str
    groups: list[tuple[list[Cells], Callable[..., AnyArray]]] = field(default_factory=list)
    added: bool = True
    """Whether the value is the sum of the terms."""


def trace(
    node: Operation,
    output: int,
    inputs: Sequence[AnyArray],
    sources: Sequence[Source],
    result: AnyArray,
    index: Index,
) -> dict[str, Any]:
    """Return the terms of one cell of a node's output, for JSON."""
    if len(index) != result.ndim or any(
        not 0 <= at < size for at, size in zip(index, result.shape, strict=True)
    ):
        raise ArgumentError(
            f"`index` must lie in a tensor of shape {list(result.shape)}, got {list(index)}."
        )
    rule = _RULES.get(node.type)
    if rule is None:
        names = ", ".join(node.row.pin_of(at).name for at in range(len(inputs))) or "nothing"
        found = Terms(f"{node.type}: {node.row.summary} It is made of the whole of {names}.")
    else:
        found = rule(node, output, inputs, index)
    terms: list[dict[str, Any]] = []
    total, count = 0.0, 0
    for cells, combine in found.groups:
        values = [_values(each, inputs[each.input]) for each in cells]
        with np.errstate(all="ignore"):
            products = np.asarray(combine(*values), np.float64)
            total += float(products.sum())
        count += len(products)
        listed = range(min(len(products), MOST_TERMS - len(terms)))
        terms += [_term(node, cells, values, products, sources, at) for at in listed]
    formula = found.formula
    if node.type in _CUT and result.dtype.kind in "iu":
        if count > 1:  # 49 times 1/49 is a little less than 1
            total = float(np.round(total, 8))
        total, formula = float(np.trunc(total)), f"{formula}, without the fraction"
    return {
        "terms": terms,
        "sum": number(total) if found.added and found.groups else None,
        "value": number(result[index]),
        "formula": formula,
        "shown": len(terms),
        "total": count,
    }


def _values(cells: Cells, array: AnyArray) -> AnyArray:
    if len(cells.index) > MOST_ADDED:
        raise ArgumentError(f"the cell is made of {len(cells.index)} terms, too many to list.")
    if cells.inside is None:
        # A scalar, which has no index, gives one number instead of a list.
        return np.asarray(array[tuple(cells.index.T)], np.float64).reshape(len(cells.index))
    inside = np.broadcast_to(cells.inside, len(cells.index))
    found = np.zeros(len(cells.index))
    found[inside] = array[tuple(cells.index[inside].T)]
    return found


def _term(
    node: Operation,
    cells: list[Cells],
    values: list[AnyArray],
    products: AnyArray,
    sources: Sequence[Source],
    at: int,
) -> dict[str, Any]:
    parts = []
    padding = False
    for each, numbers in zip(cells, values, strict=True):
        block, pin = sources[each.input]
        part: dict[str, Any] = {
            "pin": node.row.pin_of(each.input).name,
            "block": block,
            "source_pin": pin,
            "index": each.index[at].tolist(),
            "value": number(numbers[at]),
        }
        if each.inside is not None and not np.broadcast_to(each.inside, len(numbers))[at]:
            padding = part["padding"] = True
        parts.append(part)
    term: dict[str, Any] = {"parts": parts, "product": number(products[at])}
    if padding:
        term["padding"] = True
    return term


# Rules: (node, number of the output, inputs, index) to terms.


def _one(input: int, index: Sequence[int]) -> Cells:
    return Cells(input, np.array([index], np.int64).reshape(1, len(index)))


def _row(input: int, index: Index, axis: int, size: int) -> Cells:
    """Return all cells along one dimension."""
    cells = np.tile(np.array(index, np.int64), (size, 1))
    cells[:, axis] = np.arange(size)
    return Cells(input, cells)


def _broadcast(array: AnyArray, index: Index) -> Index:
    """Return the cell of an operand that an elementwise op has repeated."""
    tail = index[len(index) - array.ndim :]
    return tuple(0 if size == 1 else at for at, size in zip(tail, array.shape, strict=True))


def _same(*values: AnyArray) -> AnyArray:
    return values[0]


def _times(*values: AnyArray) -> AnyArray:
    return values[0] * values[1]


def _minus(*values: AnyArray) -> AnyArray:
    return -values[0]


def _convolution(node: Operation, output: int, inputs: Sequence[AnyArray], index: Index) -> Terms:
    specs = [Spec(each.dtype, each.shape, _sizes(each)) for each in inputs]
    problem = problem_of(node, specs)
    assert problem is not None
    return Terms(formula(problem), [(trace_convolutions.cells(problem, index), _times)])


def _sizes(array: AnyArray) -> tuple[int, ...] | None:
    if array.ndim != 1 or array.size > 4 or array.dtype not in dtypes.INDICES:
        return None
    return tuple(array.tolist())


def _matmul(node: Operation, output: int, inputs: Sequence[AnyArray], index: Index) -> Terms:
    row, column = index
    turned = node.attrs["transpose_a"], node.attrs["transpose_b"]
    length = inputs[0].shape[0 if turned[0] else 1]
    left = _row(0, (0, row), 0, length) if turned[0] else _row(0, (row, 0), 1, length)
    right = _row(1, (column, 0), 1, length) if turned[1] else _row(1, (0, column), 0, length)
    return Terms(f"product[i,j] = sum over l<{length} of a * b", [([left, right], _times)])


def _terms_of(formula: str, *groups: tuple[tuple[int, ...], Callable[..., AnyArray]]) -> Any:
    """Return the rule of an elementwise op: groups of inputs that are combined."""

    def rule(node: Operation, output: int, inputs: Sequence[AnyArray], index: Index) -> Terms:
        return Terms(
            formula,
            [
                ([_one(at, _broadcast(inputs[at], index)) for at in numbers], combine)
                for numbers, combine in groups
            ],
        )

    return rule


def _sum_of_all(node: Operation, output: int, inputs: Sequence[AnyArray], index: Index) -> Terms:
    groups: list[Any] = [([_one(at, index)], _same) for at in range(len(inputs))]
    return Terms("sum = the sum of all inputs", groups)


def _bias(node: Operation, output: int, inputs: Sequence[AnyArray], index: Index) -> Terms:
    channel = index[-1 if node.attrs["data_format"] == "NHWC" else 1]
    groups: list[Any] = [([_one(0, index)], _same), ([_one(1, (channel,))], _same)]
    return Terms("output = value + bias[channel]", groups)


def _reduction(node: Operation, output: int, inputs: Sequence[AnyArray], index: Index) -> Terms:
    x, axis = inputs
    axes = sorted({int(at) % max(x.ndim, 1) for at in np.atleast_1d(axis)}) if x.ndim else []
    kept = [at for at in range(x.ndim) if at not in axes]
    place = index if node.attrs["keep_dims"] else None
    sizes = [x.shape[at] for at in axes]
    count = prod(sizes)
    if count > MOST_ADDED:
        raise ArgumentError(f"the cell is made of {count} terms, too many to list.")
    cells = np.zeros((count, x.ndim), np.int64)
    for number_, at in enumerate(kept):
        cells[:, at] = place[at] if place is not None else index[number_]
    if axes:
        cells[:, axes] = np.indices(sizes).reshape(len(axes), -1).T
    if node.type == "Sum":
        return Terms(f"output = the sum of {count} cells", [([Cells(0, cells)], _same)])
    return Terms(
        f"output = the sum of {count} cells / {count}",
        [([Cells(0, cells)], lambda values: values / count)],
    )


def _half_squares(node: Operation, output: int, inputs: Sequence[AnyArray], index: Index) -> Terms:
    x = inputs[0]
    if x.size > MOST_ADDED:
        raise ArgumentError(f"the cell is made of {x.size} terms, too many to list.")
    cells = np.indices(x.shape).reshape(x.ndim, -1).T if x.ndim else np.zeros((1, 0), np.int64)
    return Terms("output = the sum of t * t / 2", [([Cells(0, cells)], lambda t: t * t / 2)])


def _pool(node: Operation, output: int, inputs: Sequence[AnyArray], index: Index) -> Terms:
    """The cells of the window; those in the padding are never the largest."""
    attrs, x = node.attrs, inputs[0]
    rows = 1 if attrs["data_format"] == "NHWC" else 2
    axes = []
    for number_ in (0, 1):
        at = rows + number_
        pads: Any = attrs["padding"]
        if pads == "EXPLICIT":
            pads = tuple(attrs["explicit_paddings"][2 * at : 2 * at + 2])
        axes.append(geometry.solve(x.shape[at], attrs["ksize"][at], attrs["strides"][at], 1, pads))
    taps = np.indices([axis.window for axis in axes]).reshape(2, -1)
    cells = np.tile(np.array(index, np.int64), (taps.shape[1], 1))
    inside = np.ones(len(cells), bool)
    for number_, axis in enumerate(axes):
        at = rows + number_
        cells[:, at] = index[at] * axis.stride + taps[number_] - axis.before
        inside &= (cells[:, at] >= 0) & (cells[:, at] < axis.size)
    window = Cells(0, cells, inside)
    return Terms("output = the largest cell of the window", [([window], _same)], added=False)


def _last_row(formula: str) -> Any:
    """Return the rule of an op that reads a whole row of the last dimension."""

    def rule(node: Operation, output: int, inputs: Sequence[AnyArray], index: Index) -> Terms:
        row = _row(0, index, len(index) - 1, inputs[0].shape[-1])
        return Terms(formula, [([row], _same)], added=False)

    return rule


def _cross_entropy(node: Operation, output: int, inputs: Sequence[AnyArray], index: Index) -> Terms:
    features, labels = inputs
    wide = max(features.shape[1], labels.shape[1])
    cells = []
    for at, array in enumerate(inputs):
        row = 0 if array.shape[0] == 1 else index[0]
        column = np.arange(wide) if array.shape[1] == wide else np.zeros(wide, np.int64)
        cells.append(Cells(at, np.stack([np.full(wide, row), column], 1)))

    def shares(features: AnyArray, labels: AnyArray) -> AnyArray:
        shifted = features - features.max()
        logs: AnyArray = shifted - np.log(np.exp(shifted).sum())
        return -labels * logs

    if output == 0:
        return Terms("loss = the sum of -labels * log(softmax(features))", [(cells, shares)])
    return Terms("backprop = softmax(features) - labels", [(cells, _same)], added=False)


def _transpose(node: Operation, output: int, inputs: Sequence[AnyArray], index: Index) -> Terms:
    place = [0] * len(index)
    for at, axis in enumerate(inputs[1].tolist()):
        place[axis] = index[at]
    return Terms("y = the same element of x", [([_one(0, place)], _same)])


def _reshape(node: Operation, output: int, inputs: Sequence[AnyArray], index: Index) -> Terms:
    x, flat = inputs[0], 0
    sizes = [int(each) for each in np.atleast_1d(inputs[1])]
    if -1 in sizes:
        rest = prod(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = x.size // max(rest, 1)
    for at, size in zip(index, sizes, strict=True):
        flat = flat * size + at
    place = [int(each) for each in np.unravel_index(flat, x.shape)] if x.ndim else []
    return Terms("output = the same element of tensor", [([_one(0, place)], _same)])


def _cast(node: Operation, output: int, inputs: Sequence[AnyArray], index: Index) -> Terms:
    dtype = node.outputs[0].dtype
    return Terms(
        f"y = x as {dtype.name}", [([_one(0, index)], lambda values: values.astype(dtype))]
    )


def _argmax(node: Operation, output: int, inputs: Sequence[AnyArray], index: Index) -> Terms:
    x = inputs[0]
    axis = int(inputs[1].reshape(-1)[0]) % x.ndim
    full = (*index[:axis], 0, *index[axis:])
    row = _row(0, full, axis, x.shape[axis])
    return Terms("output = where the largest is", [([row], _same)], added=False)


def _repeat(node: Operation, output: int, inputs: Sequence[AnyArray], index: Index) -> Terms:
    return Terms("output = input, repeated", [([_one(0, _broadcast(inputs[0], index))], _same)])


def _unary(formula: str, value: Callable[[AnyArray], AnyArray]) -> Any:
    return _terms_of(formula, ((0,), value))


_RULES: dict[str, Callable[[Operation, int, Sequence[AnyArray], Index], Terms]] = {
    "Conv2D": _convolution,
    "Conv2DBackpropInput": _convolution,
    "Conv2DBackpropFilter": _convolution,
    "DepthwiseConv2dNative": _convolution,
    "DepthwiseConv2dNativeBackpropInput": _convolution,
    "DepthwiseConv2dNativeBackpropFilter": _convolution,
    "MatMul": _matmul,
    "MaxPool": _pool,
    "Sum": _reduction,
    "Mean": _reduction,
    "L2Loss": _half_squares,
    "AddN": _sum_of_all,
    "BiasAdd": _bias,
    "Add": _terms_of("z = x + y", ((0,), _same), ((1,), _same)),
    "Subtract": _terms_of("z = x - y", ((0,), _same), ((1,), _minus)),
    "Multiply": _terms_of("z = x * y", ((0, 1), _times)),
    "Div": _terms_of("z = x / y", ((0, 1), lambda x, y: x / y)),
    "Equal": _terms_of("z = x == y", ((0, 1), lambda x, y: x == y)),
    "Negate": _unary("y = -x", _minus),
    "Square": _unary("y = x * x", np.square),
    "Sqrt": _unary("y = sqrt(x)", np.sqrt),
    "Exp": _unary("y = exp(x)", np.exp),
    "Log": _unary("y = log(x)", np.log),
    "Tanh": _unary("y = tanh(x)", np.tanh),
    "Sigmoid": _unary("y = 1 / (1 + exp(-x))", lambda x: 1 / (1 + np.exp(-x))),
    "Relu": _unary("activations = the larger of features and 0", lambda x: np.maximum(x, 0)),
    "Cast": _cast,
    "ApplyGradientDescent": _terms_of(
        "out = var - alpha * delta", ((0,), _same), ((1, 2), lambda a, d: -a * d)
    ),
    "Assign": _terms_of("output_ref = value", ((1,), _same)),
    "BroadcastTo": _repeat,
    "Transpose": _transpose,
    "Reshape": _reshape,
    "ArgMax": _argmax,
    "Softmax": _last_row("softmax = exp(x) / the sum of exp over the row"),
    "LogSoftmax": _last_row("logsoftmax = x - log of the sum of exp over the row"),
}
_RULES["SoftmaxCrossEntropyWithLogits"] = _cross_entropy
